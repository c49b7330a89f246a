"""Choose the query that a question means in a view: operation, column, conditions and groups, all from closed lists.

A question is understood only if each of its words is something that is known: a name, a value, a time, an operation, or
a word that means nothing by itself. Where several columns may be meant, all readings are returned.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from local_rag.tables.conditions import (
    NoConditionError,
    date_column,
    joined_values,
)
from local_rag.tables.matches import Match, Matcher, head_of
from local_rag.tables.query import Condition, Direction, Operation, Query
from local_rag.tables.question_words import Said, Word
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.roles import QUANTITY, STRONG, YEARS, Roles, is_money, is_summable
from local_rag.tables.views import View, ViewColumn
from local_rag.tables.vocabulary import COUNTED, MONEY_WORDS, SYNONYMS, keys_of
from local_rag.text.tokens import key_of_word

_BETWEEN = frozenset("is was are were our the best worst which what".split())  # noqa: SIM905
_RATIO = re.compile(r"\bper\b", re.IGNORECASE)
_SUMMED = re.compile(
    r"\b(?:revenue|turnover|sales|spen[dt]\w{0,12}|budgets?|hours|units|quantity|income|costs?)\b", re.IGNORECASE
)
_EXISTS = re.compile(
    r"\b(?:are|is) (?:there|in|listed)\b|\bdo we (?:have|sell|offer|use)\b"
    r"|\b(?:list|show|all|every|different|exist|distinct)\b",
    re.IGNORECASE,
)
_RANKS = keys_of("rank ranking position pos place")
_OF_ORDER = re.compile(
    r"\b(?:listed|on the (?:list|chart|table)|in the (?:list|chart|table)|row|next|previous|above|below)\b", re.I
)
_AMOUNT = re.compile(
    r"\b(?:spend|spent|earn(?:ed)?|invoiced|bill(?:ed)?|pay|paid|charge[ds]?|revenue|turnover|sales|hours|quantity)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A meaning of a question: one query, or two whose values are subtracted, the first `minus` the second.

    `unknown` are the words that it leaves unexplained, `doubts` how much of it is a guess, `evidence` how much of the
    question names something of the view. With `absolute`, the difference has no sign.
    """

    query: Query
    minus: Query | None = None
    absolute: bool = False
    unknown: tuple[Word, ...] = ()
    doubts: int = 0
    evidence: float = 0.0
    names: float = 0.0


class NotReadError(Exception):
    """The question cannot be read in this view."""


def readings(said: Said, view: View, held: RelationSet) -> list[Reading]:
    """Return the meanings of a question in a view, none if it cannot be read there."""
    matched = Matcher(said, held).match(view)
    try:
        return list(_Chooser(said, view, matched, held).read())
    except (NoConditionError, NotReadError):
        return []


