"""Time context writing: no reuse, llama-cpp-python's prefix matching, our engine, and the limit of the machine.

    python -m scripts.benchmarks contextualize --model qwen2.5-coder-0.5b-instruct --json bench.json --quick

All variants run in one process on the same chunks with greedy decoding and take turns over `--rounds`. Figures are
medians.
  a  no reuse: each prompt is evaluated from its first token (for a sample of the chunks)
  b  prefix matching: `Llama.create_completion` for one chunk after another, which keeps the longest common prefix with
     the last prompt (as `create_chat_completion` does after applying the template; the prompts are passed as tokens so
     that they are equal)
  c  the shared-prefix engine
  d  the limit: the token counts of c, at the rates of prefill and batched decoding measured in this run, with a prefix
     as long as the document
Two prompts are compared. `repeated` is the usual one, the whole document followed by the chunk; the figures at the top
level of the JSON are for it. `cut` is the prompt of local-rag, the document up to the end of the chunk. Its c is
compared with a and b for the usual prompt, and with b for the same prompt. If `local-rag models optimize` has kept a
copy of the model, `optimized` compares the engine with the copy and b with the model as pulled. `share_of_processor` is
the prefill rate (of the faster file) as a share of what the processor's int8 multiplications alone would allow, which
ONNX Runtime measures in the same run. Run it on an idle machine.
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

from local_rag.document_records import Document
from local_rag.indexing.situating_prompts import (
    MAX_TOKENS,
    ContextJob,
    context_plan,
    context_room,
    plan_contexts,
    prompt_requests,
)
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Counts, Request, common_prefix
from local_rag.llama.model import LlamaModel
from local_rag.llama.optimize import fastest_file, measure_rates, stored_settings
from local_rag.machine import physical_cores, processor
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import tokenizer_of
from local_rag.models.registry import resolve
from local_rag.reading.read import read
from local_rag.reading.split import split
from scripts.benchmarks._processor_limit import reading_limit

CHUNK_TOKENS = 145
# The usual prompt quotes the chunk after the document, so the request says "this chunk" instead of "the last chunk".
SYSTEM = "You write short notes that help a search engine find passages of documents."
QUOTED, QUOTED_END = "\n</document>\n\nHere is a chunk of this document:\n<chunk>\n", "\n</chunk>\n\n"


class Bench:
    """The model, its optimized copy if there is one, and the model in llama-cpp-python's own class."""

    def __init__(self, installed: InstalledModel, document: Document, chunks: int, *, optimized: bool) -> None:
        self.path = installed.path
        self.models = {"engine": LlamaModel(self.path)}
        if optimized and (copy := fastest_file(installed)) != self.path:
            self.models["optimized"] = LlamaModel(copy)
        self.model = self.models["engine"]
        from llama_cpp import Llama  # after local_rag, which sets how long waiting threads spin

        cores = physical_cores()
        self.llama = Llama(str(self.path), n_ctx=8192, n_threads=cores, n_threads_batch=cores, verbose=False)
        self.settings = stored_settings(self.path) or EngineSettings()
        self.tokenizer = tokenizer_of(resolve("all-minilm-l6-v2", "embed"))
        self.document = document
        jobs = self.jobs(document, chunks)
        if len(jobs) < chunks:
            sys.exit(f"{document.path} has only {len(jobs)} chunks; name a longer --document, or fewer --chunks.")
        self.prompts = {"repeated": list(self.repeated(jobs)), "cut": list(prompt_requests(jobs, self.model))}
        self.prefix_tokens = len(self.prompts["repeated"][0].prefix)

    def jobs(self, document: Document, count: int) -> list[ContextJob]:
        """Plan the contexts of a document's first chunks."""
        chunks = split(document, tokenizer=self.tokenizer, max_tokens=CHUNK_TOKENS)
        jobs = plan_contexts(document.title, document.text, chunks, vocabulary=self.model, plan=context_plan("bench"))
        return jobs[:count]

    def repeated(self, jobs: list[ContextJob]) -> Iterator[Request]:
        """Yield prompts with the whole document followed by the chunk."""
        whole = self.model.tokenize(f"{self.document.title}\n\n{self.document.text}")
        before, after = self.model.chat_frame(SYSTEM)
        prefix = [*self.model.tokenize(f"{before}<document>\n", special=True), *whole]
        for job in jobs:
            request = f"{job.form.request.replace('the last chunk', 'this chunk')}{after}{job.form.opening}"
            suffix = [
                *self.model.tokenize(QUOTED),
                *self.model.tokenize(job.window.pieces[job.piece]),
                *self.model.tokenize(f"{QUOTED_END}{request}", special=True),
            ]
            yield Request(job.key, prefix, suffix, MAX_TOKENS)

    def run_alone(self, requests: list[Request]) -> None:
        """Run variant a: a fresh cache for every prompt."""
        room = max(request.start + len(request.suffix) + request.max_tokens for request in requests)
        for request in requests:
            settings = replace(self.settings, sequences=1)
            engine = SharedPrefixEngine(self.model, context_tokens=room, settings=settings)
            list(engine.complete([request]))
            engine.close()

    def run_prefix_matching(self, requests: list[Request]) -> dict[str, tuple[str, list[int]]]:
        """Run variant b; return each text with its generated tokens except the last."""
        self.llama.reset()
        texts = {}
        for request in requests:
            prompt = [*request.prefix[: request.start], *request.suffix]
            answer = self.llama.create_completion(prompt, max_tokens=request.max_tokens, temperature=0.0)
            tokens = self.llama.input_ids[len(prompt) : self.llama.n_tokens]
            texts[request.key] = answer["choices"][0]["text"], [int(token) for token in tokens]
        return texts

    def run_engine(self, requests: list[Request], model: LlamaModel) -> tuple[Counts, dict[str, list[int]]]:
        """Run variant c."""
        sequences = self.settings.sequences
        longest = max(len(request.suffix) + request.max_tokens for request in requests)
        # The usual prompt needs a larger cache than local-rag uses.
        room = max(context_room(model.context_length, sequences), len(requests[0].prefix) + sequences * longest)
        engine = SharedPrefixEngine(model, context_tokens=room, settings=self.settings)
        texts = {key: tokens for key, tokens, _ in engine.complete(requests)}
        engine.close()
        return engine.counts, texts

    def compare(self, *, sample: int, rounds: int) -> dict[str, Any]:
        """Run all variants with both prompts in turns."""
        runs: dict[tuple[str, str], tuple[int, Callable[[], Any]]] = {}
        for prompt, requests in self.prompts.items():
            for name, model in self.models.items():
                runs[prompt, name] = len(requests), partial(self.run_engine, requests, model)
            runs[prompt, "prefix_matching"] = len(requests), partial(self.run_prefix_matching, requests)
        few = spread(self.prompts["repeated"], sample)
        runs["repeated", "no_reuse"] = len(few), partial(self.run_alone, few)
        times: dict[tuple[str, str], list[float]] = {}
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in self.models}
        results: dict[tuple[str, str], Any] = {}
        for _ in range(rounds):
            for name, model in self.models.items():
                rate = measure_rates(model, self.settings, decoded=16, prefix_tokens=self.prefix_tokens)
                rates[name].append(rate)
            for key, (count, run) in runs.items():
                started = time.perf_counter()
                results[key] = run()
                times.setdefault(key, []).append((time.perf_counter() - started) / count)
        seconds = {key: statistics.median(values) for key, values in times.items()}

        def figures(prompt: str, name: str) -> dict[str, Any]:
            counts: Counts = results[prompt, name][0]
            prefill, decode = (statistics.median(values) for values in zip(*rates[name], strict=True))
            engine = seconds[prompt, name]
            limit = (counts.evaluated / prefill + counts.generated / decode) / len(self.prompts[prompt])
            return {
                "seconds_per_chunk": {"engine": engine, "limit": limit},
                "chunks_per_second": 1 / engine,
                "ratio_to_prefix_matching": seconds["repeated", "prefix_matching"] / engine,
                "ratio_to_prefix_matching_same_prompt": seconds[prompt, "prefix_matching"] / engine,
                "ratio_to_no_reuse": seconds["repeated", "no_reuse"] / engine,
                "share_of_limit": limit / engine,
                "tokens_evaluated": counts.evaluated,
                "tokens_reused": counts.reused,
                "tokens_generated": counts.generated,
                "prefill_per_second": prefill,
                "decode_per_second": decode,
            }

        report: dict[str, Any] = {prompt: figures(prompt, "engine") for prompt in self.prompts}
        for prompt, requests in self.prompts.items():
            others = {
                name: seconds[prompt, name] for name in ("prefix_matching", "no_reuse") if (prompt, name) in seconds
            }
            report[prompt]["seconds_per_chunk"] |= others
            report[prompt] |= self.differences(
                requests, results[prompt, "engine"][1], results[prompt, "prefix_matching"]
            )
        report |= report.pop("repeated")
        if "optimized" in self.models:
            report["optimized"] = {prompt: figures(prompt, "optimized") for prompt in self.prompts}
        return report

    def differences(
        self, requests: list[Request], own: dict[str, list[int]], theirs: dict[str, tuple[str, list[int]]]
    ) -> dict[str, float | int]:
        """Count the contexts equal to those of variant b, and measure how close the first difference was.

        Batches of other shapes round differently. The gap is between the log probabilities of the two tokens.
        """
        equal, gaps = 0, [0.0]
        engine = SharedPrefixEngine(self.model, context_tokens=8192)
        for request in requests:
            tokens = own[request.key]
            whole, other = theirs[request.key]
            if self.model.detokenize(tokens) == whole:
                equal += 1
                continue
            shared = common_prefix(tokens, other)
            prompt = [*request.prefix[: request.start], *request.suffix, *tokens[:shared]]
            chances = engine.log_probabilities(prompt[:-1], prompt[-1:])
            one, two = (text[shared] if len(text) > shared else self.llama.token_eos() for text in (tokens, other))
            gaps.append(float(abs(chances[one] - chances[two])))
        engine.close()
        return {"contexts_equal": equal, "contexts": len(requests), "largest_gap_at_first_difference": max(gaps)}

    def growth(self) -> Iterator[dict[str, float]]:
        """Yield the engine's speed for several document lengths and numbers of chunks.

        Uses the optimized copy of the model if there is one.
        """
        model = self.models.get("optimized", self.model)
        for tokens in (1000, 4000, 16000):
            for chunks in (5, 20, 80):
                jobs: list[ContextJob] = []
                while len(jobs) < chunks:
                    jobs += self.jobs(self.lengthened(tokens, len(jobs)), chunks - len(jobs))
                started = time.perf_counter()
                counts, _ = self.run_engine(list(prompt_requests(jobs, model)), model)
                spent = time.perf_counter() - started
                yield {
                    "document_tokens": tokens,
                    "chunks": chunks,
                    "chunks_per_second": chunks / spent,
                    "tokens_evaluated": counts.evaluated,
                    "tokens_reused": counts.reused,
                    "tokens_generated": counts.generated,
                }

    def lengthened(self, tokens: int, number: int) -> Document:
        """Return a document of this many tokens, made of numbered copies of the measured one."""
        document = self.document
        text, copies = f"Number {number}\n\n{document.text}", 1
        while len(self.model.tokenize(text)) < tokens:
            copies += 1
            text += f"\n\n# Part {copies}\n\n{document.text}"
        text = self.model.detokenize(self.model.tokenize(text)[:tokens])
        return Document(document.path, f"{document.title} {number}", text, document.kind, headings=())


