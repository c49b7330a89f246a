"""Find what a question may say of a view's columns: values, numbers to compare, times, and how many rows.

Nothing here decides what is meant. The trained planner says of each mention whether it is a condition.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from local_rag.tables.periods import Period, find_periods, month_of
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import Values, View, ViewColumn, holds_exactly, values_of
from local_rag.text.quantities import find_word_numbers
from local_rag.text.tokens import STOP_WORDS, folded, key_of_word
from local_rag.text.words import blank

Kind = Literal["value", "choice", "number", "time", "limit"]
ROWS = -1  # stands for the column of a mention that is about the rows themselves
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(
    r"(?<![\w.,/-])(?:[$€£]\s?)?(\d{1,3}(?:[ ,']\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)\s?(k\b|%)?(?![\w/-]|\.\d)", re.I
)
_DURATION = re.compile(r"(?<![\d:])(\d{1,3}):([0-5]\d)(?![\d:])")
_MOST_LIMIT = 50  # rows that a question asks for
_LONGEST_SPAN = 6  # words that name one value
_MOST_CHOICES, _LONGEST_CHOICE = 6, 24  # different values of a column that are all offered, and their characters
_MOST_PARTIAL = 25  # values that share a word of a question
_MOST_OF_COLUMN, _MOST_NUMBERS, _MOST_DATES = 6, 24, 4
_FEWEST_LETTERS = 3
_INITIAL = re.compile(r"\w\.?")


@dataclass(frozen=True, slots=True)
class Mention:
    """What a question may say of the column with an index, or of the rows; `words` say it.

    A `value` stands in the question, a `choice` is one of the few values of its column. The place is that in the
    question, 0 to 0 for a choice.
    """

    column: int
    kind: Kind
    words: str
    start: int = 0
    end: int = 0
    values: tuple[str, ...] = ()
    number: float = 0.0
    period: Period | None = None


def mentions(question: str, view: View, held: RelationSet) -> list[Mention]:
    """Return all mentions for a view, those of one column together."""
    periods = find_periods(question)
    numbers = list(_numbers(question, periods))
    years = [(float(one.year), one.start, one.end) for one in periods if one.year]
    found = list[Mention]()
    dates = of_numbers = 0
    for at, column in enumerate(view.columns):
        if column.kind == "text":
            found += _of_texts(question, at, column, periods, held)
        elif column.kind == "date":
            dates += 1
            if dates <= _MOST_DATES:
                found += [
                    Mention(at, "time", question[one.start : one.end], one.start, one.end, period=one)
                    for one in periods
                ]
        else:
            some = [
                Mention(at, "number", question[start:end], start, end, number=number)
                for number, start, end in (*numbers, *years)
            ]
            of_numbers += len(some)
            found += some if of_numbers <= _MOST_NUMBERS else []
    found += [
        Mention(ROWS, "limit", question[start:end], start, end, number=number)
        for number, start, end in numbers
        if number.is_integer() and 1 <= number <= _MOST_LIMIT
    ]
    return found


def _numbers(question: str, periods: Sequence[Period]) -> Iterator[tuple[float, int, int]]:
    rest = blank(question, ((one.start, one.end) for one in periods))
    for match in _DURATION.finditer(rest):
        yield int(match[1]) + int(match[2]) / 60, match.start(), match.end()
    for one in find_word_numbers(rest.lower()):
        if one.counts:
            yield float(one.value), one.start, one.end
    for match in _NUMBER.finditer(_DURATION.sub(lambda one: " " * len(one[0]), rest)):
        digits = match[1].replace(" ", "").replace("'", "")
        grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits)
        number = float(digits.replace(",", "" if grouped else "."))
        yield number * 1000 if (match[2] or "").lower() == "k" else number, match.start(), match.end()


def _of_texts(
    question: str, at: int, column: ViewColumn, periods: Sequence[Period], held: RelationSet
) -> Iterator[Mention]:
    """Yield the values of a column of texts that the question names, the longest first, and all where they are few."""
    values = values_of(column, held)
    texts = values.texts
    words = [(key_of_word(match[0]), match.start(), match.end()) for match in _WORD.finditer(question)]
    taken = set[int]()
    count = 0
    named = set[str]()
    for length in range(min(_LONGEST_SPAN, len(words)), 0, -1):
        for first in range(len(words) - length + 1):
            if taken & set(range(first, first + length)) or count >= _MOST_OF_COLUMN:
                continue
            span = words[first : first + length]
            start, end = span[0][1], span[-1][2]
            if some := _named(question[start:end], column, values, [key for key, _, _ in span], held):
                count += 1
                taken |= set(range(first, first + length))
                named |= set(some)
                yield Mention(at, "value", question[start:end] if len(some) > 1 else some[0], start, end, some)
    for one in periods:
        months = [text for text in texts if _is_month(text, one)]
        if months and not named & set(months):
            named |= set(months)
            yield Mention(at, "value", months[0], one.start, one.end, tuple(months))
    if len(texts) <= _MOST_CHOICES and all(len(text) <= _LONGEST_CHOICE for text in texts):
        for text in texts:
            if text not in named:
                yield Mention(at, "choice", text, values=(text,))


def _is_month(text: str, period: Period) -> bool:
    """Return whether a text, such as the name of a sheet, is the month or year that a question names."""
    if (period.months or period.months_of_year) == (month_of(text),):
        return True
    return period.year is not None and text.strip() == str(period.year)


def _named(said: str, column: ViewColumn, values: Values, keys: list[str], held: RelationSet) -> tuple[str, ...]:
    """Return the values that are the words, or those that have them among others."""
    if len(keys) == 1 and folded(said) in STOP_WORDS:
        return ()
    whole = values.whole.get(tuple(keys), ())
    if not whole and not values.is_complete and any(map(str.isdigit, keys[-1])):
        whole = tuple(holds_exactly(column, said, held))
    if whole or (len(keys) == 1 and len(said) < _FEWEST_LETTERS) or keys[0] in STOP_WORDS or keys[-1] in STOP_WORDS:
        return whole
    of_words = (values.by_word.get(key, frozenset()) for key in keys if key not in STOP_WORDS)
    found = frozenset[str].intersection(*of_words)
    partial = sorted(found) if len(found) <= _MOST_PARTIAL else []
    return tuple(dict.fromkeys((*partial, *_with_initials(partial, values))))


def _with_initials(found: Sequence[str], values: Values) -> Iterator[str]:
    """Yield other spellings of persons: D. Kerr for Dougie Kerr."""
    for text in found:
        parts = text.split()
        if len(parts) == 2 and all(part[:1].isupper() for part in parts):  # noqa: PLR2004
            for other in values.by_word.get(key_of_word(parts[1].strip(".,")), ()):
                first, _, last = other.partition(" ")
                if last == parts[1] and _INITIAL.fullmatch(first) and first[0] == parts[0][0]:
                    yield other
