"""`local-rag eval DATASET` and `local-rag eval make DOCUMENTS`."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console
from rich.table import Table

from local_rag.cli.opening import current_parts, open_library
from local_rag.cli.options import Group, model_option
from local_rag.cli.progress import IndexProgress
from local_rag.display import printable
from local_rag.errors import DatasetError
from local_rag.evaluation.dataset import Part, load_dataset
from local_rag.evaluation.draft_questions import draft_dataset
from local_rag.evaluation.evaluate import compare_reports, evaluate, load_report, plot
from local_rag.evaluation.metrics import METRICS
from local_rag.models.choice import find
from local_rag.records import ContextMode
from local_rag.settings import resolve_settings


class EvalGroup(Group):
    """Take whatever is not the name of a command for the arguments of `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` in front where no command is named; a dataset called `make` is given as ./make."""
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["run", *args])


@click.group(cls=EvalGroup)
def command() -> None:
    """Measure retrieval."""


@command.command(epilog="`local-rag eval make DOCUMENTS` drafts a dataset from documents of your own.")
@click.argument("dataset", type=click.Path(path_type=Path))
@click.option("--profile", metavar="NAME", help="Models to use: starter, tiny, small or laptop.  [default: starter]")
@click.option(
    "--context",
    type=click.Choice(get_args(ContextMode)),
    default="llm",
    show_default=True,
    help="What situates each chunk.",
)
@click.option(
    "--questions",
    "part",
    type=click.Choice(get_args(Part)),
    default="all",
    show_default=True,
    help="Ask all, or the half for choosing settings, or the half for reporting what was chosen.",
)
@click.option(
    "--library",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to index the dataset.  [default: DATASET/.local-rag/PROFILE]",
)
@model_option("context", "write contexts with")
@model_option("embed", "embed with")
@model_option("rerank", "rerank with")
@click.option("--no-rerank", is_flag=True, help="Leave the reranker out.")
@click.option("--compare", type=click.Path(path_type=Path), metavar="JSON", help="Test against an earlier report.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write the report; - prints it."
)
@click.option("--plot", "plot_path", type=click.Path(path_type=Path), metavar="FILE", help="Draw recall against depth.")
def run(
    dataset: Path,
    library: Path | None,
    part: Any,
    no_rerank: bool,
    compare: Path | None,
    json_path: Path | None,
    plot_path: Path | None,
    **settings: Any,
) -> None:
    """Measure every stage of retrieval on the questions of a DATASET folder.

    It is indexed once, beside the dataset; stop at any time and the same command goes on where it stopped.
    """
    for path in (json_path, plot_path):
        if path and path != Path("-") and (path.is_dir() or not os.access(path.parent, os.W_OK)):
            raise DatasetError(f"{path} cannot be written; name a file in a folder that is there and yours.")
    other = load_report(compare) if compare else None
    loaded = load_dataset(dataset)
    if library is None:
        root = dataset / ".local-rag"
        library = root / resolve_settings(root, profile=settings["profile"]).profile
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        try:
            report = evaluate(loaded, opened, part=part, rerank=not no_rerank, progress=progress)
        except KeyboardInterrupt:
            progress.stop()
            click.echo("Stopped. Everything finished so far is kept; run the same command again to go on.", err=True)
            raise click.exceptions.Exit(130) from None
    if other:
        report["comparison"] = {"with": str(compare), **compare_reports(report, other)}
    if json_path == Path("-"):
        click.echo(json.dumps(report))
    else:
        _print(report)
    if json_path and json_path != Path("-"):
        json_path.write_text(json.dumps(report) + "\n", encoding="utf-8")
    if plot_path:
        plot([report, other] if other else [report], plot_path)


@command.command()
@click.argument("documents", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("my-eval"),
    show_default=True,
    help="Folder of the dataset, which must not exist yet.",
)
@click.option(
    "--questions", "count", type=click.IntRange(min=1), default=50, show_default=True, help="How many to draft."
)
@click.option("--profile", metavar="NAME", help="Models to use.  [default: starter]")
@model_option("answer", "draft and check with")
def make(documents: tuple[Path, ...], output: Path, count: int, **settings: Any) -> None:
    """Draft questions about DOCUMENTS of your own with the local model.

    Each has its golden passage and "reviewed": false. Read questions.jsonl: delete what nobody would ask, mend the
    rest, set "reviewed" to true. Then `local-rag eval FOLDER` measures with them.
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
    dropped = ", ".join(f"{number} {reason}" for reason, number in report.dropped.items())
    click.echo(
        f"{report.kept} questions in {output / 'questions.jsonl'}, to be reviewed. Dropped: {dropped or 'none'}."
    )


def _print(report: Mapping[str, Any]) -> None:
    """Print the table of stages, and of the comparison where there is one."""
    console = Console(highlight=False)
    half = "" if report["part"] == "all" else f" (the half to {report['part']})"
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
    console.print(f"Milliseconds a question: {seconds}.")
    if "comparison" in report:
        comparison = report["comparison"]
        table = Table("stage", *map(_heading, METRICS), caption="p: two-sided, by a paired permutation test.")
        for stage, differences in comparison["stages"].items():
            cells = [_number(metric, differences[metric]["difference"], "+") for metric in METRICS]
            table.add_row(stage, *cells)
            table.add_row("  p", *(f"{differences[metric]['p']:.3f}" for metric in METRICS))
        console.print(f"Difference to {comparison['with']} over {comparison['questions']} questions:", markup=False)
        console.print(table)
    if report["unanswerable"]:
        console.print(f"{report['unanswerable']} questions that nothing answers were left out.")
    if report["unreviewed"]:
        console.print(f"{report['unreviewed']} questions have not been reviewed yet.")


def _heading(metric: str) -> str:
    """Shorten a metric's name so that the table fits 80 columns."""
    return {"mrr@10": "MRR@10", "ndcg@10": "nDCG@10"}.get(metric, metric.removeprefix("recall"))


def _number(metric: str, value: float, sign: str = "") -> str:
    return f"{value:{sign}.1f}" if metric.startswith("recall") else f"{value:{sign}.3f}"
