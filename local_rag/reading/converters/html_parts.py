"""Write the tables of a web page or Word document anew, and find the numbers of its lists."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from local_rag.reading.converters.notation import numeral
from local_rag.reading.converters.table_layout import fill_labels, find_header, table_in_cell

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_MOST_SPANNED = 1000  # rows or columns that one cell covers
_SPAN = re.compile(r"[1-9][0-9]{0,3}")
_MOST_CELLS = 200_000  # of a table, with those that merged cells cover
HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_LAYOUT = ["table", "ul", "ol", *HEADINGS, "pre", "blockquote"]
_PARTS = ["thead", "tbody", "tfoot"]
_LONGEST_CELL = 1000  # characters of a cell of data with a table in it; pages are laid out by longer ones
_BLOCKS = [*_LAYOUT, "br", "p", "div", "li", "tr", "td", "th"]
_COUNT, _NUMBER_AND_CODE = re.compile(r"\s*\d{1,6}\s*"), 2  # of a line of code; cells of its row
_OF_LINE = re.compile(r"\bline|\bln\b|gutter")  # in the class of a cell with a number
_INTEGER = re.compile(r"\s*([-+]?\d{1,9})(?!\d)")
_LIST_STYLE = re.compile(r"(?:^|;)\s*list-style(?:-type)?\s*:[^;]*?([a-z-]+)\s*(?:;|$)", re.IGNORECASE)
_SIGNS = {"disc", "circle", "square", "none"}  # of a list that is not numbered


def rewrite_tables(page: "Tag") -> None:
    """Replace each table of data by one whose rows have a cell in every column.

    A table in a cell of such a table becomes text. A table for layout is left alone, or opened if it holds tables.
    """
    from bs4 import BeautifulSoup

    maker = BeautifulSoup("", "lxml")
    end_lines_of_code(page)
    tables, within = page.find_all("table"), set[int]()
    for table in tables:  # what holds a table comes before it
        open_code(table)
        if id(table) in within or table.name != "table" or table.find("table") is None:
            continue
        if _holds_data(table):
            within |= {id(one) for one in table.find_all("table")}
        else:
            for tag in (table, *table.find_all("caption", recursive=False), *_lines(table, with_parts=True)):
                tag.name = "div"
    for table in reversed(tables):
        if table.name != "table" or table.find(_LAYOUT):
            continue
        grid = _grid(table)
        if grid is None:
            continue
        rows, spanned, marked = grid
        caption = table.find("caption")
        above = [] if caption is None else [" ".join(caption.get_text(" ").split())]
        header = find_header(rows, spanned, marked)
        above += ["; ".join(dict.fromkeys(filter(None, row))) for row in rows[: header.captions]]
        numbered = list(enumerate(rows[header.captions + header.rows :]))
        body = [row for _, row in fill_labels(numbered)[0]]
        width = max(map(len, rows))
        if id(table) in within:
            written = maker.new_tag("div")
            written.string = " ".join(filter(None, [*above, table_in_cell(header.names, body)]))
            table.replace_with(written)
            continue
        for text in filter(None, above):
            paragraph = maker.new_tag("p")
            paragraph.string = text
            table.insert_before(paragraph)
        table.replace_with(_table(maker, [*header.names, *[""] * (width - len(header.names))], body))


def _lines(table: "Tag", *, with_parts: bool = False) -> Iterator["Tag"]:
    """Yield the rows of a table, without those of tables in its cells, or all that its cells stand in and they."""
    for part in (table, *table.find_all(_PARTS, recursive=False)):
        if with_parts and part is not table:
            yield part
        for line in part.find_all("tr", recursive=False):
            yield line
            if with_parts:
                yield from line.find_all(["td", "th"], recursive=False)


def _holds_data(table: "Tag") -> bool:
    """Return whether a table with tables in its cells is one of data: of several rows and columns, and short cells."""
    inner = table.find("table")
    if inner is None or inner.find("table") or table.get("role") == "presentation" or table.find(HEADINGS):
        return False
    rows = [line.find_all(["td", "th"], recursive=False) for line in _lines(table)]
    rows = [row for row in rows if any(cell.get_text(strip=True) for cell in row)]
    if len(rows) <= 1 or max(map(len, rows)) <= 1:
        return False
    holding = [cell for row in rows for cell in row if cell.find("table")]
    return all(
        len(cell.get_text()) <= _LONGEST_CELL and not any(one.find("table") for one in cell.find_all("table"))
        for cell in holding
    )


def end_lines_of_code(page: "Tag") -> None:
    """Write where lines of code within tables end as text, and leave out the numbers that count lines of code."""
    for code in page.find_all("pre"):
        _remove_line_numbers(code)
        for table in code.find_all("table"):  # of a line each
            if table.find("pre") is None:
                for line in table.find_all("tr"):
                    line.append("\n")
                for tag in (table, *table.find_all(["tbody", "tr", "td", "th"])):
                    tag.name = "span"
        for end in code.find_all("br"):
            if end.find_parent("table"):
                end.replace_with("\n")


def _remove_line_numbers(code: "Tag") -> None:
    """Remove the elements that hold nothing but a number before each line, if they rise by one from line to line."""
    holders = [tag for tag in code.find_all(True) if _COUNT.fullmatch(tag.get_text()) and not tag.find(True)]
    numbers = [tag.get_text().strip() for tag in holders]
    lines = [row.get_text() for row in code.find_all("tr")] or code.get_text().strip().split("\n")
    if not 1 < len(numbers) == len(lines) or any(int(b) - int(a) != 1 for a, b in pairwise(numbers)):
        return
    begun = all(line.lstrip().startswith(number) for line, number in zip(lines, numbers, strict=True))
    if begun and any(line.strip() != number for line, number in zip(lines, numbers, strict=True)):
        for tag in holders:
            tag.decompose()


def _join_rows_of_code(table: "Tag") -> None:
    """Make one block of code of a table that holds a line of it in each row, beside its number."""
    rows = [line.find_all(["td", "th"], recursive=False) for line in table.find_all("tr")]
    if len(rows) <= 1 or any(len(row) != _NUMBER_AND_CODE for row in rows):
        return
    numbers = [number.get_text().strip() or str(number.get("data-line-number", "")) for number, _ in rows]
    if not all(map(_COUNT.fullmatch, numbers)) or any(int(b) - int(a) != 1 for a, b in pairwise(numbers)):
        return
    if all(map(_are_number_and_code, rows)):
        written = "\n".join(code.get_text().strip("\n") for _, code in rows)
        table.clear()
        table.name, table.string = "pre", written


def _are_number_and_code(row: Sequence["Tag"]) -> bool:
    """Return whether the cells of a row are a line of code and its number; a code that stands for a number is none."""
    number, code = row
    if code.find("pre") or "code" in code.get_attribute_list("class"):
        return True
    counts_lines = number.has_attr("data-line-number") or _OF_LINE.search(_class(number))
    return bool(counts_lines) and (code.find("code") is not None or "code" in _class(code))


def _class(tag: "Tag") -> str:
    return " ".join(name for name in tag.get_attribute_list("class") if name)


def open_code(table: "Tag") -> None:
    """Take code of several lines out of a table that only lays it out, and leave out the numbers of its lines."""
    _join_rows_of_code(table)
    if table.find("table") or not any("\n" in code.get_text().strip() for code in table.find_all("pre")):
        return
    for cell in table.find_all(["td", "th"]):
        if "".join(cell.get_text().split()).isdecimal():
            cell.decompose()
    for tag in [table, *table.find_all(["tbody", "thead", "tr", "td", "th"])]:
        tag.name = "div"


def _grid(table: "Tag") -> tuple[list[list[str]], set[int], int] | None:
    """Return the filled rows, those with a cell over several columns, and how many rows are marked as a header."""
    rows: list[list[str]] = []
    spanned, marked, headed, cells_left = set[int](), 0, True, _MOST_CELLS
    hanging: dict[int, tuple[int, str]] = {}  # by column: for how many more rows a cell hangs down, and its text
    for line in table.find_all("tr"):
        cells = line.find_all(["td", "th"], recursive=False)
        row: list[str] = []

        def hang(row: list[str] = row) -> None:
            while len(row) in hanging:
                left, text = hanging[len(row)]
                if left > 1:
                    hanging[len(row)] = left - 1, text
                else:
                    del hanging[len(row)]
                row.append(text)

        wide = False
        for cell in cells:
            hang()
            down, across = _rows(cell), _span(cell, "colspan")
            cells_left -= down * across
            if cells_left < 0:
                return None
            text = _text(cell)
            wide = wide or (across > 1 and len(cells) > 1)
            for _ in range(across):
                if down > 1:
                    hanging[len(row)] = down - 1, text
                row.append(text)
            alone = len(cells) == 1 and len(row) == across and not hanging
            if across > 1 and alone:  # a row by itself stands under no column
                row[1:] = [""] * (across - 1)
        hang()
        if not any(row):
            continue
        is_header = line.find_parent("thead") is not None or (bool(cells) and all(cell.name == "th" for cell in cells))
        is_group = len(cells) == 1 and bool(rows) and line.find_parent("thead") is None  # within the data
        headed = headed and is_header and not (is_group and len(rows[-1]) > 1 and all(rows[-1][1:]))
        marked += headed
        if wide:
            spanned.add(len(rows))
        rows.append(row)
    return (rows, spanned, marked if marked < len(rows) else 0) if rows else None


def _span(cell: "Tag", name: str) -> int:
    """Return how many rows or columns a cell covers; what is no number, or too large, counts as one, as in browsers."""
    value = str(cell.get(name, "")).strip()
    return int(value) if _SPAN.fullmatch(value) and int(value) <= _MOST_SPANNED else 1


def _rows(cell: "Tag") -> int:
    """Return how many rows a cell covers: with `rowspan=0` all that follow in its part of the table."""
    if str(cell.get("rowspan", "")).strip() != "0" or cell.parent is None:
        return _span(cell, "rowspan")
    return min(1 + len(cell.parent.find_next_siblings("tr", limit=_MOST_SPANNED)), _MOST_SPANNED)


def _text(cell: "Tag") -> str:
    for image in cell.find_all("img"):
        image.replace_with(str(image.get("alt") or ""))
    for block in cell.find_all(_BLOCKS):  # a word of which a part is bold goes on
        block.insert_before("\n")
        block.insert_after("\n")
    return " ".join(cell.get_text().split())


def _table(maker: "BeautifulSoup", names: Sequence[str], rows: Sequence[Sequence[str]]) -> "Tag":
    table = maker.new_tag("table")
    for number, row in enumerate([names, *rows]):
        line = maker.new_tag("tr")
        for text in row:
            cell = maker.new_tag("td" if number else "th")
            cell.string = text.replace("|", "\\|")
            line.append(cell)
        table.append(line)
    return table


def list_labels(page: "Tag") -> dict[int, str]:
    """Return the label of each item of the numbered lists, such as `9.`, by the id of its tag."""
    labels: dict[int, str] = {}
    for numbered in page.find_all("ol"):
        items = numbered.find_all("li", recursive=False)
        number = _integer(numbered, "start", len(items) if numbered.has_attr("reversed") else 1)
        for item in items:
            number = _integer(item, "value", number)
            style = _style(item) or _style(numbered)
            labels[id(item)] = "-" if style in _SIGNS else f"{numeral(number, style)}."
            number += -1 if numbered.has_attr("reversed") else 1
    return labels


def counts_from_one(page: "Tag") -> bool:
    """Return whether the items of every list are simply 1, 2, 3."""
    labels = list_labels(page)
    return all(
        labels[id(item)] == f"{number}."
        for numbered in page.find_all("ol")
        for number, item in enumerate(numbered.find_all("li", recursive=False), start=1)
    )


def _integer(tag: "Tag", name: str, default: int) -> int:
    found = _INTEGER.match(str(tag.get(name, "")))
    return int(found[1]) if found else default


def _style(tag: "Tag") -> str:
    """Return how a list or an item says that it is numbered."""
    found = _LIST_STYLE.search(str(tag.get("style", ""))[:500])
    return found[1].lower() if found else str(tag.get("type", "")).strip()
