"""Measure `search` and `ask` from a cold start: each command is a process of its own, with only the disk cache warm.

    python -m scripts.benchmarks ask --library L --question Q --json cold.json
    python -m scripts.benchmarks ask --library L --question Q --against CHECKOUT --json cold.json

`--against` names a checkout of an earlier version. It indexes the same folders into a library of its own, and the two
versions take turns. Figures are medians of `--rounds`. Run it on an idle machine.
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
from pathlib import Path
from typing import Any

from local_rag import Library

ROOT = Path(__file__).parents[2]
START = "from local_rag.cli.main import main; main()"


class Program:
    """A checkout of local-rag, with a library made by it."""

    def __init__(self, checkout: Path, library: Path) -> None:
        own = checkout / ".venv" / "bin" / "python"
        python = own if own.exists() else Path(sys.executable)  # the other checkout may have no environment of its own
        self._command = [str(python), "-P", "-c", START]  # -P: do not import from the working directory
        models = os.environ.get("LOCAL_RAG_MODELS", str(ROOT / "models"))
        self._environment = os.environ | {"PYTHONPATH": str(checkout), "LOCAL_RAG_MODELS": models}
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
            "search_peak_mb": search["peak_mb"],
        }

    def imports_torch(self, question: str) -> bool:
        """Return whether a search imports torch."""
        imports = self.run("search", question, PYTHONPROFILEIMPORTTIME="1")["errors"]
        return bool(re.search(r"\|\s+torch$", imports, re.MULTILINE))


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--question", required=True)
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
        found: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
        for program in programs.values():
            program.run("search", arguments.question)  # fills the disk's cache
        for _ in range(arguments.rounds):
            for name, program in programs.items():
                found[name].append(program.measure(arguments.question))
        figures: dict[str, dict[str, Any]] = {
            name: {key: round(statistics.median(one[key] for one in rounds), 3) for key in rounds[0]}
            | {"torch_imported": programs[name].imports_torch(arguments.question)}
            for name, rounds in found.items()
        }
    report = figures.pop("") | figures
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
