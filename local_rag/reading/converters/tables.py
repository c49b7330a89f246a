"""Find the header of a table, and write its rows so that each can be understood alone."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

Row = Sequence[str]  # cells without line breaks, empty ones as ""

_LOOK_AT = 50  # rows of a table that decide where its header is
_LONGEST_NAME = 200  # characters of a name that each row repeats
_NUMBER = re.compile(
    r"[-+(]{0,2}\s?(?:[€$£¥]|[A-Z]{2,3}\s)?\s?[-+]?(?:\d[\d.,'\u2019\u00a0\u202f ]*|[.,]\d+)(?:[eE][-+]?\d+)?\s?"
    r"(?:%|‰|[€$£¥]|[A-Z]{3})?\)?"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}:\d\d(?::\d\d)?")
_YEAR = re.compile(r"(?:19|20)\d\d(?:[-/](?:\d\d|(?:19|20)\d\d))?|(?:19|20)\d\d-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Header:
    """The rows above the header, which are captions, and those of the header; `names` are those of the columns."""

    captions: int
    rows: int
    names: tuple[str, ...]


def find_header(rows: Sequence[Row], spanned: Collection[int] = (), marked: int = 0) -> Header:
    """Find the header of a table without blank rows; one without names has none.

    A header consists of names, or of years and dates above numbers. `spanned` are the rows with a cell that spans
    several columns but not all: as a header, such a row continues in the next one. `marked` is the number of rows that
    the document itself marks as its header.
    """
    if marked:
        return Header(0, marked, _joined(rows[:marked]))
    counts = [sum(map(bool, row)) for row in rows[:_LOOK_AT]]
    if max(counts, default=0) <= 1:
        return Header(0, 0, ())
    first_data = next((number for number, row in enumerate(rows[:_LOOK_AT]) if not _may_be_header(row)), None)
    if first_data is None:
        usual = Counter(count for count in counts if count > 1).most_common(1)[0][0]
        found = next(number for number, count in enumerate(counts) if count >= usual)
    else:
        leading = counts[: first_data or 1]
        found = leading.index(max(leading))
    if counts[found] <= 1 or not _is_header(rows[found], rows[found + 1 : _LOOK_AT]):
        return Header(next((number for number in range(found) if counts[number] > 1), found), 0, ())
    last = found
    while last in spanned and last + 1 < len(rows) and _is_header(rows[last + 1], rows[last + 2 : _LOOK_AT]):
        last += 1
    return Header(found, last - found + 1, _joined(rows[found : last + 1]))


def lines_of_table(rows: Sequence[tuple[int, Row]], spanned: Collection[int], whole: Collection[int]) -> Iterator[str]:
    """Write a table of a sheet, given as numbered rows: `Columns: Name; Born`, `Row 2: Name: Ada; Born: 1815`.

    A row in `whole` is one cell over all columns, so it stands under none of them.
    """
    header = find_header(
        [row for _, row in rows], {index for index, (number, _) in enumerate(rows) if number in spanned}
    )
    for _, row in rows[: header.captions]:
        yield "; ".join(dict.fromkeys(filter(None, row)))
    if header.rows:
        yield f"Columns: {'; '.join(filter(None, header.names))}"
    repeated = [name[:_LONGEST_NAME] for name in header.names]
    single = not header.rows and all(sum(map(bool, row)) <= 1 for _, row in rows)
    for number, row in rows[header.captions + header.rows :]:
        names = [*([] if number in whole else repeated), *[""] * len(row)]
        cells = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell]
        yield cells[0] if single else f"Row {number}: {'; '.join(cells)}"


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, an amount or a share."""
    return bool(_NUMBER.fullmatch(cell))


def pipe_row(cells: Row) -> str:
    """Write a row of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def pipe_table(names: Row, rows: Sequence[Row]) -> str:
    """Write a Markdown table; without names, its header is blank."""
    width = max(len(names), *map(len, rows), 1)
    head = [*names, *[""] * (width - len(names))]
    body = (pipe_row([*row, *[""] * (width - len(row))]) for row in rows)
    return "\n".join([pipe_row(head), f"|{' --- |' * width}", *body])


def _may_be_header(row: Row) -> bool:
    return all(_YEAR.fullmatch(cell) or not (is_number(cell) or _DATE.fullmatch(cell)) for cell in row if cell)


def _is_header(row: Row, below: Sequence[Row]) -> bool:
    """Return whether a row consists of names, and of years only above numbers that are not all years."""
    if not _may_be_header(row):
        return False
    years = [column for column, cell in enumerate(row) if _YEAR.fullmatch(cell)]
    if not years:
        return True
    labels = [row[column] for column in years]
    steps = len(years) > 1 and (labels == sorted(set(labels)) or labels == sorted(set(labels), reverse=True))
    values = [line[column] for column in years for line in below if column < len(line) and line[column]]
    numbers = [cell for cell in values if is_number(cell)]
    return len(numbers) > len(values) / 2 and (steps or not all(_YEAR.fullmatch(cell) for cell in values))


def _joined(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the names of the columns: those of a header of several rows are joined from top to bottom."""
    width = max(map(len, rows))
    columns = ([row[column] for row in rows if column < len(row) and row[column]] for column in range(width))
    return tuple(" ".join(dict.fromkeys(parts)) for parts in columns)
