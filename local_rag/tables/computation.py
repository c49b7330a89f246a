"""Make a query of a program: its columns, and its conditions with their values, numbers and times."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any, Literal

import numpy as np

from local_rag.tables.mentions import ROWS, Mention
from local_rag.tables.periods import Period
from local_rag.tables.program import NONE, Program
from local_rag.tables.query import AFTER_DATES, Condition, Direction, Operation, Part, Query, is_one_of, value_of_sql
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View, ViewColumn

_NUMBERS = {"more": (">", "more than"), "at least": (">=", "at least"), "less": ("<", "less than")}
_NUMBERS |= {"at most": ("<=", "at most"), "is": ("=", "")}
_PAIRS = {"more": (">", "more than"), "is": ("=", "the same as"), "is not": ("<>", "not the same as")}
# What says that numbers are so much of each thing, of which a sum says nothing: "%", "£/t", "(l/s)".
_RATES = {"%", "\u2030"}
_EACH = r"(?:units?|pieces?|pcs?|items?|persons?|heads?|nights?|hours?|hrs?|kg|t|l|m²?|m³|km|ha|h|s|min|kwh)\b"
_RATE_IN_NAME = re.compile(rf"[£$€¥] ?/|\w ?/ ?{_EACH}|\bper {_EACH}", re.IGNORECASE)
_SAMPLED = 200  # rows of a view in which products are looked for
_FEWEST_ROWS, _FEWEST_TELLING = 5, 3  # of a product: rows with all three numbers, and those in which no factor is 1
_MOST = 0.8  # the part of these rows that a product is right in
_CENT, _NEAR = 0.0051, 0.05  # how far a product may be from the number written there, and what part of that
_REPEATED = 2  # rows that a text stands in, on average
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


def computation(program: Program, view: View, mentioned: Sequence[Mention], held: RelationSet) -> Computation:
    """Return what a program computes; raise NotComputableError if its choices do not go together."""
    made = _Maker(program, view, mentioned).computation()
    if any(_repeats(query) or _adds_rates(query, held) for query in (made.query, made.other) if query):
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


def _adds_rates(query: Query, held: RelationSet) -> bool:
    """Return whether a query adds so much of each thing, such as prices of one piece."""
    if query.operation != "sum" or query.measure is None:
        return False
    return _has_unit_of_rate(query.measure) or query.measure.sql in rates(query.view, held)


def _has_unit_of_rate(column: ViewColumn) -> bool:
    return column.unit in _RATES or bool(_RATE_IN_NAME.search(column.name))


def rates(view: View, held: RelationSet) -> frozenset[str]:
    """Return the SQL of the columns that, times a quantity in the same row, are a third column."""
    columns = [one for one in view.columns if one.kind != "date"]
    key = ("rates", view.head, view.source, *(one.sql for one in columns))
    if key not in held.known:
        held.hold([one.table for one in view.relations])
        names = ", ".join(one.sql for one in columns)
        rows = held.select(f"{view.head}SELECT {names} FROM {view.source} LIMIT {_SAMPLED}").rows  # noqa: S608
        held.known[key] = frozenset(_Sample(columns, rows).rates())
    found: frozenset[str] = held.known[key]
    return found


class _Sample:
    """Some rows of columns, by which a column may be found to be the product of two others."""

    def __init__(self, columns: Sequence[ViewColumn], rows: Sequence[tuple[Any, ...]]) -> None:
        self.numbers = [at for at, one in enumerate(columns) if one.kind == "number"]
        self.columns, self.cells = columns, list(zip(*rows, strict=True)) or [()] * len(columns)
        values = [[one if isinstance(one, int | float) else np.nan for one in cells] for cells in self.cells]
        self.values = np.array(values, dtype=float).T

    def rates(self) -> Iterator[str]:
        """Yield the SQL of each rate."""
        with np.errstate(all="ignore"):  # numbers that are too large have no product
            for factors in combinations(self.numbers, 2):
                for product in self._products(*factors):
                    yield from (
                        self.columns[one].sql
                        for one, other in permutations(factors)
                        if self._is_rate(one, other, product)
                    )

    def _products(self, one: int, other: int) -> Iterator[int]:
        """Yield the columns that are the product of two in most rows, also of those where it is no copy of one."""
        left, right = self.values[:, [one]], self.values[:, [other]]
        off = np.abs(left * right - self.values)
        is_known = ~np.isnan(off)
        is_right = is_known & (off <= np.minimum(_CENT, _NEAR * np.abs(self.values)))
        is_telling = is_known & (left != 1) & (right != 1) & (left * right != 0)
        rows, telling = is_known.sum(axis=0), is_telling.sum(axis=0)
        found = (rows >= _FEWEST_ROWS) & (is_right.sum(axis=0) >= _MOST * rows)
        found &= (telling >= _FEWEST_TELLING) & ((is_right & is_telling).sum(axis=0) >= _MOST * telling)
        yield from (at for at in self.numbers if found[at] and at not in {one, other})

    def _is_rate(self, one: int, other: int, product: int) -> bool:
        """Return whether the first of two factors is surely the rate and the second the quantity.

        Either the first and the product have the same unit, and the second is a count or of another unit; or the first
        has fractions and is the same for the same thing, and the second is a count and is not.
        """
        units = [(self.columns[at].unit, bool(self.columns[at].units)) for at in (one, other, product)]
        if any(units[2]):
            return units[0] == units[2] != units[1] and (any(units[1]) or self._is_whole(other))
        if any(units[0] + units[1]) or self._is_whole(one) or not self._is_whole(other):
            return False
        return self._is_settled(one) and not self._is_settled(other)

    def _is_whole(self, at: int) -> bool:
        column = self.values[:, at]
        return not np.any(column[~np.isnan(column)] % 1)

    def _is_settled(self, at: int) -> bool:
        """Return whether a text column that says the same in several rows has the same number in all of them."""
        for column, texts in zip(self.columns, self.cells, strict=True):
            if column.kind == "text":
                pairs = {pair for pair in zip(texts, self.cells[at], strict=True) if pair[0] is not None}
                if pairs and len({text for text, _ in pairs}) == len(pairs) <= len(texts) / _REPEATED:
                    return True
        return False


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
