"""Notice a number that a source says of something else, where it gives another number for what the answer says.

The number of a wrong answer is often one that stands a line further down. So the words around a number in the answer,
and those of the question, are compared with the words around each number of the source: where a number that the answer
does not give fits clearly better, and is of the same kind, the one that it gives is taken for that of something else.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from decimal import Decimal

from local_rag.verification.quantities import Quantity
from local_rag.verification.sentences import split_sentences
from local_rag.verification.words import WORD, stems

# How much better another number must fit: chosen by scripts/measure/planted_swaps.py.
_CLEARLY, _CLEARLY_WITHOUT_UNIT = 1.2, 2.0
_NEAR_WORDS, _NEAR_CHARACTERS = 5, 80
_DIGIT = re.compile(r"\d")
_YEARS = range(1800, 2100)


class Surroundings:
    """The numbers of a text, each with the words of its sentence or row and those nearest to it."""

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
        """Return how well the wanted number fits at best, and the best of another of its kind.

        `others` are the values that need not be looked at, since the answer or the question gives them; `said` the
        words of both, `beside` those nearest to the number.
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
    """Say whether the sources give, for what a sentence says, clearly rather another number than the wanted one."""
    said, beside = stems(f"{sentence} {question}"), near(sentence, wanted)
    fits = [source.fits(wanted, given, said, beside) for source in sources]
    own, other = (max(found) for found in zip(*fits, strict=True))
    return bool(0 < own * (_CLEARLY if wanted.unit else _CLEARLY_WITHOUT_UNIT) < other)


def near(text: str, number: Quantity) -> frozenset[str]:
    """Return the stems of the words nearest to a number, its unit not among them."""
    before = WORD.findall(text[max(number.start - _NEAR_CHARACTERS, 0) : number.start])[-_NEAR_WORDS:]
    behind = WORD.findall(text[number.end : number.end + _NEAR_CHARACTERS])[:_NEAR_WORDS]
    return stems(" ".join((*before, *behind)))


def _is_like(number: Quantity, wanted: Quantity) -> bool:
    """Say whether a number could stand in the place of another: written in digits, with the same unit."""
    if not _DIGIT.search(number.text) or number.unit != wanted.unit or number.borrowed:
        return False
    return wanted.unit is not None or _is_year(number) == _is_year(wanted)


def _is_year(number: Quantity) -> bool:
    return any(value in _YEARS for value in number.values)
