"""Run a chosen query: its value with the unit, in words, with the rows that it stands on and what is missing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from local_rag.answer_records import MOST_TABLE_ROWS, TableAnswer, TableSource, TableValue
from local_rag.store.relation_query import QueryResult
from local_rag.tables.computation import Computation
from local_rag.tables.query import Query, group_sql, in_words, parameters, select, value_of_sql, value_sql
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import ViewColumn, values_of
from local_rag.text.cell_values import CURRENCY_CODES

Number = int | float
_MOST_VALUES = 200  # of a list or of groups
_MOST_NAMED = 3  # cells that are no numbers
_MOST_EQUAL = 5  # rows beside the highest ones
_FEWEST_NUMBERED, _MOST_APART = 10, 3  # rows that a first column may number, and numbers for each of them
_MOST_KNOWN = 5000  # of what was computed from tables that are held
_LARGEST_KEPT = 5_000_000  # characters of the rows that are kept with an answer
_QUOTED_OR_MARK = re.compile(r"""\"[^"]*"|'[^']*'|\?""")


class NoRowsError(Exception):
    """No row answers, or only rows that cannot be taken together."""


class _Counts(NamedTuple):
    rows: int
    valued: int


def run(wanted: Computation, held: RelationSet, *, with_rows: bool = True) -> TableAnswer:
    """Return what is computed; raise NoRowsError if no row has it.

    Without its rows, it has no sources either, and no notes on the rows.
    """
    one = _of_one(wanted.query, held, with_rows=with_rows)
    if wanted.other is None:
        return one
    other = _of_one(wanted.other, held, with_rows=with_rows)
    if not isinstance(one.value, int | float) or not isinstance(other.value, int | float):
        raise NoRowsError
    if len({one.unit, other.unit} - {""}) > 1 or (wanted.how == "share" and not other.value):
        raise NoRowsError
    if wanted.how == "share":
        value, unit, said = 100 * one.value / other.value, "%", f"share in percent: {one.said}; of {other.said}"
        sql = f"SELECT 100.0 * ({one.sql}) / ({other.sql})"
    else:
        value, unit, said = abs(one.value - other.value), one.unit, f"difference: {one.said}; and {other.said}"
        sql = f"SELECT abs(({one.sql}) - ({other.sql}))"
    parts = zip(wanted.labels, (one, other), strict=True)
    values = tuple(TableValue(label, part.value, part.unit) for label, part in parts)
    both = _both(one, other, is_part=set(wanted.other.conditions) <= set(wanted.query.conditions))
    return replace(both, value=_rounded(value), unit=unit, said=said, values=values, sql=sql)


def _both(one: TableAnswer, other: TableAnswer, *, is_part: bool) -> TableAnswer:
    """Return the rows of two queries, those of the first before others; of which they are a part if `is_part`."""
    rows, tables = set(one.rows), {source.table for source in one.sources}
    added = f"SELECT * FROM ({one.rows_sql}) UNION ALL SELECT * FROM ({other.rows_sql})"  # noqa: S608
    return replace(
        one,
        rows=(*one.rows, *(row for row in other.rows if row not in rows))[:MOST_TABLE_ROWS],
        count=other.count if is_part else one.count + other.count,
        sources=(*one.sources, *(source for source in other.sources if source.table not in tables)),
        rows_sql=other.rows_sql if is_part else added,
        notes=tuple(dict.fromkeys((*one.notes, *other.notes))),
    )


