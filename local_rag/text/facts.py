"""Check an answer against the passages: every number, date, unit and proper name must occur in what it quotes.

The worst errors of small models are numbers and names of a neighbouring document. Code finds these without asking a
model again. It cannot tell whether a sentence with the right numbers and names says the right thing about them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from operator import methodcaller
from typing import TypeVar

from local_rag.text.dates import Date, find_dates, find_times
from local_rag.text.quantities import Quantity, find_numbers
from local_rag.text.sentences import LIST_NUMBER
from local_rag.text.source_facts import Source, find_codes, normalize
from local_rag.text.tokens import keyword_tokens
from local_rag.text.word_forms import blank

_URL = re.compile(r"\]\([^)\s\]]*\)|\b(?:https?://|www\.)[^\s)\]]+")
_NAME = re.compile(r"[^\W\d_](?:[^\W\d_]|['&.](?=[^\W\d_])|\.(?=[A-Z]))*")
# A capital letter says nothing here: at the start, or after a mark that begins a sentence or a list item.
_START = re.compile(r"(?:^|[:;.!?\n#]|[\"(*\[|>\u2022]|(?:^|\s)-)[\s\"'(*_]*\Z")
_START_CHARACTERS = 9
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_ONLY_ONE = frozenset({"one", "single"})
_Found = TypeVar("_Found", Date, Quantity)


@dataclass(frozen=True, slots=True)
class Fact:
    """A checkable fact of a sentence: a date, code, time, number or name."""

    text: str
    start: int
    occurs_in: Callable[[Source], bool]


def missing_facts(question: str, sentence: str, sources: Sequence[Source]) -> list[Fact]:
    """Return the facts of a sentence that occur neither in the question nor in a source."""
    given, plain = [Source(question), *sources], normalize(_URL.sub(" ", sentence))
    found = find_facts(LIST_NUMBER.sub("", plain, count=1), counted=bool(_HOW_MANY.search(question)))
    return [fact for fact in found if not any(map(fact.occurs_in, given))]


def find_facts(text: str, *, counted: bool = False) -> list[Fact]:
    """Return the dates, codes, times, numbers and names of a plain text, in their order in the text.

    If something was `counted`, "one" says how many.
    """
    facts, rest = list[Fact](), text

    def take(found: Mapping[tuple[int, int], Callable[[Source], bool]]) -> None:
        nonlocal rest
        facts.extend(Fact(text[start:end].strip(), start, occurs_in) for (start, end), occurs_in in found.items())
        rest = blank(rest, found)

    take({span: partial(_has_date, dates) for span, dates in _by_span(find_dates(text)).items()})
    take({code.span(): methodcaller("has_code", code[0]) for code in find_codes(rest)})
    take({(time.start, time.end): methodcaller("has_time", time) for time in find_times(rest)})
    numbers = (
        number for number in find_numbers(rest) if number.counts or (counted and number.text.lower() in _ONLY_ONE)
    )
    take({span: partial(_has_number, readings) for span, readings in _by_span(numbers).items()})
    take({name.span(): methodcaller("has_name", name[0].removesuffix("'s")) for name in find_names(rest)})
    return sorted(facts, key=lambda fact: fact.start)


def find_names(text: str) -> Iterator[re.Match[str]]:
    """Yield the capitalised words; a single one in ordinary spelling at the start of a sentence may be any word."""
    words = [word for word in _NAME.finditer(text) if len(word[0]) > 1]
    for word, following in zip_longest(words, words[1:]):
        if word[0] != word[0].lower():
            start = word.start()
            begins = _START.search(text, max(start - _START_CHARACTERS, 0), start)
            name = following and following[0][0].isupper() and following.start() == word.end() + 1
            name = name and keyword_tokens(word[0])  # not "In Norway"
            if not begins or name or not word[0][1:].islower():
                yield word


def _by_span(found: Iterable[_Found]) -> dict[tuple[int, int], list[_Found]]:
    """Return the readings of each place of a text."""
    places = dict[int, list[_Found]]()
    for one in found:
        places.setdefault(one.start, []).append(one)
    return {(start, max(one.end for one in readings)): readings for start, readings in places.items()}


def _has_date(readings: Sequence[Date], source: Source) -> bool:
    return any(map(source.has_date, readings))


def _has_number(readings: Sequence[Quantity], source: Source) -> bool:
    return any(map(source.has_number, readings))
