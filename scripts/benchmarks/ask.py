"""Measure `search` and `ask` from a cold start, or `ask` with loaded models, also against an earlier version.

    python -m scripts.benchmarks ask --library L --question Q --json cold.json
    python -m scripts.benchmarks ask --library L --question Q --against CHECKOUT --json cold.json
    python -m scripts.benchmarks ask --library L --dataset DATASET --most 20 --against CHECKOUT --json warm.json

From cold, each command is a process of its own, with only the disk cache warm; figures are medians of `--rounds`. With
`--dataset`, one process of each version stays open and answers its questions, evenly spread over the dataset, once
each. `--against` names a checkout of an earlier version, with its models in its `models/`. It indexes the same folders
into a library of its own, and the two versions take turns; `ratio` is this version's median divided by the earlier
one's. Run it on an idle machine.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from local_rag import Library
from local_rag.evaluation.dataset import load_dataset

ROOT = Path(__file__).parents[2]
START = "from local_rag.cli.main import main; main()"
# Answers the questions on its standard input, one JSON string per line; every version since 0.1 runs it.
ANSWER = """
import json, sys, time
from local_rag import Library
library = Library(sys.argv[1])
for line in sys.stdin:
    words, started = [], time.perf_counter()
    answer = library.ask(json.loads(line), on_text=lambda _: words.append(time.perf_counter()), counted=False)
    seconds = time.perf_counter() - started
    figures = {"seconds": seconds, "first_words_seconds": (words or [started + seconds])[0] - started}
    print(json.dumps(figures | {"tokens": answer.tokens, "answered": bool(answer.answered)}), flush=True)
"""


class Program:
    """A checkout of local-rag, with a library made by it."""

    def __init__(self, checkout: Path, library: Path) -> None:
        own = checkout / ".venv" / "bin" / "python"
        python = own if own.exists() else Path(sys.executable)  # the other checkout may have no environment of its own
        self._command = [str(python), "-P", "-c", START]  # -P: do not import from the working directory
        models = str(checkout / "models")  # its registry is that of the version
        self._environment = os.environ | {"PYTHONPATH": str(checkout), "LOCAL_RAG_MODELS": models}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)  # without it, each start compiles all modules
        self._library = library

    def run(self, *arguments: str, **variables: str) -> dict[str, Any]:
        """Run a command; return its output, its seconds and the seconds until its first output."""
        command = [*self._command, *arguments, "--library", str(self._library)]
        with tempfile.TemporaryFile() as log:
            started = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=self._environment | variables)
            assert process.stdout is not None
            first = process.stdout.read(1)
            first_seconds = time.perf_counter() - started
            output = first + process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            log.seek(0)
            errors = log.read().decode(errors="replace")
        if process.returncode:
            sys.exit(f"{' '.join(command)} failed: {errors.strip()}")
        return {
            "output": output.decode(errors="replace"),
            "errors": errors,
            "seconds": seconds,
            "first_seconds": first_seconds,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "peak_mb": usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024**2),
        }

    @contextmanager
    def answering(self) -> Iterator[Callable[[str], dict[str, float]]]:
        """Yield a function that asks a process whose models stay loaded, and returns its figures."""
        command = [*self._command[:-1], ANSWER, str(self._library)]
        with (
            tempfile.TemporaryFile() as log,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=self._environment, text=True
            ) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            given, taken = process.stdout, process.stdin

            def ask(question: str) -> dict[str, float]:
                taken.write(json.dumps(question) + "\n")
                taken.flush()
                line = given.readline()
                if not line:
                    log.seek(0)
                    sys.exit(f"Asking {question!r} failed: {log.read().decode(errors='replace').strip()}")
                return dict(json.loads(line))

            try:
                yield ask
            finally:
                process.stdin.close()

    def roots(self) -> list[str]:
        """Return the folders that the library indexes."""
        found: list[str] = json.loads(self.run("status", "--json")["output"])["roots"]
        return found

    def measure(self, question: str) -> dict[str, float]:
        """Ask once in each way."""
        search = self.run("search", question)
        plain = self.run("search", question, "--no-rerank")
        ask = self.run("ask", question)
        return {
            "search_cpu_seconds": search["cpu_seconds"],
            "search_seconds": search["seconds"],
            "search_no_rerank_cpu_seconds": plain["cpu_seconds"],
            "ask_first_words_seconds": ask["first_seconds"],
            "ask_seconds": ask["seconds"],
            "ask_peak_mb": ask["peak_mb"],
            "search_peak_mb": search["peak_mb"],
        }

    def imports_torch(self, question: str) -> bool:
        """Return whether a search imports torch."""
        imports = self.run("search", question, PYTHONPROFILEIMPORTTIME="1")["errors"]
        return bool(re.search(r"\|\s+torch$", imports, re.MULTILINE))


def from_cold(programs: Mapping[str, Program], question: str, rounds: int) -> dict[str, dict[str, Any]]:
    """Let the programs take turns, each command from a cold start."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    for program in programs.values():
        program.run("search", question)  # fills the disk's cache
    for _ in range(rounds):
        for name, program in programs.items():
            found[name].append(program.measure(question))
    return {
        name: {key: round(statistics.median(one[key] for one in rows), 3) for key in rows[0]}
        | {"torch_imported": programs[name].imports_torch(question)}
        for name, rows in found.items()
    }


def warm(programs: Mapping[str, Program], questions: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Let the programs answer the same questions by turns, with their models loaded."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    with ExitStack() as stack:
        askers = {name: stack.enter_context(program.answering()) for name, program in programs.items()}
        for ask in askers.values():
            ask(questions[0])  # loads the models
        for number, question in enumerate(questions, start=1):
            for name, ask in askers.items():
                found[name].append(ask(question))
            print(f"{number} of {len(questions)}", file=sys.stderr)
    keys = ("seconds", "first_words_seconds", "tokens")
    return {
        name: {f"median_{key}": round(statistics.median(one[key] for one in rows), 3) for key in keys}
        | {"mean_seconds": round(statistics.mean(one["seconds"] for one in rows), 3)}
        | {"questions": len(rows), "answered": sum(one["answered"] for one in rows)}
        for name, rows in found.items()
    }


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--question", help="measure from a cold start with this question")
    asked.add_argument("--dataset", type=Path, help="measure with loaded models and the questions of this folder")
    parser.add_argument("--most", type=int, default=20, help="questions of the dataset")
    parser.add_argument("--against", type=Path, help="a checkout to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    programs = {"": Program(ROOT, arguments.library.resolve())}
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.against:
            programs["against"] = Program(arguments.against.resolve(), Path(temporary) / "library")
            profile = Library(arguments.library).settings.profile
            programs["against"].run("index", *programs[""].roots(), "--context", "headings", "--profile", profile)
        if arguments.dataset:
            usable = [one.text for one in load_dataset(arguments.dataset).questions if one.answerability]
            chosen = [usable[number * len(usable) // arguments.most] for number in range(arguments.most)]
            figures = warm(programs, list(dict.fromkeys(chosen)))
        else:
            figures = from_cold(programs, arguments.question, arguments.rounds)
    report = figures.pop("") | figures
    if arguments.against:
        other = report["against"]
        report["ratio"] = {key: round(report[key] / other[key], 3) for key in other if _is_time(key) and other[key]}
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _is_time(key: str) -> bool:
    return key.endswith("seconds")
