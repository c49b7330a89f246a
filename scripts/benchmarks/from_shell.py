"""Measure how long `local-rag ask` takes from the shell, cold and with the process that the first one leaves behind.

    python -m scripts.benchmarks from_shell --library L --before ../other-checkout --json from_shell.json

Each round asks twice with the checkout `--before` and twice with this one, in turns, so that what else the machine does
meets both; no question comes twice in a row. An answer is printed on a terminal of its own, as it is written. Figures
are medians of `--rounds`, in seconds, and of the ratios for the same question. Processor time, which other programs
disturb less, counts the command and the process that it leaves behind (on Linux).
"""

import argparse
import json
import os
import pty
import resource
import select
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile

from local_rag.serving.socket_client import running

ROOT = Path(__file__).parents[2]
START = "from local_rag.cli.start import main; main()"
QUESTIONS = (
    "How high may the tide rise before the harbour is told?",
    "How many weeks of paid leave does the parent who gives birth get in Ireland?",
    "Who may land at Gråskjær when the swell is 1.5 m?",
    "What does error TDS-404 mean?",
    "How often does the tide gauge ST-4471 need new batteries?",
    "What is a quarter of the price due for?",
)


def ask(checkout: Path, library: Path, question: str) -> tuple[float, float, float]:
    """Ask with a checkout's program; return the seconds until its first words and until it ended, and of processor."""
    before = processor_seconds(library)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(checkout), "TERM": "xterm", "LOCAL_RAG_KEEP_WARM": ""}
    began, first = time.perf_counter(), 0.0
    command = [sys.executable, "-P", "-c", START, "ask", question, "--library", str(library)]
    with TemporaryFile("w+") as said, subprocess.Popen(command, stdout=theirs, stderr=said, env=environment) as asking:
        os.close(theirs)
        while True:
            ready = select.select([ours], [], [], 0.05)[0]
            try:
                if ready and os.read(ours, 65536):
                    first = first or time.perf_counter() - began
            except OSError:  # the terminal has no writer any more
                break
            if not ready and asking.poll() is not None:
                break
        if asking.wait():
            said.seek(0)
            sys.exit(f"{checkout} could not answer: {said.read()}")
    os.close(ours)
    ended, after = time.perf_counter() - began, processor_seconds(library)
    return first, ended, after[0] - before[0] + after[1] - before[1]


def processor_seconds(library: Path) -> tuple[float, float]:
    """Return the processor time of all commands so far, and of the process that is left behind now."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found, left = running(library.resolve()), 0.0
    if found and sys.platform == "linux":
        fields = Path(f"/proc/{found.process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        left = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used.ru_utime + used.ru_stime, left


def stop(library: Path) -> None:
    """End the process that is left behind."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-c", START, "stop", "--library", str(library)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure in turns, and write the medians and ratios as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--before", type=Path, required=True, help="The checkout to compare with.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found: dict[str, list[tuple[float, float, float]]] = {}
    for turn in range(arguments.rounds):
        questions = [QUESTIONS[(turn + place) % len(QUESTIONS)] for place in range(2)]
        for name, checkout in (("before", arguments.before.resolve()), ("now", ROOT)):
            stop(arguments.library)
            for order, question in zip(("first", "second"), questions, strict=True):
                took = ask(checkout, arguments.library, question)
                found.setdefault(f"{name}, {order}", []).append(took)
                print(f"{name}, {order}: {took[0]:.2f} {took[1]:.2f} {took[2]:.2f}", file=sys.stderr, flush=True)
    stop(arguments.library)
    report: dict[str, object] = {"rounds": arguments.rounds, "load": [round(one, 1) for one in os.getloadavg()]}
    for place, what in enumerate(("first words", "whole", "processor")):
        for order in ("first", "second"):
            before, now = ([one[place] for one in found[f"{name}, {order}"]] for name in ("before", "now"))
            report[f"{what}, {order}"] = {
                "before": round(statistics.median(before), 2),
                "now": round(statistics.median(now), 2),
                # of the same questions, which take differently long
                "ratio": round(statistics.median(one / other for one, other in zip(now, before, strict=True)), 2),
            }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
