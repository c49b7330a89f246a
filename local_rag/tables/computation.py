"""Make a query of a program: its columns, and its conditions with their values, numbers and times."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from local_rag.tables.mentions import ROWS, Mention
from local_rag.tables.periods import Period
from local_rag.tables.program import NONE, Program
from local_rag.tables.query import (
    AFTER_DATES,
    Condition,
    Direction,
    Extreme,
    Operation,
    Part,
    Query,
    is_one_of,
    marks,
    value_of_sql,
)
from local_rag.tables.views import View, ViewColumn

_NUMBERS = {"more": (">", "more than"), "at least": (">=", "at least"), "less": ("<", "less than")}
_NUMBERS |= {"at most": ("<=", "at most"), "is": ("=", "")}
_PAIRS = {"more": (">", "more than"), "is": ("=", "the same as"), "is not": ("<>", "not the same as")}
_LEAP_YEAR = 2024
_BOTH = 2  # values of which the difference is asked


class NotComputableError(Exception):
    """The choices of a program do not go together."""


@dataclass(frozen=True, slots=True)
class Computation:
    """One query; or two, of which the first is computed `minus` the second, or as its `share` of the second."""

    query: Query
    other: Query | None = None
    how: Literal["", "minus", "share"] = ""


def computation(program: Program, view: View, mentioned: Sequence[Mention]) -> Computation:
    """Return what a program computes; raise NotComputableError if its choices do not go together."""
    made = _Maker(program, view, mentioned)
    return made.computation()


class _Maker:
    def __init__(self, program: Program, view: View, mentioned: Sequence[Mention]) -> None:
        self.program, self.view = program, view
        self.active = [(one, said) for one, said in zip(mentioned, program.relations, strict=True) if said]
        self.limit = next((int(one.number) for one, _ in self.active if one.column == ROWS), 1)
        self.active = [one for one in self.active if one[0].column != ROWS]

    def computation(self) -> Computation:
        program, name = self.program, self.program.operation
        if name.startswith("share of"):
            whole = self._query("sum" if program.measure != NONE else "count", without=program.shown)
            part = self._query(whole.operation)
            if len(part.conditions) == len(whole.conditions) or program.any_of:
                raise NotComputableError
            return Computation(part, whole, "share")
        if name == "range":
            return Computation(self._query("max"), self._query("min"), "minus")
        if name == "difference of columns":
            made, columns = self._query("count"), [self._column(one) for one in (program.left, program.right)]
            if columns[0] == columns[1] or any(one.kind != "number" for one in columns):
                raise NotComputableError
            left, right = (replace(made, operation="sum", measure=one) for one in columns)
            return Computation(left, right, "minus")
        if name.startswith("difference of"):
            named = [one for one, said in self.active if one.column == program.shown and said == "is" and one.values]
            if len(named) != _BOTH:
                raise NotComputableError
            made = self._query("sum" if program.measure != NONE else "count", without=program.shown)
            column = self._column(program.shown)
            one, other = (
                replace(made, conditions=(*made.conditions, is_one_of(column, value.values))) for value in named
            )
            return Computation(one, other, "minus")
        operation: Operation = name  # type: ignore[assignment]
        return Computation(self._query(operation))

    def _query(self, operation: Operation, *, without: int = NONE) -> Query:
        """Return the query with all conditions but those on the column `without`."""
        program = self.program
        direction: Direction = program.direction  # type: ignore[assignment]
        part: Part = program.part  # type: ignore[assignment]
        shown = self._column(program.shown) if operation in {"distinct", "list", "top"} else None
        measure = self._column(program.measure) if operation in {"sum", "mean", "min", "max", "top"} else None
        if measure and measure.kind == "text":
            raise NotComputableError
        if operation == "top" and (not direction or program.measure == program.shown):
            raise NotComputableError
        return Query(
            self.view,
            operation,
            measure,
            shown=shown,
            conditions=tuple(self._conditions(without)),
            any_of=program.any_of,
            group=self._column(program.group) if program.group != NONE else None,
            part=part if program.group != NONE else "",
            direction=direction,
            limit=self.limit,
        )

    def _column(self, index: int) -> ViewColumn:
        if not 0 <= index < len(self.view.columns):
            raise NotComputableError
        return self.view.columns[index]

    def _conditions(self, without: int) -> Iterator[Condition]:
        values = dict[int, list[str]]()
        for one, said in self.active:
            if one.column == without:
                continue
            column = self.view.columns[one.column]
            if one.values and said == "is":
                values.setdefault(one.column, []).extend(one.values)
            elif one.values:
                yield is_one_of(column, one.values, negated=True)
            elif one.period and said != "is not":
                yield in_time(column, one.period, said)
            else:
                yield _of_number(column, one.number, said)
        for at, texts in values.items():
            yield is_one_of(self.view.columns[at], tuple(dict.fromkeys(texts)))
        for at, name in enumerate(self.program.filled):
            if name and at != without:
                yield is_filled(self.view.columns[at], negated=name == "empty")
        if self.program.pair and self.program.left != without:
            yield self._pair()

    def _pair(self) -> Condition:
        left, right = self._column(self.program.left), self._column(self.program.right)
        if left == right or left.kind != right.kind:
            raise NotComputableError
        sign, words = _PAIRS[self.program.pair]
        one, other = (value_of_sql(replace(column, sql=mark)) for column, mark in ((left, "{0}"), (right, "{1}")))
        return Condition(left, f"({one} {sign} {other})", (), f"is {words} *{right.name}*", other=right)


def _of_number(column: ViewColumn, number: float, said: str) -> Condition:
    if said not in _NUMBERS or column.kind != "number":
        raise NotComputableError
    sign, words = _NUMBERS[said]
    shown = f"{number:,.10g}"
    sql = f"(typeof({{0}}) IN ('integer', 'real') AND {{0}} {sign} ?)"
    return Condition(column, sql, (number,), f"is {words} *{shown}*".replace("  ", " "))


def is_filled(column: ViewColumn, *, negated: bool) -> Condition:
    """Return the condition that a column has a value, or none."""
    return Condition(column, f"{{0}} IS {'' if negated else 'NOT '}NULL", (), f"is {'' if negated else 'not '}empty")


def in_time(column: ViewColumn, period: Period, said: str) -> Condition:
    """Return the condition that the dates of a column lie in a time, or from it on, after it, before it or up to it."""
    words = {"is": "is in", "at least": "is from", "more": "is after", "less": "is before", "at most": "is up to"}[said]
    words = f"{words} *{period.words}*{' on' if said == 'at least' else ''}"
    if period.first is None:
        return _of_any_year(column, period, said, words)
    first, after = period.first.isoformat(), period.after.isoformat() if period.after else AFTER_DATES
    low = {"is": first, "at least": first, "more": after}.get(said)
    # A cell that is no date, such as "open", comes after all dates.
    high = {"is": after, "less": first, "at most": after}.get(said, AFTER_DATES)
    parts = (["{0} >= ?"] if low else []) + ["{0} < ?"]
    return Condition(column, f"({' AND '.join(parts)})", (*([low] if low else []), high), words)


def _of_any_year(column: ViewColumn, period: Period, said: str, words: str) -> Condition:
    if period.day:
        day = date(_LEAP_YEAR, period.months[0], period.day)
        part, first, last = "6, 5", f"{day:%m-%d}", f"{day:%m-%d}"
    else:
        part, first, last = "6, 2", f"{period.months[0]:02}", f"{period.months[-1]:02}"
    value = f"substr({{0}}, {part})"
    if said == "is" and period.months and not period.day:
        values = tuple(f"{month:02}" for month in period.months)
        return Condition(column, f"{value} IN ({marks(values)})", values, words)
    sign, bound = {"is": ("=", first), "at least": (">=", first), "more": (">", last), "less": ("<", first)}.get(
        said, ("<=", last)
    )
    return Condition(column, f"({{0}} < '{AFTER_DATES}' AND {value} {sign} ?)", (bound,), words)


EXTREMES: dict[Extreme, str] = {"max": "highest", "min": "lowest"}
