"""Measure how long texts take that were written to keep a program busy, by turns with an earlier version.

    python -m scripts.benchmarks attacks --against CHECKOUT [--most 60] [--json FILE]

Each text is read in a process of its own, which is ended after `--most` seconds of the processor. What counts is the
time of the processor, which other work on the machine hardly changes.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

from scripts.benchmarks.ask import ROOT

# What is attacked, how long the text is, and code that runs in both versions, whose modules have other names.
_FACTS = """
try:
    from local_rag.text.facts import Source
except ImportError:
    from local_rag.verification.sources import Source
def attack(): Source("12 " + "- " * {} + "total 15 kg")
"""
_FIND = """
from local_rag.retrieval.occurrences import occurrences, pattern_of
from local_rag.retrieval.find_question import exact_question
def attack():
    asked = exact_question('"' + "- " * {} + 'zebra"')
    occurrences("-" * 80 + " The zebra drinks.", [pattern_of(phrase) for phrase in asked.phrases])
"""
_COOKIE = """
from http.cookies import SimpleCookie
try:
    from local_rag.serving.http import cookie_in
except ImportError:
    cookie_in = None
sent = 'name="' + "{}" * 30_000 + '"'
def attack(): cookie_in([sent], "name") if cookie_in else SimpleCookie().load(sent)
"""
_SENTENCES = """
try:
    from local_rag.text.sentences import split_sentences
except ImportError:
    from local_rag.verification.sentences import split_sentences
def attack(): split_sentences("A. " * 20_000)
"""
_FORM = """
import unicodedata
try:
    from local_rag.text.words import normalize
except ImportError:
    normalize = unicodedata.normalize
def attack(): normalize("NFKC", "a" + "\\u0301\\u0323" * {})
"""
ATTACKS = {
    "24 dashes between two numbers of a question or document": _FACTS.format(24),
    "2,000 dashes between two numbers": _FACTS.format(2000),
    "8 dashes in a quotation that `find` looks for, 80 in a document": _FIND.format(8),
    "40 dashes in such a quotation": _FIND.format(40),
    "a cookie of 60,000 characters": _COOKIE.format("\\\\\\\\"),
    "60,000 characters of initials in a version of a document": _SENTENCES,
    "120,000 marks on one letter": _FORM.format(60_000),
}
_TIMED = """
import time
begun = time.thread_time()
attack()
print(time.thread_time() - begun)
"""


def seconds(code: str, checkout: Path, most: int) -> float | None:
    """Return the processor's seconds of an attack in a version, None if they are more than `most`."""
    done = subprocess.run(
        [sys.executable, "-c", code + _TIMED],
        cwd=checkout,  # which comes first where modules are looked for
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most + 1, most + 1)),
    )
    if done.returncode < 0:  # ended by the limit
        return None
    if done.returncode:
        raise SystemExit(f"{code}\n{done.stderr}")
    return float(done.stdout)


def main() -> None:
    """Print the times before and after, and write them if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, required=True, help="a checkout of an earlier version")
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--json", type=Path, help=f"such as {ROOT / 'docs' / 'measurements' / 'attacks.json'}")
    given = parser.parse_args()
    rows = list[list[str]]()
    for name, code in ATTACKS.items():
        times = [seconds(code, checkout, given.most) for checkout in (given.against, ROOT)]
        rows.append([name, *(f"more than {given.most} s" if time is None else f"{time:.3f} s" for time in times)])
        print(" | ".join(rows[-1]), flush=True)
    if given.json:
        report = {
            "title": "Attacks on time",
            "lines": ["Seconds of the processor for a text that was written to keep a program busy."],
            "table": {"header": ["attack", "before", "after"], "rows": rows},
        }
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
