"""Find which columns, values and names of a view the words of a question are."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

from local_rag.tables.periods import find_periods
from local_rag.tables.question_words import Said, Word
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import Values, View, ViewColumn, holds_exactly, values_of
from local_rag.tables.vocabulary import (
    ALIASES,
    COUNTED,
    DONE,
    EVENTS,
    FILLERS,
    MONEY_WORDS,
    SMALL_WORDS,
    SYNONYMS,
    TIME_UNITS,
    keys_of,
)
from local_rag.text.tokens import key_of_word, word_keys

INVOICE = key_of_word("invoice")
_LONGEST_SPAN = 8  # words
_MOST_PARTIAL = 40  # values that a part of their words may name
_NAMED = 0.8  # strength of a match with a column's name
_COMPOUND = keys_of("time")  # "lead time" is none of a lead
_DATE_AFTER = re.compile(r" (?:dates?|on|at|by|days?|times?)\b", re.IGNORECASE)
_LOOK_BACK = 80  # characters
_FEWEST_LETTERS = 3  # of a word that may stand for a longer value
_OPERATION_WORDS = keys_of(
    "total sum average mean count number max min maximum minimum top difference most least highest lowest amount"
)
_FULL_MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
_MONTH_KEYS = {key_of_word(month): key_of_word(month[:3]) for month in _FULL_MONTHS}
_MONTH_KEYS |= {short: full for full, short in _MONTH_KEYS.items()}


@dataclass(frozen=True, slots=True)
class Match:
    """What some words of a question are: a column, values of columns, or a name of the table.

    `columns` are the possible ones, `values` those of each. `strength` is 1 for all words of a name or value.
    """

    start: int
    end: int
    kind: Literal["column", "value", "name"]
    columns: tuple[ViewColumn, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Matched:
    """The matches of a question in a view, by place, and its words that are none, nor anything else that is known."""

    matches: tuple[Match, ...]
    unknown: tuple[Word, ...]


class Matcher:
    """Match the words of a question with one view after the other."""

    def __init__(self, said: Said, held: RelationSet) -> None:
        self._said, self._held = said, held
        self._taken = [
            *((one.start, one.end) for one in said.comparisons),
            *said.operation_spans,
            *((start, end) for start, end, _, _ in said.superlatives),
            *said.groups,
            *said.negations,
        ]

    def match(self, view: View) -> Matched:
        """Return what the words are in a view: the longest first, whole values and names before parts of them."""
        words, covered = self._said.words, [False] * len(self._said.words)
        matches = list[Match]()
        indexes = [(column, values_of(column, self._held)) for column in view.columns if column.kind == "text"]
        for named in self._periods_named(view):
            matches.append(named)
            covered[named.start : named.end] = [True] * (named.end - named.start)
        for find in (self._exact, self._partial):
            for length in range(min(_LONGEST_SPAN, len(words)), 0, -1):
                for start in range(len(words) - length + 1):
                    span = range(start, start + length)
                    if any(covered[at] for at in span):
                        continue
                    if found := find(view, indexes, words, start, start + length):
                        matches.append(found)
                        for at in span:
                            covered[at] = True
        matches = [self._as_condition(one) for one in matches]
        unknown = [word for at, word in enumerate(words) if not covered[at] and not self._is_known(word, view)]
        return Matched(tuple(sorted(matches, key=lambda one: one.start)), tuple(unknown))

    def _periods_named(self, view: View) -> Iterator[Match]:
        """Yield the columns of numbers whose names are times of the question: "2024 H1"."""
        for period in self._said.periods:
            numbers = (one for one in view.columns if one.kind == "number")
            columns = tuple(one for one in numbers if (period.first, period.after) in _spans_of(one.name))
            inside = [at for at, word in enumerate(self._said.words) if period.start <= word.start < period.end]
            if columns and inside and period.first and not period.is_year:
                yield Match(inside[0], inside[-1] + 1, "column", columns)

    def _as_condition(self, match: Match) -> Match:
        """Return for the name of a column of yes and no what it says: "damaged" is a yes there."""
        if match.kind != "column" or match.strength < _NAMED:
            return match
        start = self._said.words[match.start].start
        if any(0 <= start - end <= 1 for _, end in self._said.groups):
            return match
        for column in match.columns:
            if column.kind == "text" and (yes := values_of(column, self._held).yes):
                return Match(match.start, match.end, "value", (column,), (yes,))
        return match

    def _is_known(self, word: Word, view: View) -> bool:
        if self._in_other(word) or self._in_period(word):
            return True
        if word.key == "invoiced":
            return any(INVOICE in names for names in (view.names, *(one.keys for one in view.columns)))
        if word.key in EVENTS and self._bounds_event(word) and any(one.kind == "date" for one in view.columns):
            return False
        return word.key in FILLERS or word.key in COUNTED or self._is_unit(word, view)

    def _bounds_event(self, word: Word) -> bool:
        """Return whether a time or a negation beside a word says when it was done, or that it was not."""
        ends = [end for _, end in self._said.negations]
        return any(0 <= one.start - word.end <= 1 for one in self._said.periods) or any(
            0 <= word.start - end <= len(" yet been ") for end in ends
        )

    @staticmethod
    def _is_unit(word: Word, view: View) -> bool:
        """Return whether a word is the unit of a column: EUR, euros, hours, kg."""
        units = {column.unit.lower() for column in view.columns if column.unit}
        wanted = _UNITS_NAMED.get(word.key, word.text.lower())
        return wanted in units or any(unit.endswith(wanted) and len(wanted) == len("eur") for unit in units)

    def _exact(
        self, view: View, indexes: Sequence[tuple[ViewColumn, Values]], words: Sequence[Word], start: int, end: int
    ) -> Match | None:
        keys = tuple(word.key for word in words[start:end])
        alone = words[start] if end - start == 1 else None
        columns = tuple(one for one in view.columns if keys in _forms(one.keys) or keys in _forms(one.own_keys))
        found = [(column, values.whole[keys]) for column, values in indexes if keys in values.whole]
        if alone:
            columns = tuple(one for one in columns if not _is_other_form(alone, one, view))
        if alone and columns and self._is_state(alone, columns, [value for _, values in found for value in values]):
            columns = ()
        if not found and (other := ALIASES.get(keys)):
            found = [(column, values.whole[other]) for column, values in indexes if other in values.whole]
        if not found and any(map(str.isdigit, keys[-1])):
            text = self._said.text[words[start].start : words[end - 1].end]
            incomplete = (column for column, values in indexes if not values.is_complete)
            exact = ((column, tuple(holds_exactly(column, text, self._held))) for column in incomplete)
            found = [(column, values) for column, values in exact if values]
        if alone and not self._may_be_value(alone, [one for _, values in found for one in values], bool(columns)):
            found = []
        if any(self._in_range(word) for word in words[start:end]):
            return None
        if not alone and all(map(self._in_period, words[start:end])) and all(one.kind == "date" for one in columns):
            return None  # "the week from 4 May" names no column, but a time
        if alone and self._in_period(alone):
            return Match(start, end, "column", columns) if columns and self._is_whole_period(alone) else None
        is_capital = words[start].start > 0 and words[start].text[:1].isupper()
        # In a roster, a place at the head of a column may also be a value of another one.
        of_roster = bool(columns) and self._said.focus == "who" and bool(self._said.periods)
        if found and (is_capital or not columns) and not of_roster:
            return Match(start, end, "value", tuple(one for one, _ in found), tuple(some for _, some in found))
        if columns:
            return Match(start, end, "column", columns, strength=_strength_of(alone, columns) if alone else 1.0)
        return None

    def _is_state(self, word: Word, columns: Sequence[ViewColumn], values: Sequence[str]) -> bool:
        """Return whether a word is a value, such as "closed", though a column of dates or another form has its name."""
        if word.text.casefold() not in map(str.casefold, values) or self._said.focus in {"who", "when"}:
            return False
        literal = [one for one in columns if word.text.casefold() in one.name.casefold().split()]
        before, after = self._said.text[: word.start], self._said.text[word.end :]
        if any(one.kind != "date" for one in literal) or _DATE_AFTER.match(after):
            return False
        return bool(literal) or not re.search(r"\b(?:did|do|does) (?:\S{1,30} ){1,3}\Z", before[-_LOOK_BACK:])

    def _in_period(self, word: Word) -> bool:
        return any(one.start <= word.start and word.end <= one.end for one in self._said.periods)

    def _is_whole_period(self, word: Word) -> bool:
        """Return whether a word is all of a time: not the year of a quarter."""
        inside = [one for one in self._said.periods if one.start <= word.start and word.end <= one.end]
        return not word.text.isdigit() or any(one.is_year or one.first is None for one in inside)

    def _in_range(self, word: Word) -> bool:
        return any(
            one.start <= word.start and word.end <= one.end and " to " in one.words for one in self._said.periods
        )

    def _may_be_value(self, word: Word, values: Sequence[str], is_column: bool) -> bool:
        """Return whether a word alone means a value: not a common word, unless it is written like the value."""
        common = word.key in FILLERS or word.key in COUNTED or word.key in _OPERATION_WORDS or word.text.isdigit()
        if self._in_other(word):
            return False
        if word.text.isdigit():
            counts = re.match(r"\s+[a-z]+s\b", self._said.text[word.end :]) is not None
            return len(word.text) > _FEWEST_LETTERS or (word.text in values and not counts)
        is_name = word.text.islower() and (word.key in SYNONYMS or word.key in MONEY_WORDS)
        if is_name and not any(map(str.islower, values)):
            return False
        if (common and (word.key in SMALL_WORDS or word.key not in FILLERS)) or is_column:
            return word.text in values and not word.text.islower() and word.start > 0
        return True

    def _in_other(self, word: Word) -> bool:
        return any(start <= word.start and word.end <= end for start, end in self._taken)

    def _partial(  # noqa: PLR0911
        self, view: View, indexes: Sequence[tuple[ViewColumn, Values]], words: Sequence[Word], start: int, end: int
    ) -> Match | None:
        keys = tuple(word.key for word in words[start:end])
        if any(self._in_other(word) for word in words[start:end]):
            return None
        alone = words[start] if end - start == 1 else None
        if not (alone and self._in_period(alone)) and (found := self._values_with(indexes, words, start, end)):
            return found
        if alone and (alone.key in FILLERS or alone.key in COUNTED) and alone.key not in SYNONYMS:
            if alone.key in SMALL_WORDS:
                return None
            numbered = tuple(
                one for one in view.columns if one.keys[:1] == keys and set(one.keys[1:]) <= _NUMBERS and one.keys[1:]
            )
            if numbered:
                return Match(start, end, "column", numbered, strength=0.8)
            named = alone.key in view.names
            return Match(start, end, "name", strength=0.8) if named else None
        if alone and self._in_period(alone):
            year = alone.text.isdigit() and alone.key in view.names
            return Match(start, end, "name", strength=0.5) if year else None
        same_form = (one for one in view.columns if not (alone and _is_other_form(alone, one, view)))
        part = [one for one in same_form if any(_is_part(keys, _bare(some)) for some in (one.keys, one.own_keys))]
        may_be_part = not all(key in FILLERS or key in COUNTED or key.isdigit() for key in keys)
        if part and may_be_part and not (alone and alone.key in FILLERS and alone.key in _OPERATION_WORDS):
            return Match(start, end, "column", tuple(part), strength=0.8)
        if alone and alone.key in view.names:
            return Match(start, end, "name")
        if alone:
            following = words[end].key if end < len(words) else ""
            same = SYNONYMS.get(alone.key, frozenset()) if following not in _COMPOUND else frozenset()
            like = [column for column in view.columns if same & set(head_of(column.keys))]
            if like:
                priced = alone.key in _PRICE and any(set(column.keys) & _PRICE for column in like)
                strength = 0.6 if priced or alone.key not in FILLERS else 0.4
                return Match(start, end, "column", tuple(like), strength=strength)
        return None

    def _values_with(
        self, indexes: Sequence[tuple[ViewColumn, Values]], words: Sequence[Word], start: int, end: int
    ) -> Match | None:
        """Return the values of which the words are a part, one after the other."""
        some = words[start:end]
        if all(word.key in FILLERS or word.key in _OPERATION_WORDS for word in some):
            return None
        if len(some) == 1 and (len(some[0].text) < _FEWEST_LETTERS or some[0].text.isdigit()):
            return None
        keys = [word.key for word in some]
        if len(some) == 1 and (keys[0] in TIME_UNITS or any(keys[0] in column.keys for column, _ in indexes)):
            return None
        columns, found = list[ViewColumn](), list[tuple[str, ...]]()
        for column, values in indexes:
            both = frozenset.intersection(*(values.by_word.get(key, frozenset()) for key in keys))
            inside = sorted(values.whole.get(tuple(keys), ())) or sorted(
                value for value in both if _contains(word_keys(value), keys)
            )
            if len(some) == 1:
                inside = [value for value in inside if _has_word(value, some[0].text)]
            if inside and len(inside) <= _MOST_PARTIAL:
                columns.append(column)
                found.append(tuple(inside))
        return Match(start, end, "value", tuple(columns), tuple(found), strength=0.7) if columns else None


@lru_cache(maxsize=10_000)
def _spans_of(name: str) -> frozenset[tuple[date | None, date | None]]:
    """Return the times that a column's name is, whatever the order of its words."""
    words = name.split()[:4]
    return frozenset(
        (one.first, one.after)
        for text in (" ".join(words), " ".join(reversed(words)))
        for one in find_periods(text)
        if one.start == 0 and one.end == len(text)
    )


