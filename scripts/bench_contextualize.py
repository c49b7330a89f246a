"""Time context writing: no reuse, llama-cpp-python's own prefix matching, this engine, and the machine's limit.

    .venv/bin/python scripts/bench_contextualize.py --model qwen2.5-coder-0.5b-instruct --json bench.json --quick

All variants run in one process on the same chunks, greedy, alternating over `--rounds`; figures are medians:
  a  no reuse: every prompt is evaluated from its first token (on a sample of the chunks)
  b  prefix matching: `Llama.create_completion` chunk by chunk, which keeps the longest common prefix of the last prompt
     (what `create_chat_completion` does after applying the template; tokens are passed so that all prompts are equal)
  c  the shared-prefix engine
  d  the limit: the token counts of c at the prefill rate and the batched decode rate measured in this run
Two prompts are compared. `repeated` is the usual one, the document and then the chunk again: the figures at the top of
the JSON are for it. `cut` is the one local-rag uses, the document up to the end of the chunk: under "cut" its c is set
against a and b with the usual prompt, and against b with the same one. Run it on an idle machine: llama.cpp's threads
spin.
"""

import argparse
import json
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from llama_cpp import Llama

from local_rag.contextualize import MAX_TOKENS, ContextJob, context_plan, make_engine, plan_contexts, prompt_requests
from local_rag.embed import load_tokenizer
from local_rag.llama.calibrate import measure_rates, stored_settings
from local_rag.llama.engine import EngineSettings, Request, SharedPrefixEngine, common_prefix
from local_rag.llama.model import LlamaModel, physical_cores
from local_rag.models import resolve
from local_rag.probe import processor
from local_rag.read import read
from local_rag.records import Document
from local_rag.split import split

CHUNK_TOKENS = 145
INSTRUCTION = (
    "Please give a short succinct context to situate this chunk within the overall document for the purposes of "
    "improving search retrieval of the chunk. Answer only with the succinct context, in one sentence, and nothing else."
)


