"""A query of a view, chosen from closed lists: its SQL, which code builds, and its meaning in one line of words."""

from dataclasses import dataclass
from typing import Literal

from local_rag.tables.views import View, ViewColumn

Operation = Literal["count", "distinct", "sum", "mean", "min", "max", "list", "top", "whether"]
Part = Literal["", "month", "quarter", "year"]
Direction = Literal["", "max", "min"]
_OPERATION_WORDS = {"sum": "sum", "mean": "average", "min": "lowest", "max": "highest"}
_PARTS = {
    "month": "substr({0}, 1, 7)",
    "year": "substr({0}, 1, 4)",
    "quarter": "substr({0}, 1, 4) || ' Q' || ((CAST(substr({0}, 6, 2) AS INTEGER) + 2) / 3)",
}
AFTER_DATES = ":"  # the sign after 9
_MOST_NAMED = 6  # values that a line of words names


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column: SQL in which `{0}` is the column, its parameters, and its words behind the column.

    `{1}` is the `other` column that it is compared with.
    """

    column: ViewColumn
    sql: str
    parameters: tuple[object, ...]
    words: str
    values: tuple[str, ...] = ()
    other: ViewColumn | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of a view.

    `measure` is the column that is computed or compared, `shown` the one whose values are asked for, and `group` the
    one whose values are asked for one by one, or a `part` of its dates. `direction` and `limit` choose the highest or
    lowest. With `any_of`, one of the conditions is enough.
    """

    view: View
    operation: Operation
    measure: ViewColumn | None = None
    shown: ViewColumn | None = None
    conditions: tuple[Condition, ...] = ()
    group: ViewColumn | None = None
    part: Part = ""
    direction: Direction = ""
    limit: int = 1
    any_of: bool = False

    @property
    def unit(self) -> str:
        """Return the unit of its value."""
        return self.measure.unit if self.measure else ""


def value_of_sql(column: ViewColumn) -> str:
    """Return the SQL of a column's numbers, dates or texts, NULL where a cell holds another text than its kind."""
    if column.kind == "number":
        return f"CASE WHEN typeof({column.sql}) IN ('integer', 'real') THEN {column.sql} END"
    return f"CASE WHEN {column.sql} < '{AFTER_DATES}' THEN {column.sql} END" if column.kind == "date" else column.sql


def value_sql(query: Query) -> str:
    """Return the SQL of the value of a group or of all rows."""
    column = query.measure or query.shown
    if column is None:
        return "count(*)"
    if query.operation == "distinct":
        return f"count(DISTINCT {column.sql})"
    return f"{'avg' if query.operation == 'mean' else query.operation}({value_of_sql(column)})"


def parameters(query: Query) -> tuple[object, ...]:
    """Return the parameters of a query's conditions."""
    return tuple(value for one in query.conditions for value in one.parameters)


def select(query: Query, columns: str, more: str = "", *, also: str = "") -> str:
    """Return one SELECT of a query's rows, of those that meet one more condition if there is one."""
    parts = [one.sql.format(one.column.sql, one.other and one.other.sql) for one in query.conditions]
    either = f"({(' OR ' if query.any_of else ' AND ').join(parts)})" if parts else ""
    where = " AND ".join(filter(None, (either, also)))
    source = f"{query.view.source} WHERE {where}" if where else query.view.source
    return f"{query.view.head}SELECT {columns} FROM {source}{more}"  # noqa: S608


def group_sql(query: Query) -> str:
    """Return the SQL by which rows are grouped."""
    assert query.group is not None
    return _PARTS[query.part].format(value_of_sql(query.group)) if query.part else query.group.sql


def in_words(query: Query, rows: int) -> str:
    """Say in one line what was computed over how many rows: names and values stand between asterisks."""
    counted = f"{rows:,} {'row' if rows == 1 else 'rows'}"
    column = query.measure or query.shown
    name = f"*{column.name}*" if column else ""
    first = "highest" if query.direction == "max" else "lowest"
    if query.operation == "count":
        said = f"number of rows ({counted})" if not query.group else f"number of rows, of {counted}"
    elif query.operation == "distinct":
        said = f"number of different values of {name} in {counted}"
    elif query.operation == "list":
        said = f"{'value' if rows == 1 else 'different values'} of {name} in {counted}"
    elif query.operation == "whether":
        said = f"whether there are rows ({counted})"
    elif query.operation == "top":
        said = f"rows with the {first} {name} of {counted}"
    else:
        said = f"{_OPERATION_WORDS[query.operation]} of {name} over {counted}"
    if query.group:
        by = f"{query.part} of *{query.group.name}*" if query.part else f"*{query.group.name}*"
        said += f", for each {by}{f', {first} first' if query.direction else ''}"
    if query.conditions:
        conditions = (f"*{one.column.name}* {one.words}" for one in query.conditions)
        said += f" where {(' or ' if query.any_of else ' and ').join(conditions)}"
    return said


def is_one_of(column: ViewColumn, values: tuple[str, ...], *, negated: bool = False) -> Condition:
    """Return the condition that a column has one of some values, or none of them."""
    named = [f"*{value}*" for value in values[:_MOST_NAMED]]
    if len(values) > _MOST_NAMED:
        named.append(f"{len(values) - _MOST_NAMED} others")
    words = " or ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    marks = ", ".join("?" * len(values))
    if negated:
        return Condition(column, f"({{0}} IS NULL OR {{0}} NOT IN ({marks}))", values, f"is not {words}", values)
    return Condition(column, f"{{0}} IN ({marks})", values, f"is {words}", values)
