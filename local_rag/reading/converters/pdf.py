"""Convert PDF files: headings, tables, filled forms, remarks, and text without the lines that every page repeats."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from statistics import median
from typing import Any

from local_rag.document_records import Heading, Table
from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Attachment, Converted, notes_of
from local_rag.reading.converters.pdf_grids import ruled_tables, rules_of
from local_rag.reading.converters.pdf_layers import remove_hidden_layers
from local_rag.reading.converters.pdf_marks import attach_files, marks_of, open_forms, with_marks
from local_rag.reading.converters.pdf_page import Cell, Line, RecognizedPage, breaks_range, breaks_word, lines_of
from local_rag.reading.converters.pdf_tables import PageTable, find_tables, unfold_columns, without_line_numbers
from local_rag.reading.converters.table_layout import pipe_row, pipe_table
from local_rag.reading.formats import NO_TEXT
from local_rag.reading.provenance import pdf_provenance
from local_rag.text.words import joins_lines

_FILE_TITLE = re.compile(r"untitled.*|microsoft \w+ - .*|.*\.(?:docx?|pptx?|xlsx?|pdf|tex|dvi|indd|qxd)", re.IGNORECASE)
_LONGEST_TITLE = 120
_BROKEN_WORD = re.compile(r"(?<!\w)(\w++)(?<![\d_])[\ufffe\u00ad](?=([^\W\d_]\w*+))")
_EDGE_LINES = 2  # at the top and at the bottom of a page
_FEWEST_REPEATS, _REPEATED = 3, 1 / 3  # pages, and their share, on which a line stands that every page repeats
_PAGE_NUMBER = re.compile(
    r"\b(?:page|seite|pagina|p\u00e1gina|side|sida|strona)\s*\0|\0\s*(?:/|of|von|de|di|av)\s*\d", re.IGNORECASE
)
_MARGIN = 0.12  # of a page's height, in which its header and its footer stand
_SAME_HEIGHT = 4.0  # points between the places of a line on several pages
_APART = 1.25  # times the usual distance of lines
_VALUE = re.compile(r":\s*\S")
_LARGER = 1.15  # times the height of most text: a heading
_MOST_BOLD, _LONGEST_BOLD, _BOLD_TOGETHER = 0.3, 100, 2  # share of the text, characters, lines: bold lines are headings
_NEXT_LINE = 1.8  # heights between the lines of one heading
_MOST_UNKNOWN = 0.3  # of the characters of a page: more are in fonts that do not tell what they are, so it is scanned
_UNKNOWN = "(The text of this page is in a font that does not tell its characters.)"
_LONGEST_HEADING = 200  # characters
_MOST_LARGE = 0.3  # of the characters
_MOST_OUTLINE = 5000  # entries
_MOST_LABELS, _LONGEST_LABEL = 20_000, 40  # pages with labels, and characters
_SAME_PLACE = 6.0  # points between the columns of a table that goes on on the next page

Recognize = Callable[[Any, int], RecognizedPage]  # reads a page of PDFium's with its number from 0


@dataclass(slots=True)
class _Page:
    """The lines of a page, its tables by their first line, and the lines that are left out.

    `ocr` is the confidence with which the page was read by OCR; `waits` says that it waits for that. `height` is 0 for
    a page that is turned, `unknown` counts its characters that nothing tells.
    """

    lines: list[Line]
    tables: dict[int, PageTable]
    ocr: float | None = None
    waits: bool = False
    height: float = 0.0
    unknown: int = 0
    on_layers: int = 0  # values and remarks, which nothing tells whether they are shown
    left_out: set[int] = field(default_factory=set)
    headings: set[int] = field(default_factory=set)  # lines that are larger than the text, or bold
    starts: dict[int, int] = field(default_factory=dict)  # of lines in the text

    def kept(self) -> Iterator[int]:
        """Yield the numbers of the lines that are text, in order."""
        within = {number for one in self.tables.values() for number in range(one.first, one.last)}
        return (number for number in range(len(self.lines)) if number not in self.left_out | within)


def convert_pdf(data: bytes, recognize: Recognize | None = None) -> Converted:
    """Join the pages' text with blank lines; rejoin words and sentences that a line break cut.

    Pages that show something and have no text are read by `recognize`, or wait for it.
    """
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise ReadError(
            "encrypted PDF; save it without a password" if "password" in str(error).lower() else "damaged PDF file"
        ) from error
    left_out, attachments = Counter[str](), list[Attachment]()
    try:
        open_forms(pdf, left_out)
        pages = [_read_page(pdf, page, number, recognize, attachments, left_out) for number, page in enumerate(pdf)]
        attach_files(pdf, attachments, left_out)
        named = pdf.get_metadata_dict()
        outline = list(_outline(pdf))
        labels = _labels(pdf)
    finally:
        pdf.close()
    waiting = sum(page.waits for page in pages)
    wait = f"{waiting} of {len(pages)} pages {'wait' if waiting > 1 else 'waits'} for OCR, the extra `ocr`"
    if not any(page.lines for page in pages) and not attachments:
        raise ReadError(f"no text layer: {wait}" if waiting else NO_TEXT, waiting=waiting)
    notes = [wait] if waiting else []
    if unread := sum(page.unknown > 0 for page in pages):
        notes.append(
            f"{unread} {'pages have' if unread > 1 else 'page has'} text in a font that does not tell its characters"
        )
    notes += notes_of({"remark* on a layer, which may be off,": sum(page.on_layers for page in pages)}, "read too")
    _leave_out_repeated(pages)
    body = _usual_height(pages)
    _find_headings(pages, body)
    text, tables, starts = _write(pages)
    headings = _outlined(outline, pages, starts) if outline else ()
    if len(headings) <= 1:
        headings = _headings_of(pages)
    return Converted(
        _title(named.get("Title", ""), pages, body),
        text,
        "text",
        pages=tuple(starts),
        labels=labels,
        headings=headings,
        tables=tables,
        notes=(*notes, *notes_of(left_out)),
        ocr=tuple(
            (start, end, page.ocr)
            for page, (start, end) in zip(pages, pairwise([*starts, len(text)]), strict=True)
            if page.ocr is not None
        ),
        waiting=waiting,
        attachments=tuple(attachments),
        provenance=pdf_provenance(named),
    )


def _read_page(
    pdf: Any, page: Any, number: int, recognize: Recognize | None, files: list[Attachment], left_out: Counter[str]
) -> _Page:
    """Read a page with its marks; with OCR if it has no text, or if its fonts do not tell what it is."""
    import pypdfium2.raw as pdfium

    left_out["hidden word*"] += remove_hidden_layers(page)
    rules = rules_of(page)
    drawn, unknown = lines_of(page.get_textpage(), rules)
    lines, waits, confidence = unfold_columns(without_line_numbers(drawn)), False, None
    is_unknown = unknown > _MOST_UNKNOWN * (unknown + sum(len(line.text) for line in lines))
    if is_unknown or (not lines and pdfium.FPDFPage_CountObjects(page.raw)):
        if recognize is None:
            waits = True
            lines = [Line((Cell(_UNKNOWN, 0, 0),)), *lines] if is_unknown else lines
        else:
            recognized = recognize(page, number)
            lines, unknown = list(recognized.lines), 0
            confidence = recognized.confidence if lines else None
    marks = marks_of(pdf, page, files, left_out)
    lines = with_marks(lines, marks)
    height = 0.0 if page.get_rotation() else page.get_height()
    lines, ruled = ruled_tables(lines, rules)
    tables = {table.first: table for table in find_tables(lines, ruled)}
    return _Page(lines, tables, confidence, waits, height, unknown, sum(mark.is_on_layer for mark in marks))


def _labels(pdf: Any) -> tuple[str, ...]:
    """Return what a file calls each of its pages, empty where that is the number; none if all are called so.

    The word "page" is left out: it stands before a label anyway, and ends the path there (`path_of`).
    """
    said = ((pdf.get_page_label(at) or "").split() for at in range(min(len(pdf), _MOST_LABELS)))
    labels = [" ".join(word for word in words if word.casefold() != "page") for words in said]
    labels = ["" if one == str(at) or len(one) > _LONGEST_LABEL else one for at, one in enumerate(labels, start=1)]
    return (*labels, *[""] * (len(pdf) - len(labels))) if any(labels) else ()


def _outline(pdf: Any) -> Iterator[tuple[int, str, int]]:
    for entry in islice(pdf.get_toc(), _MOST_OUTLINE):
        place = entry.get_dest()
        page = place.get_index() if place else None
        title = " ".join(entry.get_title().split())
        if page is not None and title:
            yield entry.level + 1, title, page


def _leave_out_repeated(pages: Sequence[_Page]) -> None:
    """Leave out the lines in the margins of pages that are repeated; the first of each stays if it has words.

    They stand at the same height and differ at most in a number that goes with the page's.
    """
    edges = [_edge_lines(page) for page in pages]
    found: dict[str, list[tuple[int, int]]] = {}
    for number, page in enumerate(pages):
        for line in edges[number]:
            for variant in _variants(page.lines[line].text, number):
                found.setdefault(variant, []).append((number, line))
    filled = sum(bool(page.lines) for page in pages)
    for variant, everywhere in found.items():
        height = median(pages[number].lines[line].top for number, line in everywhere)
        places = [one for one in everywhere if _is_at(pages[one[0]].lines[one[1]], height)]
        on = [number for number, _ in places]
        known = set(on)
        fewest = 2 if _PAGE_NUMBER.search(variant) else _FEWEST_REPEATS
        if len(known) < max(fewest, _REPEATED * filled):
            continue
        between = [
            number
            for number in range(on[0], on[-1])
            if number not in known and any(_is_at(pages[number].lines[line], height) for line in edges[number])
        ]
        if any(number % 2 == on[0] % 2 for number in between) or (between and len({one % 2 for one in on}) > 1):
            continue  # other pages say something else there: it is no running line
        for number, line in places[any(map(str.isalpha, variant)) :]:
            pages[number].left_out.add(line)


def _edge_lines(page: _Page) -> list[int]:
    """Return the lines in the margins of a page that stand apart from its text."""
    by_place = sorted((line for line in page.kept() if page.lines[line].top), key=lambda line: -page.lines[line].top)
    lines = [page.lines[line] for line in by_place]
    steps = [above.top - below.top for above, below in pairwise(lines)]
    inner = [step for step in steps[_EDGE_LINES:-_EDGE_LINES] if step > 0] or [step for step in steps if step > 0]
    usual = median(inner) if inner else 0.0
    found: dict[int, None] = {}  # an ordered set
    for order in (range(len(lines)), range(len(lines) - 1, -1, -1)):
        for count in range(min(_EDGE_LINES, len(lines) - 1), 0, -1):
            last, following = lines[order[count - 1]], lines[order[count]]
            is_apart = abs(last.top - following.top) > _APART * usual or _rounded(last) != _rounded(following)
            if is_apart and all(_is_in_margin(lines[at], page.height) for at in order[:count]):
                found |= dict.fromkeys(by_place[at] for at in order[:count])
                break
    return list(found)


def _is_in_margin(line: Line, height: float) -> bool:
    return 0 < line.top < _MARGIN * height or line.top > (1 - _MARGIN) * height > 0


def _is_at(line: Line, height: float) -> bool:
    return abs(line.top - height) <= _SAME_HEIGHT


def _variants(text: str, page: int) -> Iterator[str]:
    """Yield a line, and the line with a number counted from the page's: `Page 3 of 9` is one on all pages."""
    yield text
    for number in islice(re.finditer(r"\d{1,5}", text), 4):
        yield f"{text[: number.start()]}\0{int(number[0]) - page}\0{text[number.end() :]}"


