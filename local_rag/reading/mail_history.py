"""The mail that a reply quotes below its own text: where it begins, and a reply without it."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from local_rag.records import Chunk, Document

TRIMMED = "what it quotes of the mail that it answers is indexed with that mail only"
_SEPARATOR = re.compile(
    r"[-_]{2,20} ?(?:Original Message|Original-Nachricht|Urspr\u00fcngliche Nachricht|Message d'origine) ?[-_]{2,20}"
)
_HEAD = re.compile(r"\W{0,4}(?:From|Von|De):\W{0,4}\s\S")
_HEAD_GOES_ON = re.compile(r"\W{0,4}(?:Sent|Date|Gesendet|Datum|Envoy\u00e9|To|An|Subject|Betreff|Objet)\W{0,3}:")
_SAYS_WHO = re.compile(r"(?:On|Am|Le|El|Il|Op|Den|Em)\b|.{0,200}(?:wrote|schrieb|\u00e9crit)")
_MOST_ABOVE = 3  # lines that say who wrote what is quoted
_LONGEST = 400  # characters of a line that is looked at


def find_history(text: str) -> tuple[int, int]:
    """Return the span of the quoted mail that ends a message, empty if there is none; a list of files may follow."""
    lines = text.split("\n")
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].startswith("Attachments: ")):
        end -= 1
    start = _below_separator(lines, end) or _quoted(lines, end)
    if not start:
        return 0, 0
    offset = sum(len(line) + 1 for line in lines[:start])
    return offset, offset + len("\n".join(lines[start:end]))


def _below_separator(lines: list[str], end: int) -> int:
    """Return the line with which a program separates the mail that is answered, 0 if there is none."""
    head = next((number for number, line in enumerate(lines[:end]) if not line.strip()), end)
    for number in range(head, end):
        line = lines[number][:_LONGEST].strip()
        if _SEPARATOR.fullmatch(line):
            return number
        if _HEAD.match(line) and sum(bool(_HEAD_GOES_ON.match(one)) for one in lines[number + 1 : number + 5]) > 1:
            return number
    return 0


def _quoted(lines: list[str], end: int) -> int:
    """Return the first of the lines that quote up to the end, with those above that say whom, 0 if none does."""
    start = end
    while start and (lines[start - 1].startswith(">") or not lines[start - 1].strip()):
        start -= 1
    if not any(line.startswith(">") for line in lines[start:end]):
        return 0
    if start and lines[start - 1].rstrip().endswith(":"):
        for above in range(_MOST_ABOVE, 0, -1):
            said = lines[max(0, start - above) : start]
            if all(map(str.strip, said)) and _SAYS_WHO.match(said[0][:_LONGEST]):
                return start - len(said)
    return start


def without_history(document: Document, chunks: tuple[Chunk, ...]) -> tuple[Document, tuple[Chunk, ...]]:
    """Return a reply whose chunks lack the mail that it quotes, with a note; its text stays whole."""
    start, end = document.quoted
    kept = list[Chunk]()
    for chunk in chunks:
        first, last = chunk.start, chunk.end
        if start <= first and last <= end:
            continue
        if first < start < last:
            last = first + len(document.text[first:start].rstrip())
        elif start <= first < end:
            first = end + len(document.text[end:last]) - len(document.text[end:last].lstrip())
        if text := document.text[first:last]:
            kept.append(replace(chunk, position=len(kept), start=first, end=last, text=text))
    return replace(document, notes=(*document.notes, TRIMMED)), tuple(kept)


def folder_of(path: Path) -> Path:
    """Return the mailbox or the folder that a mail is in; a Maildir keeps one folder's mail in two."""
    return path.parent.parent if path.parent.name in {"cur", "new"} else path.parent


def quoted_elsewhere(document: Document, in_same_folder: Callable[[str, Path], bool]) -> bool:
    """Return whether a reply quotes a mail that is in the library, in the same folder: others may see another one."""
    answered = [one.target for one in document.links if one.kind == "answers"]
    return document.quoted[1] > 0 and any(in_same_folder(one, folder_of(document.path)) for one in answered[:1])