class Bench:
    """Hold the model twice, for the engine and for llama-cpp-python's own class."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = LlamaModel(path)
        cores = physical_cores()
        self.llama = Llama(str(path), n_ctx=8192, n_threads=cores, n_threads_batch=cores, verbose=False)
        self.settings = stored_settings(path) or EngineSettings()
        self.tokenizer = load_tokenizer(resolve("all-minilm-l6-v2", "embed").path)

    def jobs(self, document: Document, count: int) -> list[ContextJob]:
        """Plan the contexts of a document's first chunks."""
        chunks = split(document, tokenizer=self.tokenizer, max_tokens=CHUNK_TOKENS)[:count]
        return plan_contexts(document.title, document.text, chunks, model=self.model, plan=context_plan("bench"))

    def repeated(self, jobs: list[ContextJob]) -> Iterator[Request]:
        """Yield prompts that hold the whole window and then the chunk again."""
        tokenize = self.model.tokenize
        before, after = self.model.chat_frame("You write short notes that help a search engine find passages.")
        head = tokenize(f"{before}<document>\n", special=True)
        between = tokenize("\n</document>\n\nHere is a chunk of this document:\n<chunk>\n")
        end = tokenize(f"\n</chunk>\n\n{INSTRUCTION}{after}This chunk", special=True)
        prefixes: dict[int, list[int]] = {}
        for job in jobs:
            text = f"{job.window.head}\n\n" + "\n\n".join(job.window.pieces)
            prefix = prefixes.setdefault(id(job.window), [*head, *tokenize(text)])
            yield Request(job.key, prefix, [*between, *tokenize(job.window.pieces[job.piece]), *end], MAX_TOKENS)

    def run_alone(self, requests: list[Request]) -> None:
        """Run variant a: a fresh cache for every prompt."""
        room = max(request.start + len(request.suffix) + request.max_tokens for request in requests)
        for request in requests:
            settings = replace(self.settings, sequences=1)
            engine = SharedPrefixEngine(self.model, context_tokens=room, settings=settings)
            list(engine.complete([replace(request, prefix=request.prefix[: request.start], cut=None)]))
            engine.close()

    def run_prefix_matching(self, requests: list[Request]) -> dict[str, str]:
        """Run variant b."""
        self.llama.reset()
        texts = {}
        for request in requests:
            prompt = [*request.prefix[: request.start], *request.suffix]
            answer = self.llama.create_completion(prompt, max_tokens=request.max_tokens, temperature=0.0)
            texts[request.key] = answer["choices"][0]["text"]
        return texts

    def run_engine(self, requests: list[Request]) -> tuple[SharedPrefixEngine, dict[str, list[int]]]:
        """Run variant c."""
        engine = make_engine(self.model, self.settings)
        if len(requests[0].suffix) > 2 * MAX_TOKENS:  # the usual prompt's suffixes want more room than the engine has
            engine.close()
            room = engine.context_tokens + sum(sorted(len(one.suffix) for one in requests)[-engine.sequences :])
            engine = SharedPrefixEngine(self.model, context_tokens=room, settings=self.settings)
        texts = {key: tokens for key, tokens, _ in engine.complete(requests)}
        engine.close()
        return engine, texts

    def compare(self, prompts: dict[str, list[Request]], *, sample: int, rounds: int) -> dict[str, Any]:
        """Run all variants with every prompt, alternating."""
        seconds: dict[tuple[str, str], list[float]] = {}
        rates, results = [], {}
        for _ in range(rounds):
            rates.append(measure_rates(self.model, self.settings, decoded=16))
            for prompt, requests in prompts.items():
                runs: dict[str, Callable[[], Any]] = {
                    "c": partial(self.run_engine, requests),
                    "b": partial(self.run_prefix_matching, requests),
                    "a": partial(self.run_alone, spread(requests, sample)),
                }
                for name, run in runs.items():
                    started = time.perf_counter()
                    results[prompt, name] = run()
                    count = min(sample, len(requests)) if name == "a" else len(requests)
                    seconds.setdefault((prompt, name), []).append((time.perf_counter() - started) / count)
        prefill, decode = (statistics.median(rate) for rate in zip(*rates, strict=True))
        report = {}
        for prompt, requests in prompts.items():
            engine, own = results[prompt, "c"]
            a, b, c = (statistics.median(seconds[prompt, name]) for name in "abc")
            counts = engine.counts
            d = (counts.evaluated / prefill + counts.generated / decode) / len(requests)
            report[prompt] = {
                "seconds_per_chunk": {"no_reuse": a, "prefix_matching": b, "engine": c, "limit": d},
                "chunks_per_second": 1 / c,
                "ratio_to_prefix_matching": b / c,
                "ratio_to_no_reuse": a / c,
                "share_of_limit": d / c,
                "tokens_evaluated": counts.evaluated,
                "tokens_reused": counts.reused,
                "tokens_generated": counts.generated,
                **self.differences(requests, own, results[prompt, "b"]),
            }
        usual, own_prompt = report["repeated"], report["cut"]
        own_prompt["ratio_to_prefix_matching_same_prompt"] = own_prompt["ratio_to_prefix_matching"]
        own_prompt["ratio_to_prefix_matching"] = (
            usual["seconds_per_chunk"]["prefix_matching"] / own_prompt["seconds_per_chunk"]["engine"]
        )
        own_prompt["ratio_to_no_reuse"] = (
            usual["seconds_per_chunk"]["no_reuse"] / own_prompt["seconds_per_chunk"]["engine"]
        )
        return {**usual, "cut": own_prompt, "prefill_per_second": prefill, "decode_per_second": decode}

    def differences(
        self, requests: list[Request], own: dict[str, list[int]], theirs: dict[str, str]
    ) -> dict[str, float | int]:
        """Count the contexts that equal those of variant b, and say how near a tie the first other token was.

        Batches of other shapes round differently. The gap is that of the log probabilities of the two tokens.
        """
        equal, gaps = 0, [0.0]
        engine = SharedPrefixEngine(self.model, context_tokens=8192)
        for request in requests:
            tokens = own[request.key]
            if self.model.detokenize(tokens) == theirs[request.key]:
                equal += 1
                continue
            other = self.model.tokenize(theirs[request.key])
            shared = common_prefix(tokens, other)
            prompt = [*request.prefix[: request.start], *request.suffix, *tokens[:shared]]
            chances = engine.log_probabilities(prompt[:-1], prompt[-1:])
            ending = [token[shared] for token in (tokens, other) if len(token) > shared]
            gaps.append(float(abs(chances[ending[0]] - (chances[ending[1]] if len(ending) > 1 else chances.max()))))
        engine.close()
        return {"contexts_equal": equal, "contexts": len(requests), "largest_gap_at_first_difference": max(gaps)}

    def growth(self, document: Document) -> Iterator[dict[str, float]]:
        """Yield the engine's speed over documents of several lengths and several numbers of chunks."""
        for tokens in (1000, 4000, 16000):
            for chunks in (5, 20, 80):
                jobs: list[ContextJob] = []
                while len(jobs) < chunks:
                    jobs += self.jobs(self.lengthened(document, tokens, len(jobs)), chunks - len(jobs))
                started = time.perf_counter()
                engine, _ = self.run_engine(list(prompt_requests(jobs, self.model)))
                spent = time.perf_counter() - started
                yield {
                    "document_tokens": tokens,
                    "chunks": chunks,
                    "chunks_per_second": chunks / spent,
                    "tokens_evaluated": engine.counts.evaluated,
                    "tokens_reused": engine.counts.reused,
                    "tokens_generated": engine.counts.generated,
                }

    def lengthened(self, document: Document, tokens: int, number: int) -> Document:
        """Return a document of this many tokens, made of numbered copies of another."""
        text, copies = f"Number {number}\n\n{document.text}", 1
        while len(self.model.tokenize(text)) < tokens:
            copies += 1
            text += f"\n\n# Part {copies}\n\n{document.text}"
        text = self.model.detokenize(self.model.tokenize(text)[:tokens])
        return Document(document.path, f"{document.title} {number}", text, document.kind, headings=())


