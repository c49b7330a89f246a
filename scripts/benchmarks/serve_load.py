"""Measure a running server: concurrent clients, memory over many searches, and the command line through it.

    python -m scripts.benchmarks serve_load --library .local-rag --json docs/measurements/serve-MACHINE.json

Each client must get the answer that it would get alone; those answers are asked for first, one by one. `--baseline
PYTHON` names the Python of another checkout, whose `search` and `ask` are timed from a cold start. `--brief` takes a
few seconds and asks few questions, to show that it works. Run it on an idle machine.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

QUESTIONS = (
    "How many weeks of paid leave does the parent who gives birth get in Ireland?",
    "How many weeks of paid leave does the parent who gives birth get in Norway?",
    "How often is the tide gauge read?",
    "What happened at Hraunvik?",
    "Who may book a hotel?",
    "What is the harbour master paid?",
    "How is the bulb of the lamp changer replaced?",
    "When is a doctor's note needed?",
)
CLIENTS = 8
MAIN = "from local_rag.cli.main import main; main()"


def main() -> None:
    """Start a server, measure it and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=Path(".local-rag"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--baseline", type=Path, help="the Python of another checkout, to time from a cold start")
    parser.add_argument("--brief", action="store_true")
    arguments = parser.parse_args()
    seconds, searches, runs, questions = (5, 40, 2, 2) if arguments.brief else (60, 1000, 8, len(QUESTIONS))
    report: dict[str, Any] = {"machine": platform.platform(), "cores": os.cpu_count()}
    # Without the answer cache, so that each answer is generated. The command needs the same variables as the server,
    # which serves only commands with the same settings.
    environment = os.environ | {"LOCAL_RAG_ANSWER_CACHE": "false", "LOCAL_RAG_HISTORY": "false"}
    cold = [str(arguments.baseline or sys.executable), "-P", "-c", MAIN]
    report["cold"] = command_line(cold, arguments.library, runs, environment)
    print(json.dumps(report), file=sys.stderr)
    command = [
        sys.executable,
        "-P",
        "-c",
        MAIN,
        "serve",
        "--no-token",
        "--port",
        "0",
        "--library",
        str(arguments.library),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[-1]
            wait_until_loaded(address)
            ask(address, QUESTIONS[0])  # the first answer is the slowest
            own = [sys.executable, "-P", "-c", MAIN]
            report["served"] = command_line(own, arguments.library, runs, environment)
            report["search_times_faster"] = round(report["cold"]["search"] / report["served"]["search"], 1)
            report["clients"] = at_once(address, seconds, QUESTIONS[:questions])
            report["searches"] = memory(address, server.pid, searches)
        finally:
            server.terminate()
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def wait_until_loaded(address: str) -> None:
    """Wait until a server, which may not answer yet, has loaded all models, including the answer model."""
    loaded = False
    while not loaded:
        with suppress(OSError):
            loaded = json.loads(get(f"{address}healthz", seconds=10))["loaded"]
        if not loaded:
            time.sleep(0.1)


def get(address: str, *, seconds: float = 600) -> bytes:
    """Fetch a URL."""
    with urllib.request.urlopen(address, timeout=seconds) as answer:  # noqa: S310
        data: bytes = answer.read()
        return data


def ask(address: str, question: str) -> dict[str, Any]:
    """Ask with a JSON request."""
    data = urlencode({"question": question}).encode()
    request = urllib.request.Request(f"{address}ask", data, {"accept": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
        # Seconds and conversation are not part of the answer. The odds may differ in the second decimal, because the
        # order of floating-point sums depends on which part of the prompt is cached.
        apart = {"seconds", "conversation", "log_odds", "probability"}
        return {name: value for name, value in found.items() if name not in apart}


def at_once(address: str, seconds: float, questions: Sequence[str]) -> dict[str, Any]:
    """Let several clients ask for a while; compare each answer with the one given alone."""
    alone = {question: ask(address, question) for question in questions}
    ends = time.monotonic() + seconds

    def client(number: int) -> tuple[int, int, list[float]]:
        same, took, turn = 0, list[float](), number
        while time.monotonic() < ends:
            question, began = questions[turn % len(questions)], time.monotonic()
            same += ask(address, question) == alone[question]
            took.append(time.monotonic() - began)
            turn += 1
        return same, len(took), took

    with ThreadPoolExecutor(CLIENTS) as threads:
        results = list(threads.map(client, range(CLIENTS)))
    waits = [wait for _, _, took in results for wait in took]
    asked = sum(count for _, count, _ in results)
    return {
        "clients": CLIENTS,
        "answers": asked,
        "as_alone": sum(same for same, _, _ in results),
        "median_seconds": statistics.median(waits),
    }


def memory(address: str, process: int, searches: int) -> dict[str, Any]:
    """Search often; return the server's memory in MB over time, and its growth in the second half."""
    sizes = []
    for number in range(searches):
        get(f"{address}search?{urlencode({'q': f'{QUESTIONS[number % len(QUESTIONS)]} {number}'})}")
        if number % max(1, searches // 10) == 0 or number == searches - 1:
            sizes.append(resident(process))
    return {"searches": searches, "megabytes": sizes, "grown_later": round(sizes[-1] - sizes[len(sizes) // 2], 1)}


def resident(process: int) -> float:
    """Return the resident memory of a process in MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def command_line(command: Sequence[str], library: Path, runs: int, environment: dict[str, str]) -> dict[str, float]:
    """Time `search` and `ask`, to the first words and in total; return medians in seconds."""
    took: dict[str, list[float]] = {"search": [], "ask_first_words": [], "ask": []}
    for question in QUESTIONS[:runs]:
        began = time.monotonic()
        searching = [*command, "search", question, "--library", str(library)]
        subprocess.run(searching, check=True, capture_output=True, env=environment)
        took["search"].append(time.monotonic() - began)
    for question in QUESTIONS[: max(1, runs // 2)]:
        began = time.monotonic()
        asking = [*command, "ask", question, "--library", str(library)]
        with subprocess.Popen(asking, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            process.stdout.read(1)
            took["ask_first_words"].append(time.monotonic() - began)
            process.stdout.read()
        took["ask"].append(time.monotonic() - began)
    return {name: statistics.median(values) for name, values in took.items()}