def spread(requests: list[Request], count: int) -> list[Request]:
    """Return `count` requests, evenly spread."""
    return requests[:: max(1, len(requests) // count)][:count]


def main() -> None:
    """Run the comparison and, unless --quick, the engine's growth with chunks and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b-instruct", help="name or path")
    parser.add_argument("--document", type=Path, default=Path("corpus/manuals/tide-data-service.md"))
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="one round, at most 12 chunks, no growth; takes two minutes"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    chunks, rounds = (min(arguments.chunks, 12), 1) if arguments.quick else (arguments.chunks, arguments.rounds)
    model = resolve(arguments.model, "context")
    bench = Bench(model, read(arguments.document), chunks, optimized=not arguments.quick)
    report = {
        "model": arguments.model,
        "label": bench.path.stem,
        "settings": asdict(bench.settings),
        "processor": processor(),
        "cores": physical_cores(),
        "chunks": chunks,
        "rounds": rounds,
        "document_tokens": bench.prefix_tokens,
        **bench.compare(sample=1 if arguments.quick else 3, rounds=rounds),
    }
    limit = reading_limit(bench.model)
    read_by = [report["prefill_per_second"]]
    if "optimized" in report:
        read_by.append(report["optimized"]["cut"]["prefill_per_second"])
    report["reading_limit_per_second"] = limit
    report["share_of_processor"] = max(read_by) / limit
    report["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if not arguments.quick:
        report["growth"] = list(bench.growth())
    report["python"] = platform.python_version()
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
