"""Show a brief: as lines, as Markdown, as a dictionary for JSON."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from local_rag.digests.brief import LISTS, Brief, Line
from local_rag.digests.difference_output import place_as_dict, quoted
from local_rag.display import Name, display_path, one_line

_LONGEST = 1200  # characters of a line


def brief_as_dict(brief: Brief, name: Name = display_path) -> dict[str, Any]:
    """Return a brief as a dictionary for JSON, with `name` for paths."""

    def lines(some: Sequence[Line]) -> list[dict[str, Any]]:
        return [{**place_as_dict(one.place, name), "value": one.value or None} for one in some]

    return {
        "documents": [
            {"path": name(path), "title": title} for path, title in zip(brief.documents, brief.titles, strict=True)
        ],
        "lines": lines(brief.lines),
        **{kind: lines(some) for kind, some in brief.lists.items()},
        "left_out": brief.left_out,
    }


def headings_of(brief: Brief) -> Iterator[tuple[str, list[Line]]]:
    """Yield the lines that carry the documents below the title and the headings above them."""
    titles = dict(zip(brief.documents, brief.titles, strict=True))
    groups = groupby(brief.lines, key=lambda one: (one.place.path, one.place.section))
    for (path, section), lines in groups:
        yield " > ".join(filter(None, (titles[path], section))), list(lines)


def brief_as_lines(brief: Brief) -> Iterator[str]:
    """Yield a brief as lines of text: what carries the documents by heading, then each list."""
    for heading, lines in headings_of(brief):
        yield one_line(heading)
        yield from map(_line, lines)
    for kind, name in LISTS.items():
        if brief.lists[kind]:
            yield ""
            yield f"{name}:"
            yield from map(_line, brief.lists[kind])
    if brief.left_out:
        yield f"{brief.left_out} more documents are left out; name fewer, or use --in."


def _line(line: Line) -> str:
    return one_line(f"  {_valued(line)}{quoted(line.place, _LONGEST)} ({line.place.location})")


def _valued(line: Line) -> str:
    return f"{line.value}: " if line.value else ""


def brief_as_markdown(brief: Brief, escape: Callable[[str], str], name: Name = display_path) -> str:
    """Return a brief as Markdown; `escape` keeps the texts of documents from acting as markup."""

    def item(line: Line) -> str:
        said = f"{_valued(line)}{quoted(line.place, _LONGEST)} ({line.place.location_by(name)})"
        return f"- {escape(one_line(said))}"

    parts = list[str]()
    for heading, lines in headings_of(brief):
        parts += [f"## {escape(one_line(heading))}", "\n".join(map(item, lines))]
    for kind, title in LISTS.items():
        if brief.lists[kind]:
            parts += [f"## {title}", "\n".join(map(item, brief.lists[kind]))]
    return "\n\n".join(["# Brief", *parts])
