"""Compare the number in a question by yes or no with the limits that an answer names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from local_rag.text.quantities import Quantity, find_numbers
from local_rag.text.tokens import keyword_tokens
from local_rag.text.words import WORD

_LONGEST = 2000  # characters that are read
_BY_YES_OR_NO = re.compile(
    r"\s*(?:(?:and|but|so|hi|hello),? )?"
    r"(?:can|could|may|must|should|shall|am|is|are|do|does|did|will|would|has|have)\b",
    re.IGNORECASE,
)
_YES = re.compile(r"\W*yes\b", re.IGNORECASE)
_AT_MOST = re.compile(
    r"\b(?:up to|at most|(?:no|not) (?:more|longer|older|later|larger|heavier|higher) than"
    r"|(?:not|without) exceed(?:s|ing)?|maximum(?: of)?|under|below|within"
    r"|(?:less|fewer|younger|shorter|smaller|lighter|lower|earlier) than)(?: the| an?)?\s*\Z",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    r"\b(?:from|over|above|at least|(?<!not )(?<!no )(?:more|longer|older|larger|heavier|higher) than"
    r"|(?<!not )(?<!without )exceed(?:s|ing)?|minimum(?: of)?|starting at)(?: the| an?)?\s*\Z",
    re.IGNORECASE,
)
_BEFORE = 30


@dataclass(frozen=True, slots=True)
class _Limit:
    """A number that what is asked must not exceed, or else must reach."""

    value: Decimal
    is_most: bool

    def admits(self, value: Decimal) -> bool:
        return value <= self.value if self.is_most else value >= self.value


def denies_its_yes(question: str, answer: str, quoted: str = "") -> bool:
    """Return whether an answer says yes although the number that the question names keeps to none of its limits.

    "Can I spend 300 pounds?" is not answered by "Yes, up to 250 pounds". Only limits of the same unit are compared, or
    of the same thing that is counted. An answer without one has those of what it stands on, the `quoted` text.
    """
    question, answer, quoted = question[:_LONGEST], answer[:_LONGEST], quoted[:_LONGEST]
    if not (_BY_YES_OR_NO.match(question) and _YES.match(answer)):
        return False
    asked = [one for one in find_numbers(question) if one.counts or one.unit]
    if len(asked) != 1 or len(asked[0].values) != 1:
        return False
    kind, (value,) = _kind(question, asked[0]), asked[0].values
    limits = list(_limits(answer, kind)) or list(_limits(quoted, kind))
    return bool(limits) and not any(limit.admits(value) for limit in limits)


def _limits(answer: str, kind: str) -> Iterator[_Limit]:
    for one in find_numbers(answer):
        before = answer[max(0, one.start - _BEFORE) : one.start]
        is_most = bool(_AT_MOST.search(before))
        if kind and _kind(answer, one) == kind and (is_most or _AT_LEAST.search(before)):
            yield from (_Limit(value, is_most) for value in one.values)


def _kind(text: str, number: Quantity) -> str:
    """Return the unit of a number, or else the stem of the word that it counts."""
    if number.unit:
        return number.unit
    counted = WORD.search(text, number.end)
    return next(iter(keyword_tokens(counted[0])), "") if counted else ""
