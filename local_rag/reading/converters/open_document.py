"""Convert files of LibreOffice and the like: text (ODT), sheets (ODS) and slides (ODP)."""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted, between, join_pages, name_of, notes_of, parse_xml, text_of
from local_rag.reading.converters.open_lists import PRESENTATION, TABLE, TEXT, Counts, Lists, TextStyles
from local_rag.reading.converters.runs import Run, write_runs
from local_rag.reading.converters.sheets import Sheet, place_of, sections_of_sheets
from local_rag.reading.converters.table_layout import fill_labels, pipe_table, table_in_cell
from local_rag.reading.decode import clean
from local_rag.reading.provenance import is_real_date, make_provenance
from local_rag.text.notes import note, split_notes
from local_rag.text.struck import strike

_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_FORM = "{urn:oasis:names:tc:opendocument:xmlns:form:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
# What a program made of the rest, what was deleted, and what a document only declares.
_NOT_WRITTEN = {
    "table-of-content",
    "alphabetical-index",
    "tracked-changes",
    "forms",
    "sequence-decls",
    "variable-decls",
    "script",
    "number",
}
_SHAPES = {
    "frame", "custom-shape", "g", "rect", "ellipse", "circle", "polygon", "polyline", "path", "line", "connector",
    "regular-polygon", "caption",
}  # fmt: skip
_CONTAINERS = {"section", "text-box", "list-header", "index-body", "bibliography"} | _SHAPES
_UNSEEN = {"collapse", "filter"}  # rows and columns
_MOST_REPEATED = 1000  # copies of a cell or row that are written; a sheet repeats its empty ones a million times
_MOST_COPIES = 20_000  # of cells with text in a document


def convert_odt(data: bytes) -> Converted:
    """Convert a text document; headers and footers of its pages stand around the text."""
    package = _Package(data)
    head, foot = (package.frame_lines(name) for name in ("header", "footer"))
    body = package.body("text")
    text = "\n\n".join(filter(None, [head, *package.blocks(body), *form_values(body), foot]))
    return package.converted(text)


def convert_odp(data: bytes) -> Converted:
    """Convert slides with their notes; each slide counts as a page."""
    package = _Package(data)
    slides = package.body("presentation").iterfind("{*}page")
    text, pages = join_pages([clean("\n\n".join(package.slide(slide))) for slide in slides])
    return package.converted(text, pages=pages)


def convert_ods(data: bytes) -> Converted:
    """Convert sheets: each row becomes a line that names its columns."""
    package = _Package(data)
    made = sections_of_sheets(map(package.sheet, package.body("spreadsheet").iterfind(f"{TABLE}table")))
    return package.converted(made.text, made.notes, tables=made.tables, grids=made.grids)


