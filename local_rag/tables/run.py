"""Run a chosen query: its value with the unit, in words, with the rows that it stands on and what is missing."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from local_rag.answer_records import MOST_TABLE_ROWS, TableAnswer, TableSource, TableValue
from local_rag.tables.computation import Computation
from local_rag.tables.query import (
    Query,
    condition_words,
    group_sql,
    in_words,
    select,
    value_of_sql,
    value_sql,
    where,
)
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import ViewColumn, values_of
from local_rag.text.cell_values import CURRENCY_CODES

Number = int | float
_MOST_VALUES = 200  # of a list or of groups
_EXTREMES = {"max": "highest", "min": "lowest"}
_MOST_NAMED = 3  # cells that are no numbers
_MOST_EQUAL = 5  # rows beside the highest ones
_MOST_KNOWN = 5000  # of what was computed from tables that are held
_LARGEST_KEPT = 5_000_000  # characters of the rows that are kept with an answer


class NoRowsError(Exception):
    """No row answers; the message says why, and `is_certain` that the row is there and lacks the value."""

    def __init__(self, message: str, *, is_certain: bool = False) -> None:
        super().__init__(message)
        self.is_certain = is_certain


class _Counts(NamedTuple):
    rows: int
    valued: int


def run(wanted: Computation, held: RelationSet, *, with_rows: bool = True) -> TableAnswer:
    """Return what is computed, with the rows that it is computed from, or without; raise NoRowsError if none has it."""
    if wanted.other is None:
        return _of_one(wanted.query, held, with_rows=with_rows)
    one, other = _of_one(wanted.query, held), _of_one(wanted.other, held)
    if not isinstance(one.value, int | float) or not isinstance(other.value, int | float):
        raise NoRowsError("There is nothing to compare.")
    if wanted.how == "share":
        if not other.value:
            raise NoRowsError("There is nothing to have a share of.")
        share = _rounded(100 * one.value / other.value)
        said, both = f"share in percent: {one.said}; of {other.said}", ("part", "whole")
        return _of_two(one, other, share, "%", said, both)
    value = _rounded(abs(one.value - other.value))
    return _of_two(one, other, value, one.unit, f"difference: {one.said}; and {other.said}", _labels(wanted))


def _of_two(
    one: TableAnswer, other: TableAnswer, value: Number | str | None, unit: str, said: str, labels: tuple[str, str]
) -> TableAnswer:
    values = tuple(TableValue(label, part.value, part.unit) for label, part in zip(labels, (one, other), strict=True))
    known = set(one.rows)
    rows = (*one.rows, *(row for row in other.rows if row not in known))
    return replace(
        one,
        value=value,
        unit=unit,
        said=said,
        values=values,
        rows=rows[:MOST_TABLE_ROWS],
        count=len(rows) if len(rows) < MOST_TABLE_ROWS else one.count + other.count,
        sql=f"SELECT {'100.0 * ' if unit == '%' else ''}({one.sql}) {'/' if unit == '%' else '-'} ({other.sql})",
        notes=tuple(dict.fromkeys((*one.notes, *other.notes))),
    )


def _labels(wanted: Computation) -> tuple[str, str]:
    """Return what the two parts of a difference are called."""
    one, other = wanted.query, wanted.other
    assert other is not None
    if one.operation != other.operation:
        return _EXTREMES[one.operation], _EXTREMES[other.operation]
    if one.measure != other.measure and one.measure and other.measure:
        return one.measure.name, other.measure.name
    return _label_of(one, other), _label_of(other, one)


def _label_of(one: Query, other: Query) -> str:
    own = [condition for condition in one.conditions if condition not in other.conditions]
    return ", ".join(", ".join(condition.values) or condition.words.removeprefix("is ") for condition in own)


def _of_one(query: Query, held: RelationSet, *, with_rows: bool = True) -> TableAnswer:
    held.hold([one.table for one in query.view.relations])
    counts = _count(query, held)
    if not counts.rows and query.operation != "whether":
        _explain_no_rows(query, held)
    if query.operation == "list":
        answer = _listed(query, held, counts)
    elif query.operation == "whether":
        value = "yes" if counts.rows else "no"
        answer = TableAnswer(value, "", "", sql=_said_sql(query, "count(*)"))
    elif query.operation == "top":
        answer = _top(query, held)
    elif query.group is not None:
        answer = _grouped(query, held)
    else:
        answer = _scalar(query, held, counts)
    rows, firsts = _rows(query, held) if with_rows else ((), {})
    columns = query.view.columns
    return replace(
        answer,
        said=in_words(query, counts.rows),
        columns=tuple(one.name for one in columns),
        units=tuple(one.unit for one in columns),
        rows=rows,
        count=counts.rows,
        rows_sql=_said_sql(query, ", ".join(one.sql for one in columns)),
        sources=tuple(_sources(query, firsts)),
        notes=(*answer.notes, *_missing(query, counts, held), *_remarks(query)),
    )


def _count(query: Query, held: RelationSet) -> _Counts:
    column = query.measure if query.operation not in {"count", "distinct"} else None
    valued = (
        "count(*)" if column is None else f"count({value_of_sql(column) if column.kind == 'number' else column.sql})"
    )
    statement, parameters = select(query, f"count(*), {valued}"), where(query)[1]
    # Many programs of a question have the same conditions.
    known, key = held.known, ("count", statement, tuple(parameters))
    if key not in known:
        if len(known) > _MOST_KNOWN:
            known.clear()
        known[key] = _Counts(*held.select(statement, parameters).rows[0])
    found: _Counts = known[key]
    return found


def _explain_no_rows(query: Query, held: RelationSet) -> None:
    """Raise NoRowsError, unless rows are counted where there could be some."""
    dates = [one for one in query.conditions if one.column.kind == "date"]
    for one in dates:
        alone = replace(query, conditions=(one,), group=None)
        if not _count(replace(alone, operation="count"), held).rows:
            edges = replace(query, conditions=(), group=None)
            value = value_of_sql(one.column)
            [(first, last)] = held.select(select(edges, f"min({value}), max({value})")).rows
            lacking = f"has a *{one.column.name}* {one.words.removeprefix('is ')}: they are from {first} to {last}."
            raise NoRowsError(f"No row of {query.view.label} {lacking}", is_certain=True)
    for one in query.conditions:
        alone = replace(query, conditions=(one,), group=None, operation="count")
        of_year = one.column.kind == "number" and not one.values and "year" in one.column.keys
        if of_year and not _count(alone, held).rows:
            raise NoRowsError(f"No row of {query.view.label} has *{one.column.name}* {one.words.removeprefix('is ')}.")
    guessed = any(len(one.values) > 1 for one in query.conditions)
    if query.operation != "count" or guessed:
        raise NoRowsError(f"No row of {query.view.label} has all of that: {in_words(query, 0)}.")


def _rows_of(query: Query) -> str:
    """Say that no row of a table, or none that meets the conditions, has something."""
    conditions = " and ".join(map(condition_words, query.conditions))
    return f"No row of {query.view.label}{' where ' if conditions else ''}{conditions}"


def _scalar(query: Query, held: RelationSet, counts: _Counts) -> TableAnswer:
    if query.operation not in {"count", "distinct"} and not counts.valued and query.measure:
        raise NoRowsError(
            f"{_rows_of(query)} has a value in *{query.measure.name}*{_formulas(query.measure)}.", is_certain=True
        )
    if units := _units(query, held):
        by_unit = _by_unit(query, units, held)
        if len(by_unit) > 1:
            note = "The rows have different units, which are not added together."
            sql = _said_sql(query, f"{units}, {value_sql(query)}", f" GROUP BY {units}")
            return TableAnswer(None, "", "", by_unit, sql=sql, notes=(note,))
        if by_unit:
            return TableAnswer(by_unit[0].value, by_unit[0].unit, "", sql=_said_sql(query, value_sql(query)))
    [(value,)] = held.select(select(query, value_sql(query)), where(query)[1]).rows
    return TableAnswer(_rounded(value), query.unit, "", sql=_said_sql(query, value_sql(query)))


def _units(query: Query, held: RelationSet) -> str:
    """Return the SQL of the units of the measure's cells, if they may differ: its own, or a column of currencies."""
    if query.measure is None or query.operation in {"count", "distinct"}:
        return ""
    if query.measure.units or query.measure.unit:
        return query.measure.units
    return next((one.sql for one in query.view.columns if _holds_currencies(one, held)), "")


