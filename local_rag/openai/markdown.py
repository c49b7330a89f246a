"""Name the sources of an answer below it, as a Markdown list that every client shows."""

import re

from local_rag.display import changed_citations, one_line
from local_rag.records import Answer, Passage

# What Markdown or HTML could take for markup in a title or a path.
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+!|~&-])")
_LONGEST = 300


def sources_as_markdown(answer: Answer) -> str:
    """Return what follows the text of an answer: changed citations, and its sources or the closest passages."""
    blocks = [f"\n\n{line}" for line in changed_citations(answer)]
    if answer.citations:
        lines = [f"- [{citation.number}] {_place(citation.passage)}" for citation in answer.citations]
        blocks.append("\n\nSources:\n\n" + "\n".join(lines))
    elif answer.closest:
        blocks.append("\n\nClosest passages:\n\n" + "\n".join(f"- {_place(one)}" for one in answer.closest))
    return "".join(blocks)


def _place(passage: Passage) -> str:
    return f"{_plain(passage.title)}, {_plain(passage.location)}"


def _plain(text: str) -> str:
    return _MARKS.sub(r"\\\1", one_line(text)[:_LONGEST])