class _Package:
    """An open file with what is left out of it."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
                raise ReadError("encrypted")
            self._content = parse_xml(archive.read("content.xml"))
            self._styles, self._meta = (
                parse_xml(archive.read(name) if name in names else b"<none/>") for name in ("styles.xml", "meta.xml")
            )
        self._left_out, self._hidden = Counter[str](), Counter[str]()
        self._copies = 0
        roots = self._styles, self._content
        self._lists, self._text_styles = Lists(roots), TextStyles(roots)

    def body(self, kind: str) -> Any:
        """Return the element that contains the document."""
        found = self._content.find(f"{_OFFICE}body/{_OFFICE}{kind}")
        if found is None:
            raise ReadError(f"its kind is not {kind}")
        return found

    def converted(self, text: str, notes: tuple[str, ...] = (), **more: Any) -> Converted:
        """Return the document with its title, origin and notes."""
        notes += notes_of(self._left_out) + notes_of(self._hidden, "read too")
        provenance = make_provenance(
            date=next(filter(is_real_date, map(self._named, ("creation-date", "date"))), None),
            author=self._named("initial-creator") or self._named("creator"),
            tags=[text_of(word) for word in self._meta.iterfind(".//{*}keyword")],
        )
        title = self._named("title") or None
        return Converted(title, clean(text), "markdown", notes=notes, provenance=provenance, **more)

    def _named(self, name: str) -> str:
        found = self._meta.find(f".//{{*}}{name}")
        return "" if found is None else text_of(found)

    def frame_lines(self, name: str) -> str:
        """Return the different lines of the headers or footers of pages."""
        found = self._styles.iterfind(f".//{{*}}master-page/{{*}}{name}")
        lines = (self._line(paragraph) for frame in found for paragraph in frame.iter(f"{TEXT}p"))
        return "\n".join(dict.fromkeys(line for line in lines if any(map(str.isalpha, line))))

    def slide(self, slide: Any) -> Iterator[str]:
        """Yield the blocks of a slide, its title first, and its notes."""
        classes = f"{PRESENTATION}class"
        style = slide.get(f"{_DRAW}style-name")
        self._hidden["hidden slide*"] += bool(self._text_styles.is_hidden("drawing-page", style))
        frames = [one for one in slide if not one.tag.endswith("}notes")]
        for frame in sorted(frames, key=lambda one: one.get(classes) != "title"):
            text = "\n\n".join(self.blocks([frame]))
            yield f"# {' '.join(text.split())}" if frame.get(classes) == "title" and text.strip() else text
        for notes in slide.iterfind("{*}notes"):
            if text := "\n\n".join(self.blocks(notes)):
                yield f"Notes: {text}"

    def blocks(self, parent: Any, indent: str = "", *, in_cell: bool = False) -> Iterator[str]:
        """Yield headings, paragraphs, lists and tables as Markdown; a table in a cell as text."""
        for element in parent:
            name = name_of(element)
            if self._is_hidden(element, name):
                self._left_out["hidden word*"] += len(" ".join(element.itertext()).split())
            elif name in {"h", "p"}:
                yield self._heading(element) if name == "h" else self._line(element)
                yield from self._boxes(element)
            elif name == "list":
                counts = self._lists.begin(element, self._list_style(element))
                yield "\n".join(self._items(element, indent, counts, 1, counts.style))
            elif name == "table":
                yield from self._table(element, in_cell=in_cell)
            elif name == "annotation":
                yield self._comment(element).strip()
            elif name in _CONTAINERS:
                yield from self.blocks(element, indent, in_cell=in_cell)
            elif name in {"image", "object", "object-ole"} and not _description(parent):
                self._left_out["image* without a description" if name == "image" else "embedded object*"] += 1
            elif name in {"image", "object"}:
                yield _description(parent)
            elif name not in _NOT_WRITTEN and len(element):
                yield from self.blocks(element, indent, in_cell=in_cell)

    def _heading(self, element: Any, label: str | None = None) -> str:
        """Write a heading with its number, which is that of a list if it is in one."""
        level = int(element.get(f"{TEXT}outline-level") or 1)
        title, notes = split_notes(self._line(element))
        if not title and self._hides(element):
            return notes
        if label is None:
            is_numbered = self._text_styles.list_style(element.get(f"{TEXT}style-name")) != ""
            label = self._lists.heading_label(element, level) if is_numbered else ""
        heading = " ".join(["#" * max(1, min(6, level)), *([label] if label else []), title])
        return f"{heading}\n\n{notes}" if notes else heading

    def _list_style(self, element: Any) -> str:
        first = next(element.iter(f"{TEXT}p", f"{TEXT}h"), None)
        return (self._text_styles.list_style(first.get(f"{TEXT}style-name")) or "") if first is not None else ""

    def _items(self, items: Any, indent: str, counts: Counts, level: int, style: str) -> Iterator[str]:
        """Yield the lines of a list's items with their labels, and of the lists within them."""
        numbered = any(item.get(f"{TEXT}start-value") for item in items) or bool(items.get(f"{TEXT}continue-numbering"))
        for item in items:
            label = ""
            children = [one for one in item if isinstance(one.tag, str) and one.tag != f"{TEXT}number"]
            counted = item.tag == f"{TEXT}list-item" and children and children[0].tag in {f"{TEXT}p", f"{TEXT}h"}
            if counted:
                label = self._lists.label(counts, item, level, style, numbered=numbered)
            below = f"{indent}{' ' * min(3, len(label) + 1)}" if label else f"{indent}  "
            is_first = True
            for child in children:
                if child.tag == f"{TEXT}h":
                    yield self._heading(child, label if is_first else "")
                    yield from self._boxes(child)
                elif child.tag == f"{TEXT}list":
                    own = child.get(f"{TEXT}style-name") or style
                    yield from self._items(child, below if counted else indent, counts, level + 1, own)
                else:
                    for block in filter(str.strip, self.blocks([child], below)):
                        yield f"{indent}{label} {block}" if label and is_first else f"{below}{block}"
                        is_first = False
                is_first = False

    def _is_hidden(self, element: Any, name: str) -> bool:
        """Return whether an element is hidden with all that is in it; what a style hides, a run in it may show."""
        if name in {"p", "h"}:
            marks = (mark.get(f"{TEXT}is-hidden") for mark in element.iterfind(f"{TEXT}hidden-paragraph"))
            return any(mark != "false" for mark in marks)
        if name == "section":
            display = element.get(f"{TEXT}display"), element.get(f"{TEXT}is-hidden")
            return display[0] == "none" or display == ("condition", "true")
        return name == "hidden-text" and element.get(f"{TEXT}is-hidden") != "false"

    def _boxes(self, paragraph: Any) -> Iterator[str]:
        """Yield what is anchored in a paragraph: text boxes, shapes and images."""
        hidden = self._hides(paragraph)
        for frame in paragraph.iter(*(f"{{*}}{name}" for name in _SHAPES)):
            if any(name_of(above) in _SHAPES for above in between(frame, paragraph)):
                continue
            if hidden:
                self._left_out["hidden word*"] += len(" ".join(frame.itertext()).split())
            else:
                yield from self.blocks([frame])

    def _hides(self, paragraph: Any) -> bool:
        """Return whether the style of a paragraph hides it, except for runs that are shown."""
        return bool(self._text_styles.is_hidden("paragraph", paragraph.get(f"{TEXT}style-name")))

    def _line(self, paragraph: Any) -> str:
        marks = self._marked(Run(""), "paragraph", paragraph.get(f"{TEXT}style-name"))
        return write_runs(self._inline(paragraph, marks), self._left_out).strip()

    def _marked(self, marks: Run, family: str, style: str | None) -> Run:
        """Return the marks of what has a style within what is marked; it changes only what it speaks of."""
        raised = self._text_styles.raised(style) if family == "text" else 0
        struck, hidden = self._text_styles.is_struck(family, style), self._text_styles.is_hidden(family, style)
        return Run(
            "",
            raised or marks.raised,
            marks.struck if struck is None else struck,
            marks.hidden if hidden is None else hidden,
        )

    def _comment(self, annotation: Any) -> str:
        return note(" ".join(self.blocks(_body_of(annotation))), "Comment")

    def _inline(self, element: Any, marks: Run) -> Iterator[Run]:
        """Yield the runs of a paragraph, with its notes and comments; `marks` hold for all that says nothing else."""
        yield replace(marks, text=_collapsed(element.text))
        for child in element:
            name = name_of(child) or "frame"
            if self._is_hidden(child, name):
                self._left_out["hidden word*"] += len("".join(child.itertext()).split())
            elif name == "s":
                yield replace(marks, text=" " * min(80, int(child.get(f"{TEXT}c") or 1)))
            elif name in {"tab", "line-break"}:
                yield replace(marks, text="\t" if name == "tab" else "\n")
            elif name == "annotation":
                yield Run(self._comment(child), hidden=marks.hidden)
            elif name == "note":
                yield Run(note(" ".join(self.blocks(_body_of(child)[0]))), hidden=marks.hidden)
            elif name == "number":
                yield replace(marks, text=f"{text_of(child)} ")
            elif name == "ruby-text":
                self._left_out["reading aid*"] += 1
            elif name == "span":
                yield from self._inline(child, self._marked(marks, "text", child.get(f"{TEXT}style-name")))
            elif name not in _SHAPES | _NOT_WRITTEN:
                yield from self._inline(child, marks)
            yield replace(marks, text=_collapsed(child.tail))

    def _table(self, table: Any, *, in_cell: bool) -> Iterator[str]:
        """Yield a table, or what stands in its cells if it only lays out others."""
        if not in_cell and (cells := _laid_out(table)):
            for cell in cells:
                yield from self.blocks(cell)
            return
        marked = [self._row(row, {}, {}) for head in table.iterfind(f"{TABLE}table-header-rows") for row in head]
        rows = [row for row in self._rows(table, Sheet("")) if any(row)]
        names = marked[0] if marked else rows[0] if rows else []
        body = [row for _, row in fill_labels(list(enumerate(rows[len(marked) or 1 :])))[0]]
        if rows:
            yield table_in_cell(names, body) if in_cell else pipe_table(names, body)

    def sheet(self, table: Any) -> Sheet:
        """Return a sheet with its rows, the rows and columns that it hides, and the comments on its cells."""
        self._hidden["hidden sheet*"] += bool(self._text_styles.is_hidden("table", table.get(f"{TABLE}style-name")))
        sheet = Sheet(table.get(f"{TABLE}name", ""))
        sheet.hidden_columns = frozenset(_hidden_columns(table))
        sheet.rows = {number: row for number, row in enumerate(self._rows(table, sheet), start=1) if any(row)}
        return sheet

    def _rows(self, table: Any, sheet: Sheet) -> Iterator[list[str]]:
        """Yield the rows of a table; a merged cell repeats its text where it covers others.

        Rows that are hidden and comments on cells are added to a sheet.
        """
        below: dict[int, tuple[int, str]] = {}
        waiting = number = 0
        for row in table.iter(f"{TABLE}table-row"):
            if next(row.iterancestors(f"{TABLE}table")) is not table:
                continue
            repeated = _number(row, "number-rows-repeated")
            comments: dict[int, str] = {}
            cells = self._row(row, below, comments)
            if not any(cells):
                waiting += repeated
                continue
            yield from ([] for _ in range(min(waiting, _MOST_REPEATED)))
            number += min(waiting, _MOST_REPEATED) + 1
            waiting = 0
            sheet.comments += [(place_of(number, column), text) for column, text in comments.items()]
            fitting = 1 + min(repeated - 1, _MOST_REPEATED, (_MOST_COPIES - self._copies) // len(cells))
            self._left_out["repeated row*"] += repeated - fitting
            self._copies += (fitting - 1) * len(cells)
            if _hides_row(row):
                sheet.hidden_rows |= set(range(number, number + fitting))
            number += fitting - 1
            yield from (list(cells) for _ in range(fitting))

    def _row(self, row: Any, below: dict[int, tuple[int, str]], comments: dict[int, str]) -> list[str]:
        """Return the cells of a row; `below` says what merged cells spread into it, and over how many rows.

        The comments on its cells are added to `comments`, by column.
        """
        cells: list[str] = []
        of_row = row.get(f"{TABLE}default-cell-style-name")
        for cell in row.iter(f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
            if next(cell.iterancestors(f"{TABLE}table-row")) is not row:
                continue
            body = [one for one in cell if name_of(one) != "annotation"]
            text = "; ".join(" ".join(block.split()) for block in self.blocks(body, in_cell=True) if block.strip())
            if self._text_styles.is_struck("table-cell", cell.get(f"{TABLE}style-name") or of_row):
                text = strike(text)
            for one in cell.iterfind(f"{_OFFICE}annotation"):
                comments[len(cells)] = " ".join(" ".join(self.blocks(_body_of(one))).split())
            if cell.get(f"{TABLE}formula") and not text and not cell.get(f"{_OFFICE}value-type"):
                self._left_out["formula* without a value"] += 1
            if cell.tag == f"{TABLE}covered-table-cell" and len(cells) in below:
                left, covering = below.pop(len(cells))
                text = text or covering
                if left > 1:
                    below[len(cells)] = (left - 1, covering)
            tall = _number(cell, "number-rows-spanned")
            if tall > 1 and text:
                wide = min(_number(cell, "number-columns-spanned"), _MOST_REPEATED)
                below |= {len(cells) + step: (tall - 1, text) for step in range(wide)}
            repeated = _number(cell, "number-columns-repeated")
            if text:
                fitting = 1 + min(repeated - 1, _MOST_REPEATED, _MOST_COPIES - self._copies)
                self._left_out["repeated cell*"] += repeated - fitting
                self._copies += fitting - 1
                repeated = fitting
            cells += [text] * min(repeated, _MOST_REPEATED)
        while cells and not cells[-1]:
            cells.pop()
        return cells


def form_values(body: Any) -> Iterator[str]:
    """Yield the values that are filled into the forms of a document."""
    for control in body.iterfind(f"{_OFFICE}forms//*"):
        value = control.get(f"{_FORM}current-value") or control.get(f"{_FORM}value") or ""
        if name := control.get(f"{_FORM}name"):
            if value.strip():
                yield f"{name}: {value}"
            elif control.get(f"{_FORM}current-state") == "checked":
                yield f"{name}: yes"


def _body_of(annotation: Any) -> list[Any]:
    """Return what a note or comment says, without its sign and its author."""
    return [one for one in annotation if not one.tag.endswith(("}note-citation", "}creator", "}date"))]


def _laid_out(table: Any) -> list[Any]:
    """Return the cells of a table of one row or column that holds other tables; none of a table of data."""
    if table.find(f".//{TABLE}table") is None:
        return []
    lines = [row for row in table.iter(f"{TABLE}table-row") if next(row.iterancestors(f"{TABLE}table")) is table]
    rows = [[cell for cell in row.iterfind(f"{TABLE}table-cell") if text_of(cell)] for row in lines]
    rows = list(filter(None, rows))
    return [cell for row in rows for cell in row] if len(rows) <= 1 or max(map(len, rows)) <= 1 else []


def _hides_row(row: Any) -> bool:
    """Return whether a sheet does not show a row: by itself, by a filter, or because its group is closed."""
    groups = (one.get(f"{TABLE}display") for one in row.iterancestors(f"{TABLE}table-row-group"))
    return row.get(f"{TABLE}visibility") in _UNSEEN or "false" in groups


def _hidden_columns(table: Any) -> Iterator[int]:
    """Yield the columns that a sheet does not show."""
    at = 0
    for column in table.iter(f"{TABLE}table-column"):
        groups = (one.get(f"{TABLE}display") for one in column.iterancestors(f"{TABLE}table-column-group"))
        repeated = min(_number(column, "number-columns-repeated"), _MOST_REPEATED)
        if column.get(f"{TABLE}visibility") in _UNSEEN or "false" in groups:
            yield from range(at, at + repeated)
        at += repeated


def _number(cell: Any, name: str) -> int:
    return int(cell.get(f"{TABLE}{name}") or 1)


def _collapsed(text: str | None) -> str:
    return re.sub(r"[ \t\r\n]+", " ", text or "")


def _description(frame: Any) -> str:
    described = (frame.iterfind(f"{{*}}{name}") for name in ("title", "desc")) if hasattr(frame, "iterfind") else ()
    return " ".join(filter(None, (text_of(one) for found in described for one in found)))