def _usual_height(pages: Sequence[_Page]) -> float:
    heights: Counter[float] = Counter()
    for page in pages:
        for line in page.lines if page.ocr is None else ():  # OCR measures letters, not fonts
            heights[_rounded(line)] += len(line.text)
    return heights.most_common(1)[0][0] if heights else 0.0


def _rounded(line: Line) -> float:
    return round(2 * line.height) / 2


def _find_headings(pages: Sequence[_Page], body: float) -> None:
    """Find the lines that are headings by their size, or by being bold among others."""
    candidates = [
        (page, line)
        for page in pages
        for line in page.kept()
        if page.ocr is None
        and not page.lines[line].is_aside
        and len(page.lines[line].text) <= _LONGEST_HEADING
        and any(map(str.isalpha, page.lines[line].text))
    ]
    lines = [line for page in pages for line in page.lines]
    characters = sum(len(line.text) for line in lines)
    large = [(page, line) for page, line in candidates if _rounded(page.lines[line]) >= _LARGER * body > 0]
    if sum(len(page.lines[line].text) for page, line in large) <= _MOST_LARGE * characters:
        for page, line in large:
            page.headings.add(line)
    if sum(len(line.text) for line in lines if line.is_bold) <= _MOST_BOLD * characters:
        for page, line in candidates:
            if _is_bold_heading(page, line, body):
                page.headings.add(line)