def spread(requests: list[Request], count: int) -> list[Request]:
    """Return that many requests, evenly spread."""
    return requests[:: max(1, len(requests) // count)][:count]


def main() -> None:
    """Run the comparison and, unless --quick, the engine's growth with chunks and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b-instruct", help="name or path")
    parser.add_argument("--document", type=Path, default=Path("corpus/manuals/tide-data-service.md"))
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one round, at most 12 chunks, no growth: two minutes")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    bench = Bench(resolve(arguments.model, "context").path)
    document = read(arguments.document)
    chunks, rounds = (min(arguments.chunks, 12), 1) if arguments.quick else (arguments.chunks, arguments.rounds)
    jobs = bench.jobs(document, chunks)
    if len(jobs) < chunks:
        sys.exit(f"{arguments.document} has {len(jobs)} chunks; name a longer one with --document, or fewer --chunks.")
    prompts = {"repeated": list(bench.repeated(jobs)), "cut": list(prompt_requests(jobs, bench.model))}
    report = {
        "model": arguments.model,
        "label": bench.path.stem,
        "settings": asdict(bench.settings),
        "processor": processor(),
        "cores": physical_cores(),
        "chunks": chunks,
        "rounds": rounds,
        "document_tokens": len(prompts["repeated"][0].prefix),
        **bench.compare(prompts, sample=1 if arguments.quick else 3, rounds=rounds),
    }
    report["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if not arguments.quick:
        report["growth"] = list(bench.growth(document))
    report["python"] = platform.python_version()
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
