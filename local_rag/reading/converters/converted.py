"""What every converter returns, and what several of them share."""

import io
import posixpath
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import Any

from local_rag.document_records import UNKNOWN, Document, DocumentKind, Grid, Heading, Link, Provenance, Table
from local_rag.errors import ReadError
from local_rag.reading.decode import clean
from local_rag.reading.markdown import find_headings, find_tables

MAX_EXPANDED_BYTES = 500 * 1000 * 1000
MAX_EXPANSION = 200
_SEPARATOR = "\n\n"


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
    labels: tuple[str, ...] = ()
    headings: tuple[Heading, ...] | None = None
    tables: tuple[Table, ...] | None = None
    notes: tuple[str, ...] = ()
    ocr: tuple[tuple[int, int, float], ...] = ()
    waiting: int = 0
    attachments: tuple[Attachment, ...] = ()
    provenance: Provenance = UNKNOWN
    grids: tuple[Grid, ...] = ()
    names: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    quoted: tuple[int, int] = (0, 0)


def notes_of(counts: Mapping[str, int], done: str = "left out") -> tuple[str, ...]:
    """Say how many things are left out, by a name such as `image* without a description`; * is the plural's s."""
    return tuple(
        f"{count} {what.replace('*', '' if count == 1 else 's')} {'is' if count == 1 else 'are'} {done}"
        for what, count in counts.items()
        if count
    )


def join_pages(texts: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the text of pages, and where each of them begins."""
    starts = accumulate((len(text) + len(_SEPARATOR) for text in texts), initial=0)
    return _SEPARATOR.join(texts), tuple(starts)[:-1]


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


def parse_xml(data: bytes) -> Any:
    """Parse XML and return its root; raise an exception of lxml for damaged XML."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    return etree.fromstring(data, parser)


def related_parts(archive: zipfile.ZipFile, name: str) -> list[tuple[str, str, str]]:
    """Return the id, the kind and the name of each part of an Office file that one of its parts refers to."""
    folder, _, base = name.rpartition("/")
    found = []
    for one in parse_xml(archive.read(posixpath.join(folder, "_rels", f"{base}.rels"))).iter("{*}Relationship"):
        target, kind = one.get("Target", ""), one.get("Type", "").rpartition("/")[2]
        if one.get("TargetMode") != "External":
            inside = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
            found.append((one.get("Id", ""), kind, posixpath.normpath(inside)))
    return found


def name_of(element: Any) -> str:
    """Return the name of an element without its namespace; empty for what is no element."""
    return str(element.tag).rpartition("}")[2] if isinstance(element.tag, str) else ""


def between(element: Any, outer: Any) -> Iterator[Any]:
    """Yield the elements around one, up to an outer one."""
    return takewhile(lambda above: above is not outer, element.iterancestors())


def text_of(element: Any) -> str:
    """Return all text within an element on one line."""
    return " ".join("".join(element.itertext()).split())


class Sections:
    """A document in the making: texts, Markdown and whole documents, one below the other."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._tables: list[Table] = []
        self._ocr: list[tuple[int, int, float]] = []
        self._grids: list[Grid] = []
        self._is_markdown = False

    def add(
        self,
        text: str,
        kind: DocumentKind = "text",
        headings: Sequence[Heading] | None = None,
        tables: Sequence[Table] | None = None,
    ) -> None:
        """Add a text; its headings and tables are found if it is Markdown."""
        if not (text := clean(text)).strip():
            return
        self._is_markdown |= kind == "markdown"
        start = self._append(text)
        if kind == "markdown":
            headings = find_headings(text) if headings is None else headings
            tables = find_tables(text) if tables is None else tables
        self._headings += [
            replace(one, start=one.start + start, end=None if one.end is None else one.end + start)
            for one in headings or ()
        ]
        self._tables += [
            replace(table, start=table.start + start, rows=table.rows + start, end=table.end + start)
            for table in tables or ()
        ]

    def heading(self, title: str, level: int = 1) -> None:
        """Add a heading over what is added next."""
        self._headings.append(Heading(level, title, self._append(title)))

    def add_named(self, name: str, text: str) -> None:
        """Add a text below its name, as a heading of Markdown over all of it."""
        section = f"# {name}\n\n{text}"
        self.add(section, headings=[Heading(1, name, 0, len(section))])

    def add_document(self, title: str, document: Document) -> None:
        """Add a document below a heading; its own headings are one level lower."""
        self.heading(title)
        lower = [replace(heading, level=heading.level + 1) for heading in document.headings]
        start = self._length
        self.add(document.text, "markdown" if document.kind == "markdown" else "text", lower, document.tables)
        self._ocr += [(start + first, start + last, confidence) for first, last, confidence in document.ocr]
        self.add_grids(document.grids)

    def add_grids(self, grids: Sequence[Grid]) -> None:
        """Add the cells of sheets."""
        self._grids += grids

    def converted(
        self,
        title: str | None,
        *,
        notes: tuple[str, ...] = (),
        attachments: tuple[Attachment, ...] = (),
        provenance: Provenance = UNKNOWN,
    ) -> Converted:
        """Return the joined document."""
        return Converted(
            title,
            _SEPARATOR.join(self._texts),
            "markdown" if self._is_markdown else "text",
            headings=tuple(self._headings),
            tables=tuple(self._tables),
            notes=notes,
            ocr=tuple(self._ocr),
            attachments=attachments,
            provenance=provenance,
            grids=tuple(self._grids),
        )

    def _append(self, text: str) -> int:
        start = self._length
        self._texts.append(text)
        self._length += len(text) + len(_SEPARATOR)
        return start
