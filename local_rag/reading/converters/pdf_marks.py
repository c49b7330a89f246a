"""Read what stands on the pages of a PDF beside their own text: values of forms, remarks, and attached files."""

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from local_rag.reading.converters.converted import Attachment
from local_rag.reading.converters.pdf_page import Cell, Line
from local_rag.reading.decode import clean

_MOST_MARKS, _MOST_OPTIONS, _MOST_FILES = 5000, 2000, 200  # of a page, of a field, of a document
_LONGEST = 200_000  # bytes of a value or remark
_MOST_BYTES = 100_000_000  # of all attached files
_HIDDEN, _NO_VIEW = 2, 32  # flags of an annotation
_PASSWORD = 1 << 13  # flag of a field
_USUAL = 12.0  # points: the height of a line in a high field
_SAME_ROW = 0.6  # of a mark's height: its middle is so near to that of its label
_NEAR = 24.0  # points between a box and the label on its right
_ASKS = (":", "?", "_", ".", "\u2026", "\uff1a")  # a label ends so


@dataclass(frozen=True, slots=True)
class Mark:
    """A text with its place in points from below; `is_value` of a field, else a remark or a text of its own.

    `is_on_layer` says that it stands on a layer: PDFium shows it also if that is off.
    """

    text: str
    left: float
    bottom: float
    right: float
    top: float
    is_value: bool = False
    is_box: bool = False  # to be ticked
    is_on_layer: bool = False


def open_forms(pdf: Any, left_out: Counter[str]) -> None:
    """Make the values of a document's forms known; a form that only one program can show is noted."""
    import pypdfium2.raw as pdfium

    kind = pdf.get_formtype()
    if kind != pdfium.FORMTYPE_NONE:
        pdf.init_forms()
    left_out["form* in XFA, of which only the fields are read,"] += kind == pdfium.FORMTYPE_XFA_FULL


