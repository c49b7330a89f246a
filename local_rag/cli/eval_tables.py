"""Print evaluations as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from local_rag.display import one_line
from local_rag.evaluation.ranking_metrics import METRICS

_CHANCE = 0.05


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
    """Print the table of the answers."""
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


def gain_as_text(gain: Mapping[str, Any]) -> str:
    """Describe what contexts gain in a library, on which questions, and whether the gain is significant."""
    if gain["drafted"]:
        asked = "drafted questions"
    else:
        asked = "unreviewed questions" if gain["unreviewed"] else "reviewed questions"
    difference = gain["recall_with"] - gain["recall_without"]
    significant = "significant" if min(gain["recall_p"], gain["mrr_p"]) < _CHANCE else "not significant"
    return (
        f"Gain by contexts: recall@5 {gain['recall_with']:.1f} % with them, {gain['recall_without']:.1f} % without "
        f"({difference:+.1f}, p = {gain['recall_p']:.3f}); MRR@10 {gain['mrr_with']:.3f} and {gain['mrr_without']:.3f} "
        f"(p = {gain['mrr_p']:.3f}); {significant}. {gain['stage'].capitalize()}, {gain['questions']} {asked}; "
        f"{gain['contexts']} of {gain['chunks']} chunks have a context ({gain['context']}, {gain['at'][:10]})."
    )


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
