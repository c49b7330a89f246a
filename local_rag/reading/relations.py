"""Make typed relations of the tables of a document: named columns of numbers, dates or text, and rows of values.

Rows that sum others are marked, and rows that only name what follows them become a column of their own.
"""

import json
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise

from local_rag.reading.converters.notation import counted_letters
from local_rag.reading.converters.tables import find_header
from local_rag.records import BETWEEN_CAPTIONS, ROWS_OF_BLOCK, Column, Document, Grid, Relation, Table
from local_rag.text.cell_values import (
    ReadColumn,
    StoredNumber,
    Value,
    is_missing,
    read_column,
    unit_of_name,
    writes_decimal_comma,
)
from local_rag.text.names_apart import names_apart
from local_rag.text.notes import split_notes
from local_rag.text.tokens import word_keys

MOST_COLUMNS = 200  # of a table, from the left
_MOST_TABLES, _MOST_CELLS = 500, 6_000_000  # of a document
_LONGEST_NAME, _LONGEST_CELL = 100, 500  # characters
_MOST_WORDS, _MOST_VALUES = 20_000, 20_000  # of a relation by which it is found
_LOOK_AT = 500  # rows that tell how numbers are written
_FEWEST_COLUMNS = 2
_TOTAL = re.compile(
    r"(?:(?:grand|sub|overall|net|gross)?[- ]?totals?|sums?"
    r"|(?:grand )?total (?:amount|sum|hours|budget|for|of|in|\d).{0,40}"
    r"|.{1,40}[ -]totals?|(?:zwischen|gesamt)?summe|gesamt(?:betrag)?|insgesamt|averages?|mean|total general|totaux?"
    r"|somme|sous[- ]total|durchschnitt|mittelwert|moyenne)\s?:?",
    re.IGNORECASE,
)
_MAY_TOTAL = re.compile(  # quick, for most rows
    r"total|sum|gesamt|average|mean|totaux|somme|durchschnitt|mittelwert|moyenne", re.IGNORECASE
)
_CELL_END = re.compile(r"(?<!\\)\|")
_NOTE = re.compile(
    r"(?:notes?|sources?|legend|remarks?|prepared|last updated|generated|created|printed|checked|approved|as (?:of|at)"
    r"|excluding|including|all (?:amounts|figures|prices)|hinweis\w{0,2}|anmerkung\w{0,2}|quelle\w?|bemerkung\w{0,2}"
    r"|stand|erstellt|gepr\u00fcft|remarques?|l\u00e9gende)\b|[*\u2020\u00b9\u00b2]|\(\d\)|\d\) ",
    re.IGNORECASE,
)
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
    in_cells: bool


def relations_of(document: Document) -> tuple[Relation, ...]:
    """Return the relations of a document's sheets, or of the tables in its text."""
    found = _of_grids(document.grids) if document.grids else _of_text(document)
    cells, relations = 0, list[Relation]()
    for one in found:
        cells += len(one.rows) * len(one.names)
        if len(relations) >= _MOST_TABLES or cells > _MOST_CELLS:
            break
        if relation := _relation(one):
            relations.append(relation)
    return tuple(relations)


def _of_grids(grids: Iterable[Grid]) -> Iterator[_Found]:
    """Find the headers of sheets; a block of rows without header goes on with the one above, if it has its columns."""
    before: _Found | None = None
    above, sheet = list[str](), ""  # what stands alone above a table, with blank rows between
    for grid in chain.from_iterable(map(_side_by_side, grids)):
        above, sheet = (above if grid.sheet == sheet else []), grid.sheet
        numbers = [number for number, _ in grid.rows]
        spanned = {at for at, number in enumerate(numbers) if number in grid.spanned}
        rows = [row for _, row in grid.rows]
        header = find_header(rows, spanned, grid.marked)
        if header.rows and len(rows) > header.captions + header.rows:
            if before:
                yield before
            captions = [*above, *(next(filter(None, row), "") for row in rows[: header.captions])]
            name, above = _caption(captions), []
            body = grid.rows[header.captions + header.rows :]
            before = _Found(
                name, grid.sheet, None, header.names, body, grid.first_column, grid.whole, grid.uncomputed, True
            )
        elif before and grid.sheet == before.sheet and _goes_on(before, grid):
            shift = [""] * (grid.first_column - before.first_column)
            more = tuple((number, [*shift, *row]) for number, row in grid.rows)
            before = replace(before, rows=(*before.rows, *more), whole=before.whole | grid.whole)
            above = [row[0] for row in map(_filled, rows) if len(row) == 1]
        else:
            above += [row[0] for row in map(_filled, rows) if len(row) == 1]
    if before:
        yield before


