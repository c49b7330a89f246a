"""Find the header of a table, and write its rows so that each can be understood alone."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from local_rag.text.cell_values import is_missing, unit_of_name
from local_rag.text.sheet_rows import CELL_BREAK, COLUMNS, LONGEST_NAME, named_cells, row_label

Row = Sequence[str]  # cells without line breaks, empty ones as ""
Numbered = tuple[int, Row]  # with its number in the file

_LOOK_AT = 50  # rows of a table that decide where its header is
_MOST_LEVELS = 20  # rows of a marked header that may name groups
_LEADING = 5  # columns among which the labels of groups begin
_FEWEST_GROUPS = 2  # above columns of the same names
_LONGEST_UNIT = 12  # characters
_DITTO = frozenset({'"', "''", "\u3003", "\u2033", "\u201c", "\u201d", "\u201e", "ditto", "do.", "idem", "id."})
_LONGEST_DITTO = max(map(len, _DITTO))
_NUMBER = re.compile(
    r"[-+(]{0,2}\s?(?:[€$£¥]|[A-Z]{2,3}\s)?\s?[-+]?(?:\d[\d.,'\u2019\u00a0\u202f ]*|[.,]\d+)(?:[eE][-+]?\d+)?\s?"
    r"(?:%|‰|[€$£¥]|[A-Z]{3})?\)?"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}:\d\d(?::\d\d)?")
_CLOCK = re.compile(r"\d{1,3}:[0-5]\d(?::[0-5]\d)?")
TOTAL = re.compile(
    r"(?:(?:grand|sub|overall|net|gross)?[- ]?totals?|sums?"
    r"|(?:grand )?total (?:amount|sum|hours|budget|for|of|in|\d).{0,40}"
    r"|.{1,40}[ -]totals?|(?:zwischen|gesamt)?summe|gesamt(?:betrag)?|insgesamt|averages?|mean|total general|totaux?"
    r"|somme|sous[- ]total|durchschnitt|mittelwert|moyenne)\s?:?",
    re.IGNORECASE,
)
MAY_TOTAL = re.compile(  # quick, for most rows
    r"total|sum|gesamt|average|mean|totaux|somme|durchschnitt|mittelwert|moyenne", re.IGNORECASE
)
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
        parts = list(rows[:marked])
        for at in range(marked - 2, max(marked - _MOST_LEVELS, 0) - 1, -1):
            parts[at] = _groups_above(parts[at], _joined(parts[at + 1 :])) or parts[at]
        return Header(0, marked, _joined(parts))
    counts = [sum(map(bool, row)) for row in rows[:_LOOK_AT]]
    if max(counts, default=0) <= 1:
        return Header(0, 0, ())
    first_data = next((number for number, row in enumerate(rows[:_LOOK_AT]) if not may_be_header(row)), None)
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
    parts = list(rows[found : last + 1])
    while found and (groups := _groups_above(rows[found - 1], _joined(parts))):
        parts, found = [groups, *parts], found - 1
    names = _joined(parts)
    if last + 1 < len(rows) and _are_units(rows[last + 1], names, rows[last + 2 : _LOOK_AT]):
        units, last = rows[last + 1], last + 1
        names = tuple(
            f"{name} ({units[at].strip('()[]')})" if at < len(units) and units[at] else name
            for at, name in enumerate(names)
        )
    return Header(found, last - found + 1, names)


def fill_labels(rows: Sequence[Numbered], whole: Collection[int] = ()) -> tuple[list[Numbered], tuple[int, ...]]:
    """Give the rows below a header the labels that stand only in the first row of each group; return their columns.

    Labels stand left, each once; most rows have none, or what follows them is the same in several groups. So it must be
    behind the numbers of the rows. Rows in `whole`, of one cell or of a total have none. A ditto mark stands for the
    cell above it, in any column, if words or a number stand there: in a table of signs it is one of them.
    """
    rows = _without_dittos(rows)
    first = min((at for _, row in rows for at, cell in enumerate(row[:_LEADING]) if cell), default=_LEADING)
    numbered = _counts_rows([row[first] if first < len(row) else "" for number, row in rows if number not in whole])
    first += numbered
    if first >= _LEADING or all(first < len(row) and row[first] for number, row in rows if number not in whole):
        return list(rows), ()
    width = max(len(row) for _, row in rows)
    wide = [[*row, *[""] * (width - len(row))] for _, row in rows]
    numbers = [number for number, _ in rows]
    body = [
        row
        for number, row in zip(numbers, wide, strict=True)
        if number not in whole and sum(map(bool, row)) > 1 and not is_total(_first(row))
    ]
    begins, columns = {0}, list[int]()
    for column in range(first, width - 1):
        if not any(row[column] for row in body):
            continue
        starts = _starts_of_groups(body, column, begins, may_lack=numbered)
        if not starts:
            break
        label = ""
        for at, row in enumerate(body):
            label = row[column] if at in starts else label
            row[column] = label
        begins, columns = starts, [*columns, column]
    return list(zip(numbers, wide, strict=True)) if columns else list(rows), tuple(columns)


def _counts_rows(cells: Sequence[str]) -> bool:
    """Return whether the cells of a column count its rows, but for a total below them."""
    counted = cells if all(cells) else cells[:-1]
    return len(counted) > 1 and all(cell == str(at) for at, cell in enumerate(counted, start=1))


def _without_dittos(rows: Sequence[Numbered]) -> Sequence[Numbered]:
    if not any(cell.casefold() in _DITTO for _, row in rows for cell in row if len(cell) <= _LONGEST_DITTO):
        return rows
    written, above = list[Numbered](), list[str]()
    for number, row in rows:
        above = [
            above[at] if cell.casefold() in _DITTO and at < len(above) and _is_worded(above[at]) else cell
            for at, cell in enumerate(row)
        ]
        written.append((number, above))
    return written


def _is_worded(cell: str) -> bool:
    return any(map(str.isalnum, cell)) and cell.casefold() not in _DITTO


def _starts_of_groups(
    body: Sequence[Sequence[str]], column: int, begins: Collection[int], *, may_lack: bool
) -> set[int]:
    """Return the rows in which the groups of a column begin; none if its blank cells are simply blank.

    More must tell of values that `may_lack`, as dates may.
    """
    starts = {at for at, row in enumerate(body) if row[column]}
    right = [at for at in range(column + 1, len(body[0])) if all(row[at] for row in body)]
    labels = [body[at][column] for at in sorted(starts)]
    if not right or len(starts) in {1, len(body)} or not starts.issuperset(begins):
        return set()
    if any(is_number(label) and not (_YEAR.fullmatch(label) or _DATE.fullmatch(label)) for label in labels):
        return set()
    may_lack = may_lack or any(map(_DATE.fullmatch, labels))
    outer, groups = 0, list[list[str]]()  # the values of the next column, by group
    seen: set[tuple[int, str]] = set()
    for at, row in enumerate(body):
        outer += at in begins
        if at in starts:
            if (outer, row[column]) in seen and not is_missing(row[column]):
                return set()
            seen.add((outer, row[column]))
            groups.append([])
        groups[-1].append(row[right[0]])
    apart = all(len(set(group)) == len(group) for group in groups)
    again = len({value for group in groups for value in group}) < len(body)
    return starts if (2 * len(starts) <= len(body) and not may_lack) or (apart and again) else set()


def has_digit(cell: str) -> bool:
    """Return whether the beginning of a cell has a digit."""
    return any(map(str.isdigit, cell[:40]))


def is_total(text: str) -> bool:
    """Return whether a text is what a row that sums others calls itself."""
    return bool(MAY_TOTAL.search(text) and TOTAL.fullmatch(text.strip()))


def _first(row: Row) -> str:
    return next(filter(None, row), "")


def lines_of_table(rows: Sequence[tuple[int, Row]], spanned: Collection[int], whole: Collection[int]) -> Iterator[str]:
    """Write a table of a sheet, given as numbered rows: `Columns: Name; Born`, `Row 2: Name: Ada; Born: 1815`.

    A row in `whole` is one cell over all columns, so it stands under none of them.
    """
    header = find_header(
        [row for _, row in rows], {index for index, (number, _) in enumerate(rows) if number in spanned}
    )
    for _, row in rows[: header.captions]:
        yield CELL_BREAK.join(dict.fromkeys(filter(None, row)))
    if header.rows:
        yield COLUMNS + CELL_BREAK.join(filter(None, header.names))
    repeated = [name[:LONGEST_NAME] for name in header.names]
    single = not header.rows and all(sum(map(bool, row)) <= 1 for _, row in rows)
    for number, row in fill_labels(rows[header.captions + header.rows :], whole)[0]:
        names = [*([] if number in whole else repeated), *[""] * len(row)]
        cells = named_cells(zip(names, row, strict=False))
        yield cells if single else row_label(number) + cells


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


def table_in_cell(names: Row, rows: Sequence[Row]) -> str:
    """Write a table that stands in a cell of another one, so that each value names its column: `(Day: Mon, Fee: 5)`.

    The name of a column without values comes first.
    """
    columns = [*names, *[""] * max(map(len, rows), default=0)]
    empty = (name for at, name in enumerate(names) if name and not any(at < len(row) and row[at] for row in rows))
    lines = (named_cells(zip(columns, row, strict=False), ", ") for row in rows)
    text = "; ".join(filter(None, [", ".join(empty), *lines]))
    return f"({text})" if text else ""


def may_be_header(row: Row) -> bool:
    """Return whether a row has no cell with a number or a date, but for years."""
    return all(_YEAR.fullmatch(cell) or not (is_number(cell) or _DATE.fullmatch(cell)) for cell in row if cell)


def _is_header(row: Row, below: Sequence[Row]) -> bool:
    """Return whether a row consists of names, and of years only above numbers that are not all years."""
    if not may_be_header(row):
        return False
    years = [column for column, cell in enumerate(row) if _YEAR.fullmatch(cell)]
    if not years:
        return True
    labels = [row[column] for column in years]
    steps = len(years) > 1 and (labels == sorted(set(labels)) or labels == sorted(set(labels), reverse=True))
    values = [line[column] for column in years for line in below if column < len(line) and line[column]]
    numbers = [cell for cell in values if is_number(cell)]
    return len(numbers) > len(values) / 2 and (steps or not all(_YEAR.fullmatch(cell) for cell in values))


def _groups_above(groups: Row, names: Row) -> list[str]:
    """Return the names of groups above the columns of each, for all columns of a group; none if they are none.

    Each stands above the first column of its group, as "2023" and "2024" do above two columns each, or anywhere above
    it if the names of the columns are the same in all. Groups whose columns have other names begin beside a blank cell.
    """
    starts = [at for at, group in enumerate(groups) if group]
    if len(starts) < _FEWEST_GROUPS or not may_be_header(groups) or starts[-1] >= len(names):
        return []
    edges = _edges_of_same(starts, names) or [*starts, len(names)]
    parts = [names[start:end] for start, end in pairwise(edges)]
    often = Counter(name for part in parts for name in set(part) if name)
    # Above a blank name stands that of a single column, and above the first column may stand what the groups are.
    grouped = [part for at, part in zip(edges, parts, strict=False) if part[0] and (at or len(part) > 1)]
    are_same = len(grouped) >= _FEWEST_GROUPS and all(
        often[part[0]] >= _FEWEST_GROUPS and len(set(filter(None, part))) == sum(map(bool, part)) for part in grouped
    )
    are_wide = not groups[0] and all(len(part) > 1 and all(part) for part in parts) and len(set(names)) == len(names)
    if not are_same and not are_wide:
        return []
    above = [""] * len(names)
    for group, (start, end) in zip(filter(None, groups), pairwise(edges), strict=True):
        above[start] = group
        for at in range(start + 1, end):
            above[at] = group if are_wide or often[names[at]] >= _FEWEST_GROUPS else ""
    return above


def _edges_of_same(starts: Sequence[int], names: Row) -> list[int]:
    """Return where groups of as many columns with the same names begin, and their end; none unless each has a start."""
    often = Counter(names)
    first = next((at for at, name in enumerate(names) if name and often[name] == len(starts)), len(names))
    width, rest = divmod(len(names) - first, len(starts))
    edges = [first + width * number for number in range(len(starts) + 1)]
    are_same = all(names[at : at + width] == names[first : first + width] for at in edges[:-1])
    each = all(left <= start < right for start, (left, right) in zip(starts, pairwise(edges), strict=True))
    return edges if width and not rest and are_same and each else []


def _are_units(row: Row, names: Row, below: Sequence[Row]) -> bool:
    """Return whether the cells of a row below the header are the units of the numbers below them.

    Not every unit is known, but one of them is, and above other things than numbers the row is blank.
    """
    filled = [at for at, cell in enumerate(row) if cell]
    for at in filled:
        values = [line[at] for line in below if at < len(line) and not is_missing(line[at])]
        is_named = at < len(names) and names[at] and "(" not in names[at]
        if not is_named or len(row[at]) > _LONGEST_UNIT or any(map(str.isdecimal, row[at])):
            return False
        if not values or sum(is_number(one) or bool(_CLOCK.fullmatch(one)) for one in values) < len(values) / 2:
            return False
    return any(unit_of_name(f"({row[at].strip('()[]')})") for at in filled)


def _joined(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the names of the columns: those of a header of several rows are joined from top to bottom."""
    width = max(map(len, rows))
    columns = ([row[column] for row in rows if column < len(row) and row[column]] for column in range(width))
    return tuple(" ".join(dict.fromkeys(parts)) for parts in columns)
