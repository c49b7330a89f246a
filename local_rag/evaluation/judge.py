"""Judge an answer by what its question says of a right one.

A text says a wanted string if it contains it as separate words, perhaps in the plural, or if the wanted string is a
number or a date and the text contains the same value. An answer is right if it says one string of each group in
`must_include`, none in `must_not`, and assigns the values of `pairs` to the right names. If a question has only a
reference `answer`, an answer is right if enough content words of one occur in the other and every number also occurs
in the reference or the question. This is rough, but good enough to compare two runs.
"""

import re
from collections.abc import Sequence
from typing import Literal

from local_rag.evaluation.dataset import Question
from local_rag.text.dates import find_dates
from local_rag.text.facts import Source, find_facts, normalize
from local_rag.text.quantities import find_numbers
from local_rag.text.tokens import keyword_tokens

Mistake = Literal["incomplete", "other_value", "off_the_point"]

_CITATIONS = re.compile(r"(?:(?<!\s)\s++)?\[[\d, ]++\]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u202f ](?=\d{3}\b)")
_NO_COUNT = re.compile(r"(?:an?|single|once|twice|double|thrice|first|second|third|\w+th)\b", re.IGNORECASE)
_ENOUGH = 0.5  # the share of content words of one answer that the other must contain


def is_right(question: Question, text: str) -> bool:
    """Return whether an answer, or a quotation given instead of one, is right."""
    if question.must_include:
        return (
            says_all(text, question.must_include)
            and not any(_says(text, one) for one in question.must_not)
            and _assigns(text, question.pairs)
        )
    return _resembles(question, _plain(text))


def mistake_of(question: Question, text: str) -> Mistake:
    """Return what is wrong with an answer that is not right.

    It is incomplete if it says something wanted and nothing else that can be checked. It has another value if it says
    a number, date or name that neither the question nor its right answer says.
    """
    text = _plain(text)
    wanted = [one for group in question.must_include for one in group]
    expected = Source("\n".join([question.text, question.answer, *wanted]))
    others = (fact.text for fact in find_facts(normalize(text)) if not fact.occurs_in(expected))
    if any(_says(text, one) for one in question.must_not) or any(
        not any(_says(fact, one) for one in wanted) for fact in others
    ):
        return "other_value"
    if wanted:
        said = any(_says(text, one) for one in wanted)
    else:
        said = bool(
            set(keyword_tokens(text)) & set(keyword_tokens(question.answer)) - set(keyword_tokens(question.text))
        )
    return "incomplete" if said else "off_the_point"


def says_all(text: str, groups: Sequence[Sequence[str]]) -> bool:
    """Return whether a text says one string of each group."""
    return all(any(_says(text, one) for one in group) for group in groups)


def _says(text: str, wanted: str) -> bool:
    return _position(text, wanted) is not None


def _position(text: str, wanted: str) -> int | None:
    """Return where a text says a wanted string, None if it does not."""
    text, wanted = _plain(text), _plain(wanted)
    last = r"(?!\w)" if wanted[-1:].isalnum() else ""
    found = re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(wanted)}(?:e?s)?{last}(?![.,]?\d)", text, re.IGNORECASE)
    return found.start() if found else _position_of_value(text, wanted)


def _position_of_value(text: str, wanted: str) -> int | None:
    """Return where a text contains a date or number that a wanted string consists of, in any notation."""
    for date in find_dates(wanted):
        if date.text == wanted:
            same = (
                one.start
                for one in find_dates(text)
                if (one.year, one.month, one.day) == (date.year, date.month, date.day)
            )
            return next(same, None)
    for number in find_numbers(wanted):
        if number.text == wanted:
            for one in find_numbers(text):
                if number.values & one.values and number.unit in (None, one.unit) and not _NO_COUNT.match(one.text):
                    return one.start
    return None


def _assigns(text: str, pairs: Sequence[Sequence[Sequence[str]]]) -> bool:
    """Return whether the names and values of pairs come in the same order; incomplete pairs are ignored."""
    places = list[tuple[int, int]]()
    for name, value in pairs:
        at = [
            min((where for one in group if (where := _position(text, one)) is not None), default=-1)
            for group in (name, value)
        ]
        if min(at) >= 0:
            places.append((at[0], at[1]))
    return sorted(places) == sorted(places, key=lambda place: place[1])


def _resembles(question: Question, text: str) -> bool:
    """Return whether enough words of an answer and its reference are the same, and no number is new."""
    text, reference, asked = (_THOUSANDS.sub("", part) for part in (text, question.answer, question.text))
    theirs, ours, known = (set(keyword_tokens(part)) for part in (reference, text, asked))
    ours, theirs = ours - known or ours, theirs - known or theirs
    numbers = [set(_NUMBER.findall(part)) for part in (text, reference, asked)]
    if not ours or not theirs or numbers[0] - numbers[1] - numbers[2]:
        return False
    shared = len(ours & theirs)
    return max(shared / len(ours), shared / len(theirs)) >= _ENOUGH


def _plain(text: str) -> str:
    """Return a text on one line without citations, with plain dashes and quotation marks."""
    return _THOUSANDS.sub("", normalize(" ".join(_CITATIONS.sub("", text).split())))