class _Chooser(Roles):
    """Choose the queries that a question means from the roles of its parts."""

    def read(self) -> Iterator[Reading]:
        """Yield the meanings of the question."""
        said, operations = self.said, self.said.operations
        self._require_column()
        if said.negations and not any("NOT" in one.sql for _, one in self.values):
            raise NotReadError
        if (
            _RATIO.search(said.text)
            and self.group is None
            and any(one.strength >= STRONG for one in self._columns("number")[1:])
        ):
            raise NotReadError
        if self.group is None and any(map(self._is_ratio, _RATIO.finditer(said.text))):
            raise NotReadError
        if re.search(r"\bthan\b", said.text) and not said.comparisons and "difference" not in operations:
            raise NotReadError
        if "difference" in operations:
            yield from self._difference()
        elif said.superlatives or said.limit:
            yield from self._extreme()
        elif said.comparative:
            yield from self._which_of_two()
        elif said.focus == "how many" or ("count" in operations and "mean" not in operations):
            yield from self._how_many()
        elif "mean" in operations:
            yield from self._aggregate("mean")
        elif "sum" in operations:
            yield from self._aggregate("sum")
        elif self.group and (measures := self._measures(adds_up=True)):
            yield from self._each(measures, lambda one: self._query("sum" if is_summable(one) else "mean", one))
        elif said.focus in {"which", "list", "who", "what", "when", "where", "how much", ""}:
            yield from self._look_up()

    def _is_ratio(self, per: re.Match[str]) -> bool:
        """Return whether a column of numbers stands behind "per", unless that belongs to a column's name."""
        places = [(match, *self._place(match)) for match in self.matches if match.kind == "column"]
        behind = next((match for match, start, _ in places if 0 <= start - per.end() <= 1), None)
        inside = any(start <= per.start() < end for _, start, end in places)
        names = behind.columns if behind else ()
        return not inside and any(one.kind == "number" and not _RATIO.search(one.name) for one in names)

    def _query(self, operation: Operation, measure: ViewColumn | None = None, **more: object) -> Query:
        made = Query(self.view, operation, measure, conditions=self.conditions, group=self.group, part=self.group_part)
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
        return Reading(query, minus, absolute, unknown, doubts, evidence, names)

    def _is_plain(self, match: Match) -> bool:
        """Return whether a column is only mentioned: "all customers", "of the orders"."""
        before = self.said.text[: self._place(match)[0]]
        if any(one.kind == "number" for one in match.columns):
            return False
        if not set(match.columns[0].keys) & self.view.names and re.search(r"\bof \Z", before, re.IGNORECASE):
            return False
        return bool(re.search(r"\b(?:all|the|our|any|these|of|in) \Z", before, re.IGNORECASE))

    def _each(self, columns: Sequence[ViewColumn], make: object) -> Iterator[Reading]:
        assert callable(make)
        for column in columns:
            yield self._done(make(column))

    def _aggregate(self, operation: Operation) -> Iterator[Reading]:
        measures = self._measures(adds_up=operation == "sum")
        if not measures or any(set(one.keys) & YEARS for one in measures):
            raise NotReadError
        yield from self._each(measures, lambda one: self._query(operation, one))

    def _how_many(self) -> Iterator[Reading]:  # noqa: PLR0912
        """Count rows or different values, or sum what is named after "how many"."""
        said = self.said
        subject = self._subject()
        distinct = "distinct" in said.operations
        if "mean" in said.operations:
            yield from self._aggregate("mean")
            return
        if subject is None:
            first = next((one for one in self.matches if self._place(one)[0] >= self.said.focus_end), None)
            of_value = first is not None and first.kind == "value" and self._is_next(first)
            named = [match for match in self._columns("number") if match.strength >= STRONG and of_value]
            if named and not self._names_rows():
                yield from self._each(self._measures(adds_up=True), lambda one: self._query("sum", one))
            elif self._names_rows():
                yield self._done(self._query("count"))
            elif (
                of_value
                and len(quantities := [one for one in self._numbers() if set(one.keys) & QUANTITY and is_summable(one)])
                == 1
            ):
                yield self._done(self._query("sum", quantities[0]))
            else:
                raise NotReadError
            return
        self.used.add(subject.start)
        numbers = [one for one in subject.columns if one.kind == "number"]
        if numbers and set(numbers[0].keys) & YEARS:
            yield self._done(self._query("distinct", numbers[0]))
            return
        if numbers and not distinct:
            columns = [one for one in numbers if is_summable(one)] or numbers
            yield from self._each(columns, lambda one: self._query("sum", one))
            return
        for column in [one for one in subject.columns if one.kind != "number"][:1]:
            if subject.strength < 0.6 and not distinct and self._names_rows():  # noqa: PLR2004
                yield self._done(self._query("count"))
            elif distinct or not self._is_unique(column):
                yield self._done(self._query("distinct", column))
            elif self.conditions and column is not self._label() and not self._names_rows():
                raise NotReadError  # its cells may hold several
            else:
                yield self._done(self._query("count"))

    # The highest and the lowest

    def _extreme(self) -> Iterator[Reading]:  # noqa: PLR0912, PLR0915
        said = self.said
        start, end, way, hint = said.superlatives[0] if said.superlatives else (0, 0, "max", "")
        direction: Direction = "min" if way == "min" or re.search(r"\bbottom\b", said.text, re.IGNORECASE) else "max"
        after = self._after(end)
        subject = self._asked_for(end)
        if said.focus == "who" and subject:
            self.bonus += 0.4
        if hint == "date" and _OF_ORDER.search(said.text):
            raise NotReadError
        if hint == "date" and not any(one.kind == "date" for one in self.view.columns):
            raise NotReadError
        if hint == "date" and (column := date_column(self.view, said, None, self.matches)):
            self._use(column)
            if said.focus == "when" or (subject is None and said.focus in {"what", ""} and self._is_named_date()):
                yield self._done(self._query("max" if direction == "max" else "min", column, group=None))
                return
            shown = subject or self._label()
            if shown is None or (subject is None and said.focus == "who"):
                raise NotReadError
            yield self._done(
                self._query("top", column, shown=shown, group=None, direction=direction, limit=said.limit or 1)
            )
            return
        if hint == "count":
            if subject is None:
                raise NotReadError
            yield self._done(self._ranked("count", None, subject, direction))
            return
        counts = (
            said.text[start:end].lower() in {"most", "fewest", "least"}
            or "most" in said.text[start:end].lower().split()
        )
        measures = self._hinted(hint) if hint else []
        if hint and not measures:
            raise NotReadError
        if not measures:
            near = [match for match in self._columns("number") if match.start == after]
            if not near and counts and self._counts_rows(after):
                if subject is None:
                    raise NotReadError
                yield self._done(self._ranked("count", None, subject, direction))
                return
            measures = self._measures(adds_up="sum" in said.operations)
        if not measures or any(set(one.keys) & _RANKS for one in measures):
            raise NotReadError
        if subject is None and said.focus == "who":
            raise NotReadError
        rows = self._is_row(after, hint)
        for measure in measures:
            if subject is None:
                if said.limit > 1 or rows or self._is_noun_after(measure):
                    shown = self._label()
                    yield self._done(
                        self._query("top", measure, shown=shown, direction=direction, limit=said.limit or 1)
                    )
                else:
                    yield self._done(self._query("max" if direction == "max" else "min", measure))
                continue
            operation: Operation = "mean" if "mean" in said.operations else "sum"
            grouped = "mean" in said.operations or "sum" in said.operations
            single = not grouped and (rows or not is_summable(measure) or subject.kind == "number")
            if not self.group_part and (single or (self._is_unique(subject) and not grouped)):
                yield self._done(
                    self._query("top", measure, shown=subject, group=None, direction=direction, limit=said.limit or 1)
                )
            else:
                yield self._done(self._ranked(operation, measure, subject, direction))
                if not (
                    grouped
                    or said.text[start:end].lower() == "most"
                    or hint
                    or self.group_part
                    or _SUMMED.search(said.text)
                    or said.limit
                ):
                    # The highest sum, or the highest row: an answer only if both have the same.
                    yield self._done(
                        self._query("top", measure, shown=subject, group=None, direction=direction, limit=1)
                    )

    def _is_noun_after(self, measure: ViewColumn) -> bool:
        """Return whether a name of the rows follows the measure: "the lowest grossing film"."""
        ends = [match.end for match in self.matches if measure in match.columns]
        return any(match.kind == "name" and match.start in ends for match in self.matches)

    def _ranked(
        self, operation: Operation, measure: ViewColumn | None, subject: ViewColumn, direction: Direction
    ) -> Query:
        part = self.group_part
        return self._query(
            operation, measure, group=subject, part=part, direction=direction, limit=self.said.limit or 1
        )

    def _counts_rows(self, after: int) -> bool:
        """Return whether "the most" counts rows: of a word for them, of a column of texts, or of nothing said."""
        if after >= len(self.said.words):
            return not any(word.key in MONEY_WORDS - {"order"} for word in self.said.words)
        word = self.said.words[after]
        match = next((one for one in self.matches if one.start == after), None)
        if match and match.kind == "column" and match.start not in self.used:
            counted = all(one.kind == "text" for one in match.columns)
            if counted:
                self.used.add(match.start)
            return counted
        return (match is not None and match.kind == "name") or word.key in COUNTED or word.key in self.view.names

    def _is_row(self, after: int, hint: str) -> bool:
        """Return whether the superlative is of rows: "the largest order", "the most expensive product"."""
        match = next((one for one in self.matches if one.start == after), None)
        word = self.said.words[after] if after < len(self.said.words) else None
        if hint == "quantity":
            return False
        if match and match.kind == "name":
            return True
        if hint == "price" and not any(
            one.kind == "column" and one.columns[0].kind == "number" for one in self.matches
        ):
            return True
        named = match is not None and match.kind == "column" and match.columns[0].kind == "text"
        if named and match is not None:
            self.used.add(match.start)
        if named and not hint:
            return match is not None and self._is_unique(match.columns[0])
        return bool(named or (word and word.text.lower() in {"single", "order", "invoice", "item", "entry", "row"}))

    def _require_column(self) -> None:
        """Raise NotReadError if a value stands where "which" asks for a column: "which city" among kinds of places."""
        words = self.said.words
        first = next((one for one in self.matches if self._place(one)[0] >= self.said.focus_end), None)
        if self.said.focus != "which" or first is None or first.kind != "value":
            return
        before = [word for word in words if self.said.focus_end <= word.start < self._place(first)[0]]
        after = next((one for one in self.matches if one.start == first.end), None)
        if not before and (after is None or after.kind == "value"):
            raise NotReadError

    def _asked_for(self, end: int) -> ViewColumn | None:
        """Return the column that is asked for by "which", "who" or "top 5", or stands behind the superlative."""
        said = self.said
        for start, _, part in self.parts:
            if (
                said.focus in {"which", "what", "when"}
                and not set(said.text[said.focus_end : start].lower().split()) - _BETWEEN
            ):
                self.group_part = part
                return date_column(self.view, said, None, self.matches)
        if said.focus in {"which", "list", "what", ""} and (subject := self._subject()):
            texts = [one for one in subject.columns if one.kind != "number" or set(one.keys) & YEARS]
            if texts:
                self.used.add(subject.start)
                return texts[0]
            if said.focus == "which":
                raise NotReadError
        if said.focus == "who":
            return self._who()
        after = self._after(
            max(end, max((stop for start, stop in said.operation_spans if said.limit and start >= 0), default=0))
        )
        match = next((one for one in self.matches if one.start == after and one.kind == "column"), None)
        if match and match.columns[0].kind == "text":
            self.used.add(match.start)
            return match.columns[0]
        if self.group is not None:
            return self.group
        return None

    def _hinted(self, hint: str) -> list[ViewColumn]:
        """Return the columns of numbers that a superlative such as "cheapest" compares."""
        named = [one for match in self._columns("number") for one in match.columns if one.kind == "number"]
        if named:
            for one in named:
                self._use(one)
            return list(dict.fromkeys(named))[:1]
        key = key_of_word(hint)
        words = {key} | SYNONYMS.get(key, frozenset())
        exact = [one for one in self._numbers() if key in one.keys]
        found = exact or [one for one in self._numbers() if set(head_of(one.keys)) & words]
        if found:
            self.bonus += 0.5
        elif hint == "price" and (found := [one for one in self._numbers() if is_money(one)]):
            self.doubts += 1
        return found

    def _which_of_two(self) -> Iterator[Reading]:
        """Return which of the values that are named has more or less: "Which has more seats, Oslo or Leeds?"."""
        columns = {one.column for _, one in self.values}
        named = [match for match in self._columns("number") if match.strength >= STRONG]
        if len(columns) != 1 or len(self.values) < 2 or len(named) != 1:  # noqa: PLR2004
            raise NotReadError
        [subject], measure = columns, named[0].columns[0]
        self._use(measure)
        self._use(subject)
        direction: Direction = (
            "min" if self.said.comparative in {"less", "fewer", "lower", "smaller", "shorter", "cheaper"} else "max"
        )
        operation: Operation = "sum" if is_summable(measure) else "mean"
        yield self._done(self._query(operation, measure, group=subject, direction=direction, limit=1))

    # Differences

    def _difference(self) -> Iterator[Reading]:
        said = self.said
        absolute = bool(re.search(r"\bdiffer", said.text, re.IGNORECASE))
        reverse = bool(
            re.search(
                r"\b(?:change|increase|decrease|rise|drop|grow|growth|fell|rose|grew)\b", said.text, re.IGNORECASE
            )
        )
        if len(said.superlatives) > 1 and {one[2] for one in said.superlatives} == {"max", "min"}:
            for measure in self._measures():
                high, low = self._query("max", measure), self._query("min", measure)
                yield self._done(high, low)
            return
        for one, other in self._operands():
            less = re.search(r"\b(?:less|fewer|lower|smaller|shorter|cheaper)\b", said.text, re.IGNORECASE)
            first, second = (other, one) if reverse or less else (one, other)
            yield self._done(first, second, absolute=absolute)
            return
        raise NotReadError

    def _operands(self) -> Iterator[tuple[Query, Query]]:
        """Yield the two queries whose values are subtracted: of two values, two columns, or two periods."""
        values = self.values
        columns = [match for match in self._columns("number") if match.strength >= STRONG]
        pairs = [
            (one, other)
            for one in values
            for other in values
            if one[0].start < other[0].start and one[1].column == other[1].column
        ]
        if pairs:
            (first, one), (second, other) = pairs[0]
            rest = [condition for match, condition in values if match not in (first, second)]
            more = (*joined_values(rest), *self.periods, *self.compared)
            yield self._pair((one, *more), (other, *more))
        elif len(columns) == 2:  # noqa: PLR2004
            self.used |= {match.start for match in columns}
            yield self._query("sum", columns[0].columns[0]), self._query("sum", columns[1].columns[0])
        elif len(self.periods) == 2:  # noqa: PLR2004
            rest_of = (*joined_values([condition for _, condition in values]), *self.compared)
            yield self._pair((self.periods[0], *rest_of), (self.periods[1], *rest_of))

    def _pair(self, one: tuple[Condition, ...], other: tuple[Condition, ...]) -> tuple[Query, Query]:
        named = self._columns("number")
        counts = bool(re.search(r"\bhow many (?:more|fewer)\b|number of", self.said.text, re.IGNORECASE))
        if counts and not named:
            match = next(iter(self._columns("text")), None)
            if match is not None:
                self.used.add(match.start)
            return self._query("count", conditions=one), self._query("count", conditions=other)
        measures = self._measures(adds_up=True)
        if len(measures) != 1:
            raise NotReadError
        operation: Operation = "mean" if "mean" in self.said.operations or not is_summable(measures[0]) else "sum"
        return self._query(operation, measures[0], conditions=one), self._query(
            operation, measures[0], conditions=other
        )

    # Lists and cells

    def _look_up(self) -> Iterator[Reading]:  # noqa: PLR0912
        said, conditions = self.said, self.conditions
        subject = self._subject() if said.focus != "how much" else None
        if said.focus in {"who", "where"}:
            subject_column = self._named_text() or (self._who() if said.focus == "who" else self._where())
            if subject_column in [one.column for one in conditions]:
                raise NotReadError
            self.bonus += 0.7 if subject_column else 0
        elif said.focus == "when":
            subject_column = date_column(self.view, said, None, self.matches)
            if subject_column:
                self._use(subject_column)
        elif subject is not None and said.focus in {"which", "what", "list", ""}:
            self.used.add(subject.start)
            of_kind = [one for one in subject.columns if one.kind == "text"] if said.focus != "what" else []
            subject_column, *others = of_kind or subject.columns
            for column in others if len(of_kind) != 1 else ():
                yield self._done(self._query("cell" if said.focus == "what" else "list", shown=column))
        else:
            subject_column = None
        if subject_column is None and said.focus in {"how much", "what"}:
            summed = self._sums()
            unnamed = said.focus == "how much" and not self._columns("number")
            measures = self._money() if unnamed else self._measures(adds_up=summed)
            named = any(match.strength == 1 for match in self.matches if match.kind == "column")
            if not measures or not (conditions or (summed and named and not self.doubts)):
                raise NotReadError
            for one in measures:
                alone = not (summed and is_summable(one))
                yield self._done(self._query("cell", one, shown=one) if alone else self._query("sum", one))
            return
        if subject_column is None and said.focus in {"which", "list", ""} and self._names_rows() and conditions:
            yield self._done(self._query("list", shown=self._label()))
            return
        if subject_column is None:
            raise NotReadError
        if not conditions and not (said.focus in {"which", "list"} and _EXISTS.search(said.text)):
            raise NotReadError
        operation: Operation = "list" if said.focus in {"which", "list"} else "cell"
        yield self._done(self._query(operation, shown=subject_column))

    def _sums(self) -> bool:
        """Return whether an amount is asked for that may stand in several rows, such as what was spent."""
        return self.said.focus == "how much" or _AMOUNT.search(self.said.text) is not None


def _uses_both(query: Query) -> bool:
    """Return whether a query of a join needs both tables, and measures nothing that the join repeats."""
    fact, side = (one.table for one in query.view.relations)
    named = [query.measure, query.shown, query.group, *(one.column for one in query.conditions)]
    tables = {table for column in named if column for table, _ in column.held_in}
    repeated = query.measure is not None and query.operation in {"sum", "mean"} and query.measure.held_in[0][0] == side
    return not repeated and side in tables and (fact in tables or query.operation == "count")
