"""Time context writing: no reuse, llama-cpp-python's own prefix matching, this engine, and the machine's limit.

    .venv/bin/python scripts/bench_contextualize.py --model qwen2.5-coder-0.5b-instruct --json bench.json --quick

All variants run in one process on the same chunks, greedy, with the same prompts, alternating over `--rounds`:
  a  no reuse: every prompt is evaluated from its first token (on a sample of the chunks)
  b  prefix matching: `Llama.create_completion` chunk by chunk, which keeps the longest common prefix of the last prompt
     (what `create_chat_completion` does after applying the template; tokens are passed so that all prompts are equal)
  c  the shared-prefix engine
  d  limit: the token counts of c at the prefill rate and the best batched decode rate measured here
Each figure is the median over the rounds. Run it on an idle machine: llama.cpp's threads spin.
"""

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llama_cpp import Llama

from local_rag.contextualize import context_plan, make_engine, plan_contexts, prompt_requests
from local_rag.embed import load_tokenizer
from local_rag.llama.engine import Counts, Request, SharedPrefixEngine
from local_rag.llama.model import LlamaModel, physical_cores
from local_rag.models import resolve
from local_rag.read import read
from local_rag.records import Document
from local_rag.split import split

CHUNK_TOKENS = 145
BEST_DECODE_SEQUENCES = 16


def make_requests(model: LlamaModel, document: Document, count: int) -> list[Request]:
    """Return the prompts of a document's first chunks."""
    tokenizer = load_tokenizer(resolve("all-minilm-l6-v2", "embed").path)
    chunks = split(document, tokenizer=tokenizer, max_tokens=CHUNK_TOKENS)[:count]
    jobs = plan_contexts(document.title, document.text, chunks, model=model, plan=context_plan("bench"))
    return list(prompt_requests(jobs, model))


def repeat_to_length(document: Document, model: LlamaModel, tokens: int) -> Document:
    """Return a document of about this many tokens, made of numbered copies."""
    text, copies = document.text, 1
    while len(model.tokenize(text)) < tokens:
        copies += 1
        text += f"\n\n# Part {copies}\n\n{document.text}"
    limit = len(model.detokenize(model.tokenize(text)[:tokens]))
    return Document(document.path, document.title, text[:limit], document.kind, headings=())


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return seconds and result."""
    started = time.perf_counter()
    result = run()
    return time.perf_counter() - started, result


def run_engine(model: LlamaModel, requests: list[Request]) -> tuple[Counts, dict[str, list[int]]]:
    """Run variant c."""
    engine = make_engine(model)
    texts = {key: tokens for key, tokens, _ in engine.complete(requests)}
    counts = engine.counts
    engine.close()
    return counts, texts


def run_alone(model: LlamaModel, requests: list[Request]) -> None:
    """Run variant a: a fresh cache for every prompt."""
    room = max(len(request.prefix) + len(request.suffix) + request.max_tokens for request in requests)
    for request in requests:
        engine = SharedPrefixEngine(model, context_tokens=room, sequences=1, batch_tokens=512)
        list(engine.complete([request]))
        engine.close()


def run_prefix_matching(llama: Llama, requests: list[Request]) -> dict[str, list[int]]:
    """Run variant b."""
    texts = {}
    for request in requests:
        prompt = [*request.prefix, *request.suffix]
        answer = llama.create_completion(prompt, max_tokens=request.max_tokens, temperature=0.0)
        texts[request.key] = llama.tokenize(answer["choices"][0]["text"].encode(), add_bos=False)
    return texts


def measure_limit(model: LlamaModel, requests: list[Request]) -> tuple[float, float]:
    """Return tokens per second of prefill and of batched decoding behind a shared prefix."""
    tokens = [*requests[0].prefix, *requests[0].suffix][:512]
    engine = SharedPrefixEngine(model, context_tokens=4096, sequences=BEST_DECODE_SEQUENCES, batch_tokens=512)
    seconds, _ = timed(lambda: engine.log_probabilities(tokens[:-1], tokens[-1:]))
    prefill = len(tokens) / seconds
    many = [Request(str(key), tokens[:-1], [token], 24) for key, token in enumerate(tokens[:BEST_DECODE_SEQUENCES])]
    events = engine.stream(many)
    started, seen = 0.0, 0
    for event in events:
        if event.token is not None:
            seen += 1
            started = started or (time.perf_counter() if seen == len(many) else 0.0)
    decode = (seen - len(many)) / (time.perf_counter() - started)
    engine.close()
    return prefill, decode


def compare(model: LlamaModel, llama: Llama, requests: list[Request], *, sample: int, rounds: int) -> dict[str, Any]:
    """Run all four variants over the same prompts."""
    seconds: dict[str, list[float]] = {"a": [], "b": [], "c": [], "d": []}
    counts, agreeing = Counts(), 0
    for _ in range(rounds):
        spent, (counts, own) = timed(lambda: run_engine(model, requests))
        seconds["c"].append(spent / len(requests))
        llama.reset()
        spent, theirs = timed(lambda: run_prefix_matching(llama, requests))
        seconds["b"].append(spent / len(requests))
        spent, _ = timed(lambda: run_alone(model, requests[:: max(1, len(requests) // sample)][:sample]))
        seconds["a"].append(spent / min(sample, len(requests)))
        prefill, decode = measure_limit(model, requests)
        spent = (counts.prefix + counts.suffix) / prefill + counts.generated / decode
        seconds["d"].append(spent / len(requests))
        agreeing = sum(model.detokenize(own[key]) == model.detokenize(theirs[key]) for key in own)
    a, b, c, d = (statistics.median(seconds[name]) for name in "abcd")
    return {
        "chunks": len(requests),
        "prefix_tokens": len(requests[0].prefix),
        "seconds_per_chunk": {"no_reuse": a, "prefix_matching": b, "engine": c, "limit": d},
        "chunks_per_second": 1 / c,
        "ratio_to_prefix_matching": b / c,
        "ratio_to_no_reuse": a / c,
        "share_of_limit": d / c,
        "tokens_evaluated": counts.prefix + counts.suffix,
        "tokens_reused": counts.reused,
        "tokens_generated": counts.generated,
        "contexts_equal_to_prefix_matching": agreeing,
    }


def main() -> None:
    """Run the comparison and, unless --quick, its growth with chunks and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b-instruct")
    parser.add_argument("--document", type=Path, default=Path("corpus/manuals/tide-data-service.md"))
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, few chunks, no growth: about two minutes")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    path = resolve(arguments.model, "context").path
    model = LlamaModel(path)
    llama = Llama(str(path), n_ctx=8192, n_threads=physical_cores(), n_threads_batch=physical_cores(), verbose=False)
    document = read(arguments.document)
    chunks, rounds = (min(arguments.chunks, 12), 1) if arguments.quick else (arguments.chunks, arguments.rounds)
    requests = make_requests(model, document, chunks)
    report = {"model": arguments.model, "cores": physical_cores(), "rounds": rounds}
    report |= compare(model, llama, requests, sample=2 if arguments.quick else 4, rounds=rounds)
    if not arguments.quick:
        report["growth"] = [
            {
                "document_tokens": tokens,
                **compare(model, llama, make_requests(model, longer, count), sample=1, rounds=1),
            }
            for tokens in (1000, 4000, 16000)
            for longer in [repeat_to_length(document, model, tokens)]
            for count in (5, 20, 80)
        ]
    report["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
