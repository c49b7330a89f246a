"""Detect a number that a source gives for something else than the answer does.

A wrong answer often takes the number from a neighbouring line. The words of the question and those around a number in
the answer are therefore compared with the words around each number of the source. If another number of the same kind,
which the answer does not give, fits clearly better, the answer's number probably belongs to something else.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from decimal import Decimal

from local_rag.verification.quantities import Quantity
from local_rag.verification.sentences import split_sentences
from local_rag.verification.words import WORD, stems

# How much better another number must fit, as a factor; chosen with the planted-swaps benchmark.
_CLEARLY, _CLEARLY_WITHOUT_UNIT = 1.2, 2.0
_NEAR_WORDS, _NEAR_CHARACTERS = 5, 80
_DIGIT = re.compile(r"\d")
_YEARS = range(1800, 2100)


class Surroundings:
    """The numbers of a text, each with the words of its sentence or row and the words nearest to it."""

    def __init__(self, text: str, numbers: Iterable[Quantity]) -> None:
        parts, start = list[tuple[int, frozenset[str]]](), 0
        for part in split_sentences(text):
            start += len(part)
            parts.append((start, stems(part)))
        counts = Counter(word for _, words in parts for word in words)
        self._weights = {word: math.log(1 + (len(parts) + 1) / count) for word, count in counts.items()}
        self._numbers = [
            (number, next((words for end, words in parts if number.start < end), frozenset()), near(text, number))
            for number in numbers
        ]

    def fits(
        self, wanted: Quantity, others: Set[Decimal], said: frozenset[str], beside: frozenset[str]
    ) -> tuple[float, float]:
        """Return the best fit of the wanted number, and the best fit of any other number of its kind.

        `others` are values to ignore because the answer or the question gives them. `said` are the words of both, and
        `beside` the words nearest to the number in the answer.
        """
        best = [0.0, 0.0]
        for number, words, nearest in self._numbers:
            same = bool(number.values & wanted.values)
            if same or (_is_like(number, wanted) and not number.values & others):
                fit = sum(map(self._weight, (*(words & said), *(nearest & said), *(nearest & beside))))
                best[not same] = max(best[not same], fit)
        return best[0], best[1]

    def _weight(self, word: str) -> float:
        return self._weights.get(word, 0.0)


def is_of_something_else(
    wanted: Quantity, sentence: str, given: Set[Decimal], question: str, sources: Sequence[Surroundings]
) -> bool:
    """Return whether another number of the sources fits a sentence clearly better than the wanted one."""
    said, beside = stems(f"{sentence} {question}"), near(sentence, wanted)
    fits = [source.fits(wanted, given, said, beside) for source in sources]
    own, other = (max(found) for found in zip(*fits, strict=True))
    return bool(0 < own * (_CLEARLY if wanted.unit else _CLEARLY_WITHOUT_UNIT) < other)


def near(text: str, number: Quantity) -> frozenset[str]:
    """Return the stems of the words nearest to a number, without its unit."""
    before = WORD.findall(text[max(number.start - _NEAR_CHARACTERS, 0) : number.start])[-_NEAR_WORDS:]
    after = WORD.findall(text[number.end : number.end + _NEAR_CHARACTERS])[:_NEAR_WORDS]
    return stems(" ".join((*before, *after)))


def _is_like(number: Quantity, wanted: Quantity) -> bool:
    """Return whether a number could replace another: it is written in digits and has the same unit."""
    if not _DIGIT.search(number.text) or number.unit != wanted.unit or number.borrowed:
        return False
    return wanted.unit is not None or _is_year(number) == _is_year(wanted)


def _is_year(number: Quantity) -> bool:
    return any(value in _YEARS for value in number.values)
