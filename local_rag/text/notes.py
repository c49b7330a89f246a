"""Write notes where their signs stand, ` (Note: not on Sundays.)`, and find them again."""

import re
from collections.abc import Iterator
from typing import Literal

NoteKind = Literal["Note", "Comment"]
_KINDS: tuple[NoteKind, ...] = ("Note", "Comment")
_BEGINS = tuple(f"({kind}: " for kind in _KINDS)
_BRACKET = re.compile("[()]")
_LONGEST = 20_000  # characters of a note that are looked at


def begins_note(text: str, offset: int) -> bool:
    """Return whether a note begins at an offset."""
    return text.startswith(_BEGINS, offset)


def note(text: str, kind: NoteKind = "Note") -> str:
    """Write a note, to be put behind what its sign stands at; empty without a text."""
    said = " ".join(text.split())
    return f" ({kind}: {said})" if said else ""


def note_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the notes in a text, in order and apart."""
    spans, end = list[tuple[int, int]](), 0
    for start in sorted(_starts(text)):
        if start >= end and (closed := _end_of(text, start)):
            end = closed
            spans.append((start, end))
    return spans


def split_notes(text: str) -> tuple[str, str]:
    """Return a text without its notes, and the notes."""
    kept, notes, end = list[str](), list[str](), 0
    for start, last in note_spans(text):
        kept.append(text[end:start].rstrip(" "))
        notes.append(text[start:last])
        end = last
    return "".join([*kept, text[end:]]), " ".join(notes)


def _starts(text: str) -> Iterator[int]:
    for begin in _BEGINS:
        at = text.find(begin)
        while at >= 0:
            yield at
            at = text.find(begin, at + 1)


def _end_of(text: str, start: int) -> int:
    """Return the end of a note, where its bracket closes; 0 if it does not."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start, start + _LONGEST):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.end()
    return 0
