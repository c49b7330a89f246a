"""Make typed relations of the tables of a document: named columns of numbers, dates or text, and rows of values.

Rows that sum others are marked, and rows that only name what follows them become a column of their own.
"""

import json
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import PurePath

from local_rag.document_records import BETWEEN_CAPTIONS, ROWS_OF_BLOCK, Column, Document, Grid, Relation, Table
from local_rag.reading.converters.notation import column_letters
from local_rag.reading.converters.table_layout import MAY_TOTAL, TOTAL, fill_labels, find_header, has_digit, is_total
from local_rag.text.cell_values import (
    ReadColumn,
    StoredNumber,
    Value,
    Writing,
    dates_in_numbers,
    is_missing,
    read_column,
    read_date,
    unit_of_name,
    writes_decimal_comma,
    writes_month_first,
)
from local_rag.text.names_apart import names_apart
from local_rag.text.notes import split_notes
from local_rag.text.pipe_rows import cells_of
from local_rag.text.struck import is_struck, without_struck
from local_rag.text.tokens import word_keys

MOST_COLUMNS = 400  # of a table, from the left
_MOST_TABLES, _MOST_CELLS = 500, 6_000_000  # of a document
_LONGEST_NAME, _LONGEST_CELL = 100, 500  # characters
_MOST_WORDS, _MOST_VALUES = 20_000, 20_000  # of a relation by which it is found
_LOOK_AT = 500  # rows that tell how numbers are written
_LOOK_AT_TEXT = 100_000  # characters that tell how dates are written, if no table does
_FEWEST_COLUMNS, _FEWEST_HEADS = 2, 2  # of a table; of rows that name groups
_NOTE = re.compile(
    r"(?:notes?|sources?|legend|remarks?|prepared|last updated|generated|created|printed|checked|approved|as (?:of|at)"
    r"|excluding|including|all (?:amounts|figures|prices)|hinweis\w{0,2}|anmerkung\w{0,2}|quelle\w?|bemerkung\w{0,2}"
    r"|stand|erstellt|gepr\u00fcft|remarques?|l\u00e9gende)\b|[*\u2020\u00b9\u00b2]|\(\d\)|\d\) ",
    re.IGNORECASE,
)
_YEARS = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_COUNTED = re.compile(r"\b(?:year|no|number|count|qty|quantity|rank|#)\b", re.IGNORECASE)  # what has no such unit
_REGULAR = 0.5  # of the rows, at most, are the forms of a column's cells that are written alike


@dataclass(frozen=True, slots=True)
class _Found:
    """A table with its header found: numbered rows below it, and where it is."""

    name: str
    sheet: str
    page: int | None
    names: tuple[str, ...]
    rows: tuple[tuple[int, Sequence[str]], ...]
    first_column: int
    whole: frozenset[int]
    uncomputed: frozenset[tuple[int, int]]
    hidden_rows: frozenset[int] = frozenset()
    hidden_columns: frozenset[int] = frozenset()
    in_cells: bool = False


def relations_of(document: Document) -> tuple[Relation, ...]:
    """Return the relations of a document's sheets, or of the tables in its text."""
    cells, tables = 0, list[_Table]()
    for one in _of_grids(document.grids) if document.grids else _of_text(document):
        cells += len(one.rows) * len(one.names)
        if len(tables) >= _MOST_TABLES or cells > _MOST_CELLS:
            break
        if table := _table(one):
            tables.append(table)
    month_first = writes_month_first(cell for table in tables for column in table.cells for cell in column[:_LOOK_AT])
    if month_first is None:
        month_first = writes_month_first(dates_in_numbers(document.text[:_LOOK_AT_TEXT]))
    around = document.title, PurePath(document.path).stem
    return tuple(_relation(one, month_first, _year_of(one.found.name, one.found.sheet, *around)) for one in tables)


def _year_of(*names: str) -> int | None:
    """Return the year that the first of the names with years tells, if that is one."""
    years = next(filter(None, ({*_YEARS.findall(name)} for name in names)), set[str]())
    return int(years.pop()) if len(years) == 1 else None


