"""Print the figures of evaluations as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from local_rag.display import one_line
from local_rag.evaluation.metrics import METRICS

_CHANCE = 0.05


def print_report(report: Mapping[str, Any]) -> None:
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
    if "answers" in report:
        _print_answers(report["answers"], console)
    if "comparison" in report:
        comparison = report["comparison"]
        table = Table("stage", *map(_heading, METRICS), caption="p: two-sided, by a paired permutation test.")
        for stage, differences in comparison["stages"].items():
            cells = [_number(metric, differences[metric]["difference"], "+") for metric in METRICS]
            table.add_row(stage, *cells)
            table.add_row("  p", *(f"{differences[metric]['p']:.3f}" for metric in METRICS))
        console.print(f"Difference to {comparison['with']} over {comparison['questions']} questions:", markup=False)
        console.print(table)
        if answers := comparison.get("answers"):
            console.print(
                f"Right on {answers['this']:g} of {answers['questions']} questions, "
                f"{answers['other']:g} in the other run (p = {answers['p']:.3f})."
            )
    if report["unanswerable"] and "answers" not in report:
        console.print(f"{report['unanswerable']} questions that nothing answers were left out.")
    if report["unreviewed"]:
        console.print(f"{report['unreviewed']} questions have not been reviewed yet.")


def _print_answers(counts: Mapping[str, Any], console: Console) -> None:
    """Print what became of the questions."""
    table = Table("answers", "of", "", caption=f"{counts['median_seconds']:.1f} seconds is the median.")
    answerable, unanswerable = counts["answerable"], counts["unanswerable"]
    for name, text, of in (
        ("right", "right", answerable),
        ("wrong", "stated but wrong", answerable),
        ("refused_answerable", "refused, though the documents answer it", answerable),
        ("refused", "refused, as nothing answers it", unanswerable),
        ("cited_right", "citing a right document", answerable),
        ("all_documents_read", "with all of several documents read", counts["of_several_documents"]),
        ("flagged", "with a number or name that the sources lack", answerable + unanswerable),
        ("flagged_right", "of these right", counts["right"]),
    ):
        if of:
            table.add_row(str(counts[name]), str(of), text)
    console.print(table)
    if counts["other"]:
        console.print(f"{counts['other']} questions that are neither were not asked.")


def gain_as_text(gain: Mapping[str, Any]) -> str:
    """Say what contexts gain in a library, on which questions, and whether that can be told from chance."""
    if gain["drafted"]:
        asked = "drafted questions, which nobody has asked"
    else:
        asked = "questions that nobody has reviewed" if gain["unreviewed"] else "reviewed questions"
    difference = gain["recall_with"] - gain["recall_without"]
    chance = "more than chance" if min(gain["recall_p"], gain["mrr_p"]) < _CHANCE else "no more than chance may do"
    return (
        f"Contexts gain here: recall@5 {gain['recall_with']:.1f} % with them, {gain['recall_without']:.1f} % without "
        f"({difference:+.1f}, p = {gain['recall_p']:.3f}); MRR@10 {gain['mrr_with']:.3f} and {gain['mrr_without']:.3f} "
        f"(p = {gain['mrr_p']:.3f}): {chance}. {gain['stage'].capitalize()}, {gain['questions']} {asked}; "
        f"{gain['contexts']} of {gain['chunks']} chunks have one ({gain['context']}, {gain['at'][:10]})."
    )


def print_history(runs: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each run of a library."""
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
    """Shorten a metric's name so that the table fits 80 columns."""
    return {"mrr@10": "MRR@10", "ndcg@10": "nDCG@10"}.get(metric, metric.removeprefix("recall"))


def _number(metric: str, value: float, sign: str = "") -> str:
    return f"{value:{sign}.1f}" if metric.startswith("recall") else f"{value:{sign}.3f}"
