"""Say a question in other words, where a table may have only the opposite of a word: "unpaid" is not paid."""

import re
from collections.abc import Iterator

_REWORDED = (
    (
        re.compile(
            r"\b(?:un|non-?)(paid|damaged|billed|available|delivered|finished|confirmed|answered|signed|sold|approved"
            r"|resolved|shipped|billable|invoiced|completed|assigned|returned|passed|settled|verified|tested)\b",
            re.IGNORECASE,
        ),
        r"not \1",
    ),
    (re.compile(r"\b(?:is |are )?(?:still |yet )?(?:outstanding|unsettled)\b", re.IGNORECASE), "not paid"),
    (re.compile(r"\b(?:owes?|owed)(?: (?:us|to us))?\b", re.IGNORECASE), "has not paid"),
    (re.compile(r"\b(?:look(?:s|ed)?|looking) after\b", re.IGNORECASE), "keep"),
    (re.compile(r"\bincomplete\b", re.IGNORECASE), "not complete"),
)


def wordings(question: str) -> Iterator[str]:
    """Yield a question as it is, and in other words."""
    yield question
    text = question
    for pattern, words in _REWORDED:
        text = pattern.sub(words, text)
    if text != question:
        yield text