def _of_one(query: Query, held: RelationSet, *, with_rows: bool) -> TableAnswer:
    held.hold([one.table for one in query.view.relations])
    counts = _count(query, held)
    if not counts.rows and not _may_be_none(query, held):
        raise NoRowsError
    if query.operation in {"sum", "mean"} and query.measure and _numbers_rows(query.measure, query, held):
        raise NoRowsError
    if query.operation == "list":
        answer = _listed(query, held)
    elif query.operation == "whether":
        answer = TableAnswer("yes" if counts.rows else "no", "", "", sql=_said_sql(query, "count(*)"))
    elif query.operation == "top":
        answer = _top(query, held)
    elif query.group is not None:
        answer = _grouped(query, held)
    else:
        answer = _scalar(query, held, counts)
    answer = replace(answer, said=in_words(query, counts.rows), count=counts.rows)
    if not with_rows:
        return answer
    rows, firsts = _rows(query, held)
    columns = query.view.columns
    return replace(
        answer,
        columns=tuple(one.name for one in columns),
        units=tuple(one.unit for one in columns),
        rows=rows,
        rows_sql=_said_sql(query, ", ".join(one.sql for one in columns)),
        sources=tuple(_sources(query, firsts)),
        notes=(*answer.notes, *_missing(query, counts, held), *_remarks(query)),
    )


def _found(
    query: Query, held: RelationSet, columns: str, more: str = "", *, also: str = "", **limits: int
) -> QueryResult:
    return held.select(select(query, columns, more, also=also), parameters(query), **limits)


def _count(query: Query, held: RelationSet) -> _Counts:
    columns = f"count(*), count({value_of_sql(query.measure) if query.measure else '*'})"
    # Many programs of a question have the same conditions.
    known, key = held.known, ("count", select(query, columns), parameters(query))
    if key not in known:
        if len(known) > _MOST_KNOWN:
            known.clear()
        known[key] = _Counts(*_found(query, held, columns).rows[0])
    found: _Counts = known[key]
    return found


def _may_be_none(query: Query, held: RelationSet) -> bool:
    """Return whether it is an answer that no row is found; not if the table has none at all of a time."""
    if query.operation not in {"count", "whether"}:
        return False
    # A condition without parameters compares two columns, or asks for empty cells.
    times = (
        one for one in query.conditions if one.parameters and (one.column.kind == "date" or _holds_years(one.column))
    )
    is_guessed = query.operation == "count" and any(len(one.values) > 1 for one in query.conditions)
    return not is_guessed and all(_count(replace(query, conditions=(one,)), held).rows for one in times)


def _numbers_rows(column: ViewColumn, query: Query, held: RelationSet) -> bool:
    """Return whether the numbers of a column only tell rows apart: of the first one, whole, different and close."""
    if column != query.view.columns[0] or column.unit:
        return False
    every = replace(query, operation="count", measure=None, conditions=(), group=None)
    value = value_of_sql(column)
    columns = (
        f"count({value}), count(DISTINCT {value}), sum({value} = CAST({value} AS INTEGER)), max({value}) - min({value})"
    )
    key = ("numbers rows", query.view.source, column.sql, query.view.head)
    if key not in held.known:
        [(rows, different, integers, span)] = _found(every, held, columns).rows
        held.known[key] = rows == different == integers and rows >= _FEWEST_NUMBERED and span <= _MOST_APART * rows
    return bool(held.known[key])


def _holds_years(column: ViewColumn) -> bool:
    return column.kind == "number" and "year" in column.keys


def _scalar(query: Query, held: RelationSet, counts: _Counts) -> TableAnswer:
    if query.measure and not counts.valued:
        raise NoRowsError
    value = value_sql(query)
    if len(by_unit := _by_unit(query, held)) > 1:
        note = "The rows have different units, which are not added together."
        units = _units(query, held)
        sql = _said_sql(query, f"{units}, {value}", f" GROUP BY {units}")
        return TableAnswer(None, "", "", by_unit, sql=sql, notes=(note,))
    [(found,)] = _found(query, held, value).rows
    return TableAnswer(_rounded(found), _one_unit(query, by_unit), "", sql=_said_sql(query, value))


def _one_unit(query: Query, by_unit: Sequence[TableValue]) -> str:
    """Return the unit of all values; raise NoRowsError if there are several."""
    if len(by_unit) > 1:
        raise NoRowsError
    return by_unit[0].unit if by_unit else query.unit


