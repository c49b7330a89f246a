"""Fit the calibration of an answer model that models/registry.toml holds, to questions whose right answers are known.

    local-rag eval DATASET --no-rerank       # indexes the dataset
    python -m scripts.training.fit_calibration --rows rows.jsonl --set DATASET LIBRARY --set DATASET LIBRARY

The questions of the choosing half that say what a right answer must include, or that nothing answers, are asked, a
fixed sample of each set by turns. Each answer is judged and stored in ROWS as soon as it is written: a stopped run
continues where it stopped. Prints the calibration as the registry takes it, and for several thresholds how many
answers of each set would be right, wrong and quoted. A signal that does not lower the held-out log loss gets no weight,
so `ask` does not compute it. The rows belong to one prompt: name another file after a change of it.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from local_rag import Library
from local_rag.answering.answerer import Answerer
from local_rag.answering.probability import Signals, fit, probability, prompt_recipe
from local_rag.evaluation.answer_figures import is_right
from local_rag.evaluation.dataset import Question, load_dataset
from local_rag.evaluation.run_history import new_figure, save_figure
from local_rag.model_records import Calibration
from local_rag.models.choice import find, identity_of
from local_rag.retrieval.question import read_question
from local_rag.settings import Settings

# The sets of signals to choose from, the smallest first: of a model that was trained to refuse, and of another.
TRAINED: Sequence[tuple[str, ...]] = (("answerable",), ("answerable", "answers"))
NAMES: Sequence[tuple[str, ...]] = (("answers",), ("right", "answers"))
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
FOLDS = 5
_GROUPS = 6  # of a plot
ANSWER_FROM = 0.5  # more likely right than wrong


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a set: the signals of its answer, whether that is right, and whether `ask` could give it.

    Without signals nothing was found.
    """

    set: str
    question: str
    answerable: bool
    signals: Signals | None = None
    right: bool = False
    given: bool = False


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
    """Let a question be answered, and judge the answer."""
    answerer.calibration = None  # so that all signals are asked for
    pipeline = library.answering.pipeline()
    asked = Asked(name, question.text, question.answerability == "answerable")
    if draft := pipeline.draft(pipeline.find(read_question(question.text))):
        given = [one for one in draft.sentences if one.is_supported and not one.missing]
        text = " ".join(one.sentence for one in given)
        right = asked.answerable and is_right(question, text)
        asked = replace(asked, signals=draft.signals, right=right, given=bool(given))
    return asked


