"""Make one question of a short follow-up and the question before: "and in the UK?" asks the same of other rows."""

import re

from local_rag.tables.periods import find_periods

_FOLLOWS = re.compile(
    r"(?:and|but|or)?[\s,]*(?:(?:what|how) about|and|only|just)?\s*(?P<rest>(?:(?:for|in|from|of|by|to"
    r"|with|per|at|on|since|after|before|during)\b.{1,80}"
    r"|.{1,60}))",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"(?:and|but|or|what about|how about|only|just|same for|in|for|from|per|by)\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"\b(?:how (?:many|much)|which|what(?! about)|who|when|list|show|total|average)\b", re.IGNORECASE
)
_PREPOSITION = re.compile(r"(?:for|in|from|of|by|to|with|per|at|on|since|after|before|during)\b", re.IGNORECASE)
_LONGEST = 100


def merged(before: str, question: str) -> str:
    """Return the question before with what a follow-up changes; empty if it is none."""
    text = question.strip().rstrip("?!. ")
    if len(text) > _LONGEST or not _BEGINS.match(text) or _QUESTION.search(text):
        return ""
    if not (match := _FOLLOWS.fullmatch(text)):
        return ""
    rest, earlier = match["rest"].strip(), before.strip().rstrip("?!. ")
    if find_periods(rest):
        for period in reversed(find_periods(earlier)):
            earlier = (earlier[: period.start] + earlier[period.end :]).strip()
        rest = rest if _PREPOSITION.match(rest) else f"in {rest}"
    return f"{earlier} | {rest}"
