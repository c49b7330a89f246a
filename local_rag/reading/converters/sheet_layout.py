"""Find the tables of a sheet as people lay them out: below and beside each other, with blank rows and columns.

A blank row below a header or between the groups of a table ends nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from local_rag.reading.converters.table_layout import Numbered, Row, find_header, has_digit, may_be_header

_FEWEST_COLUMNS = 2
_LOOK_AT = 5  # rows that tell whether a table goes on
_ALIKE = 0.8  # of their cells, at least, are of the kind of those above


def tables_of(cells: Mapping[int, Sequence[str]], spanned: Collection[int]) -> Iterator[tuple[int, Sequence[Numbered]]]:
    """Yield each table with its first column, as rows with their numbers."""
    for region in _joined(list(_regions(cells)), spanned):
        yield from _side_by_side(region)


def _regions(cells: Mapping[int, Sequence[str]]) -> Iterator[list[Numbered]]:
    """Yield rows without blank ones between them."""
    numbers = sorted(cells)
    breaks = [0, *(at for at in range(1, len(numbers)) if numbers[at] > numbers[at - 1] + 1), len(numbers)]
    for first, last in pairwise(breaks):
        if first < last:
            yield [(number, cells[number]) for number in numbers[first:last]]


def _joined(regions: Sequence[list[Numbered]], spanned: Collection[int]) -> Iterator[list[Numbered]]:
    """Join the regions of one table; what stands alone between them names what follows it."""
    table, alone = list[Numbered](), list[list[Numbered]]()
    for region in regions:
        if table and all(_count(row) == 1 for _, row in region):
            alone.append(region)
        elif table and _goes_on(table, region, spanned):
            table += [row for one in alone for row in one] + region
            alone = []
        else:
            yield from filter(None, [table, *alone])
            table, alone = list(region), []
    yield from filter(None, [table, *alone])


def _goes_on(table: Sequence[Numbered], region: Sequence[Numbered], spanned: Collection[int]) -> bool:
    """Return whether rows have no header of their own, and cells below the columns of a table and of their kinds."""
    above, below = ([row for _, row in some] for some in (table, region))
    header = find_header(above, {at for at, (number, _) in enumerate(table) if number in spanned})
    body = above[header.captions + header.rows :]
    named = {at for at, name in enumerate(header.names) if name}
    if not header.rows or len(named) < _FEWEST_COLUMNS:
        return False
    filled = {at for row in below for at, cell in enumerate(row) if cell}
    is_plain = all(map(may_be_header, below))
    if find_header(below).rows and not (is_plain and filled == named and (not body or _repeats(body, below))):
        return False
    if not body:
        return len(filled & named) >= _ALIKE * len(named | filled)
    last = body[-1]
    pairs = [
        (at in named, last[at] if at < len(last) else "", cell)
        for row in below[:_LOOK_AT]
        for at, cell in enumerate(row)
        if cell
    ]
    alike = sum(known and (not before or has_digit(before) == has_digit(cell)) for known, before, cell in pairs)
    return alike >= _ALIKE * len(pairs)


def _repeats(body: Sequence[Sequence[str]], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has a value that stands elsewhere in its column, as no name of a column does."""
    return any(
        cell and any(at < len(row) and row[at] == cell for row in (*body, *below[1:]))
        for at, cell in enumerate(below[0])
    )


def _side_by_side(rows: Sequence[Numbered]) -> list[tuple[int, Sequence[Numbered]]]:
    """Cut rows at blank columns where tables stand beside each other, below the captions of all."""
    captions = next((at for at, (_, row) in enumerate(rows) if _count(row) > 1), 0)
    places: dict[int, list[int]] = {}
    for at, (_, row) in enumerate(rows[captions:], start=captions):
        for column, cell in enumerate(row):
            if cell:
                places.setdefault(column, []).append(at)
    columns = sorted(places)
    cuts = [0, *(at for at in range(1, len(columns)) if columns[at] > columns[at - 1] + 1), len(columns)]
    blocks = [columns[first:last] for first, last in pairwise(cuts)]
    above = rows[captions][1]  # perhaps a caption above each of them
    own = [[at for at in block if at < len(above) and above[at]] for block in blocks]
    head = captions + all(filled == block[:1] for filled, block in zip(own, blocks, strict=True))
    firsts = [min(places[column][0] for column in block) for block in blocks]
    if len(blocks) < _FEWEST_COLUMNS or not (len(set(firsts)) > 1 or _are_apart(rows, blocks, places, head)):
        return [(0, rows)]
    cut: list[tuple[int, Sequence[Numbered]]] = [(0, rows[:captions])] if captions else []
    for block, first in zip(blocks, firsts, strict=True):
        parts = [(number, row[block[0] : block[-1] + 1]) for number, row in rows[first:]]
        cut.append((block[0], [(number, row) for number, row in parts if any(row)]))
    return cut


def _are_apart(
    rows: Sequence[Numbered], blocks: Sequence[Sequence[int]], places: Mapping[int, Sequence[int]], head: int
) -> bool:
    """Return whether blocks that begin in one row are tables of their own.

    Either they end in different rows, or each has records of its own: its first column has another text in each row, or
    texts that repeat in all of them, while no two rows are the same, or it is called as that of the others.
    """
    if any(len(block) < _FEWEST_COLUMNS for block in blocks):
        return False
    if len({max(places[column][-1] for column in block) for block in blocks}) == len(blocks):
        return True
    header = rows[min(head, len(rows) - 1)][1]
    if not may_be_header(header) or len(rows) - head <= _FEWEST_COLUMNS:
        return False
    names = [[header[at] if at < len(header) else "" for at in block] for block in blocks]
    if not all(map(all, names)):
        return False
    parts = [
        [tuple(row[at] if at < len(row) else "" for at in block) for _, row in rows[head + 1 :]] for block in blocks
    ]
    return len({one[0] for one in names}) == 1 or all(map(_are_named, parts)) or all(map(_are_records, parts))


def _are_named(rows: Sequence[Row]) -> bool:
    """Return whether each row begins with another text."""
    return len({row[0] for row in rows}) == len(rows) and _have_texts(rows)


def _are_records(rows: Sequence[Row]) -> bool:
    """Return whether the texts with which rows begin repeat, and their other cells tell them apart."""
    return len({row[0] for row in rows}) < len(rows) == len(set(rows)) and all(map(all, rows)) and _have_texts(rows)


def _have_texts(rows: Sequence[Row]) -> bool:
    return all(row[0] and may_be_header([row[0]]) for row in rows)


def _count(row: Sequence[str]) -> int:
    return sum(map(bool, row))