def load_rows(path: Path) -> list[Asked]:
    """Return the questions that were asked already."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [_row(json.loads(line)) for line in lines]


def _row(record: dict[str, Any]) -> Asked:
    return Asked(**{**record, "signals": Signals(**record["signals"]) if record["signals"] else None})


def fitted(rows: Sequence[Asked], names: Sequence[str], recipe: str = "", quote_from: float = 0.0) -> Calibration:
    """Fit the named signals of all answers that can be given to whether they are right."""
    given = [(row.signals, row.right) for row in rows if row.signals and row.given]
    bias, weights = fit([signals for signals, _ in given], [right for _, right in given], names)
    return Calibration(recipe, bias, weights, 0.0, quote_from)


def held_out(rows: Sequence[Asked], names: Sequence[str]) -> list[tuple[Asked, float]]:
    """Return for each question how probable its answer is by a calibration of other questions."""
    result = list[tuple[Asked, float]]()
    for fold in range(FOLDS):
        calibration = fitted([row for number, row in enumerate(rows) if number % FOLDS != fold], names)
        for row in rows[fold::FOLDS]:
            likely = probability(row.signals, calibration) if row.signals and row.given else None
            result.append((row, likely or 0.0))
    return result


def log_loss(rows: Sequence[Asked], names: Sequence[str]) -> float:
    """Return the mean surprise at whether answers are right, by calibrations of other questions."""
    return fmean(
        -math.log(likely if row.right else 1 - likely)
        for row, likely in held_out(rows, names)
        if row.signals and row.given
    )


def draw(rows: Sequence[Asked], names: Sequence[str], path: Path) -> None:
    """Draw the share of right answers against how probable they were said to be, by calibrations of other questions."""
    judged = sorted((likely, row.right) for row, likely in held_out(rows, names) if row.signals and row.given)
    size = math.ceil(len(judged) / _GROUPS)
    groups = [judged[start : start + size] for start in range(0, len(judged), size)]
    figure = new_figure((4.5, 4))
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
    said = [fmean(likely for likely, _ in group) for group in groups]
    axes.plot(said, [fmean(right for _, right in group) for group in groups], marker="o")
    axes.set_xlabel(f"probability that was said: {len(judged)} answers in {len(groups)} groups")
    axes.set_ylabel("share of right answers")
    save_figure(figure, path)


def table(rows: Sequence[Asked], names: Sequence[str]) -> list[str]:
    """Say for each set and threshold how many answers would be right, wrong and quoted."""
    lines = list[str]()
    judged = held_out(rows, names)
    for name in sorted({row.set for row in rows}):
        for threshold in THRESHOLDS:
            mine = [(row, likely >= threshold) for row, likely in judged if row.set == name]
            counts = {
                "right": sum(row.answerable and said and row.right for row, said in mine),
                "wrong": sum(row.answerable and said and not row.right for row, said in mine),
                "quoted": sum(row.answerable and not said for row, said in mine),
                "stated unanswerable": sum(not row.answerable and said for row, said in mine),
                "quoted unanswerable": sum(not row.answerable and not said for row, said in mine),
            }
            lines.append(f"{name} {threshold:.2f} {', '.join(f'{count} {what}' for what, count in counts.items())}")
    return lines


@click.command(help=__doc__)
@click.option("--set", "sets", type=(Path, Path), multiple=True, help="A dataset and the library that indexes it.")
@click.option("--rows", "path", type=Path, required=True, help="Where questions that were asked are stored.")
@click.option("--profile", default="starter", show_default=True, help="The models, whatever a library was made with.")
@click.option("--most", default=150, show_default=True, help="Questions of each set.")
@click.option("--plot", type=Path, help="Draw how often answers of a probability are right, as .png or .svg.")
@click.option("--quote-from", default=0.01, show_default=True, help="The least probability of a quotation.")
def main(
    sets: Sequence[tuple[Path, Path]], path: Path, profile: str, most: int, plot: Path | None, quote_from: float
) -> None:
    """Ask what was not asked yet, then fit and print."""
    rows = load_rows(path)
    known = {(row.set, row.question) for row in rows}
    libraries = {folder.name: Library(library, profile=profile) for folder, library in sets}
    questions = [[(folder.name, one) for one in sample(folder, most)] for folder, _ in sets]
    turns = [pair for turn in itertools.zip_longest(*questions) for pair in turn if pair]
    for name, question in turns:
        if (name, question.text) not in known:
            with libraries[name].upkeep.calibrating() as (_, answerer, _):
                row = ask(libraries[name], answerer, question, name)
            rows.append(row)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            click.echo(f"{len(rows)} {name} {row.right} {question.text[:60]}", err=True)
    settings = next(iter(libraries.values())).settings if libraries else Settings(profile=profile)
    form = find(settings, "answer").form
    recipe = prompt_recipe(identity_of(settings, "rerank"), form)
    losses = {names: log_loss(rows, names) for names in (TRAINED if form.refusal else NAMES)}
    names = min(losses, key=losses.__getitem__)
    if plot:
        draw(rows, names, plot)
    found = replace(fitted(rows, names, recipe, quote_from), answer_from=ANSWER_FROM)
    weights = ", ".join(f"{name} = {weight:.3f}" for name, weight in found.weights.items())
    click.echo("\n".join(table(rows, names)))
    click.echo("\n".join(f"log loss {loss:.3f} with {' and '.join(names)}" for names, loss in losses.items()))
    click.echo(
        f'calibration = {{ recipe = "{found.recipe}", bias = {found.bias:.3f}, weights = {{ {weights} }}, '
        f"answer_from = {found.answer_from}, quote_from = {found.quote_from} }}"
    )


if __name__ == "__main__":
    main()