def _units(query: Query, held: RelationSet) -> str:
    """Return the SQL of the units of the measure's cells, if they may differ: its own, or a column of currencies."""
    if query.measure is None or query.measure.kind != "number":
        return ""
    if query.measure.units or query.measure.unit:
        return query.measure.units
    return next((one.sql for one in query.view.columns if _holds_currencies(one, held)), "")


def _holds_currencies(column: ViewColumn, held: RelationSet) -> bool:
    if column.kind != "text" or column.constants:
        return False
    texts = values_of(column, held).texts
    return bool(texts) and CURRENCY_CODES.issuperset(texts)


def _by_unit(query: Query, held: RelationSet) -> tuple[TableValue, ...]:
    """Return the value of the rows of each unit, nothing if there is no more than one unit in the table."""
    units = _units(query, held)
    if not units or query.measure is None:
        return ()
    columns = f"{units}, {value_sql(query)}, count({value_of_sql(query.measure)})"
    return tuple(
        TableValue(str(unit or "without unit"), _rounded(value), str(unit or ""))
        for unit, value, count in _found(query, held, columns, f" GROUP BY {units}").rows
        if count
    )


def _grouped(query: Query, held: RelationSet) -> TableAnswer:
    group, value = group_sql(query), value_sql(query)
    unit = _one_unit(query, _by_unit(query, held))
    order = f" ORDER BY 2 {'DESC' if query.direction == 'max' else 'ASC'}, 1" if query.direction else " ORDER BY 1"
    columns, grouped = f"{group}, {value}", f" GROUP BY 1 HAVING {value} IS NOT NULL AND {group} IS NOT NULL{order}"
    found = _found(query, held, columns, grouped, most=_MOST_VALUES)
    if not found.rows:
        raise NoRowsError
    if not query.direction:
        values = _labelled(found.rows, unit)
        return TableAnswer(None, "", "", values, sql=_said_sql(query, columns, grouped), notes=_cut(found))
    kept = _first(found.rows, query.limit)
    if len(kept) == len(found.rows) > query.limit:  # all groups are equal
        raise NoRowsError
    return _ranked(kept, unit, _said_sql(query, columns, f"{grouped} LIMIT {len(kept)}"), limit=query.limit)


def _ranked(rows: Sequence[tuple[Any, ...]], unit: str, sql: str, *, limit: int) -> TableAnswer:
    """Return labels with their values; of one that was asked for, the label is the answer."""
    values = _labelled(rows, unit)
    notes = ("Several are equal.",) if len(rows) > limit else ()
    return TableAnswer(values[0].label if len(rows) == limit == 1 else None, "", "", values, sql=sql, notes=notes)


def _labelled(rows: Sequence[tuple[Any, ...]], unit: str) -> tuple[TableValue, ...]:
    return tuple(TableValue(str(label), _rounded(number), unit) for label, number in rows)


def _cut(found: QueryResult) -> tuple[str, ...]:
    return () if found.is_complete else (f"Only the first {_MOST_VALUES} are listed.",)


def _first(rows: Sequence[tuple[Any, ...]], limit: int) -> list[tuple[Any, ...]]:
    """Return the first rows, and those that are equal to the last of them.

    Raise NoRowsError if one of them is a row of totals that was not recognised.
    """
    limit = min(limit, len(rows))
    found = [row for at, row in enumerate(rows) if at < limit or row[-1] == rows[limit - 1][-1]]
    totals = {"total", "totals", "average", "sum", "grand total", "mean", "all"}
    if not totals.isdisjoint(str(label).casefold().strip(" :") for label, *_ in found):
        raise NoRowsError
    return found


def _top(query: Query, held: RelationSet) -> TableAnswer:
    column, shown = query.measure, query.shown
    assert column is not None
    assert shown is not None
    unit = _one_unit(query, _by_unit(replace(query, operation="max"), held))
    value = value_of_sql(column)
    columns, also = f"{shown.sql}, {value}", f"{value} IS NOT NULL"
    order = f" ORDER BY 2 {'DESC' if query.direction == 'max' else 'ASC'}"
    kept = _first(_found(query, held, columns, order, also=also, most=_MOST_VALUES).rows, query.limit)
    if not kept or len(kept) > query.limit + _MOST_EQUAL:
        raise NoRowsError
    sql = _said_sql(query, columns, f"{order} LIMIT {len(kept)}", also=also)
    return _ranked(kept, unit, sql, limit=query.limit)


