"""Make a query of a program: its columns, and its conditions with their values, numbers and times."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from local_rag.tables.mentions import ROWS, Mention
from local_rag.tables.periods import Period
from local_rag.tables.program import NONE, Program
from local_rag.tables.query import AFTER_DATES, Condition, Direction, Operation, Part, Query, is_one_of, value_of_sql
from local_rag.tables.views import View, ViewColumn

_NUMBERS = {"more": (">", "more than"), "at least": (">=", "at least"), "less": ("<", "less than")}
_NUMBERS |= {"at most": ("<=", "at most"), "is": ("=", "")}
_PAIRS = {"more": (">", "more than"), "is": ("=", "the same as"), "is not": ("<>", "not the same as")}
# What says that numbers are so much of each thing, of which a sum says nothing: "%", "£/t", "(l/s)", "unit price".
_RATES = {"%", "\u2030"}
_EACH = r"(?:units?|pieces?|pcs?|items?|persons?|heads?|nights?|hours?|hrs?|kg|t|l|m²?|m³|km|ha|h|s|min|kwh)\b"
_RATE_WORDS = r"\bunit (?:price|cost|rate)|(?:einzel|stück)preis|prix unitaire"
_RATE_IN_NAME = re.compile(rf"[£$€¥] ?/|\w ?/ ?{_EACH}|\bper {_EACH}|{_RATE_WORDS}", re.IGNORECASE)
_BOTH = 2  # values of which the difference is asked


class NotComputableError(Exception):
    """The choices of a program do not go together."""


@dataclass(frozen=True, slots=True)
class Computation:
    """One query; or two, of which the first is computed `minus` the second, or as its `share` of the second.

    `labels` are what the two are called.
    """

    query: Query
    other: Query | None = None
    how: Literal["", "minus", "share"] = ""
    labels: tuple[str, str] = ("", "")


def computation(program: Program, view: View, mentioned: Sequence[Mention]) -> Computation:
    """Return what a program computes; raise NotComputableError if its choices do not go together."""
    made = _Maker(program, view, mentioned).computation()
    if any(_repeats(query) for query in (made.query, made.other) if query):
        raise NotComputableError
    return made


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
            return Computation(part, whole, "share", ("part", "whole"))
        if name == "range":
            return Computation(self._query("max"), self._query("min"), "minus", ("highest", "lowest"))
        if name == "difference of columns":
            made, left, right = self._query("count"), self._column(program.left), self._column(program.right)
            if left == right or left.kind != "number" or right.kind != "number":
                raise NotComputableError
            one, other = (replace(made, operation="sum", measure=column) for column in (left, right))
            return Computation(one, other, "minus", (left.name, right.name))
        if name.startswith("difference of"):
            named = [one.values for one, said in self.active if one.column == program.shown and said == "is"]
            if len(named) != _BOTH or not all(named):
                raise NotComputableError
            made = self._query("sum" if program.measure != NONE else "count", without=program.shown)
            column = self._column(program.shown)
            one, other = (replace(made, conditions=(*made.conditions, is_one_of(column, some))) for some in named)
            return Computation(one, other, "minus", (", ".join(named[0]), ", ".join(named[1])))
        operation: Operation = name  # type: ignore[assignment]
        return Computation(self._query(operation))

    def _query(self, operation: Operation, *, without: int = NONE) -> Query:
        """Return the query with all conditions but those on the column `without`."""
        program = self.program
        direction: Direction = program.direction  # type: ignore[assignment]
        part: Part = program.part  # type: ignore[assignment]
        shown = self._column(program.shown) if operation in {"distinct", "list", "top"} else None
        measure = self._column(program.measure) if operation in {"sum", "mean", "min", "max", "top"} else None
        if measure and (measure.kind == "text" or (measure.kind == "date" and operation in {"sum", "mean"})):
            raise NotComputableError
        if measure and operation == "sum" and (measure.unit in _RATES or _RATE_IN_NAME.search(measure.name)):
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


def _repeats(query: Query) -> bool:
    """Return whether a query computes numbers of a second table alone, of which a join repeats the rows."""
    if query.view.kind != "join" or query.operation not in {"sum", "mean"}:
        return False
    used = [query.measure, query.group, *(column for one in query.conditions for column in (one.column, one.other))]
    first = query.view.relations[0].table
    return not any(table == first for column in used if column for table, _ in column.held_in)


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
    if period.first is None or period.after is None:
        return _of_any_year(column, period, said, words)
    first, after = period.first.isoformat(), period.after.isoformat()
    low = {"is": first, "at least": first, "more": after}.get(said)
    # A cell that is no date, such as "open", comes after all dates.
    high = {"is": after, "less": first, "at most": after}.get(said, AFTER_DATES)
    parts = (["{0} >= ?"] if low else []) + ["{0} < ?"]
    return Condition(column, f"({' AND '.join(parts)})", (*([low] if low else []), high), words)


def _of_any_year(column: ViewColumn, period: Period, said: str, words: str) -> Condition:
    day = f"-{period.day:02}" if period.day else ""
    first, last = f"{period.months[0]:02}{day}", f"{period.months[-1]:02}{day}"
    test, bounds = {
        "is": ("BETWEEN ? AND ?", (first, last)),
        "at least": (">= ?", (first,)),
        "more": ("> ?", (last,)),
        "less": ("< ?", (first,)),
        "at most": ("<= ?", (last,)),
    }[said]
    sql = f"({{0}} < '{AFTER_DATES}' AND substr({{0}}, 6, {len(first)}) {test})"
    return Condition(column, sql, bounds, words)
