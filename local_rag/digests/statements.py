"""Cut a whole document into statements: sentences, items, rows, lines of code and headings, each with its place."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from local_rag.answering.blocks import Kind
from local_rag.answering.row_texts import cells_in, naming_cell
from local_rag.answering.units import Unit, split_units
from local_rag.catalogue.contents import WholeDocument
from local_rag.display import Name, display_path
from local_rag.document_records import Document, Heading, page_number
from local_rag.passage_records import Passage
from local_rag.reading.formats import format_named
from local_rag.reading.markdown import find_headings
from local_rag.reading.structure import line_starts
from local_rag.text.sentences import split_sentences
from local_rag.text.sheet_rows import ROW_LABEL
from local_rag.text.words import plain

# A number, or the label of an item, with which a statement begins: it changes whenever one before it comes or goes.
_LABEL = re.compile(
    rf"\s*(?:#{{1,6}}\s+)?(?:{ROW_LABEL}"
    r"|(?:[-*+\u2022]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\d{1,3}(?:\.\d{1,3})+\.?(?=\s+[A-Z]))(?:\s+|\Z))?"
)
# Signs that strike words out count: the words are the same with them, and say something else.
_WORD = re.compile(r"[^\W_]+|(?<![^\W_])-(?=\d)|(?<!~)~~(?!~)|[%\u2030\u20ac\u00a3\u00a5\u20b9$<>\u2264\u2265\u00b1]")
_LETTERS = re.compile(r"[^\W\d_]+")
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])-\n\s*(?=[^\W\d_])")
_LINK = re.compile(r"\]\([^)\s]{0,2000}\)")
_PAGE_NUMBER = re.compile(r"(?:page|seite|p\.)?\s?\d{1,4}(?:\s?(?:of|/|von)\s?\d{1,4})?", re.IGNORECASE)
_LONGEST_JOINED, _LONGEST_HEADING = 2000, 2000  # characters
_SHORT_LINE = 50  # characters: prose is wrapped at more
_ENDS = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)*_`]{0,4}\Z")


@dataclass(frozen=True, slots=True)
class Place:
    """A quotation of a document, word for word, with its place: the section, and the page or the line from 1."""

    text: str
    path: str
    title: str
    section: str
    page: int | None
    line: int | None
    start: int
    end: int
    page_label: str = ""

    @property
    def location(self) -> str:
        """Return the place as a reader would look it up."""
        return self.location_by(display_path)

    def location_by(self, name: Name) -> str:
        """Return the place as a reader would look it up, with `name` for its path."""
        path = name(self.path)
        if self.page is not None:
            return f"{path} page {page_number(self.page, self.page_label)}"
        return f"{path}:{self.line}" if self.line is not None else path


@dataclass(frozen=True)
class Statement:
    """A sentence, item, row, line of code or heading, as offsets of its document.

    `read` is how a reader understands it without what stands around it: a row has the heads of its columns.
    """

    start: int
    end: int
    kind: Kind | str
    read: str
    section: tuple[str, ...]
    text: str = field(repr=False)

    @cached_property
    def name(self) -> str:
        """Return the cell that names a row: the first one with a letter, without the head of its column."""
        return naming_cell(cells_in(self.read))[1]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return its words and signs without case, and without the label that it begins with."""
        return words_of(self.text)


def words_of(text: str) -> tuple[str, ...]:
    """Return the words and signs of a statement without case, the label that it begins with, and addresses of links."""
    return tuple(_WORD.findall(plain(readable(text)).casefold()))


def readable(text: str) -> str:
    """Return a quotation on one line: without its label, the addresses of links, and the breaks of lines and words."""
    text = _LINK.sub("]", _BROKEN_WORD.sub("", text))
    return " ".join(text[_label_end(text) :].split())


def _label_end(text: str) -> int:
    found = _LABEL.match(text)
    return found.end() if found else 0


@dataclass(frozen=True)
class DocumentText:
    """The whole text of a document, and what tells the place of a quotation in it.

    `sections` are the offsets at which sections begin, each with the headings above, outermost first; `pages` those of
    pages, each with its number and label. The lines of the text are those of the file if it `has_lines`.
    """

    path: str
    title: str
    text: str
    sections: tuple[tuple[int, tuple[str, ...]], ...] = ()
    pages: tuple[tuple[int, int, str], ...] = ()
    has_lines: bool = True

    def section_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings above an offset, outermost first."""
        index = bisect_right(self.sections, offset, key=lambda one: one[0])
        return self.sections[index - 1][1] if index else ()

    def place(self, start: int, end: int) -> Place:
        """Return the text between two offsets as a quotation with its place."""
        page = bisect_right(self.pages, start, key=lambda one: one[0])
        line = bisect_right(self._line_starts, start) if self.has_lines else None
        section = " > ".join(one for one in self.section_at(start) if one != self.title)
        _, number, label = self.pages[page - 1] if page else (0, None, "")
        return Place(self.text[start:end], self.path, self.title, section, number, line, start, end, label)

    @cached_property
    def _line_starts(self) -> list[int]:
        return line_starts(self.text)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of the document that have words, in order."""
        joined = (one for one in _joined(self, _statements(self)) if one.words)
        return tuple(one for one in joined if not (self.pages and _PAGE_NUMBER.fullmatch(one.text)))


