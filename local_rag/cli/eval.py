"""`local-rag eval`: measure on a dataset, draft one, calibrate answers, show earlier runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console
from rich.table import Table

from local_rag.cli.options import (
    FOLDER,
    PATH,
    PRESENT,
    DefaultGroup,
    current_parts,
    json_option,
    library_options,
    model_option,
    open_library,
    profile_option,
)
from local_rag.cli.progress import IndexProgress
from local_rag.display import counted, gain_as_text, one_line, printable, printable_json
from local_rag.evaluation import run_history
from local_rag.evaluation.calibrate import calibrate as calibrate_library
from local_rag.evaluation.contexts import measure_gain
from local_rag.evaluation.dataset import Part, load_dataset
from local_rag.evaluation.draft_questions import draft_dataset
from local_rag.evaluation.evaluate import compare_reports, evaluate, load_report, plot
from local_rag.evaluation.ranking_metrics import METRICS
from local_rag.files import DEFAULT_FOLDER, require_place
from local_rag.models.choice import find
from local_rag.passage_records import ContextMode
from local_rag.settings import resolve_settings

_DRAFTED = Path("my-eval")


@click.group(cls=DefaultGroup, default="run")
def command() -> None:
    """Measure retrieval."""


@command.command(
    epilog="`local-rag eval make DOCUMENTS` drafts a dataset from your own documents.\n\n"
    "Example: local-rag eval my-eval --answers --fail-below recall@5=80"
)
@click.argument("dataset", type=PATH)
@profile_option
@click.option(
    "--context",
    type=click.Choice(get_args(ContextMode)),
    help="The context of each chunk if the dataset is indexed.  [default: auto]",
)
@click.option(
    "--questions",
    "part",
    type=click.Choice(get_args(Part)),
    default="all",
    help="Ask all questions, the half for choosing settings, the quarter for reporting results, or the locked quarter, "
    "which is for one last measurement.",
)
@click.option(
    "--library",
    type=FOLDER,
    help="Where to index the dataset, or which library to ask if the dataset has no documents.  "
    "[default: DATASET/.local-rag/PROFILE, or .local-rag]",
)
@model_option("context", "write contexts with")
@model_option("embed", "embed with")
@model_option("rerank", "rerank with")
@model_option("answer", "answer with")
@click.option("--answers", is_flag=True, help="Also answer every question, and count right answers and refusals.")
@click.option(
    "--facts",
    is_flag=True,
    help="Also measure for how many questions the model would be shown all facts of the answer; it is not loaded.",
)
@click.option("--no-rerank", is_flag=True, help="Do not rerank.")
@click.option("--compare", type=PATH, metavar="JSON", help="Compare with an earlier report.")
@click.option("--json", "json_path", type=PATH, metavar="FILE", help="Write the report to a file; - prints it.")
@click.option("--plot", "plot_path", type=PATH, metavar="FILE", help="Draw recall against depth.")
@click.option(
    "--fail-below",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Exit with code 1 if a figure is lower: a metric of the last stage (recall@5=80, mrr@10=0.7) or a percentage "
    "of answers (right=85, refused=80).",
)
def run(
    dataset: Path,
    library: Path | None,
    part: Any,
    answers: bool,
    facts: bool,
    no_rerank: bool,
    fail_below: tuple[str, ...],
    compare: Path | None,
    json_path: Path | None,
    plot_path: Path | None,
    **settings: Any,
) -> None:
    """Measure every stage of retrieval on the questions of a DATASET folder, and with --answers also the answers.

    The dataset is indexed once, in a library next to it. You can stop at any time; the same command continues where it
    stopped. The questions of a dataset without documents.jsonl are asked of your own library, which is not changed.
    """
    wanted = _figures(fail_below)
    for path in (json_path, plot_path):
        if path and path != Path("-"):
            require_place(path)
    other = load_report(compare) if compare else None
    loaded = load_dataset(dataset)
    if loaded.documents:
        settings["context"] = settings["context"] or "auto"
        library = library or _folder_of(dataset, settings["profile"])
    elif settings["context"]:
        raise click.UsageError("A library in use already has its contexts; remove --context.")
    library = library or DEFAULT_FOLDER
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        try:
            report = evaluate(
                loaded, opened, part=part, rerank=not no_rerank, answers=answers, facts=facts, progress=progress
            )
        except KeyboardInterrupt:
            progress.stop()
            click.echo("Stopped. Everything finished is kept; run the same command again to continue.", err=True)
            raise click.exceptions.Exit(130) from None
    if other:
        report["comparison"] = {"with": str(compare), **compare_reports(report, other)}
    if json_path == Path("-"):
        click.echo(json.dumps(report))
    else:
        print_report(report)
    if json_path and json_path != Path("-"):
        json_path.write_text(json.dumps(report) + "\n", encoding="utf-8")
    if plot_path:
        plot([report, other] if other else [report], plot_path)
    if not run_history.append(library, report):
        click.echo(f"{library} cannot be written, so `eval history` will not show this run.", err=True)
    if missed := run_history.require_at_least(run_history.figures(report), wanted):
        click.echo(f"Lower than wanted: {'; '.join(missed)}.", err=True)
        raise click.exceptions.Exit(1)


def _folder_of(dataset: Path, profile: str | None) -> Path:
    root = dataset / DEFAULT_FOLDER
    return root / resolve_settings(root, profile=profile).profile


def _figures(wanted: tuple[str, ...]) -> dict[str, float]:
    """Parse entries of the form NAME=NUMBER."""
    found = {}
    for one in wanted:
        name, _, number = one.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise click.UsageError(f"--fail-below {one} does not have the form recall@5=80.") from None
    return found


@command.command("history", epilog="Example: local-rag eval history --plot figures.png")
@library_options
@click.option("--plot", "plot_path", type=PATH, metavar="FILE", help="Draw the figures over time.")
@click.option(
    "--figure",
    "names",
    multiple=True,
    metavar="NAME",
    help="A figure to draw; repeat for several.  [default: recall@5, right and refused]",
)
@json_option
def show_history(
    library: Path, plot_path: Path | None, names: tuple[str, ...], as_json: bool, **_settings: Any
) -> None:
    """List the evaluations of a library, oldest first."""
    recorded = run_history.load(library)
    if as_json:
        click.echo(printable_json(recorded))
    elif recorded:
        print_history(recorded)
    else:
        click.echo(f"{library} has not been evaluated yet; run `local-rag eval DATASET`.", err=True)
    if plot_path and recorded:
        run_history.plot_history(recorded, names or ("recall@5", "right", "refused"), plot_path)


@command.command(epilog="Example: local-rag eval calibrate --questions 40")
@library_options
@model_option("answer", "answer with")
@click.option("--questions", "count", type=click.IntRange(min=10), default=40, help="Maximum to ask.")
@click.option(
    "--wrong",
    type=click.FloatRange(0.01, 0.5),
    default=0.1,
    help="Share of the unanswerable questions that may be answered.",
)
@json_option
def calibrate(library: Path, count: int, wrong: float, as_json: bool, **settings: Any) -> None:
    """Choose on the library's own documents how probable an answer must be for `ask` to give it.

    Drafts questions, asks each with and without its document, and stores the probabilities and the threshold that
    separate the two.
    """
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        found = calibrate_library(opened, count=count, wrong=wrong, progress=progress)
    if as_json:
        click.echo(printable_json(found))
        return
    click.echo(
        f"Asked {found['questions']} drafted questions: at a probability of {found['threshold']:.2f} or more "
        f"{found['answered_with']} are answered with their document and {found['answered_without']} without it. "
        "`local-rag ask` now uses this threshold."
    )


@command.command(epilog="Example: local-rag eval marks")
@library_options
@click.option("--shipped", is_flag=True, help="Give answers as shipped again, until there are 20 new marks.")
@json_option
def marks(library: Path, shipped: bool, as_json: bool, **settings: Any) -> None:
    """Show what the marks of answers come to: what the shipped gate decides of them, and the present one.

    `local-rag mark` and the page mark answers. The gate is the least probability of an answer that is given.
    """
    with open_library(library, **settings) as opened:
        if shipped:
            opened.feedback.ship_gate()
        opened.feedback.gate_notice()  # it is told below
        effect = opened.feedback.marks()
    if as_json:
        click.echo(printable_json(effect))
        return
    table = Table("gate", "given from", "right", "wrong", "quoted or refused")
    rows = [("shipped", effect.shipped_from, effect.shipped), ("now", effect.answer_from, effect.now)]
    for name, answer_from, decided in rows:
        table.add_row(name, f"{answer_from:.2f}", *map(str, (decided.right, decided.wrong, decided.quoted)))
    if held := effect.held_out:
        table.add_row("held out", "", *map(str, (held.right, held.wrong, held.quoted)))
    click.echo(f"Marks: {effect.right} right, {effect.wrong} wrong, {effect.counted} of them for the gate.")
    if effect.counted:
        Console(highlight=False, markup=False).print(table)
    if effect.gate:
        click.echo(one_line(effect.gate))
    click.echo(f"The gate is fitted after {counted(effect.until_refit, 'more mark')}.", err=True)


@command.command(epilog="Example: local-rag eval contexts my-eval")
@click.argument("dataset", required=False, type=PATH)
@library_options
@model_option("answer", "draft with")
@click.option("--questions", "count", type=click.IntRange(min=4), default=60, help="Maximum to ask.")
@json_option
def contexts(dataset: Path | None, library: Path, count: int, as_json: bool, **settings: Any) -> None:
    """Measure what contexts gain on the library's own documents.

    Uses the reviewed questions in DATASET (default: my-eval), then unreviewed ones, then ones drafted by the model.
    Each is asked with and without contexts. `local-rag status` shows the result.
    """
    if dataset is None and (_DRAFTED / "questions.jsonl").exists():
        dataset = _DRAFTED
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        gain = measure_gain(opened, dataset, count=count, parts=current_parts(), progress=progress)
    click.echo(printable_json(gain) if as_json else printable(gain_as_text(gain)))


@command.command(epilog="Example: local-rag eval make documents --output my-eval")
@click.argument("documents", nargs=-1, required=True, type=PRESENT)
@click.option(
    "--output",
    type=FOLDER,
    default=_DRAFTED,
    help="Folder for the dataset; it must not contain questions yet.",
)
@click.option("--questions", "count", type=click.IntRange(min=1), default=50, help="Number to draft.")
@click.option("--profile", metavar="NAME", help="Models to use.  [default: starter]")
@model_option("answer", "draft and check with")
@json_option
def make(documents: tuple[Path, ...], output: Path, count: int, as_json: bool, **settings: Any) -> None:
    """Draft questions about your own DOCUMENTS with the local model.

    Each question has its golden passage and "reviewed": false. Edit questions.jsonl: delete questions that nobody would
    ask, correct the others, and set "reviewed" to true. Then run `local-rag eval FOLDER`.
    """
    chosen = resolve_settings(output, **settings)
    with IndexProgress() as progress:
        report = draft_dataset(
            documents,
            output,
            answer_model=find(chosen, "answer"),
            embed_model=find(chosen, "embed"),
            count=count,
            progress=progress,
            open_engine=current_parts().open_engine,
        )
    for item in report.skipped:
        click.echo(printable(f"Skipped {item.path}: {item.reason}"), err=True)
    if as_json:
        click.echo(printable_json({"dataset": output, **asdict(report)}))
        return
    dropped = ", ".join(f"{number} {reason}" for reason, number in report.dropped.items())
    click.echo(f"{report.kept} questions to review are in {output / 'questions.jsonl'}. Dropped: {dropped or 'none'}.")


def print_report(report: Mapping[str, Any]) -> None:
    """Print the table of stages, the answers, and the comparison if there is one."""
    console = Console(highlight=False)
    half = "" if report["part"] == "all" else f" (the part {report['part']})"
    console.print(
        f"{report['questions']} questions{half}, {report['chunks']} chunks of {report['documents']} documents; "
        f"profile {report['profile']}, context {report['context']}",
        markup=False,
    )
    table = Table("stage", *map(_heading, METRICS), "95 % of @10", caption="@k: recall in %.")
    for stage, values in report["stages"].items():
        low, high = report["intervals"][stage]["recall@10"]
        cells = [_number(metric, values[metric]) for metric in METRICS]
        table.add_row(stage, *cells, f"{low:.1f}-{high:.1f}")
    console.print(table)
    seconds = ", ".join(f"{stage} {1000 * value:.1f}" for stage, value in report["seconds_per_question"].items())
    console.print(f"Milliseconds per question: {seconds}.")
    if "answers" in report:
        _print_answers(report["answers"], console)
    if facts := report.get("facts"):
        console.print(
            f"All facts of the answer are shown to the model for {facts['shown']} of {facts['questions']} questions; "
            f"it is shown {facts['median_tokens']:.0f} tokens (median)."
        )
    if "comparison" in report:
        comparison = report["comparison"]
        table = Table("stage", *map(_heading, METRICS), caption="p: two-sided, by a paired permutation test.")
        for stage, differences in comparison["stages"].items():
            cells = [_number(metric, differences[metric]["difference"], "+") for metric in METRICS]
            table.add_row(stage, *cells)
            table.add_row("  p", *(f"{differences[metric]['p']:.3f}" for metric in METRICS))
        console.print(f"Difference from {comparison['with']} over {comparison['questions']} questions:", markup=False)
        console.print(table)
        if answers := comparison.get("answers"):
            console.print(
                f"Correct on {answers['this']:g} of {answers['questions']} questions, on {answers['other']:g} in the "
                f"other run (p = {answers['p']:.3f})."
            )
    if report["unanswerable"] and "answers" not in report:
        console.print(f"{report['unanswerable']} unanswerable questions were left out.")
    if report["unreviewed"]:
        console.print(f"{report['unreviewed']} questions have not been reviewed yet.")


def _print_answers(counts: Mapping[str, Any], console: Console) -> None:
    table = Table("answers", "of", "", "95 %", caption=f"The median time is {counts['median_seconds']:.1f} seconds.")
    answerable, unanswerable = counts["answerable"], counts["unanswerable"]
    for name, text, of in (
        ("right", "right", answerable),
        ("wrong", "wrong", answerable),
        ("incomplete", "of these, incomplete", counts["wrong"]),
        ("other_value", "of these, with another value", counts["wrong"]),
        ("off_the_point", "of these, off the point", counts["wrong"]),
        ("quoted", "quoted instead of answered", answerable),
        ("quoted_right", "of these, with the right quotation", counts["quoted"]),
        ("refused_answerable", "refused although answerable", answerable),
        ("refused", "refused and unanswerable", unanswerable),
        ("quoted_unanswerable", "quoted and unanswerable", unanswerable),
        ("stated_unanswerable", "answered although unanswerable", unanswerable),
        ("facts_shown", "with all facts shown to the model", answerable),
        ("cited_right", "citing a golden document", answerable),
        ("all_documents_read", "with all golden documents read, if several", counts["of_several_documents"]),
        ("flagged", "with a number or name that the sources lack", answerable + unanswerable),
        ("flagged_right", "of these, right", counts["right"]),
    ):
        if of:
            low, high = counts["intervals"].get(name, (None, None))
            table.add_row(str(counts[name]), str(of), text, "" if low is None else f"{low:.0f}-{high:.0f}")
    console.print(table)
    if counts["other"]:
        console.print(f"{counts['other']} questions that are neither answerable nor unanswerable were not asked.")


def print_history(runs: Sequence[Mapping[str, Any]]) -> None:
    """Print one line per run of a library."""
    table = Table("when", "dataset", "questions", "context", "recall@5", "MRR@10", "right", "wrong", "refused")
    for run in runs:
        found = run["figures"]
        cells = [
            f"{found[name]:.3g}" if name in found else ""
            for name in ("recall@5", "mrr@10", "right", "wrong", "refused")
        ]
        table.add_row(
            *map(one_line, [run["time"][:16], run["dataset"], f"{run['questions']} {run['part']}", run["context"]]),
            *cells,
        )
    Console(highlight=False, markup=False).print(table)


def _heading(metric: str) -> str:
    """Shorten the name of a metric so that the table fits into 80 columns."""
    return {"mrr@10": "MRR@10", "ndcg@10": "nDCG@10"}.get(metric, metric.removeprefix("recall"))


def _number(metric: str, value: float, sign: str = "") -> str:
    return f"{value:{sign}.1f}" if metric.startswith("recall") else f"{value:{sign}.3f}"
