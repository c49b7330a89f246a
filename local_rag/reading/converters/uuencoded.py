"""Find the files that old mail programs write into the text of a mail: `begin 644 name`, lines of letters, `end`."""

import binascii
import re
from collections.abc import Sequence

from local_rag.reading.converters.converted import Attachment

_BEGIN = re.compile(r"begin [0-7]{3,4} (\S.{0,200})")
_MOST_FILES = 200  # of a text


def split_uuencoded(text: str) -> tuple[str, list[Attachment]]:
    """Return a text without the files in it, and these; what nothing ends, or is no such code, stays text."""
    lines, kept, files = text.split("\n"), list[str](), list[Attachment]()
    ends = [at for at, line in enumerate(lines) if line.rstrip() == "end"]
    at = 0
    while at < len(lines):
        begun = _BEGIN.fullmatch(lines[at].rstrip()) if len(files) < _MOST_FILES else None
        while ends and ends[0] <= at:
            ends.pop(0)
        data = _decoded(lines, at + 1, ends[0]) if begun and ends else None
        if begun and data is not None:
            files.append(Attachment(begun[1], data))
            at = ends[0]
        else:
            kept.append(lines[at])
        at += 1
    return "\n".join(kept), files


def _decoded(lines: Sequence[str], first: int, end: int) -> bytes | None:
    data = bytearray()
    for at in range(first, end):
        try:
            data += binascii.a2b_uu(lines[at].encode())
        except (binascii.Error, ValueError):
            return None
    return bytes(data) or None
