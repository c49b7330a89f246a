"""Show what changed between two documents: as lines, as Markdown, as a dictionary for JSON."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from local_rag.digests.differences import Difference
from local_rag.digests.statements import Place
from local_rag.display import Name, display_path, one_line

_LONGEST = 400  # characters of a quotation in a line


def place_as_dict(place: Place, name: Name = display_path) -> dict[str, Any]:
    """Return a quotation with its place as a dictionary for JSON."""
    where = {field: getattr(place, field) for field in ("section", "page", "line", "start", "end")}
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