def text_of_file(document: Document) -> DocumentText:
    """Return the text of a document that was read from a file."""
    sections = tuple(_sections(document.headings))
    labels = document.labels or [""] * len(document.pages)
    pages = tuple(
        (start, number, label)
        for number, (start, label) in enumerate(zip(document.pages, labels, strict=True), start=1)
    )
    return DocumentText(str(document.path), document.title, document.text, sections, pages, document.is_source)


def text_of_indexed(document: WholeDocument, kind: str) -> DocumentText:
    """Return the text of a document of a library; where its chunks hold several sections, its Markdown tells them."""
    first = document.passages[0] if document.passages else None
    found = dict[int, tuple[str, ...]]()
    for passage in document.passages:
        found.setdefault(passage.start, passage.headings)
    if kind == "markdown":
        found |= dict(_sections(find_headings(document.text)))
    pages = dict[int, tuple[int, int, str]]()
    for passage in document.passages:
        if passage.page is not None:
            pages.setdefault(passage.page, (passage.start, passage.page, passage.page_label))
    return DocumentText(
        document.path,
        document.title,
        document.text,
        tuple(sorted(found.items())),
        tuple(sorted(pages.values())),
        first is None or first.line is not None,
    )


def _sections(headings: Sequence[Heading]) -> Iterator[tuple[int, tuple[str, ...]]]:
    above: tuple[Heading, ...] = ()
    for heading in headings:
        above = (*(one for one in above if one.level < heading.level), heading)
        yield heading.start, tuple(one.title for one in above)


def _statements(document: DocumentText) -> Iterator[Statement]:
    text = document.text
    if format_named(document.path.rpartition("/")[2]).kind == "code":
        yield from _lines(document)
        return
    begin = 0
    for start, titles in (*document.sections, (len(text), ())):
        end = _heading_end(text, start)
        if start < begin or (titles and words_of(text[start:end]) != words_of(titles[-1])):
            continue  # a chunk begins here, and no section
        body = Passage(0, document.path, document.title, text[begin:start], "", "", (), None, None, None, 0.0)
        for unit in split_units([body]):
            for first, last in _parts(body.text, unit):
                one = _statement(document, begin + first, begin + last, unit.kind)
                yield replace(one, read=unit.text) if unit.kind == "row" else one
        if start < end:
            yield _statement(document, start, end, "heading")
        begin = end


def _parts(text: str, unit: Unit) -> Iterator[tuple[int, int]]:
    """Yield the span of a unit, or those of the sentences of an item and of lines that are no wrapped prose."""
    quoted = text[unit.start : unit.end]
    parts = [*_separate_lines(quoted)] if unit.kind in {"sentence", "item", "step", "clause"} else [quoted]
    if unit.kind in {"item", "step", "clause"}:
        parts = [sentence for part in parts for sentence in split_sentences(part.replace("\n", " "))]
    start = unit.start
    for part in parts:
        first = start + len(part) - len(part.lstrip())
        start += len(part)
        if kept := part.strip():
            yield first, first + len(kept)


def _separate_lines(text: str) -> Iterator[str]:
    """Yield the parts of a text that lines separate: short ones, before what does not go on in lower case."""
    lines = text.splitlines(keepends=True)
    is_list = len(lines) > 2 and all(len(line) < _SHORT_LINE and not _ENDS.search(line.rstrip()) for line in lines)  # noqa: PLR2004
    part = lines[0]
    for before, line in pairwise(lines):
        if is_list or (len(before) < _SHORT_LINE and not line.lstrip()[:1].islower()):
            yield part
            part = ""
        part += line
    yield part


def _lines(document: DocumentText) -> Iterator[Statement]:
    start = 0
    for line in document.text.splitlines(keepends=True):
        if kept := line.strip():
            begin = start + line.index(kept)
            yield _statement(document, begin, begin + len(kept), "code")
        start += len(line)


def _statement(document: DocumentText, start: int, end: int, kind: str) -> Statement:
    quoted = document.text[start:end]
    return Statement(start, end, kind, quoted, document.section_at(start), quoted)


def _heading_end(text: str, start: int) -> int:
    """Return the end of the line that begins at an offset, and the offset itself if that is too long for a heading."""
    line = text[start : start + _LONGEST_HEADING].partition("\n")[0]
    return start if len(line) == _LONGEST_HEADING else start + len(line.rstrip())


def _joined(document: DocumentText, statements: Iterator[Statement]) -> Iterator[Statement]:
    """Join the parts of a sentence that the end of a page or a wide line has cut."""
    before: Statement | None = None
    for one in statements:
        if before and _goes_on(document.text, before, one):
            before = _statement(document, before.start, one.end, before.kind)
            continue
        if before:
            yield before
        before = one
    if before:
        yield before


def _goes_on(text: str, before: Statement, following: Statement) -> bool:
    return (
        before.kind in {"sentence", "item", "step", "clause"}
        and following.kind == "sentence"
        and not _ENDS.search(before.text)
        and following.text[:1].islower()
        and before.section == following.section
        and text.count("\n", before.end, following.start) > 1
        and following.end - before.start < _LONGEST_JOINED
    )


def without_stop(value: str) -> str:
    """Return a value without the full stop that ends its sentence; the one of `p.m.` stays."""
    return value if "." in value[:-1].rpartition(" ")[2] else value.removesuffix(".")


def ordinary_words(text: str) -> set[str]:
    """Return the words that a text writes in lower case."""
    return {word for word in _LETTERS.findall(text) if word.islower()}