def _holds_currencies(column: ViewColumn, held: RelationSet) -> bool:
    if column.kind != "text" or column.constants:
        return False
    texts = [text for some in values_of(column, held).whole.values() for text in some]
    return bool(texts) and CURRENCY_CODES.issuperset(texts)


def _by_unit(query: Query, units: str, held: RelationSet) -> tuple[TableValue, ...]:
    assert query.measure is not None
    found = held.select(
        select(query, f"{units}, {value_sql(query)}, count({value_of_sql(query.measure)})", f" GROUP BY {units}"),
        where(query)[1],
    )
    return tuple(
        TableValue(str(unit or "without unit"), _rounded(value), str(unit or ""))
        for unit, value, count in found.rows
        if count
    )


def _grouped(query: Query, held: RelationSet) -> TableAnswer:
    group, value = group_sql(query), value_sql(query)
    if (units := _units(query, held)) and len(_by_unit(query, units, held)) > 1:
        raise NoRowsError("The rows have different units, so they cannot be compared by group.")
    order = f" ORDER BY 2 {'DESC' if query.direction == 'max' else 'ASC'}, 1" if query.direction else " ORDER BY 1"
    grouped = f" GROUP BY 1 HAVING {value if query.measure else 'count(*)'} IS NOT NULL AND {group} IS NOT NULL{order}"
    rows = held.select(select(query, f"{group}, {value}", grouped), where(query)[1], most=_MOST_VALUES).rows
    if not rows:
        raise NoRowsError("No group has a value.")
    kept = _first(rows, query.limit) if query.direction else rows
    if query.direction and len(kept) == len(rows) > query.limit:
        raise NoRowsError("All groups are equal.")
    sql = _said_sql(query, f"{group}, {value}", grouped + (f" LIMIT {len(kept)}" if query.direction else ""))
    return _ranked(kept, query.unit, sql, limit=query.limit if query.direction else len(kept) + 1)


