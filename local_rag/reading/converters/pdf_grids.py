"""Find the tables whose cells a PDF's page separates by drawn lines; a cell may have several lines of text."""

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import fmean
from typing import Any, NamedTuple

from local_rag.reading.converters.pdf_page import Cell, Line, Rule, Rules, join_lines
from local_rag.reading.converters.pdf_tables import PageTable, page_table

_MOST_OBJECTS, _MOST_SEGMENTS = 50_000, 20_000  # of a page: a drawing with more is no table
_MOST_CROSSINGS, _MOST_CELLS = 200_000, 5_000  # pairs of lines that are compared, and cells of a table
_MOST_MARKS = 1000  # of a page, and places of one
_DEPTH = 4  # of drawings within drawings
_SAME = 2.5  # points between what is one line, or what touches
_SHORTEST = 4.0  # points of a line that separates cells
_LOWEST = 1.5  # points of a frame: a lower one is seen as a line
_FEWEST = 2  # rows and columns
_FEWEST_FILLED = 0.4  # of the cells of a table have text
_FEWEST_STACKED, _STACKED, _GO_ON = 3, 0.7, 0.25  # lines; the share of them with several cells, and of cells that go on
_LONGEST = 2000  # characters of a cell: what says more is a page in columns


@dataclass(frozen=True, slots=True)
class Grid:
    """Places of columns from left to right and of rows from top to bottom; `cells` has the cell of each row and column.

    A cell that spans several rows or columns is one number.
    """

    lefts: tuple[float, ...]
    tops: tuple[float, ...]
    cells: tuple[tuple[int, ...], ...]

    def place(self, left: float, right: float, height: float) -> tuple[int, int] | None:
        """Return the row and the column of some words; None if they do not stand in the grid."""
        middle = (left + right) / 2
        row = next((at for at, (top, low) in enumerate(pairwise(self.tops)) if low <= height <= top), None)
        column = next((at for at, (one, other) in enumerate(pairwise(self.lefts)) if one <= middle <= other), None)
        return None if row is None or column is None else (row, column)


class _Words(NamedTuple):
    """Words of a line that stand in a row and a column."""

    row: int
    column: int
    cell: Cell
    line: Line


def rules_of(page: Any) -> Rules:
    """Return the level and upright lines of a page, with those of its marks that strike out, and the edges of boxes.

    There are none of a drawing with very many.
    """
    level, upright, posts = list[Rule](), list[Rule](), list[Rule]()
    for count, ((left, low), (right, high), is_filled) in enumerate(chain(_segments(page), _striking(page))):
        if count >= _MOST_SEGMENTS:
            return Rules()
        if abs(high - low) < 1 <= abs(right - left):
            level.append(Rule((low + high) / 2, min(left, right), max(left, right)))
        elif abs(right - left) < 1 <= abs(high - low):
            upright.append(Rule((left + right) / 2, min(low, high), max(low, high)))
            if not is_filled and _LOWEST <= abs(high - low) < _SHORTEST:
                posts.append(upright[-1])
    return Rules(tuple(_joined(level)), tuple(_joined(upright)), tuple(sorted(posts)))


def _striking(page: Any) -> Iterator[tuple[tuple[float, float], tuple[float, float], bool]]:
    """Yield both ends of the lines with which a reader has struck out words, and that they are no frames."""
    import pypdfium2.raw as pdfium

    points = pdfium.FS_QUADPOINTSF()
    for at in range(min(_MOST_MARKS, pdfium.FPDFPage_GetAnnotCount(page.raw))):
        mark = pdfium.FPDFPage_GetAnnot(page.raw, at)
        if pdfium.FPDFAnnot_GetSubtype(mark) == pdfium.FPDF_ANNOT_STRIKEOUT:
            for number in range(min(_MOST_MARKS, pdfium.FPDFAnnot_CountAttachmentPoints(mark))):
                if pdfium.FPDFAnnot_GetAttachmentPoints(mark, number, ctypes.byref(points)):
                    middle = (points.y1 + points.y3) / 2
                    yield (min(points.x1, points.x3), middle), (max(points.x2, points.x4), middle), True
        pdfium.FPDFPage_CloseAnnot(mark)