def marks_of(pdf: Any, page: Any, files: list[Attachment], left_out: Counter[str]) -> list[Mark]:
    """Return the values and remarks of a page; add the files that are attached to places on it."""
    import pypdfium2.raw as pdfium

    count = pdfium.FPDFPage_GetAnnotCount(page.raw)
    left_out["remark* beyond the limit"] += max(0, count - _MOST_MARKS)
    marks: list[Mark] = []
    for number in range(min(count, _MOST_MARKS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, number)
        if not annotation:
            continue
        try:
            mark = _mark(pdf, annotation, left_out)
            if pdfium.FPDFAnnot_GetSubtype(annotation) == pdfium.FPDF_ANNOT_FILEATTACHMENT:
                _attach(pdf, pdfium.FPDFAnnot_GetFileAttachment(annotation), files, left_out)
            if mark is not None and mark.text.strip():
                marks.append(replace(mark, is_on_layer=bool(pdfium.FPDFAnnot_HasKey(annotation, b"OC"))))
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
    return marks


def with_marks(lines: Sequence[Line], marks: Sequence[Mark]) -> list[Line]:
    """Put each value behind its label, and each remark below the line that it stands at."""
    written = list(lines)
    rows: list[list[Mark]] = []
    for mark in sorted(marks, key=lambda one: (-(one.top + one.bottom), one.left)):
        middle = (mark.top + mark.bottom) / 2
        if mark.is_value and rows and rows[-1][0].is_value and rows[-1][0].bottom < middle < rows[-1][0].top:
            rows[-1].append(mark)
        else:
            rows.append([mark])
    for row in rows:
        if row[0].is_value:
            _fill(written, row)
        else:
            texts = [Line((Cell(text, row[0].left, row[0].right),)) for text in row[0].text.split("\n") if text.strip()]
            at = _below(written, row[0])
            top = min(row[0].top, written[at - 1].top - 1) if at else row[0].top
            written[at:at] = [replace(line, top=top) for line in texts]
    return written


def attach_files(pdf: Any, files: list[Attachment], left_out: Counter[str]) -> None:
    """Add the files that are attached to a document."""
    count = pdf.count_attachments()
    for number in range(min(count, _MOST_FILES)):
        _attach(pdf, pdf.get_attachment(number).raw, files, left_out)
    left_out["attached file* beyond the limit"] += max(0, count - _MOST_FILES)


def _attach(pdf: Any, attached: Any, files: list[Attachment], left_out: Counter[str]) -> None:
    import pypdfium2

    if not attached:
        left_out["attached file*"] += 1
    elif len(files) >= _MOST_FILES or sum(len(file.data) for file in files) > _MOST_BYTES:
        left_out["attached file* beyond the limit"] += 1
    else:
        file = pypdfium2.PdfAttachment(attached, pdf)
        files.append(Attachment(file.get_name() or "attachment", bytes(file.get_data())))


def _mark(pdf: Any, annotation: Any, left_out: Counter[str]) -> Mark | None:
    import pypdfium2.raw as pdfium

    if pdfium.FPDFAnnot_GetFlags(annotation) & (_HIDDEN | _NO_VIEW):
        return None
    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    box = pdfium.FS_RECTF()
    pdfium.FPDFAnnot_GetRect(annotation, ctypes.byref(box))
    place = box.left, min(box.bottom, box.top), box.right, max(box.bottom, box.top)
    if kind == pdfium.FPDF_ANNOT_WIDGET:
        return _field(pdf.formenv.raw, annotation, place) if pdf.formenv else None
    if kind in {pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP}:
        return None
    said = _string(lambda *to: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", *to)).strip()
    if not said:
        left_out["stamp*"] += kind == pdfium.FPDF_ANNOT_STAMP
        return None
    return Mark(said if kind == pdfium.FPDF_ANNOT_FREETEXT else f"Comment: {said}", *place)


def _field(form: Any, field: Any, place: tuple[float, float, float, float]) -> Mark | None:
    """Return the value of a field; a box says whether it is ticked."""
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFAnnot_GetFormFieldType(form, field)
    if kind in {pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON}:
        is_ticked = pdfium.FPDFAnnot_IsChecked(form, field)
        return Mark("[x]" if is_ticked else "[ ]", *place, is_value=True, is_box=True)
    if kind in {pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE}:
        return None
    if pdfium.FPDFAnnot_GetFormFieldFlags(form, field) & _PASSWORD:
        return None
    value = _string(lambda *to: pdfium.FPDFAnnot_GetFormFieldValue(form, field, *to))
    if kind in {pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX}:
        value = ", ".join(_chosen(form, field)) or value
    return Mark(" ".join(value.split()), *place, is_value=True)


def _chosen(form: Any, field: Any) -> list[str]:
    import pypdfium2.raw as pdfium

    count = min(pdfium.FPDFAnnot_GetOptionCount(form, field), _MOST_OPTIONS)
    return [
        _string(lambda *to, at=number: pdfium.FPDFAnnot_GetOptionLabel(form, field, at, *to))
        for number in range(count)
        if pdfium.FPDFAnnot_IsOptionSelected(form, field, number)
    ]


def _string(get: Callable[..., int]) -> str:
    """Return a string of PDFium's, which is asked for twice: for its length in bytes and for itself."""
    import pypdfium2.raw as pdfium

    length = min(get(None, 0), _LONGEST)
    if length <= 2:  # noqa: PLR2004  the zero at the end
        return ""
    buffer = ctypes.create_string_buffer(length)
    get(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return clean(buffer.raw.decode("utf-16-le", errors="replace").rstrip("\0"))


def _fill(lines: list[Line], row: Sequence[Mark]) -> None:
    """Put the values of a row into the line with their labels, or into a new one."""
    middle = (row[0].top + row[0].bottom) / 2
    height = row[0].top - row[0].bottom
    near = [
        number
        for number, line in enumerate(lines)
        if line.height and abs(line.top - line.height / 2 - middle) < _SAME_ROW * max(height, line.height)
    ]
    at = min(near, key=lambda number: abs(lines[number].top - lines[number].height / 2 - middle), default=-1)
    if at < 0:
        own = tuple(Cell(mark.text, mark.left, mark.right) for mark in row)
        lines.insert(_below(lines, row[0]), Line(own, row[0].top, min(height, _USUAL)))
        return
    cells = list(lines[at].cells)
    for mark in row:
        before = max((number for number, cell in enumerate(cells) if cell.left < mark.left), default=-1)
        behind = cells[before + 1] if before + 1 < len(cells) else None
        if mark.is_box and behind is not None and 0 <= behind.left - mark.right < _NEAR:
            cells[before + 1] = Cell(f"{mark.text} {behind.text}", mark.left, behind.right)
        elif before >= 0 and (len(row) == 1 or mark.is_box or cells[before].text.endswith(_ASKS)):
            label = cells[before]
            cells[before] = Cell(f"{label.text} {mark.text}", label.left, max(label.right, mark.right))
        else:
            cells.insert(before + 1, Cell(mark.text, mark.left, mark.right))
    lines[at] = replace(lines[at], cells=tuple(cells))


def _below(lines: Sequence[Line], mark: Mark) -> int:
    """Return the place behind the lowest line that stands above a mark."""
    above = [(line.top, number) for number, line in enumerate(lines) if line.top >= (mark.top + mark.bottom) / 2]
    return min(above)[1] + 1 if above else 0
