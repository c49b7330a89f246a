"""Check an answer against the passages: every number, date, unit and proper name must occur in a cited source.

The worst errors of small models are numbers and names of a neighbouring document. Code finds these without asking a
model again. It cannot tell whether a sentence with the right numbers and names says the right thing about them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from local_rag.records import Passage, heading_path
from local_rag.verification.citations import find_citations
from local_rag.verification.conflicts import is_of_something_else
from local_rag.verification.quantities import Date, Quantity, find_dates, find_numbers, find_times
from local_rag.verification.sentences import LIST_NUMBER
from local_rag.verification.sources import Source, blank, find_codes, normalize
from local_rag.verification.words import WORD, common_words, stem

_URL = re.compile(r"\]\([^)\s]*\)|\b(?:https?://|www\.)[^\s)\]]+")
_NAME = re.compile(r"[^\W\d_](?:[^\W\d_]|['&.](?=[^\W\d_])|\.(?=[A-Z]))*")
# A capital letter says nothing here: at the start, or after a mark that begins a sentence or a list item.
_START = re.compile(r"(?:^|[:;.!?\n#]|[\"(*\[|>\u2022]|(?:^|\s)-)[\s\"'(*_]*\Z")
_START_CHARACTERS = 9


@dataclass(frozen=True, slots=True)
class Fact:
    """A checkable fact of a sentence: a date, code, time, number or name; `number` is set only for a number."""

    text: str
    start: int
    occurs_in: Callable[[Source], bool]
    number: Quantity | None = None


def source_of(passage: Passage) -> Source:
    """Return a passage as the model reads it: the title, the headings and the text."""
    return Source(f"{heading_path(passage.title, passage.headings)}\n\n{passage.text}")


def missing_facts(question: str, sentence: str, sources: Sequence[Source]) -> list[Fact]:
    """Return the facts of a sentence that occur in no source, or only as facts about something else."""
    asked, text = Source(question), _plain_text(sentence)
    facts = find_facts(text)
    given = {value for fact in facts if fact.number for value in fact.number.values}
    given |= {value for number in asked.numbers for value in number.values}
    around = [source.surroundings for source in sources]
    return [
        fact
        for fact in facts
        if not fact.occurs_in(asked)
        and (
            not any(map(fact.occurs_in, sources))
            or (fact.number and is_of_something_else(fact.number, text, given, question, around))
        )
    ]


def find_facts(text: str) -> list[Fact]:
    """Return the dates, codes, times, numbers and names of a plain text, in their order in the text."""
    facts, rest = list[Fact](), text

    def take(start: int, end: int, occurs_in: Callable[[Source], bool], number: Quantity | None = None) -> None:
        nonlocal rest
        facts.append(Fact(text[start:end].strip(), start, occurs_in, number))
        rest = blank(rest, start, end)

    readings = dict[tuple[int, int], list[Date]]()
    for date in find_dates(text):
        readings.setdefault((date.start, date.end), []).append(date)
    for (start, end), dates in readings.items():
        take(start, end, partial(_has_date, dates))
    for code in find_codes(rest):
        take(*code.span(), partial(_has_code, code[0]))
    for time in find_times(rest):
        take(time.start, time.end, partial(_has_time, time))
    for number in find_numbers(rest):
        take(number.start, number.end, partial(_has_number, number), number)
    for name in find_names(rest):
        take(*name.span(), partial(_has_name, name[0].removesuffix("'s")))
    return sorted(facts, key=lambda fact: fact.start)


def find_names(text: str) -> Iterator[re.Match[str]]:
    """Yield the capitalised words, except common words at the start of a sentence."""
    for word in _NAME.finditer(text):
        if len(word[0]) > 1 and word[0] != word[0].lower():
            start = word.start()
            if not (_START.search(text, max(start - _START_CHARACTERS, 0), start) and _is_common(word[0])):
                yield word


def _is_common(word: str) -> bool:
    """Return whether a word is a common one in ordinary spelling."""
    pieces = [piece for piece in WORD.findall(word) if len(piece) > 2]  # noqa: PLR2004  skips endings like 's and 'll
    return word[1:].islower() and all(stem(piece) in common_words() for piece in pieces)


def _plain_text(sentence: str) -> str:
    """Return a sentence as plain text without its citations, URLs and list number."""
    text = "".join(piece for piece, numbers in find_citations(iter([sentence])) if not numbers)
    return LIST_NUMBER.sub("", normalize(_URL.sub(" ", text)), count=1)


def _has_date(readings: Sequence[Date], source: Source) -> bool:
    return any(map(source.has_date, readings))


def _has_code(code: str, source: Source) -> bool:
    return source.has_code(code)


def _has_time(time: Quantity, source: Source) -> bool:
    return source.has_time(time)


def _has_number(number: Quantity, source: Source) -> bool:
    return source.has_number(number)


def _has_name(name: str, source: Source) -> bool:
    return source.has_name(name)
