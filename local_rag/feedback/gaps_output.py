"""Write what is missing as text, Markdown or CSV."""

from collections.abc import Callable, Iterator, Sequence

from local_rag.display import Name, display_path, one_line, rows_as_csv
from local_rag.feedback.gaps import Gap, Unanswered, closest_of

_COLUMNS = ("group", "question", "outcome", "asked", "times", "closest", "would answer")


def gaps_as_lines(gaps: Sequence[Gap]) -> Iterator[str]:
    """Yield the lines of a text for the terminal."""
    for number, gap in enumerate(gaps, start=1):
        if number > 1:
            yield ""
        yield f"{number}. {one_line(gap.questions[0].question)} ({_told(gap.questions[0])})"
        yield from (f"   also: {one_line(one.question)} ({_told(one)})" for one in gap.questions[1:])
        if closest := closest_of(gap, display_path):
            yield f"   closest: {one_line(closest)}"
        yield f"   {one_line(gap.would_answer)}"


def _told(one: Unanswered) -> str:
    often = f", {one.times} times" if one.times > 1 else ""
    return f"{'marked as wrong' if one.outcome == 'wrong' else 'refused'}, {one.asked[:16]}{often}"


def gaps_as_markdown(gaps: Sequence[Gap], escape: Callable[[str], str], name: Name = display_path) -> str:
    """Return the gaps as Markdown; nothing of a question acts as markup."""
    lines = ["# What is missing", ""]
    for number, gap in enumerate(gaps, start=1):
        lines += [f"## {number}. {escape(one_line(gap.questions[0].question))}", ""]
        lines += [f"- {escape(one_line(one.question))} ({_told(one)})" for one in gap.questions]
        closest = closest_of(gap, name)
        lines += ["", *([f"Closest: {escape(one_line(closest))}", ""] if closest else [])]
        lines += [escape(one_line(gap.would_answer)), ""]
    return "\n".join(lines if gaps else [*lines, "Nothing was refused or marked as wrong.", ""])


def gaps_as_csv(gaps: Sequence[Gap], name: Name = display_path) -> str:
    """Return the gaps as CSV, one question a line."""
    rows = (
        (number, one.question, one.outcome, one.asked, one.times, closest_of(gap, name), gap.would_answer)
        for number, gap in enumerate(gaps, start=1)
        for one in gap.questions
    )
    return rows_as_csv(_COLUMNS, rows)
