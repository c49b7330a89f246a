"""The rows of sheets: what a converter writes, each reader finds again."""

from hypothesis import given
from hypothesis import strategies as st

from local_rag.reading.converters.table_layout import lines_of_table
from local_rag.text.sheet_rows import CELL_BREAK, COLUMNS, RECORD, ROW, named_cells, row_label, table_of

WORDS = st.text("abcdeé Öñ", min_size=1, max_size=12).map(str.strip).filter(bool)
NAMES = st.lists(WORDS, min_size=2, max_size=6, unique=True)
CELLS = st.text("ab1: ;|-.", max_size=12).map(str.strip)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], dict[int, list[str]]]:
    """Draw the names of columns, and rows by their numbers; no cell holds what looks like the one after it."""
    names = draw(NAMES)
    cells = CELLS.filter(lambda cell: not any(f"{CELL_BREAK}{name}: " in cell for name in names))
    row = st.lists(cells, min_size=len(names), max_size=len(names)).filter(any)
    return names, draw(st.dictionaries(st.integers(2, 999_999_999), row))


@given(tables())
def test_the_cells_of_a_row_are_found_as_they_are_written(drawn: tuple[list[str], dict[int, list[str]]]) -> None:
    names, rows = drawn
    lines = [row_label(number) + named_cells(zip(names, row, strict=True)) for number, row in rows.items()]
    table = table_of([COLUMNS + CELL_BREAK.join(names), *lines])
    assert table.names == tuple(names)
    assert [
        {names[cell.column]: line[cell.value : cell.end] for cell in cells}
        for line, cells in zip(lines, table.rows[1:], strict=True)
    ] == [{name: cell for name, cell in zip(names, row, strict=True) if cell} for row in rows.values()]


@given(st.integers(0, 999_999_999), CELLS)
def test_the_number_of_a_row_is_found_only_where_a_line_begins(number: int, cell: str) -> None:
    text = f"{row_label(number)}{cell}\nbeside {row_label(number + 1)}{cell}"
    (found,) = ROW.finditer(text)
    assert (found["row"], found.end()) == (str(number), len(row_label(number)))
    assert RECORD.match(text)
    assert not RECORD.match(text[1:])


@given(NAMES, st.lists(st.integers(1, 10**6), min_size=1, max_size=5))
def test_a_sheet_is_found_as_its_converter_writes_it(names: list[str], values: list[int]) -> None:
    rows = [
        (2, names),
        *((at, [str(value + place) for place in range(len(names))]) for at, value in enumerate(values, 3)),
    ]
    lines = [*lines_of_table(rows, (), ())]
    table = table_of(lines)
    assert [line[cell.value : cell.end] for line, cells in zip(lines, table.rows, strict=True) for cell in cells] == [
        cell for _, row in rows for cell in row
    ]
    assert [int(found["row"]) for line in lines if (found := ROW.match(line))] == [number for number, _ in rows[1:]]
