"""What every converter returns, and what several of them share."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

from local_rag.errors import ReadError
from local_rag.records import UNKNOWN, DocumentKind, Heading, Provenance, Table

MAX_EXPANDED_BYTES = 500 * 1000 * 1000
MAX_EXPANSION = 200


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file within a file, by name."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of a converter; `title` is None if the file has none, other fields as in Document.

    `headings` and `tables` are None if they are to be found in the text, as Markdown. `notes` may be of any number and
    length. `attachments` are to be read by their names and added.
    """

    title: str | None
    text: str
    kind: DocumentKind
    pages: tuple[int, ...] = ()
    headings: tuple[Heading, ...] | None = None
    tables: tuple[Table, ...] | None = None
    notes: tuple[str, ...] = ()
    ocr: tuple[tuple[int, int, float], ...] = ()
    waiting: int = 0
    attachments: tuple[Attachment, ...] = ()
    provenance: Provenance = UNKNOWN


def notes_of(counts: Mapping[str, int], done: str = "left out") -> tuple[str, ...]:
    """Say how many things are left out, by a name such as `image* without a description`; * is the plural's s."""
    return tuple(
        f"{count} {what.replace('*', '' if count == 1 else 's')} {'is' if count == 1 else 'are'} {done}"
        for what, count in counts.items()
        if count
    )


def check_archive(data: bytes) -> None:
    """Raise ReadError if the data is not a zip archive or expands enough to fill the memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            expanded = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        old = data.startswith(b"\xd0\xcf\x11\xe0")
        raise ReadError("encrypted, or in an Office format from before 2007" if old else "damaged file") from error
    if expanded > MAX_EXPANDED_BYTES or expanded > MAX_EXPANSION * len(data):
        raise ReadError(f"expands to {expanded / 1e6:.0f} MB, probably a zip bomb")