def _listed(query: Query, held: RelationSet) -> TableAnswer:
    column = query.shown
    assert column is not None
    values = _found(query, held, f"DISTINCT {column.sql}, {column.units or 'NULL'}", " ORDER BY 1", most=_MOST_VALUES)
    found = [TableValue(str(value), value, unit or column.unit) for value, unit in values.rows if value is not None]
    if len({one.unit for one in found}) != 1:
        raise NoRowsError
    value, unit = (found[0].value, found[0].unit) if len(found) == 1 else (None, "")
    sql = _said_sql(query, f"DISTINCT {column.sql}")
    return TableAnswer(value, unit, "", tuple(found), sql=sql, notes=_cut(values))


def _remarks(query: Query) -> Iterator[str]:
    """Yield what the file says of the rows and columns that an answer stands on, each thing once."""
    used = (query.measure, query.shown, query.group, *(one.column for one in query.conditions))
    of_columns = (said for column in dict.fromkeys(filter(None, used)) for said in column.remarks)
    yield from dict.fromkeys((*(said for one in query.view.relations for said in one.stored.remarks), *of_columns))


def _missing(query: Query, counts: _Counts, held: RelationSet) -> Iterator[str]:
    column = query.measure
    if column is None:
        return
    if lacking := counts.rows - counts.valued:
        texts = _texts_among_numbers(query, column, held)
        rows = "1 of these rows has" if lacking == 1 else f"{lacking:,} of these rows have"
        what = f"no number in *{column.name}* ({', '.join(texts)})" if texts else f"no value in *{column.name}*"
        yield f"{rows} {what} and {'is' if lacking == 1 else 'are'} left out{_formulas(column)}."
    relations = query.view.relations if query.view.kind == "union" else query.view.relations[:1]
    if totals := sum(one.stored.totals for one in relations):
        yield f"{totals} {'row' if totals == 1 else 'rows'} of totals {'is' if totals == 1 else 'are'} left out."


def _texts_among_numbers(query: Query, column: ViewColumn, held: RelationSet) -> list[str]:
    """Return some cells that say something else than a number, such as a range, where numbers are computed."""
    if column.kind != "number":
        return []
    columns, also = f"DISTINCT {column.sql}", f"typeof({column.sql}) = 'text'"
    return [row[0] for row in _found(query, held, columns, " ORDER BY 1", also=also, most=_MOST_NAMED).rows]


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
    columns = f"{view.part}, {view.row}, {columns}"
    found = _found(query, held, columns, order, most=MOST_TABLE_ROWS, largest=_LARGEST_KEPT).rows
    return tuple(tuple(row[2:]) for row in found), {row[0]: row[1] for row in reversed(found)}


def _sources(query: Query, parts: dict[int, int]) -> Iterator[TableSource]:
    view = query.view
    for at, one in enumerate(view.relations):
        if view.kind != "union" or at in parts or not parts:
            stored = one.stored
            yield TableSource(
                stored.path, stored.title, one.table, stored.document_id, parts.get(at, 0), stored.sheet, stored.cells,
                stored.page, stored.page_label,
            )  # fmt: skip


def _rounded(value: Number | str | None) -> Number | str | None:
    """Return a number without the noise of binary fractions."""
    if isinstance(value, float):
        value = round(value, 6)
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value


def _said_sql(query: Query, columns: str, more: str = "", *, also: str = "") -> str:
    """Return a SELECT with its parameters written into it, to be shown and asked again."""
    given = iter(parameters(query))

    def written(found: re.Match[str]) -> str:
        return _literal(next(given)) if found[0] == "?" else found[0]

    return _QUOTED_OR_MARK.sub(written, select(query, columns, more, also=also))


def _literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value).removesuffix(".0")
