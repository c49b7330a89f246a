"""Ask the same questions in this process and through llama-cpp-python's own server on loopback, with the same model.

    python -m scripts.benchmarks external --library L --dataset corpus --model NAME --json external.json

It needs `pip install 'llama-cpp-python[server]'`. The server has as many threads as this process.
Both are asked by turns, with their models loaded, and are shown the same sources. `first_words` is the time until the
engine writes the first words, `answer` that until the user sees any, once it is decided whether to answer. `ratio` is
the median over the questions of the way through the server divided by that in this process. The processor time of both
processes, which other programs change less, is given as well.

Once the server tells the odds of its words (`--logits_all`), once it does not, as Ollama. Then an answer is decided
in another way, so only its `draft` can be the same.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from local_rag import Library
from local_rag.answering.answerer import Answerer, answer_room
from local_rag.answering.selection import Source, select_sources
from local_rag.evaluation.dataset import load_dataset
from local_rag.llama.engine import EngineSettings
from local_rag.llama.external import ExternalEngine
from local_rag.llama.generator import Generator, Request, Token
from local_rag.llama.models_in_use import open_engine
from local_rag.machine import physical_cores
from local_rag.model_records import InstalledModel
from local_rag.models.engine_address import parse_engine
from local_rag.models.registry import resolve
from local_rag.retrieval.question import read_question

_SECONDS = 120  # for the server to load its model


Times = tuple[float, float]  # elapsed, and of processors


class Watched:
    """A generator that tells when it wrote the first words; `process` is the other one that works for it, if any."""

    def __init__(self, generator: Generator, process: int = 0) -> None:
        self._generator, self._process = generator, process
        self.first: Times | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def stream(self, requests: Iterable[Request]) -> Iterator[Token]:
        """Yield what the generator yields."""
        with closing(self._generator.stream(requests)) as events:
            for event in events:
                self.first = self.first or self._now()
                yield event

    def ask(self, question: str, sources: Sequence[Source], model: InstalledModel) -> dict[str, Any]:
        """Return the answer to a question, its draft, and the seconds that both took."""
        self.first, started, asked = None, self._now(), read_question(question)
        answerer = Answerer(lambda: self, model.calibration)  # type: ignore[arg-type,return-value]
        answer = answerer.answer(asked, sources)
        ended = self._now()
        seconds = {"first_words": _minus(self.first or ended, started), "answer": _minus(ended, started)}
        draft = answerer.draft(asked, sources)  # is remembered
        sentences = [one.sentence for one in draft.sentences] if draft else []
        return {"seconds": seconds, "answer": answer.text, "draft": sentences}

    def _now(self) -> Times:
        seconds = time.process_time()
        if self._process:
            fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), seconds


def _minus(end: Times, start: Times) -> Times:
    return end[0] - start[0], end[1] - start[1]


@contextmanager
def server(weights: Path, *, odds: bool, threads: int) -> Iterator[tuple[str, int]]:
    """Yield the address and the process of llama-cpp-python's server of a model."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {"model": weights, "host": "127.0.0.1", "port": port, "n_ctx": 8192, "logits_all": odds}
    options |= dict.fromkeys(("n_threads", "n_threads_batch"), threads) | {"verbose": False}
    command = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    with subprocess.Popen([sys.executable, "-m", "llama_cpp.server", *command], stderr=subprocess.DEVNULL) as process:
        try:
            address = f"http://127.0.0.1:{port}/v1"
            for _ in range(_SECONDS):
                with suppress(OSError), urllib.request.urlopen(f"{address}/models"):  # noqa: S310
                    break
                if process.poll() is not None:
                    sys.exit("The server does not start; install it with `pip install 'llama-cpp-python[server]'`.")
                time.sleep(1)
            yield address, process.pid
        finally:
            process.terminate()


def compare(
    asked: Sequence[tuple[str, Sequence[Source]]], model: InstalledModel, *, odds: bool, threads: int
) -> dict[str, Any]:
    """Ask all questions in both ways."""
    settings = EngineSettings(threads=threads)
    with (
        server(model.path, odds=odds, threads=threads) as (address, process),
        open_engine(model.path, context_tokens=answer_room, settings=lambda _model: settings) as engine,
    ):
        there = ExternalEngine(parse_engine(address), context_tokens=answer_room)
        ways = {"here": Watched(engine), "there": Watched(there, process)}
        rows = []
        for number, (question, sources) in enumerate([asked[0], *asked]):
            order = list(ways) if number % 2 else list(reversed(ways))
            found = {name: ways[name].ask(question, sources, model) for name in order}
            rows += [found] if number else []  # the first question warms up
            print(f"{number} of {len(asked)}", file=sys.stderr)
        assert there.tells_odds is odds
    report: dict[str, Any] = {"questions": len(rows)}
    for same in ("draft", "answer"):
        report[f"same_{same}"] = sum(row["here"][same] == row["there"][same] for row in rows)
    for what in ("first_words", "answer"):
        for place, kind in enumerate(("", "processor_")):
            pairs = [[row[way]["seconds"][what][place] for way in ways] for row in rows]
            here, server_seconds = (round(statistics.median(column), 3) for column in zip(*pairs, strict=True))
            ratio = round(statistics.median(other / own for own, other in pairs), 3)
            report[f"{what}_{kind}seconds"] = {"here": here, "server": server_seconds, "ratio": ratio}
    return report


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--model", action="append", required=True, help="of the registry; may be repeated")
    parser.add_argument("--most", type=int, default=20, help="questions of the dataset")
    parser.add_argument("--threads", type=int, default=physical_cores(), help="1 where other programs are busy")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    questions = [one.text for one in load_dataset(arguments.dataset).questions if one.answerability == "answerable"]
    chosen = [questions[number * len(questions) // arguments.most] for number in range(arguments.most)]
    with Library(arguments.library) as library:
        found = {question: library.search(question) for question in dict.fromkeys(chosen)}
    report: dict[str, Any] = {"threads": arguments.threads}
    for name in arguments.model:
        model = resolve(name, "answer")
        asked = [
            (question, select_sources(question, [passages], count_tokens=lambda text: len(text) // 4, reader=None))
            for question, passages in found.items()
        ]
        report[name] = {
            f"odds_{odds}".lower(): compare(asked, model, odds=odds, threads=arguments.threads)
            for odds in (True, False)
        }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
