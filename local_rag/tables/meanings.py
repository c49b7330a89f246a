"""A meaning of a question, and how it is made of the parts of the question that have a role."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from local_rag.tables.matches import Match
from local_rag.tables.query import Operation, Query
from local_rag.tables.question_words import Word
from local_rag.tables.roles import STRONG, Roles
from local_rag.tables.views import ViewColumn

_RATIO = re.compile(r"\bper\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """A meaning of a question: one query, or two whose values are subtracted, the first `minus` the second.

    `unknown` are the words that it leaves unexplained, `doubts` how much of it is a guess, `evidence` how much of the
    question names something of the view. With `absolute`, the difference has no sign. `no_time` is a time that the
    question names and no column of the view can have.
    """

    query: Query
    minus: Query | None = None
    absolute: bool = False
    unknown: tuple[Word, ...] = ()
    doubts: int = 0
    evidence: float = 0.0
    names: float = 0.0
    no_time: str = ""


class NotReadError(Exception):
    """The question cannot be read in this view."""


class Meanings(Roles):
    """Make the meanings of a question."""

    def _is_ratio(self, per: re.Match[str]) -> bool:
        """Return whether a column of numbers stands behind "per", unless that belongs to a column's name."""
        places = [(match, *self._place(match)) for match in self.matches if match.kind == "column"]
        behind = next((match for match, start, _ in places if 0 <= start - per.end() <= 1), None)
        inside = any(start <= per.start() < end for _, start, end in places)
        names = behind.columns if behind else ()
        return not inside and any(one.kind == "number" and not _RATIO.search(one.name) for one in names)

    def _query(self, operation: Operation, measure: ViewColumn | None = None, **more: object) -> Query:
        nth = self.said.nth
        made = Query(
            self.view, operation, measure, conditions=self.conditions, group=self.group, part=self.group_part, nth=nth
        )
        return replace(made, **more)  # type: ignore[arg-type]

    def _done(self, query: Query, minus: Query | None = None, *, absolute: bool = False) -> Reading:
        unused = [match for match in self.matches if match.start not in self.used and match.kind == "column"]
        doubts = self.doubts + sum(match.strength >= STRONG and not self._is_plain(match) for match in unused)
        evidence = sum((match.end - match.start) * match.strength for match in self.matches)
        evidence += len(self.periods) + self.bonus
        names = sum((match.end - match.start) * match.strength for match in self.matches if match.kind == "name")
        if self.view.kind == "join" and not _uses_both(query):
            raise NotReadError
        explained = query.measure.keys if query.measure else ()
        unknown = tuple(word for word in self.unknown if word.key not in explained)
        return Reading(query, minus, absolute, unknown, doubts, evidence, names, self.no_time)

    def _is_plain(self, match: Match) -> bool:
        """Return whether a column is only mentioned: "all customers", "of the orders"."""
        before = self._without_attributes(self.said.text[: self._place(match)[0]])
        if any(one.kind == "number" for one in match.columns):
            return False
        if not set(match.columns[0].keys) & self.view.names and re.search(r"\bof \Z", before, re.IGNORECASE):
            return False
        return bool(re.search(r"\b(?:all|the|our|any|these|of|in) \Z", before, re.IGNORECASE))

    def _without_attributes(self, before: str) -> str:
        """Return a text without what has a role at its end: "the total of not paid " of invoices."""
        places = {self._place(match)[1]: self._place(match)[0] for match in self.matches if match.start in self.used}
        while (start := places.get(len(before.rstrip()))) is not None:
            before = re.sub(r"\b(?:not|no) \Z", "", before[:start])
        return before

    def _each(self, columns: Sequence[ViewColumn], make: object) -> Iterator[Reading]:
        assert callable(make)
        for column in columns:
            yield self._done(make(column))


def _uses_both(query: Query) -> bool:
    """Return whether a query of a join needs both tables, and measures nothing that the join repeats."""
    fact, side = (one.table for one in query.view.relations)
    named = [query.measure, query.shown, query.group, *(one.column for one in query.conditions)]
    tables = {table for column in named if column for table, _ in column.held_in}
    repeated = query.measure is not None and query.operation in {"sum", "mean"} and query.measure.held_in[0][0] == side
    return not repeated and side in tables and (fact in tables or query.operation == "count")