def _segments(page: Any) -> Iterator[tuple[tuple[float, float], tuple[float, float], bool]]:
    """Yield both ends of each straight piece of the paths on a page, and one point twice for each other piece.

    The third value says whether the path is filled, as a thick line may be drawn.
    """
    import pypdfium2.raw as pdfium

    x, y, fill, is_drawn = ctypes.c_float(), ctypes.c_float(), ctypes.c_int(), ctypes.c_int()
    for path, matrix in _paths(page):
        pdfium.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(is_drawn))
        is_filled = fill.value != pdfium.FPDF_FILLMODE_NONE
        first = before = (0.0, 0.0)
        for at in range(pdfium.FPDFPath_CountSegments(path)):
            segment = pdfium.FPDFPath_GetPathSegment(path, at)
            pdfium.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
            point = (
                matrix.a * x.value + matrix.c * y.value + matrix.e,
                matrix.b * x.value + matrix.d * y.value + matrix.f,
            )
            kind = pdfium.FPDFPathSegment_GetType(segment)
            if kind == pdfium.FPDF_SEGMENT_MOVETO:
                first = point
            yield before if kind == pdfium.FPDF_SEGMENT_LINETO else point, point, is_filled
            before = point
            if pdfium.FPDFPathSegment_GetClose(segment):
                yield point, first, is_filled
                before = first