def _side_by_side(grid: Grid) -> Iterator[Grid]:
    """Yield the tables that stand side by side: with a blank column between, and of different lengths."""
    width = max((len(row) for _, row in grid.rows), default=0)
    blank = [at for at in range(width) if not any(at < len(row) and row[at] for _, row in grid.rows)]
    edges = [-1, *blank, width]
    parts = [(start + 1, end) for start, end in pairwise(edges) if end - start > _FEWEST_COLUMNS]
    bodies = [tuple((number, row[a:b]) for number, row in grid.rows if any(row[a:b])) for a, b in parts]
    lasts = {body[-1][0] for body in bodies}
    if len(parts) < _FEWEST_COLUMNS or len(lasts) != len(parts) or sum(b - a for a, b in parts) + len(blank) < width:
        yield grid
        return
    for (start, _), body in zip(parts, bodies, strict=True):
        spanned = grid.spanned & {number for number, row in body if len(_filled(row)) > 1}
        yield replace(grid, rows=body, first_column=grid.first_column + start, spanned=spanned, whole=frozenset())


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


def _goes_on(before: _Found, grid: Grid) -> bool:
    """Return whether rows without header have cells below the columns of the table above, and of the same kinds."""
    if grid.first_column < before.first_column or not grid.rows:
        return False
    last = before.rows[-1][1]
    shift = grid.first_column - before.first_column
    alike = total = 0
    for _, row in grid.rows[:5]:
        for column, cell in enumerate(row, start=shift):
            if cell:
                total += 1
                above = last[column] if column < len(last) else ""
                named = column < len(before.names) and bool(before.names[column])
                alike += named and (_has_digit(above) == _has_digit(cell) or not above)
    return total > 0 and alike >= 0.8 * total


def _has_digit(cell: str) -> bool:
    return any(map(str.isdigit, cell[:40]))


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
        one = _Found(name, "", page, names, rows, 0, frozenset(), frozenset(), False)
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
        row = split_notes(line)[0].strip().strip("|")
        cells = [" ".join(cell.replace("\\|", "|").split()) for cell in _CELL_END.split(row)]
        if any(cells):
            yield number, [(cell.strip("*_`") if cell[:1] in {"*", "_", "`"} else cell) for cell in cells]


def _relation(found: _Found) -> Relation | None:
    width = min(MOST_COLUMNS, max([len(found.names), *(len(row) for _, row in found.rows)]))
    rows, sections = _data_rows(found, width)
    used = [at for at in range(width) if any(at < len(row) and row[at] for _, row in rows) or _named(found, at)]
    if len(used) < _FEWEST_COLUMNS or not rows:
        return None
    names = [_named(found, at) or f"Column {_letters(found.first_column + at)}" for at in used]
    cells = [[row[at] if at < len(row) else "" for _, row in rows] for at in used]
    totals = _totals(rows, cells)
    comma = writes_decimal_comma(cell for column in cells for cell in column[:_LOOK_AT])
    read = [_read(name, column, totals, comma) for name, column in zip(names, cells, strict=True)]
    if sums := _sums(read, totals):
        totals |= sums
        read = [_read(name, column, totals, comma) for name, column in zip(names, cells, strict=True)]
    read = _with_unit(unit_of_name(found.name) if "(" in found.name else "", names, read)
    columns, values = list[Column](), list[Sequence[Value]]()
    names = _names(names, read, ["Section"] if any(sections) else [])
    numbers = {number for number, _ in rows}
    for at, name, one in zip(used, names, read, strict=False):
        place = found.first_column + at
        uncomputed = sum(1 for row, column in found.uncomputed if column == place and row in numbers)
        columns.append(Column(name, one.kind, one.unit, bool(one.units), uncomputed))
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
    )


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
    for number, row in found.rows:
        filled = [cell for cell in row[:width] if cell]
        repeats = bool(filled) and filled[0].casefold() in header
        if not filled or (repeats and tuple(cell.casefold() for cell in row[: len(header)]) == header):
            continue
        if number > last and _NOTE.match(filled[0]) and len(filled) <= _FEWEST_COLUMNS <= width:
            continue
        alone = len(filled) == 1 and width > _FEWEST_COLUMNS and not isinstance(filled[0], StoredNumber)
        if (alone and not _is_entry(row, forms)) or number in found.whole:
            section = "" if _NOTE.match(filled[0]) else filled[0][:_LONGEST_NAME]
            waiting += 1
            continue
        rows.append((number, row))
        sections.append(section)
    # One such row is more often a remark than a section.
    return rows, sections if len(set(sections) - {""}) > 1 else [""] * len(rows)


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
    return _has_digit(cell) and (at not in forms or _form_of(cell) in forms[at])