def _of_grids(grids: Iterable[Grid]) -> Iterator[_Found]:
    """Find the headers of the tables of sheets, each named by what stands above it."""
    above, sheet = list[str](), ""  # what stands alone above a table, with blank rows between
    for grid in grids:
        above, sheet = (above if grid.sheet == sheet else []), grid.sheet
        spanned = {at for at, (number, _) in enumerate(grid.rows) if number in grid.spanned}
        rows = [row for _, row in grid.rows]
        header = find_header(rows, spanned, grid.marked)
        if not header.rows or len(rows) <= header.captions + header.rows:
            above += [row[0] for row in map(_filled, rows) if len(row) == 1]
            continue
        captions = [*above, *(next(filter(None, row), "") for row in rows[: header.captions])]
        name, above = _caption(captions), []
        yield _Found(
            name,
            grid.sheet,
            None,
            header.names,
            grid.rows[header.captions + header.rows :],
            grid.first_column,
            grid.whole,
            grid.uncomputed,
            grid.hidden_rows,
            grid.hidden_columns,
            in_cells=True,
        )


def _filled(row: Sequence[str]) -> list[str]:
    return [cell for cell in row if cell]


def _caption(texts: Iterable[str]) -> str:
    """Return what stands above a table as its name: as much as a name may be long."""
    name = ""
    for text in dict.fromkeys(texts):
        longer = f"{name}{BETWEEN_CAPTIONS}{text}" if name else text
        if text and not _NOTE.match(text) and len(longer) <= _LONGEST_NAME:
            name = longer
    return name


def _of_text(document: Document) -> Iterator[_Found]:
    """Find the tables of a text, each named by the heading above it; those that go on over pages are one."""
    before: _Found | None = None
    starts = [heading.start for heading in document.headings]
    for table in islice(document.tables, 10 * _MOST_TABLES):
        if not any(table.columns):
            continue
        page = bisect_right(document.pages, table.start) or None
        rows = tuple(_pipe_rows(document.text, table))
        above = bisect_right(starts, table.start) - 1
        name = document.headings[above].title if above >= 0 else ""
        names = tuple(split_notes(column)[0].strip() for column in table.columns)
        header = find_header([names, *(row for _, row in rows)])
        if header.rows > 1 and not header.captions:  # which Markdown cannot say
            names, rows = header.names, rows[header.rows - 1 :]
        one = _Found(name, "", page, names, rows, 0, frozenset(), frozenset())
        if before and page and before.names == one.names and before.page and page > before.page:
            last = before.rows[-1][0] if before.rows else 0
            numbered = tuple((last + number, row) for number, row in rows)
            before = replace(before, rows=(*before.rows, *numbered))
            continue
        if before:
            yield before
        before = one
    if before:
        yield before