def _is_bold_heading(page: _Page, number: int, body: float) -> bool:
    """Return whether a bold line stands over text: it is short, no sentence and no value, and not one of many."""
    line = page.lines[number]
    if not line.is_bold or _rounded(line) < body or len(line.text) > _LONGEST_BOLD or len(line.cells) > 1:
        return False
    first = last = number
    while first and page.lines[first - 1].is_bold:
        first -= 1
    while last + 1 < len(page.lines) and page.lines[last + 1].is_bold:
        last += 1
    return last - first < _BOLD_TOGETHER and line.text[-1:] not in set(".,;:") and not _VALUE.search(line.text)


def _headings_of(pages: Sequence[_Page]) -> tuple[Heading, ...]:
    """Make headings of large lines, the largest outermost; lines of one size that follow each other are one heading."""
    heights = sorted({_rounded(page.lines[line]) for page in pages for line in page.headings}, reverse=True)
    headings: list[Heading] = []
    for page in pages:
        before = (-1, -1.0)
        for number in sorted(page.headings):
            line, height = page.lines[number], _rounded(page.lines[number])
            text = rejoin_words(line.text)
            if before == (number - 1, height) and page.lines[number - 1].top - line.top < _NEXT_LINE * height:
                headings[-1] = replace(headings[-1], title=f"{headings[-1].title} {text}")
            else:
                headings.append(Heading(min(6, heights.index(height) + 1), text, page.starts[number]))
            before = number, height
    return tuple(headings)


