"""Build examples to train the reader: a question, passages, which of them answer it, and where.

The questions are those of the sets in FOLDER (see sets.py), and others about documented Python code that is installed
here. An example says which sentences of the right passage answer; the other passages share words with the question. A
question with one value changed, which its passage no longer answers, makes another example. Writes examples.jsonl and a
table of counts.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from scripts.training.changes import Values
from scripts.training.code_questions import code_entries
from scripts.training.sets import Entry, Text, read_sets

NEGATIVES = 8
_TIMES = 3  # that a written question occurs, with other passages drawn each time
_UNUSED = {"multihop", "tatqa", "xquad"}  # several passages answer together; no sentences are known; in SQuAD 2 as well
_ONE = {"clapnq-near", "squad2-near"}  # only of the first passage people said that it does not answer
_UNSURE = {"selqa"}  # nobody said of the others that they do not answer
_CHANGED = {"nq", "clapnq", "covid"}
_TITLED = {"fetaqa", "faq"}  # and what was written: without the title, nobody can tell which one is meant

Span = tuple[int, int]
Example = dict[str, Any]


def sentences(text: str) -> list[Span]:
    """Return where the sentences of a text begin and end."""
    ends = [match.end() for match in re.finditer(r"[.!?][\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9`])|\n+", text)]
    bounds = [0, *ends, len(text)]
    return [(first, last) for first, last in pairwise(bounds) if text[first:last].strip()]


def spans_of(text: str, answers: Iterable[str]) -> list[Span]:
    """Return the sentences that contain an answer or lie in one."""
    flat, found = text.lower(), set()
    for answer in answers:
        for match in re.finditer(re.escape(answer.lower()), flat) if answer.strip() else ():
            word = answer[0].isalnum() and flat[max(0, match.start() - 1) : match.start()].isalnum()
            if not word:
                found |= {(a, b) for a, b in sentences(text) if a < match.end() and match.start() < b}
    return sorted(found)


def passage(text: Text, relevant: int | None, answers: int | None, spans: list[Span] | None) -> Example:
    """Return a passage with its labels; None is not known, and not trained on."""
    return {"title": text.title, "text": text.text, "relevant": relevant, "answers": answers, "spans": spans}


def examples(entries: Sequence[Entry]) -> Iterator[Example]:
    """Yield each question with its passages, the right one first, and some again with a value changed."""
    chance = random.Random(len(entries))
    values = Values.of(entry for entry in entries if entry.source in _CHANGED)
    for entry in (one for one in entries for _ in range(_TIMES if one.topic else 1)):
        if entry.source in _UNUSED or entry.source.endswith("-sentence"):
            continue
        if not entry.gold and entry.others:
            shown = entry.others[: 1 if entry.source in _ONE else NEGATIVES]
            yield _example(entry, entry.source, entry.question, [passage(text, None, 0, []) for text in shown])
        others = [passage(text, 0, None if entry.source in _UNSURE else 0, []) for text in entry.others[:NEGATIVES]]
        for text in entry.gold:
            spans = spans_of(text.text, entry.evidence)
            if entry.evidence and not spans:
                continue
            alone = 1 if len(entry.gold) == 1 else None  # each of several answers in part
            right = passage(text, 1, alone, spans or None)
            yield _example(entry, entry.source, entry.question, [right, *others])
            changed = values.changed(entry.question, text.title, chance) if entry.source in _CHANGED else None
            if changed:
                yield _example(entry, f"{entry.source}-changed", changed, [passage(text, None, 0, [])])


def _example(entry: Entry, source: str, question: str, passages: list[Example]) -> Example:
    """Return an example; entries that share passages are held out together, and so is a question when it is changed."""
    return {
        "source": source,
        "held_out": random.Random(entry.topic or entry.question).random() < 0.05,
        "titled": bool(entry.topic) or entry.source.removesuffix("-near") in _TITLED,
        "question": question,
        "passages": passages,
    }


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
def main(folder: Path, output: Path) -> None:
    entries = list(read_sets(folder, lambda text: click.echo(text, err=True)))
    written = list(examples([*entries, *code_entries()]))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in written), encoding="utf-8")
    counts: dict[str, Counter[str]] = {}
    for one in written:
        count = counts.setdefault(one["source"], Counter())
        count["held out" if one["held_out"] else "train"] += 1
        count["with sentences"] += bool(one["passages"] and one["passages"][0]["spans"])
    output.with_suffix(".counts.json").write_text(json.dumps(counts, indent=2) + "\n")
    click.echo(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