def _strength_of(word: Word, columns: Sequence[ViewColumn]) -> float:
    """Return how surely a word that is all of a column's name means that column."""
    if word.key not in _OPERATION_WORDS and word.key not in FILLERS:
        return 1.0
    if word.key in EVENTS and is_done(word) and any(one.kind != "number" for one in columns):
        return 1.0
    return 0.6 if word.key in MONEY_WORDS and is_done(word) else 0.5


def is_done(word: Word) -> bool:
    """Return whether a word is the form of a verb that says what was done."""
    return word.text.lower().endswith("ed") or word.text.lower() in DONE


def _is_other_form(word: Word, column: ViewColumn, view: View) -> bool:
    """Return whether a word is the noun of a column's verb, "requests" of "Requested by", or the verb of its noun."""
    named, text = re.findall(r"[^\W_]+", column.name.casefold()), word.text.casefold()
    if len(named) < 2 or text in named:  # noqa: PLR2004
        return False
    if named[-1] in {"by", "on", "at"}:
        return word.key in view.names
    return text.endswith("ed") and set(named[1:]) <= _NUMBERS  # "ordered" of "Order no."


def _has_word(value: str, word: str) -> bool:
    """Return whether a value has a word as it is written, or its plural: "units" is none of "United Kingdom"."""
    wanted = word.casefold().rstrip("s")
    return any(one.casefold().rstrip("s") == wanted for one in re.findall(r"[^\W_]+", value))