def _paths(page: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the paths on a page, and what moves each to its place; also those of drawings within drawings."""
    import pypdfium2.raw as pdfium

    left = iter(range(_MOST_OBJECTS))

    def walk(objects: Iterator[Any], outer: Any, depth: int) -> Iterator[tuple[Any, Any]]:
        for one, _ in zip(objects, left, strict=False):
            kind, own = pdfium.FPDFPageObj_GetType(one), pdfium.FS_MATRIX()
            pdfium.FPDFPageObj_GetMatrix(one, ctypes.byref(own))
            matrix = _times(own, outer)
            if kind == pdfium.FPDF_PAGEOBJ_PATH:
                yield one, matrix
            elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < _DEPTH:
                count = pdfium.FPDFFormObj_CountObjects(one)
                inner = (pdfium.FPDFFormObj_GetObject(one, number) for number in range(count))
                yield from walk(inner, matrix, depth + 1)

    count = pdfium.FPDFPage_CountObjects(page.raw)
    objects = (pdfium.FPDFPage_GetObject(page.raw, number) for number in range(count))
    yield from walk(objects, pdfium.FS_MATRIX(1, 0, 0, 1, 0, 0), 0)


def _times(inner: Any, outer: Any) -> Any:
    """Return the matrix that applies `inner` and then `outer`."""
    return type(inner)(
        inner.a * outer.a + inner.b * outer.c,
        inner.a * outer.b + inner.b * outer.d,
        inner.c * outer.a + inner.d * outer.c,
        inner.c * outer.b + inner.d * outer.d,
        inner.e * outer.a + inner.f * outer.c + outer.e,
        inner.e * outer.b + inner.f * outer.d + outer.f,
    )


def _joined(rules: Sequence[Rule]) -> Iterator[Rule]:
    """Join the pieces of one line: those at the same place that touch, such as the edges of cells side by side."""
    for together in _together(rules):
        at, pieces = fmean(rule.at for rule in together), sorted((rule.start, rule.end) for rule in together)
        start, end = pieces[0]
        for piece in [*pieces[1:], (math.inf, math.inf)]:
            if piece[0] <= end + _SAME:
                end = max(end, piece[1])
            else:
                if end - start >= _SHORTEST:
                    yield Rule(at, start, end)
                start, end = piece


def _together(rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    """Divide rules where two neighbours are apart."""
    group = list[Rule]()
    for one in sorted(rules):
        if group and one.at - group[-1].at > _SAME:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def grids_of(rules: Rules) -> Iterator[Grid]:
    """Yield the grids of at least two rows and two columns that lines form which touch each other."""
    if len(rules.level) * len(rules.upright) > _MOST_CROSSINGS:
        return
    group = list(range(len(rules.level) + len(rules.upright)))
    for one, level in enumerate(rules.level):
        for other, upright in enumerate(rules.upright, start=len(rules.level)):
            if _holds(level, upright.at) and _holds(upright, level.at):
                _unite(group, one, other)
    members: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for one in range(len(group)):
        across, down = members.setdefault(_root(group, one), ([], []))
        if one < len(rules.level):
            across.append(rules.level[one])
        else:
            down.append(rules.upright[one - len(rules.level)])
    for across, down in members.values():
        lefts, tops = sorted({rule.at for rule in down}), sorted({rule.at for rule in across}, reverse=True)
        if min(len(lefts), len(tops)) > _FEWEST and len(lefts) * len(tops) <= _MOST_CELLS:
            yield Grid(tuple(lefts), tuple(tops), tuple(_cells(lefts, tops, across, down)))


def _holds(rule: Rule, place: float) -> bool:
    return rule.start - _SAME <= place <= rule.end + _SAME


def _root(group: list[int], one: int) -> int:
    while group[one] != one:
        group[one] = group[group[one]]
        one = group[one]
    return one


def _unite(group: list[int], one: int, other: int) -> None:
    group[_root(group, one)] = _root(group, other)


def _cells(
    lefts: Sequence[float], tops: Sequence[float], level: Sequence[Rule], upright: Sequence[Rule]
) -> Iterator[tuple[int, ...]]:
    """Yield the cells of each row: what no line separates is one."""
    width, height = len(lefts) - 1, len(tops) - 1
    group = list(range(width * height))
    for row in range(height):
        for column in range(width):
            x, y = fmean(lefts[column : column + 2]), fmean(tops[row : row + 2])
            if column + 1 < width and not _is_drawn(upright, lefts[column + 1], y):
                _unite(group, row * width + column, row * width + column + 1)
            if row + 1 < height and not _is_drawn(level, tops[row + 1], x):
                _unite(group, row * width + column, (row + 1) * width + column)
    for row in range(height):
        yield tuple(_root(group, row * width + column) for column in range(width))


def _is_drawn(rules: Sequence[Rule], at: float, through: float) -> bool:
    return any(rule.at == at and rule.start <= through <= rule.end for rule in rules)


def ruled_tables(lines: Sequence[Line], rules: Rules) -> tuple[list[Line], list[PageTable]]:
    """Return the lines of a page with one line for each row of its ruled tables, and these tables in their order."""
    rest, begins = list[Line | None](lines), dict[int, list[tuple[list[Line], PageTable]]]()
    for grid in grids_of(rules):
        if read := _read(grid, rest):
            first = next(number for number, line in enumerate(rest) if line and any(_places(line, grid)))
            begins.setdefault(first, []).append(read)
            rest = [_outside(line, grid) if line else None for line in rest]
    ordered, tables = list[Line](), list[PageTable]()
    for number, line in enumerate(rest):
        for rows, table in begins.get(number, ()):
            tables.append(replace(table, first=len(ordered) + table.first, last=len(ordered) + table.last))
            ordered += rows
        ordered += [line] if line else []
    return ordered, tables


def _places(line: Line, grid: Grid) -> list[tuple[int, int] | None]:
    """Return the row and the column of each cell of a line, None for what does not stand in the grid."""
    height = line.top - line.height / 2
    return [grid.place(cell.left, cell.right, height) if line.height else None for cell in line.cells]


def _outside(line: Line, grid: Grid) -> Line | None:
    """Return what of a line does not stand in a grid."""
    cells = tuple(cell for cell, place in zip(line.cells, _places(line, grid), strict=True) if place is None)
    return replace(line, cells=cells) if cells else None


def _read(grid: Grid, lines: Sequence[Line | None]) -> tuple[list[Line], PageTable] | None:
    """Return the rows in a grid as lines, and as a table; None for a frame, a diagram or a page in columns."""
    words = [
        _Words(*place, cell, line)
        for line in filter(None, lines)
        for cell, place in zip(line.cells, _places(line, grid), strict=True)
        if place
    ]
    cells, texts = _parted(grid, words), dict[int, str]()
    for one in words:
        number = cells[one.row][one.column]
        texts[number] = join_lines(texts[number], one.cell.text) if number in texts else one.cell.text
    filled = [row for row, own in enumerate(cells) if any(one in texts for one in own)]
    columns = [at for at in range(len(grid.lefts) - 1) if any(cells[row][at] in texts for row in filled)]
    several = {one for row in filled for one in cells[row]}
    if min(len(filled), len(columns)) < _FEWEST or len(texts) < _FEWEST_FILLED * len(several):
        return None
    if max(map(len, texts.values())) > _LONGEST:
        return None
    rows, spanned, drawn = list[list[str]](), set[int](), list[Line]()
    for row in filled:
        own, of_row = [cells[row][at] for at in columns], [one for one in words if one.row == row]
        if 1 < len(set(own)) < len(own):
            spanned.add(len(rows))
        # A cell over several columns counts for each of them, but one over all is a caption.
        whole = [texts.get(one, "") if at == 0 or len(set(own)) > 1 else "" for at, one in enumerate(own)]
        rows += _stacked(of_row, columns) or [whole]
        is_bold = bool(of_row) and all(one.line.is_bold for one in of_row)
        height = max((one.line.height for one in of_row), default=0.0)
        for values in rows[len(drawn) :]:
            written = [Cell(text, *grid.lefts[at : at + 2]) for at, text in zip(columns, values, strict=True) if text]
            drawn.append(Line(tuple(written), grid.tops[row], height, is_bold))
    return drawn, page_table(0, rows, spanned, tuple(grid.lefts[at] for at in columns))


def _parted(grid: Grid, words: Sequence[_Words]) -> list[list[int]]:
    """Return the cells of each row; one over several columns is parted where its words stand under some of them.

    Such a row only lacks the lines between its cells. The words of a real cell over several columns cross them.
    """
    cells = [list(row) for row in grid.cells]
    for row, own in enumerate(cells):
        for number in {one for one in own if own.count(one) > 1}:
            inside = [one for one in words if grid.cells[one.row][one.column] == number]
            under = {one.column for one in inside}
            crossed = any(
                one.cell.left < edge - _SAME and edge + _SAME < one.cell.right
                for one in inside
                for edge in grid.lefts[own.index(number) + 1 : own.index(number) + own.count(number)]
            )
            if len(under) > 1 and not crossed:
                for column, one in enumerate(own):
                    if one == number:
                        cells[row][column] = -1 - row * len(own) - column
    return cells


def _stacked(words: Sequence[_Words], columns: Sequence[int]) -> list[list[str]]:
    """Return the rows of a table that no lines separate; none if the words are one row whose cells have several lines.

    Such rows have words in several columns, which do not go on from one to the next.
    """
    levels = list[list[_Words]]()
    for one in sorted(words, key=lambda one: -one.line.top):
        if levels and levels[-1][0].line.top - one.line.top < one.line.height / 2:
            levels[-1].append(one)
        else:
            levels.append([one])
    below = [one for level in levels[1:] for one in level]
    wide = sum(len({one.column for one in level}) > 1 for level in levels)
    if len(levels) < _FEWEST_STACKED or wide < _STACKED * len(levels):
        return []
    if sum(one.cell.text[:1].islower() for one in below) > _GO_ON * len(below):
        return []
    rows = list[list[str]]()
    for level in levels:
        values = [" ".join(one.cell.text for one in level if one.column == at) for at in columns]
        if rows and not values[0]:
            rows[-1] = [
                join_lines(*both) if all(both) else "".join(both) for both in zip(rows[-1], values, strict=True)
            ]
        else:
            rows.append(values)
    return rows
