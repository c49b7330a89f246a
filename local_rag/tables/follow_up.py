"""Make one question of a short follow-up and the question before: "and in the UK?" asks the same of other rows."""

import re

from local_rag.tables.periods import find_periods

_LEAD = re.compile(
    r"(?:(?:and|but|or),? )?(?:(?:what|how) about |only |just |the same for |same for )?(?:and )?", re.IGNORECASE
)
_BEGINS = re.compile(r"(?:and|but|or|what about|how about|only|just|same for|in|for|from|per|by)\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"\b(?:how (?:many|much)|which|what(?! about)|who|when|list|show|total|average)\b", re.IGNORECASE
)
_PREPOSITION = re.compile(r"(?:for|in|from|of|by|to|with|per|at|on|since|after|before|during)\b", re.IGNORECASE)
_LONGEST = 100


def merged(before: str, question: str) -> str:
    """Return the question before with what a follow-up changes; empty if it is none."""
    text = " ".join(question.split()).rstrip("?!. ")
    if len(text) > _LONGEST or not _BEGINS.match(text) or _QUESTION.search(text):
        return ""
    rest, earlier = text[_LEAD.match(text).end() :].strip(), " ".join(before.split()).rstrip("?!. ")  # type: ignore[union-attr]
    if not rest:
        return ""
    if find_periods(rest):
        years = [period.first.year for period in find_periods(earlier) if period.first]
        if years and all(period.first is None for period in find_periods(rest)):  # "and in May?" means the same year
            rest = f"{rest} {years[-1]}"
        for period in reversed(find_periods(earlier)):
            earlier = (earlier[: period.start] + earlier[period.end :]).strip()
        rest = rest if _PREPOSITION.match(rest) else f"in {rest}"
    return f"{earlier} | {rest}"
