"""List the sources of an answer below it, in Markdown that every client shows."""

import re

from local_rag.display import changed_citations, one_line
from local_rag.records import Answer, Passage

# Characters that Markdown or HTML could take for markup in a title or a path.
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+!|~&-])")
_LONGEST = 300


def sources_as_markdown(answer: Answer) -> str:
    """Return the text that follows an answer: changed citations, and its sources or the closest passages."""
    blocks = [f"\n\n{line}" for line in changed_citations(answer)]
    if answer.citations:
        lines = [f"- [{citation.number}] {_location(citation.passage)}" for citation in answer.citations]
        blocks.append("\n\nSources:\n\n" + "\n".join(lines))
    elif answer.closest:
        blocks.append("\n\nClosest passages:\n\n" + "\n".join(f"- {_location(one)}" for one in answer.closest))
    return "".join(blocks)


def _location(passage: Passage) -> str:
    return f"{_plain(passage.title)}, {_plain(passage.location)}"


def _plain(text: str) -> str:
    return _MARKS.sub(r"\\\1", one_line(text)[:_LONGEST])
