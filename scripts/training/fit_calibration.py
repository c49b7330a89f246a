"""Fit the calibration of an answer model that models/registry.toml holds, to questions whose right answers are known.

    local-rag eval DATASET --no-rerank       # indexes the dataset
    python -m scripts.training.fit_calibration --rows rows.jsonl --set DATASET LIBRARY --set DATASET LIBRARY

The questions of the choosing half that say what a right answer must include, or that nothing answers, are asked, a
fixed sample of each set by turns. Both readings are judged, and each question is stored in ROWS as soon as it is
answered: a stopped run continues where it stopped. Prints the calibration as the registry takes it, and for several
thresholds how many answers of each set would be right, wrong and quoted. The rows belong to one prompt: name another
file after a change of it.
"""

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from local_rag import Library
from local_rag.answering.answerer import Answerer
from local_rag.answering.gate import Signals, fit, probability, prompt_recipe
from local_rag.evaluation.dataset import Question, load_dataset
from local_rag.evaluation.judge import is_right
from local_rag.models.choice import identity_of
from local_rag.records import Calibration

NAMES = ("right", "answers")
THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75)
FOLDS = 5
ANSWER_FROM = 0.5  # more likely right than wrong


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a question: its signals, whether its answer is right, and whether `ask` could give it."""

    signals: Signals
    right: bool
    given: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a set with its two readings."""

    set: str
    question: str
    answerable: bool
    readings: Sequence[Reading]


def sample(folder: Path, most: int) -> list[Question]:
    """Return at most `most` questions of the choosing half in an order that only their text decides."""
    usable = [
        one
        for one in load_dataset(folder).questions
        if one.part == "choose"
        and (one.answerability == "unanswerable" or (one.answerability == "answerable" and one.must_include))
    ]
    return sorted(usable, key=lambda one: hashlib.sha256(one.text.encode()).hexdigest())[:most]


def ask(library: Library, answerer: Answerer, question: Question, name: str) -> Asked:
    """Read a question twice and judge both answers."""
    pipeline = library.pipeline()
    sources = pipeline.select(question.text, pipeline.find(question.text))
    answerable = question.answerability == "answerable"
    readings = list[Reading]()
    for best in (False, True):
        if draft := answerer.draft(question.text, sources, best=best):
            supported = [one for one in draft.sentences if one.is_supported]
            given = [one for one in supported if not one.missing] or supported
            text = " ".join(one.sentence for one in given)
            readings.append(Reading(draft.signals, answerable and is_right(question, text), bool(given)))
    return Asked(name, question.text, answerable, readings)


def load_rows(path: Path) -> list[Asked]:
    """Return the questions that were asked already."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [_row(json.loads(line)) for line in lines]


def _row(record: dict[str, Any]) -> Asked:
    readings = [Reading(**{**one, "signals": Signals(**one["signals"])}) for one in record["readings"]]
    return Asked(**{**record, "readings": readings})


def fitted(rows: Sequence[Asked], recipe: str, quote_from: float) -> Calibration:
    """Fit the signals of all readings to whether their answers are right."""
    readings = [one for row in rows for one in row.readings if one.given]
    bias, weights = fit([one.signals for one in readings], [one.right for one in readings], NAMES)
    return Calibration(recipe, bias, weights, 0.0, quote_from)


def held_out(rows: Sequence[Asked]) -> list[tuple[Asked, Reading, float]]:
    """Return for each question the more probable reading and its probability, by a calibration of other questions."""
    result = list[tuple[Asked, Reading, float]]()
    for fold in range(FOLDS):
        calibration = fitted([row for number, row in enumerate(rows) if number % FOLDS != fold], "", 0.0)
        for row in rows[fold::FOLDS]:
            likely = [(probability(one.signals, calibration) or 0.0) * one.given for one in row.readings]
            if likely:
                best = int(np.argmax(likely))
                result.append((row, row.readings[best], likely[best]))
    return result


def table(rows: Sequence[Asked]) -> list[str]:
    """Say for each set and threshold how many answers would be right, wrong and quoted."""
    lines = list[str]()
    judged = held_out(rows)
    for name in sorted({row.set for row in rows}):
        for threshold in THRESHOLDS:
            mine = [(row, reading, likely >= threshold) for row, reading, likely in judged if row.set == name]
            counts = {
                "right": sum(row.answerable and said and one.right for row, one, said in mine),
                "wrong": sum(row.answerable and said and not one.right for row, one, said in mine),
                "quoted": sum(row.answerable and not said for row, _, said in mine),
                "stated unanswerable": sum(not row.answerable and said for row, _, said in mine),
                "quoted unanswerable": sum(not row.answerable and not said for row, _, said in mine),
            }
            lines.append(f"{name} {threshold:.2f} {', '.join(f'{count} {what}' for what, count in counts.items())}")
    return lines


@click.command(help=__doc__)
@click.option("--set", "sets", type=(Path, Path), multiple=True, help="A dataset and the library that indexes it.")
@click.option("--rows", "path", type=Path, required=True, help="Where questions that were asked are stored.")
@click.option("--most", default=150, show_default=True, help="Questions of each set.")
@click.option("--quote-from", default=0.01, show_default=True, help="The least probability of a quotation.")
def main(sets: Sequence[tuple[Path, Path]], path: Path, most: int, quote_from: float) -> None:
    """Ask what was not asked yet, then fit and print."""
    rows = load_rows(path)
    known = {(row.set, row.question) for row in rows}
    libraries = {folder.name: Library(library) for folder, library in sets}
    questions = [[(folder.name, one) for one in sample(folder, most)] for folder, _ in sets]
    turns = [pair for turn in itertools.zip_longest(*questions) for pair in turn if pair]
    for name, question in turns:
        if (name, question.text) not in known:
            with libraries[name].calibrating() as (_, answerer, _):
                row = ask(libraries[name], answerer, question, name)
            rows.append(row)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            click.echo(f"{len(rows)} {name} {[one.right for one in row.readings]} {question.text[:60]}", err=True)
    recipe = prompt_recipe(identity_of(next(iter(libraries.values())).settings, "rerank")) if libraries else ""
    found = replace(fitted(rows, recipe, quote_from), answer_from=ANSWER_FROM)
    weights = ", ".join(f"{name} = {weight:.3f}" for name, weight in found.weights.items())
    click.echo("\n".join(table(rows)))
    click.echo(
        f'calibration = {{ recipe = "{found.recipe}", bias = {found.bias:.3f}, weights = {{ {weights} }}, '
        f"answer_from = {found.answer_from}, quote_from = {found.quote_from} }}"
    )


if __name__ == "__main__":
    main()