def _ranked(rows: Sequence[tuple[object, ...]], unit: str, sql: str, *, limit: int) -> TableAnswer:
    """Return labels with their values; of one that was asked for, the label is the answer."""
    values = tuple(TableValue(str(label), _rounded(number), unit) for label, number in rows)
    notes = ("Several are equal.",) if len(rows) > limit else ()
    return TableAnswer(values[0].label if len(rows) == limit == 1 else None, "", "", values, sql=sql, notes=notes)


def _first(rows: Sequence[tuple[object, ...]], limit: int) -> list[tuple[object, ...]]:
    """Return the first rows, and those that are equal to the last of them.

    Raise NoRowsError if one of them is a row of totals that was not recognised.
    """
    limit = min(limit, len(rows))
    found = [row for at, row in enumerate(rows) if at < limit or row[-1] == rows[limit - 1][-1]]
    for label, *_ in found:
        if str(label).casefold().strip(" :") in {"total", "totals", "average", "sum", "grand total", "mean", "all"}:
            raise NoRowsError(f"The table has a row “{label}” among the others.")
    return found


def _top(query: Query, held: RelationSet) -> TableAnswer:
    assert query.measure is not None
    column = query.measure
    value = value_of_sql(column)
    shown = (query.shown or column).sql
    if (units := _units(query, held)) and len(_by_unit(replace(query, operation="max"), units, held)) > 1:
        raise NoRowsError("The rows have different units, so they cannot be compared.")
    condition = f"{value} IS NOT NULL"
    head = select(query, f"{shown}, {value}")
    head += f"{' AND ' if query.conditions else ' WHERE '}{condition}"
    order = f" ORDER BY 2 {'DESC' if query.direction == 'max' else 'ASC'}"
    rows = held.select(head + order, where(query)[1], most=_MOST_VALUES).rows
    if not rows:
        raise NoRowsError(f"No row has a value in *{column.name}*.")
    limit = query.limit or 1
    kept = _first(rows, limit)
    if len(kept) > limit + _MOST_EQUAL:
        raise NoRowsError(f"{len(kept)} rows are equal.")
    return _ranked(kept, column.unit, _bound(head + order + f" LIMIT {len(kept)}", where(query)[1]), limit=limit)


def _listed(query: Query, held: RelationSet, counts: _Counts) -> TableAnswer:
    column = query.shown or query.measure
    assert column is not None
    statement = select(query, f"DISTINCT {column.sql}", " ORDER BY 1")
    values = held.select(statement, where(query)[1], most=_MOST_VALUES)
    found = [row[0] for row in values.rows if row[0] is not None]
    if not found:
        raise NoRowsError(
            f"{'The row has' if counts.rows == 1 else 'The rows have'} no value in *{column.name}*{_formulas(column)}.",
        )
    unit = column.unit if column.kind == "number" else ""
    if column.units:
        of_cells = held.select(select(query, f"DISTINCT {column.units}"), where(query)[1], most=_MOST_VALUES).rows
        if len(of_cells) > 1:
            raise NoRowsError("The rows have different units.")
        unit = str(of_cells[0][0] or "")
    sql = _said_sql(query, f"DISTINCT {column.sql}")
    notes = () if values.is_complete else (f"Only the first {_MOST_VALUES} are listed.",)
    listed = tuple(TableValue(str(value), value, unit) for value in found)
    return TableAnswer(
        found[0] if len(found) == 1 else None, unit if len(found) == 1 else "", "", listed, sql=sql, notes=notes
    )