def _named(found: _Found, at: int) -> str:
    return " ".join(found.names[at].split())[:_LONGEST_NAME] if at < len(found.names) else ""


def _totals(rows: Sequence[tuple[int, Sequence[str]]], cells: Sequence[Sequence[str]]) -> set[int]:
    """Return which rows call themselves a total, in the first cell with text, and have no other text than that."""
    found = set[int]()
    for at in range(len(rows)):
        texts = [column[at] for column in cells if column[at] and not isinstance(column[at], StoredNumber)]
        if not any(map(_MAY_TOTAL.search, texts[:2])):
            continue
        words = [text for text in texts if not _has_digit(text) or _TOTAL.fullmatch(text)]
        if words and len(words) <= 2 and _TOTAL.fullmatch(words[0].strip()) and any(column[at] for column in cells[1:]):  # noqa: PLR2004
            found.add(at)
    return found if len(found) < max(2, len(rows) / 2) else set()


def _read(name: str, cells: Sequence[str], totals: set[int], comma: bool | None) -> ReadColumn:
    """Read a column by its rows of data, whatever its totals hold."""
    data = [cell if at not in totals else "" for at, cell in enumerate(cells)]
    read = read_column(name, data, decimal_comma=comma)
    values = list(read.values)
    if totals:
        said = [cell if at in totals else "" for at, cell in enumerate(cells)]
        of_totals = read_column(name, said, decimal_comma=comma).values
        values = [of_totals[at] if at in totals else value for at, value in enumerate(values)]
    return replace(read, values=[one[:_LONGEST_CELL] if isinstance(one, str) else one for one in values])


def _sums(read: Sequence[ReadColumn], totals: set[int]) -> set[int]:
    """Return the rows that sum those above them: such as "Total Q1", and the last row if it has no text."""
    columns = [one.values for one in read if one.kind == "number"]
    found, last = set[int](), len(read[0].values) - 1
    whole, part = _Sums(len(columns)), _Sums(len(columns))  # of all rows above, and of those since the last total
    for at in range(last + 1):
        row = [column[at] for column in columns]
        if at not in totals and (_is_named_total(read, at) or at == last > 1) and (whole.has(row) or part.has(row)):
            texts = [one.values[at] for one in read if isinstance(one.values[at], str)]
            if _is_named_total(read, at) or all(is_missing(str(text)) for text in texts):
                found.add(at)
        if at in totals or at in found:
            part = _Sums(len(columns))
        else:
            whole.add(row)
            part.add(row)
    return found


def _is_named_total(read: Sequence[ReadColumn], at: int) -> bool:
    texts = [text for one in read if isinstance(text := one.values[at], str)]
    return len(texts) <= 2 and any(map(_MAY_TOTAL.search, texts))  # noqa: PLR2004


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
    left, right = (_letters(found.first_column + at) for at in (used[0], used[-1]))
    return f"{left}{numbers[0]}:{right}{numbers[-1]}"


def _letters(column: int) -> str:
    """Return the name of a column, counted from 0: A, B ... AA."""
    return counted_letters(column + 1).upper()