def _contains(whole: list[str], part: list[str]) -> bool:
    """Return whether words contain others, one after the other, that are a third of them or more."""
    if len(whole) > 3 * len(part):
        return False
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


_UNITS_AND_NAMES = ("eur euro", "usd dollar", "gbp pound", "hours hour", "days day", "% percent")
_UNITS_NAMED = {key_of_word(name): unit for unit, name in map(str.split, _UNITS_AND_NAMES)}
_UNIT_WORDS = keys_of("eur usd gbp chf in of the per kg hours keur teur months days on at by am le par")
_NUMBERS = keys_of("no nr number id code")
_PRICE = keys_of("price cost")
_NAMING = keys_of("name no nr number id code date amount value title")


@lru_cache(maxsize=10_000)
def _bare(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a column's name without those of its unit and small words."""
    return tuple(key for key in keys if key not in _UNIT_WORDS) or keys


def head_of(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the noun of a column's name: "price" of "Unit price (EUR)", "invoice" of "Invoice no."."""
    named = [key for key in _bare(keys) if key not in _NAMING] or list(keys)
    return tuple(named[-1:])


@lru_cache(maxsize=10_000)
def _forms(keys: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    """Return all ways in which a question may name a column in full: a month by its full or its short name."""
    forms = {keys, _bare(keys)} - {()}
    for form in list(forms):
        if any(key in _MONTH_KEYS for key in form):
            forms.add(tuple(_MONTH_KEYS.get(key, key) for key in form))
        if len(form) == 2 and form[1] in {"no", "nr", "id", "num"}:  # noqa: PLR2004
            forms |= {(form[0], "number"), (form[0], "no"), (form[0], "id")}
    return frozenset(forms)


def _is_part(keys: tuple[str, ...], bare: tuple[str, ...]) -> bool:
    """Return whether words are some of those of a column's name, at its beginning or end."""
    if len(keys) >= len(bare):
        return False
    return bare[-len(keys) :] == keys or (bare[: len(keys)] == keys and set(bare[len(keys) :]) <= _NAMING)
