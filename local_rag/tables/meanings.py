"""A meaning of a question, and how it is made of parts that have a role: of a row, or of the highest and lowest."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from local_rag.tables.conditions import date_column
from local_rag.tables.matches import Match, head_of
from local_rag.tables.query import Direction, Extreme, Operation, Query
from local_rag.tables.question_words import Word
from local_rag.tables.roles import STRONG, YEARS, Roles, is_money, is_summable
from local_rag.tables.views import ViewColumn
from local_rag.tables.vocabulary import COUNTED, MONEY_WORDS, SYNONYMS, keys_of
from local_rag.text.tokens import key_of_word

RATIO = re.compile(r"\bper\b", re.IGNORECASE)


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
        return not inside and any(one.kind == "number" and not RATIO.search(one.name) for one in names)

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


_BETWEEN = frozenset("is was are were our the best worst which what".split())  # noqa: SIM905
_SUMMED = re.compile(
    r"\b(?:revenue|turnover|sales|spen[dt]\w{0,12}|budgets?|hours|units|quantity|income|costs?)\b", re.IGNORECASE
)
_RANKS = keys_of("rank ranking position pos place")
_OF_ORDER = re.compile(
    r"\b(?:listed|on top|on the (?:list|chart|table)|in the (?:list|chart|table)|row|next|previous|above|below)\b", re.I
)


class Extremes(Meanings):
    """Choose the queries of the highest and the lowest."""

    def _extreme(self) -> Iterator[Reading]:  # noqa: PLR0912
        said = self.said
        if said.focus == "how many" or any(map(self._is_kind, self.matches)):
            raise NotReadError
        start, end, way, hint = said.superlatives[0] if said.superlatives else (0, 0, "max", "")
        word = said.text[start:end].lower()
        direction: Extreme = "min" if way == "min" or re.search(r"\bbottom\b", said.text, re.IGNORECASE) else "max"
        after = self._after(end)
        subject = self._asked_for(end)
        if subject and any(one.column == subject and len(one.values) == 1 for one in self.conditions):
            raise NotReadError  # the highest of one
        if said.focus == "who" and subject:
            self.bonus += 0.4
        if (hint == "date" or word == "top") and _OF_ORDER.search(said.text):
            raise NotReadError
        if hint == "date":
            yield self._extreme_date(subject, direction)
            return
        if hint == "count" or (not hint and self._counts(word, after)):
            if subject is None:
                raise NotReadError
            yield self._done(self._ranked("count", None, subject, direction))
            return
        measures = self._hinted(hint) if hint else self._measures(adds_up="sum" in said.operations)
        if not measures or any(set(one.keys) & _RANKS for one in measures):
            raise NotReadError
        if subject is None and said.focus in {"who", "where"}:
            raise NotReadError
        rows = self._is_row(after, hint) or (subject is None and said.focus == "which")
        grouped = not said.operations.isdisjoint({"mean", "sum"})
        for measure in measures:
            if subject is None:
                of_rows = said.limit > 1 or said.nth > 1 or rows or self._is_noun_after(measure)
                shows = self._top(measure, self._label(), direction) if of_rows else self._query(direction, measure)
                yield self._done(shows)
                continue
            single = rows or not is_summable(measure) or subject.kind == "number" or self._is_unique(subject)
            if single and not grouped and not self.group_part:
                yield self._done(self._top(measure, subject, direction))
                continue
            yield self._done(self._ranked("mean" if "mean" in said.operations else "sum", measure, subject, direction))
            is_clear = grouped or word == "most" or hint or self.group_part or _SUMMED.search(said.text) or said.limit
            if not is_clear:  # the highest sum, or the highest row: an answer only if both have the same
                yield self._done(self._top(measure, subject, direction))

    def _extreme_date(self, subject: ViewColumn | None, direction: Extreme) -> Reading:
        """Return the first or last date, or what has it."""
        focus, column = self.said.focus, date_column(self.view, self.said, None, self.matches)
        if column is None:
            raise NotReadError
        self._use(column)
        if focus == "when" or (subject is None and focus in {"what", ""} and self._is_named_date()):
            return self._done(self._query(direction, column, group=None))
        shown = subject or self._label()
        if shown is None or (subject is None and focus in {"who", "where"}):
            raise NotReadError
        return self._done(self._top(column, shown, direction))

    def _top(self, measure: ViewColumn, shown: ViewColumn | None, direction: Extreme) -> Query:
        limit = self.said.limit or 1
        return self._query("top", measure, shown=shown, group=None, direction=direction, limit=limit)

    def _counts(self, word: str, after: int) -> bool:
        """Return whether a superlative such as "most" counts rows, and compares no column behind it."""
        named = any(match.start == after for match in self._columns("number"))
        return ("most" in word.split() or word in {"fewest", "least"}) and not named and self._counts_rows(after)

    def _is_kind(self, match: Match) -> bool:
        """Return whether a word that several values have says what they are: a "bridge" of "the last bridge"."""
        words = self.said.words[match.start : match.end]
        several = match.kind == "value" and len(match.values[0]) > 1 and match.strength < 1
        return several and len(words) == 1 and words[0].text.islower()

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
        match = next((one for one in self.matches if one.start == after), None)
        if match and match.kind == "value":  # "the most damaged deliveries"
            return self._counts_rows(match.end)
        word = self.said.words[after]
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
            return not _SUMMED.fullmatch(self.said.words[after].text)
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
        if said.focus in {"who", "where"}:
            return self._who() if said.focus == "who" else self._where()
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
