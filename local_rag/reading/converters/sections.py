"""Join texts of several kinds into one document with the headings and tables of all."""

from collections.abc import Sequence
from dataclasses import replace

from local_rag.reading.converters.converted import Attachment, Converted
from local_rag.reading.decode import clean
from local_rag.reading.markdown import find_headings, find_tables
from local_rag.records import UNKNOWN, Document, DocumentKind, Heading, Provenance, Table

_SEPARATOR = "\n\n"


class Sections:
    """A document in the making: texts, Markdown and whole documents, one below the other."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._tables: list[Table] = []
        self._ocr: list[tuple[int, int, float]] = []
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

    def add_document(self, title: str, document: Document) -> None:
        """Add a document below a heading; its own headings are one level lower."""
        self.heading(title)
        lower = [replace(heading, level=heading.level + 1) for heading in document.headings]
        start = self._length
        self.add(document.text, "markdown" if document.kind == "markdown" else "text", lower, document.tables)
        self._ocr += [(start + first, start + last, confidence) for first, last, confidence in document.ocr]

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
        )

    def _append(self, text: str) -> int:
        """Append a text and return where it starts."""
        start = self._length
        self._texts.append(text)
        self._length += len(text) + len(_SEPARATOR)
        return start