def _pipe_rows(text: str, table: Table) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text[table.rows : table.end].splitlines(), start=1):
        cells = cells_of(split_notes(line)[0])
        if any(cells):
            yield number, [(cell.strip("*_`") if cell[:1] in {"*", "_", "`"} else cell) for cell in cells]


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows of data of a table and the columns that hold something, by place, with their cells.

    `sections` are the rows above that only name what follows, for each row, and `labelled` the columns whose labels
    stand only in the first row of a group. `struck` counts rows that are struck out, and `more` columns beyond the
    limit.
    """

    found: _Found
    rows: list[tuple[int, Sequence[str]]]
    sections: list[str]
    used: list[int]
    cells: list[list[str]]
    labelled: tuple[int, ...]
    struck: int
    more: int


def _table(found: _Found) -> _Table | None:
    """Return the data of a table, without what is struck out; None for what is no table."""
    whole = max([len(found.names), *(len(row) for _, row in found.rows)])
    width = min(MOST_COLUMNS, whole)
    filled, labelled = fill_labels(found.rows, found.whole)
    valid = [(number, [*map(without_struck, row)]) for number, row in filled if not _is_struck(row)]
    rows, sections = _data_rows(replace(found, rows=tuple(valid)), width)
    used = [at for at in range(width) if any(at < len(row) and row[at] for _, row in rows) or _named(found, at)]
    if len(used) < _FEWEST_COLUMNS or not rows:
        return None
    cells = [[row[at] if at < len(row) else "" for _, row in rows] for at in used]
    return _Table(found, rows, sections, used, cells, labelled, len(filled) - len(valid), whole - width)


def _is_struck(row: Sequence[str]) -> bool:
    """Return whether a row is struck out: its first cell and most others."""
    filled = _filled(row)
    return bool(filled) and is_struck(filled[0]) and 2 * sum(map(is_struck, filled)) > len(filled)


def _relation(table: _Table, month_first: bool | None, year: int | None) -> Relation:
    found, rows, sections, used, cells = table.found, table.rows, table.sections, table.used, table.cells
    names = [_named(found, at) or f"Column {column_letters(found.first_column + at)}" for at in used]
    totals = _totals(rows, cells)
    writing = Writing(writes_decimal_comma(cell for column in cells for cell in column[:_LOOK_AT]), month_first, year)
    read = [_read(name, column, totals, writing) for name, column in zip(names, cells, strict=True)]
    if sums := _sums(read, totals):
        totals |= sums
        read = [_read(name, column, totals, writing) for name, column in zip(names, cells, strict=True)]
    read = _with_unit(unit_of_name(found.name) if "(" in found.name else "", names, read)
    columns, values = list[Column](), list[Sequence[Value]]()
    names = _names(names, read, ["Section"] if any(sections) else [])
    numbers = {number for number, _ in rows}
    uncomputed = Counter(column for row, column in found.uncomputed if row in numbers)
    for at, name, one in zip(used, names, read, strict=False):
        remarks = tuple(_remarks(table, at, name, one))
        columns.append(Column(name, one.kind, one.unit, bool(one.units), uncomputed[found.first_column + at], remarks))
        values.append(one.values)
    if any(sections):
        columns.append(Column(names[-1], "text"))
        values.append([section or None for section in sections])
    for column, one in zip(columns[:], read, strict=False):
        if one.units:
            columns.append(Column(_of_units(column.name), "text"))
            values.append([unit or None for unit in one.units])
    numbers_of_rows = [number for number, _ in rows]
    return Relation(
        name=found.name[:_LONGEST_NAME],
        sheet=found.sheet[:_LONGEST_NAME],
        cells=_range(found, used, numbers_of_rows) if found.in_cells else "",
        page=found.page,
        columns=tuple(columns),
        rows=len(rows) - len(totals),
        totals=len(totals),
        blocks=tuple(_blocks(numbers_of_rows, totals, values)),
        words=tuple(_words(found, columns, values)),
        remarks=tuple(_remarks_on_rows(table, numbers)),
    )


def _remarks_on_rows(table: _Table, numbers: Collection[int]) -> Iterator[str]:
    """Say what an answer from the rows of a table does not show by itself."""
    if table.struck:
        yield f"{_counted(table.struck, 'row')} struck out in the file and left out."
    if hidden := len(table.found.hidden_rows.intersection(numbers)):
        yield f"{_counted(hidden, 'row')} hidden in the file and used too."
    if table.more:
        yield f"{_counted(table.more, 'column')} beyond the first {MOST_COLUMNS} and left out."


def _remarks(table: _Table, at: int, name: str, read: ReadColumn) -> Iterator[str]:
    """Say what an answer from a column does not show by itself."""
    if at in table.found.hidden_columns:
        yield f"The column *{name}* is hidden in the file."
    if at in table.labelled:
        yield f"A blank *{name}* is read as the one above it."
    if read.marked:
        numbers = "is read as a plain number" if len(read.marked) == 1 else "are read as plain numbers"
        yield f"{', '.join(read.marked)} in *{name}* {numbers}."
    if read.year:
        yield f"The days in *{name}* are read as those of {read.year}, which the title of the table names."
    if read.guessed:
        day = read_date(read.guessed)
        yield f"{read.guessed} in *{name}* is read as {day}, the day first, which nothing in the file tells."


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what if count == 1 else f'{what}s'} {'is' if count == 1 else 'are'}"


def _names(headings: Sequence[str], read: Sequence[ReadColumn], more: Sequence[str]) -> list[str]:
    """Name columns by their headings and then `more`, all apart, also from those that hold the units of others."""
    names = names_apart([*headings, *more])
    while units := {_of_units(name).casefold() for name, one in zip(names, read, strict=False) if one.units} & {
        name.casefold() for name in names
    }:
        names = names_apart([f"{name} (2)" if name.casefold() in units else name for name in names])
    return names


def _of_units(name: str) -> str:
    return f"{name} (unit)"


def _with_unit(unit: str, names: Sequence[str], read: Sequence[ReadColumn]) -> list[ReadColumn]:
    """Give numbers the unit of the caption above them, if none of them has one: "Use by site (kWh)"."""
    numbers = [one for one in read if one.kind == "number"]
    if not unit or any(one.unit or one.units for one in numbers):
        return list(read)
    return [
        replace(one, unit=unit) if one.kind == "number" and not _COUNTED.search(name) else one
        for name, one in zip(names, read, strict=True)
    ]


def _data_rows(found: _Found, width: int) -> tuple[list[tuple[int, Sequence[str]]], list[str]]:
    """Return the rows that hold data, and for each the row above that only names what follows it."""
    rows, sections, section, waiting = list[tuple[int, Sequence[str]]](), list[str](), "", 0
    header = tuple(name.casefold() for name in found.names)
    forms = _forms_of_columns(found.rows, width)
    last = max((number for number, row in found.rows if len(_filled(row)) > 1), default=0)
    heads = _heads_of_groups(found.rows) if width == _FEWEST_COLUMNS else set()
    for number, row in found.rows:
        filled = [cell for cell in row[:width] if cell]
        repeats = bool(filled) and filled[0].casefold() in header
        if not filled or (repeats and tuple(cell.casefold() for cell in row[: len(header)]) == header):
            continue
        if number > last and _NOTE.match(filled[0]) and len(filled) <= _FEWEST_COLUMNS <= width:
            continue
        alone = number in heads or (
            len(filled) == 1 and width > _FEWEST_COLUMNS and not isinstance(filled[0], StoredNumber)
        )
        if alone and is_total(filled[0]):  # of what has no stored value
            continue
        if number in heads or (alone and not _is_entry(row, forms)) or number in found.whole:
            section = "" if _NOTE.match(filled[0]) else filled[0][:_LONGEST_NAME]
            waiting += 1
            continue
        rows.append((number, row))
        sections.append(section)
    # One such row is more often a remark than a section.
    return rows, sections if len(set(sections) - {""}) > 1 else [""] * len(rows)


def _heads_of_groups(rows: Sequence[tuple[int, Sequence[str]]]) -> set[int]:
    """Return the rows of a table of two columns that only name a group; none if some row simply lacks its value.

    The first row is one, there are several, and each has rows of the group below it.
    """
    heads = [at for at, (_, row) in enumerate(rows) if row and row[0] and not any(row[1:])]
    edges = [*heads, len(rows)]
    texts = [_YEARS.sub("", rows[at][1][0]) for at in heads]
    if not heads or heads[0] or len(heads) < _FEWEST_HEADS or any(map(has_digit, texts)) or any(map(is_total, texts)):
        return set()
    return {rows[at][0] for at in heads} if all(end - start > 1 for start, end in pairwise(edges)) else set()


def _forms_of_columns(rows: Sequence[tuple[int, Sequence[str]]], width: int) -> dict[int, set[str]]:
    """Return how the cells of each column are written that writes them alike, such as RE-1001 and RE-1002."""
    forms, counts = dict[int, set[str]](), Counter[int]()
    for _, row in rows:
        if len(_filled(row)) > 1:
            for at, cell in enumerate(row[:width]):
                if cell:
                    forms.setdefault(at, set()).add(_form_of(cell))
                    counts[at] += 1
    return {at: some for at, some in forms.items() if len(some) <= max(1, _REGULAR * counts[at])}


def _form_of(cell: str) -> str:
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", cell[:_LONGEST_NAME]))


def _is_entry(row: Sequence[str], forms: Mapping[int, set[str]]) -> bool:
    """Return whether a cell that stands alone in its row is data as those above it, and neither remark nor title."""
    at, cell = next((at, cell) for at, cell in enumerate(row) if cell)
    return has_digit(cell) and (at not in forms or _form_of(cell) in forms[at])


def _named(found: _Found, at: int) -> str:
    return " ".join(found.names[at].split())[:_LONGEST_NAME] if at < len(found.names) else ""


def _totals(rows: Sequence[tuple[int, Sequence[str]]], cells: Sequence[Sequence[str]]) -> set[int]:
    """Return which rows call themselves a total, in the first cell with text, and have no other text than that."""
    found = set[int]()
    for at in range(len(rows)):
        texts = [column[at] for column in cells if column[at] and not isinstance(column[at], StoredNumber)]
        if not any(map(MAY_TOTAL.search, texts[:2])):
            continue
        words = [text for text in texts if not has_digit(text) or TOTAL.fullmatch(text)]
        if words and len(words) <= 2 and TOTAL.fullmatch(words[0].strip()) and any(column[at] for column in cells[1:]):  # noqa: PLR2004
            found.add(at)
    return found if len(found) < max(2, len(rows) / 2) else set()


def _read(name: str, cells: Sequence[str], totals: set[int], writing: Writing) -> ReadColumn:
    """Read a column by its rows of data, whatever its totals hold."""
    data = [cell if at not in totals else "" for at, cell in enumerate(cells)]
    read = read_column(name, data, writing=writing)
    values = list(read.values)
    if totals:
        said = [cell if at in totals else "" for at, cell in enumerate(cells)]
        of_totals = read_column(name, said, writing=writing).values
        values = [of_totals[at] if at in totals else value for at, value in enumerate(values)]
    return replace(read, values=[one[:_LONGEST_CELL] if isinstance(one, str) else one for one in values])


def _sums(read: Sequence[ReadColumn], totals: set[int]) -> set[int]:
    """Return the rows that sum those above them: such as "Total Q1", and the last row if it has hardly any text."""
    columns = [one.values for one in read if one.kind == "number"]
    found, last = set[int](), len(read[0].values) - 1
    whole, part = _Sums(len(columns)), _Sums(len(columns))  # of all rows above, and of those since the last total
    for at in range(last + 1):
        row = [column[at] for column in columns]
        if at not in totals and (_is_named_total(read, at) or at == last > 1) and (whole.has(row) or part.has(row)):
            texts = [text for one in read if isinstance(text := one.values[at], str)]
            labels = [text for text in texts if not is_missing(text)]
            if _is_named_total(read, at) or not labels or (len(labels) == 1 and _is_bare(read, at)):
                found.add(at)
        if at in totals or at in found:
            part = _Sums(len(columns))
        else:
            whole.add(row)
            part.add(row)
    return found


def _is_bare(read: Sequence[ReadColumn], at: int) -> bool:
    """Return whether a row lacks what half of the columns have in the row above it, and that of the first one too."""
    had = [one for one in read if one.values[at - 1] is not None]
    return read[0].values[at] is None and 2 * sum(one.values[at] is not None for one in had) <= len(had)


def _is_named_total(read: Sequence[ReadColumn], at: int) -> bool:
    texts = [text for one in read if isinstance(text := one.values[at], str)]
    return len(texts) <= 2 and any(map(MAY_TOTAL.search, texts))  # noqa: PLR2004


class _Sums:
    """The sums of columns of numbers over rows, and how many numbers each has."""

    def __init__(self, columns: int) -> None:
        self._sums, self._counts = [0.0] * columns, [0] * columns

    def add(self, row: Sequence[Value]) -> None:
        for at, value in enumerate(row):
            if isinstance(value, int | float):
                self._sums[at] += value
                self._counts[at] += 1

    def has(self, row: Sequence[Value]) -> bool:
        """Return whether each number of a row is the sum of several above it."""
        said = [(at, value) for at, value in enumerate(row) if isinstance(value, int | float)]
        return bool(said) and all(
            self._counts[at] > 1 and abs(self._sums[at] - value) <= 0.006 * self._counts[at] for at, value in said
        )


def _blocks(numbers: Sequence[int], totals: set[int], values: Sequence[Sequence[Value]]) -> Iterator[bytes]:
    for first in range(0, len(numbers), ROWS_OF_BLOCK):
        part = range(first, min(first + ROWS_OF_BLOCK, len(numbers)))
        rows = [[numbers[at], int(at in totals), *(column[at] for column in values)] for at in part]
        yield zlib.compress(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode(), 3)


def _words(found: _Found, columns: Sequence[Column], values: Sequence[Sequence[Value]]) -> Iterator[str]:
    """Yield the words by which a relation is found: of its names, and of the different texts in its cells."""
    texts = [found.name, found.sheet, *(column.name for column in columns)]
    for column, some in zip(columns, values, strict=True):
        if column.kind == "text":
            texts += islice(dict.fromkeys(value for value in some if isinstance(value, str)), _MOST_VALUES)
    words = dict.fromkeys(word for text in texts for word in word_keys(text[:_LONGEST_CELL]))
    yield from islice(words, _MOST_WORDS)


def _range(found: _Found, used: Sequence[int], numbers: Sequence[int]) -> str:
    left, right = (column_letters(found.first_column + at) for at in (used[0], used[-1]))
    return f"{left}{numbers[0]}:{right}{numbers[-1]}"
