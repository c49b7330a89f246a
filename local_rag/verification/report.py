"""Show a checked text: as lines, as Markdown with footnotes, as a dictionary for JSON."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from local_rag.digests.output import place_as_dict
from local_rag.display import Name, counted, display_path, one_line
from local_rag.verification.comparison import spans_of
from local_rag.verification.verdicts import VERDICTS, Checked, Evidence, Verification

_LONGEST = 600  # characters of a quotation that are shown
_BEFORE = 200  # of them before the first word that differs
_CUT = "\u2026"
Escape = Callable[[str], str]
Span = tuple[int, int]


def verification_as_dict(found: Verification, name: Name = display_path) -> dict[str, Any]:
    """Return a checked text as a dictionary for JSON, with `name` for paths."""
    return {
        "statements": [checked_as_dict(one, name) for one in found.statements],
        "counts": {verdict: found.count(verdict) for verdict in VERDICTS},
        "left_out": found.left_out,
    }


def checked_as_dict(one: Checked, name: Name = display_path) -> dict[str, Any]:
    """Return a statement with its verdict as a dictionary for JSON."""
    return {
        "text": one.text,
        "verdict": one.verdict,
        "quotes": [_evidence_as_dict(each, name) for each in one.quotes],
        "probability": one.probability,
        "start": one.start,
        "end": one.end,
    }


def _evidence_as_dict(one: Evidence, name: Name) -> dict[str, Any]:
    return {
        **place_as_dict(one.place, name),
        "title": one.place.title,
        "differs": [asdict(each) for each in one.differs],
        "newest": name(one.newest) if one.newest else None,
    }


def headline(found: Verification) -> str:
    """Say in one line how many statements have each verdict."""
    said = ", ".join(f"{count} {verdict}" for verdict in VERDICTS if (count := found.count(verdict)))
    left = f"; {counted(found.left_out, 'statement')} not checked" if found.left_out else ""
    return f"{counted(len(found.statements), 'statement')}: {said or 'none'}{left}."


def verification_as_lines(found: Verification, name: Name = display_path) -> Iterator[str]:
    """Yield a checked text as lines: each claim with its verdict and quotations; what differs is in brackets."""
    for number, one in enumerate(found.statements, start=1):
        if one.verdict != "no claim":
            yield from checked_as_lines(number, one, name)
    yield headline(found)


def checked_as_lines(number: int, one: Checked, name: Name = display_path) -> Iterator[str]:
    """Yield a statement as lines: its verdict, and below it the quotations with their places."""
    yield one_line(f"{number}. {one.verdict} ({one.probability:.0%}): {said_of(one, '[{}]'.format)}")
    for each in one.quotes:
        yield one_line(f"   {quoted(each, '[{}]'.format)} ({where(each, name)})")


def where(one: Evidence, name: Name) -> str:
    """Return the place of a quotation, and which version of its document is the newest."""
    place = one.place.location_by(name)
    if one.place.section:
        place = f'{place}, "{one.place.section}"'
    return f"{place}; the newest version is {name(one.newest)}" if one.newest else place


def said_of(one: Checked, mark: Escape, escape: Escape = str) -> str:
    """Return a statement on one line, with a mark around each part that differs from what the documents say."""
    return _marked(*said_line(one), mark, escape)


def quoted(one: Evidence, mark: Escape, escape: Escape = str) -> str:
    """Return a quotation on one line within quotation marks, with a mark around what differs; a long one is cut."""
    return f"\u201c{_marked(*quoted_line(one), mark, escape)}\u201d"


def said_line(one: Checked) -> tuple[str, list[Span]]:
    """Return a statement on one line, with the spans of what differs from what the documents say."""
    text = " ".join(one.text.split())
    return text, _apart(text, [each.said for evidence in one.quotes for each in evidence.differs])


def quoted_line(one: Evidence) -> tuple[str, list[Span]]:
    """Return a quotation on one line, with the spans of what differs; a long one is cut."""
    text = " ".join(one.place.text.split())
    parts = [each.written for each in one.differs]
    first = next((start for start, _ in spans_of(text, parts)), 0)
    begin = max(0, first - _BEFORE) if len(text) > _LONGEST else 0
    end = begin + _LONGEST
    shown = f"{_CUT if begin else ''}{text[begin:end]}{_CUT if end < len(text) else ''}"
    return shown, _apart(shown, parts)


def _apart(text: str, parts: Sequence[str]) -> list[Span]:
    """Return where parts stand in a text, in order; of two that overlap, the first."""
    kept = list[Span]()
    for start, end in sorted(spans_of(text, parts)):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _marked(text: str, spans: Sequence[Span], mark: Escape, escape: Escape) -> str:
    pieces, at = list[str](), 0
    for start, end in spans:
        pieces += [_escaped(text[at:start], escape), mark(escape(text[start:end]))]
        at = end
    return "".join([*pieces, _escaped(text[at:], escape)])


def _escaped(text: str, escape: Escape) -> str:
    """Return an escaped text with the spaces around it, which belong between it and what is marked."""
    kept = text.strip()
    before, _, after = text.partition(kept) if kept else (text, "", "")
    return f"{before}{escape(kept)}{after}"


def verification_as_markdown(found: Verification, escape: Escape, name: Name = display_path) -> str:
    """Return the text with a footnote behind each claim; `escape` keeps documents from acting as markup."""
    pieces, notes, at = list[str](), list[str](), 0
    for one in found.statements:
        if one.verdict == "no claim":
            continue
        label = f"[^check-{len(notes) + 1}]"
        end = one.end - (found.text[one.end - 1 : one.end] == "|")  # within the last cell of a row
        pieces += [found.text[at:end], label]
        at = end
        bold = "**{}**".format
        said = f" {said_of(one, bold, escape)}" if any(each.differs for each in one.quotes) else ""
        quotes = "; ".join(f"{quoted(each, bold, escape)} ({escape(where(each, name))})" for each in one.quotes)
        notes.append(one_line(f"{label}: **{one.verdict}**{said} {quotes or VERDICTS[one.verdict] + '.'}"))
    text = "".join([*pieces, found.text[at:]]).rstrip()
    return "\n".join([text, "", "---", "", headline(found), "", *notes])
