"""Measure how soon `local-rag mcp` is usable: its tools listed, a first passage found, models loaded.

    python -m scripts.benchmarks mcp_start --library L --question Q --json mcp.json

Each round is a process of its own. Figures are medians of `--rounds`. Run it on an idle machine, without a server of
the library.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

START = "from local_rag.cli.main import main; main()"
HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "measure", "version": "1"}}


class Host:
    """A host that has started the command and counts the seconds since then."""

    def __init__(self, library: Path) -> None:
        command = [sys.executable, "-P", "-c", START, "mcp", "--library", str(library)]
        self._started, self._requests = time.perf_counter(), 0
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, method: str, **params: Any) -> tuple[dict[str, Any], float]:
        """Send a request; return its result and the seconds since the start."""
        assert self._process.stdin
        assert self._process.stdout
        self._requests += 1
        request = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        if "error" in reply or reply["result"].get("isError"):
            sys.exit(f"{method} failed: {reply}")
        return reply["result"], time.perf_counter() - self._started

    def end(self) -> float:
        """Close the pipe; return the seconds until the command ended."""
        assert self._process.stdin
        closed = time.perf_counter()
        self._process.stdin.close()
        self._process.wait()
        return time.perf_counter() - closed


def measure(library: Path, question: str) -> dict[str, float]:
    """Start the command once and search until the models are loaded."""
    host = Host(library)
    seconds = {"handshake_seconds": host.ask("initialize", **HANDSHAKE)[1], "list_seconds": host.ask("tools/list")[1]}
    while True:
        result, when = host.ask("tools/call", name="search", arguments={"query": question})
        seconds.setdefault("first_passage_seconds", when)
        if result["structuredContent"]["dense"] == "ready":
            return seconds | {"ready_seconds": when, "end_seconds": host.end()}


def main() -> None:
    """Measure and write the medians as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--question", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    rounds = [measure(arguments.library, arguments.question) for _ in range(arguments.rounds)]
    medians = {name: round(statistics.median(one[name] for one in rounds), 3) for name in rounds[0]}
    arguments.json.write_text(json.dumps(medians | {"rounds": arguments.rounds}, indent=1) + "\n")
