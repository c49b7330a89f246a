"""Show what changed between two documents, and a brief: as lines, as Markdown, as a dictionary for JSON."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from local_rag.digests.brief import LISTS, Brief, Line
from local_rag.digests.differences import Difference
from local_rag.digests.statements import Place
from local_rag.display import Name, display_path, one_line

_LONGEST, _LONGEST_OF_BRIEF = 400, 1200  # characters of a quotation in a line


def place_as_dict(place: Place, name: Name = display_path) -> dict[str, Any]:
    """Return a quotation with its place as a dictionary for JSON."""
    where = {field: getattr(place, field) for field in ("section", "page", "line", "start", "end")}
    where["page_label"] = place.page_label or None
    return {"text": place.text, "path": name(place.path), "location": place.location_by(name), **where}


def difference_as_dict(difference: Difference, name: Name = display_path) -> dict[str, Any]:
    """Return a difference as a dictionary for JSON, with `name` for paths."""
    return {
        "before": name(difference.before),
        "after": name(difference.after),
        "counts": difference.counts,
        "changes": [
            {
                "kind": one.kind,
                "about": one.about,
                "summary": one.summary,
                "values": [asdict(value) for value in one.values],
                "before": place_as_dict(one.before, name) if one.before else None,
                "after": place_as_dict(one.after, name) if one.after else None,
            }
            for one in difference.changes
        ],
    }


def kinds_of_changes(difference: Difference) -> str:
    """Say how many changes there are of each kind."""
    counts = difference.counts.items()
    return ", ".join(f"{count:,} {kind.removesuffix('s') if count == 1 else kind}" for kind, count in counts)


def headline(difference: Difference, name: Name = display_path) -> str:
    """Say in one line what was compared, and how many changes of which kind there are."""
    changes = len(difference.changes)
    number = f"{changes} {'change' if changes == 1 else 'changes'} ({kinds_of_changes(difference)})"
    return one_line(f"{name(difference.before)} -> {name(difference.after)}: {number if changes else 'no change'}")


def difference_as_lines(difference: Difference) -> Iterator[str]:
    """Yield a difference as lines of text: the headline, and each change with both quotations."""
    yield headline(difference)
    for number, change in enumerate(difference.changes, start=1):
        yield ""
        yield one_line(f"{number}. {change.summary}")
        for sign, place in (("-", change.before), ("+", change.after)):
            if place:
                yield one_line(f"   {sign} {quoted(place)} ({place.location})")


def difference_as_markdown(difference: Difference, escape: Callable[[str], str], name: Name = display_path) -> str:
    """Return a difference as Markdown; `escape` keeps the texts of documents from acting as markup."""
    lines = [f"# {escape(headline(difference, name))}", ""]
    for number, change in enumerate(difference.changes, start=1):
        lines.append(f"{number}. **{escape(one_line(change.summary))}**")
        lines += [
            f"   - {when}: {escape(one_line(quoted(place)))} ({escape(one_line(place.location_by(name)))})"
            for when, place in (("before", change.before), ("after", change.after))
            if place
        ]
    return "\n".join(lines)


def quoted(place: Place, longest: int = _LONGEST) -> str:
    """Return a quotation on one line within quotation marks, cut if it is long."""
    text = " ".join(place.text.split())
    return f"\u201c{text if len(text) <= longest else text[: longest - 1] + chr(0x2026)}\u201d"


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
    return one_line(f"  {_valued(line)}{quoted(line.place, _LONGEST_OF_BRIEF)} ({line.place.location})")


def _valued(line: Line) -> str:
    return f"{line.value}: " if line.value else ""


def brief_as_markdown(brief: Brief, escape: Callable[[str], str], name: Name = display_path) -> str:
    """Return a brief as Markdown; `escape` keeps the texts of documents from acting as markup."""

    def item(line: Line) -> str:
        said = f"{_valued(line)}{quoted(line.place, _LONGEST_OF_BRIEF)} ({line.place.location_by(name)})"
        return f"- {escape(one_line(said))}"

    parts = list[str]()
    for heading, lines in headings_of(brief):
        parts += [f"## {escape(one_line(heading))}", "\n".join(map(item, lines))]
    for kind, title in LISTS.items():
        if brief.lists[kind]:
            parts += [f"## {title}", "\n".join(map(item, brief.lists[kind]))]
    return "\n\n".join(["# Brief", *parts])