def _outlined(
    outline: Sequence[tuple[int, str, int]], pages: Sequence[_Page], starts: Sequence[int]
) -> tuple[Heading, ...]:
    """Find each entry of the outline on its page; one that is not there begins with the page."""
    headings = []
    for level, title, number in outline:
        if 0 <= number < len(pages):
            page, wanted = pages[number], _letters(title)
            lines = [line for line in page.kept() if line in page.starts]
            texts = [_letters(page.lines[line].text) for line in lines]
            beginnings = ("".join(texts[index : index + 3]) for index in range(len(texts)))
            exact = (lines[index] for index, text in enumerate(texts) if text == wanted)
            found = (lines[index] for index, text in enumerate(beginnings) if text.startswith(wanted))
            line = next(exact, next(found, None))
            headings.append(Heading(min(6, level), title, starts[number] if line is None else page.starts[line]))
    return tuple(sorted(headings, key=lambda heading: heading.start))


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _title(said: str, pages: Sequence[_Page], body: float) -> str | None:
    """Return the title that the file states, else the largest line of the first page with words, else its first."""
    said = said.strip()
    if any(map(str.isalpha, said)) and not _FILE_TITLE.fullmatch(said):
        return said
    first = next((page for page in pages if any(map(str.isalpha, "".join(line.text for line in page.lines)))), None)
    if first is None:
        return None
    worded = [line for line in first.lines if any(map(str.isalpha, line.text))]
    worded = [line for line in worded if not line.is_aside] or worded  # which is a watermark, or in the margin
    largest = max(worded, key=lambda line: line.height)
    best = largest if first.ocr is None and _rounded(largest) >= _LARGER * body else worded[0]
    return rejoin_words(best.text)[:_LONGEST_TITLE]


def _write(pages: Sequence[_Page]) -> tuple[str, tuple[Table, ...], list[int]]:
    """Return the text, its tables and the offset of each page; record where each line begins."""
    pieces: list[str] = []
    tables: list[Table] = []
    starts: list[int] = []
    length = 0
    before: PageTable | None = None
    for number, page in enumerate(pages):
        if number:
            pieces.append("\n\n")
            length += 2
        starts.append(length)
        kept, end = set(page.kept()), ""
        for line, text in enumerate(page.lines):
            if line in page.tables:
                table = page.tables[line]
                names = table.names or (before.names if before and _continues(before, table, line) else ())
                written, rows = _table_text(table)
                separator = "\n\n" if end else ""
                start = length + len(separator)
                if names:
                    tables.append(Table(start, start + rows, start + len(written), names))
                before = PageTable(table.first, table.last, names, (), table.lefts)
                pieces += [separator, written]
                length, end = start + len(written), "\n\n"
            elif line in kept:
                written = rejoin_words(text.text)
                joins = end == "\n" and page.headings.isdisjoint({line - 1, line})
                if joins and breaks_word(pieces[-1], written):
                    pieces[-1], separator = pieces[-1][:-1], ""
                    length -= 1
                elif joins and (breaks_range(pieces[-1], written) or joins_lines(pieces[-1], written)):
                    separator = ""
                else:
                    separator = " " if joins and _goes_on(pieces[-1], written) else end
                page.starts[line] = length + len(separator)
                pieces += [separator, written]
                length, end = length + len(separator) + len(written), "\n"
    return "".join(pieces), tuple(tables), starts


def _continues(before: PageTable, table: PageTable, line: int) -> bool:
    """Return whether a table without header at the top of a page has the columns of the one before."""
    return (
        line <= _EDGE_LINES
        and len(before.lefts) == len(table.lefts)
        and all(abs(one - other) < _SAME_PLACE for one, other in zip(before.lefts, table.lefts, strict=True))
    )


def _table_text(table: PageTable) -> tuple[str, int]:
    rows = [[rejoin_words(cell) for cell in row] for row in table.rows]
    body = "\n".join(map(pipe_row, rows))
    if not table.names:
        return body, 0
    written = pipe_table(table.names, rows)
    return written, len(written) - len(body)


def rejoin_words(text: str) -> str:
    """Rejoin the words that PDFium marks as broken at the end of a line: with U+FFFE, or by a soft hyphen."""
    joined = _BROKEN_WORD.sub(lambda found: found[1] + "-" * found[2][:1].isupper(), text)
    return joined.replace("\ufffe", "-")


def _goes_on(before: str, after: str) -> bool:
    return (before[-1:].islower() or before[-1:] in {",", ";"}) and (after[:1].islower() or after[:1] == "(")