def _remarks(query: Query) -> Iterator[str]:
    """Yield what the file says of the rows and columns that an answer stands on, each thing once."""
    used = (query.measure, query.shown, query.group, *(one.column for one in query.conditions))
    of_columns = (said for column in dict.fromkeys(filter(None, used)) for said in column.remarks)
    yield from dict.fromkeys((*(said for one in query.view.relations for said in one.stored.remarks), *of_columns))


def _missing(query: Query, counts: _Counts, held: RelationSet) -> Iterator[str]:
    column = query.measure
    if column is None or query.operation in {"count", "distinct", "list"}:
        return
    if lacking := counts.rows - counts.valued:
        texts = _texts_among_numbers(query, column, held)
        rows = "1 of these rows has" if lacking == 1 else f"{lacking:,} of these rows have"
        what = f"no number in *{column.name}* ({', '.join(texts)})" if texts else f"no value in *{column.name}*"
        yield f"{rows} {what} and {'is' if lacking == 1 else 'are'} left out{_formulas(column)}."
    if totals := sum(one.stored.totals for one in query.view.relations[:1]):
        yield f"{totals} {'row' if totals == 1 else 'rows'} of totals {'is' if totals == 1 else 'are'} left out."


def _texts_among_numbers(query: Query, column: ViewColumn, held: RelationSet) -> list[str]:
    """Return some cells that say something else than a number, such as a range, where numbers are computed."""
    if column.kind != "number":
        return []
    head = select(query, f"DISTINCT {column.sql}")
    head += f"{' AND ' if query.conditions else ' WHERE '}typeof({column.sql}) = 'text' ORDER BY 1"
    return [str(row[0]) for row in held.select(head, where(query)[1], most=_MOST_NAMED).rows]


def _formulas(column: ViewColumn) -> str:
    if not column.uncomputed:
        return ""
    many = "1 formula there has" if column.uncomputed == 1 else f"{column.uncomputed} formulas there have"
    return f" ({many} no stored value; open the file in a spreadsheet program and save it)"


def _rows(query: Query, held: RelationSet) -> tuple[tuple[tuple[str | Number | None, ...], ...], dict[int, int]]:
    """Return the rows that an answer stands on, and the number of the first one in each relation."""
    view = query.view
    columns = ", ".join(one.sql for one in view.columns)
    order = f" ORDER BY {view.part}, {view.row}" if view.kind == "union" else f" ORDER BY {view.row}"
    if query.operation in {"top", "max", "min"} and query.measure:
        value, direction = value_of_sql(query.measure), query.direction if query.operation == "top" else query.operation
        order = f" ORDER BY {value} IS NULL, {value} {'DESC' if direction == 'max' else 'ASC'}"
    statement = select(query, f"{view.part}, {view.row}, {columns}", order)
    found = held.select(statement, where(query)[1], most=MOST_TABLE_ROWS, largest=_LARGEST_KEPT).rows
    return tuple(tuple(row[2:]) for row in found), {row[0]: row[1] for row in reversed(found)}


def _sources(query: Query, parts: dict[int, int]) -> Iterator[TableSource]:
    view = query.view
    for at, one in enumerate(view.relations):
        if view.kind != "union" or at in parts or not parts:
            stored, first = one.stored, parts.get(at, 0) if view.kind == "union" or not at else 0
            yield TableSource(
                stored.path, stored.title, one.table, stored.document_id, first, stored.sheet, stored.cells,
                stored.page, stored.page_label,
            )  # fmt: skip


def _rounded(value: object) -> Number | str | None:
    """Return a number without the noise of binary fractions."""
    if isinstance(value, float):
        value = round(value, 6)
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value if isinstance(value, int | str) or value is None else str(value)


def _said_sql(query: Query, columns: str, more: str = "") -> str:
    return _bound(select(query, columns, more), where(query)[1])


def _bound(statement: str, parameters: Sequence[object]) -> str:
    """Return a statement with its parameters written into it, to be shown and asked again."""
    parts = statement.split("?")
    if len(parts) != len(parameters) + 1:
        return statement
    written = [parts[0]]
    for value, part in zip(parameters, parts[1:], strict=True):
        text = f"{value:g}" if isinstance(value, float) else str(value)
        written += ["'" + text.replace("'", "''") + "'" if isinstance(value, str) else text, part]
    return "".join(written)
