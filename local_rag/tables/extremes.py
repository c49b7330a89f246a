"""Choose the queries of a question for the highest or the lowest: of rows, of groups, or of a column."""

import re
from collections.abc import Iterator

from local_rag.tables.conditions import date_column
from local_rag.tables.matches import Match, head_of
from local_rag.tables.meanings import Meanings, NotReadError, Reading
from local_rag.tables.query import Direction, Operation, Query
from local_rag.tables.roles import YEARS, is_money, is_summable
from local_rag.tables.views import ViewColumn
from local_rag.tables.vocabulary import COUNTED, MONEY_WORDS, SYNONYMS, keys_of
from local_rag.text.tokens import key_of_word

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

    def _extreme(self) -> Iterator[Reading]:  # noqa: PLR0912, PLR0915
        said = self.said
        if said.focus == "how many" or any(self._is_kind(match) for match in self.matches):
            raise NotReadError
        start, end, way, hint = said.superlatives[0] if said.superlatives else (0, 0, "max", "")
        direction: Direction = "min" if way == "min" or re.search(r"\bbottom\b", said.text, re.IGNORECASE) else "max"
        after = self._after(end)
        subject = self._asked_for(end)
        if subject and any(one.column == subject and len(one.values) == 1 for one in self.conditions):
            raise NotReadError  # the highest of one
        if said.focus == "who" and subject:
            self.bonus += 0.4
        if (hint == "date" or said.text[start:end].lower() == "top") and _OF_ORDER.search(said.text):
            raise NotReadError
        if hint == "date" and not any(one.kind == "date" for one in self.view.columns):
            raise NotReadError
        if hint == "date" and (column := date_column(self.view, said, None, self.matches)):
            self._use(column)
            if said.focus == "when" or (subject is None and said.focus in {"what", ""} and self._is_named_date()):
                yield self._done(self._query("max" if direction == "max" else "min", column, group=None))
                return
            shown = subject or self._label()
            if shown is None or (subject is None and said.focus in {"who", "where"}):
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
        if subject is None and said.focus in {"who", "where"}:
            raise NotReadError
        rows = self._is_row(after, hint) or (subject is None and said.focus == "which")
        for measure in measures:
            if subject is None:
                if said.limit > 1 or said.nth > 1 or rows or self._is_noun_after(measure):
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
