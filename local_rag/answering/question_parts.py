"""Split a question that asks for several things into parts with rules, so that each part is searched separately."""

import re
from collections.abc import Sequence

MOST_PARTS = 3
_FEWEST_WORDS = 3  # of a part that counts as a question
_LONG = 12  # words; a longer question with an "and" asks for more than one thing
HOW_TO = re.compile(
    r"\s*(?:how\s+to|how\s+(?:do|can|could|should|would|must|may)\s+(?:i|we|you|one|they|people|someone|somebody)|"
    r"what\s+(?:do|should|must)\s+(?:i|we|you|one)\s+(?:have\s+to\s+)?do|what\s+(?:to\s+do|are\s+the\s+steps)|steps|walk\s+me|"
    r"instructions)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=\?)\s+")
_AND = re.compile(r",?\s+and\s+", re.IGNORECASE)
# The beginning of a separate question after "and".
_CLAUSE = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|(?:is|are|was|were|do|does|did|can|may|must|should|will|has|have)"
    r"\s+\w+)\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:both|between|compar\w+|differen\w+|differ|versus|vs|same|alike|(?<!rather )than|"
    r"(?:more|less|longer|shorter|higher|lower|larger|smaller|cheaper|earlier|later|older|newer|better|worse)\b.*\bor)\b",
    re.IGNORECASE,
)
_JOINT = re.compile(r"and|or|versus|vs\.?|than|with|to|from", re.IGNORECASE)
_DIFFERS = re.compile(r"compare[sd]?|different|differs?", re.IGNORECASE)
# Words that may precede a compared thing, and words that cannot be part of it.
_LIGHT = re.compile(
    r"in|on|at|of|for|from|to|by|with|under|after|before|during|the|an?|that|those|ones?|its|their", re.IGNORECASE
)
_BOUNDARY = re.compile(
    rf"between|both|compared?|is|are|do|does|did|has|have|which|what|how|whether|{_LIGHT.pattern}", re.IGNORECASE
)


def split_question(question: str) -> list[str]:
    """Return the parts of a question that asks for several things, at most MOST_PARTS; none if it asks for one.

    In addition to the parts of `split_clauses`, a comparison is split into one question for each of two things.
    """
    clauses, plain = split_clauses(question), " ".join(question.split()).rstrip(" ?.!")
    if clauses or HOW_TO.match(plain) or not _COMPARES.search(plain):
        return clauses
    return _compared(plain.split())


def split_clauses(question: str) -> list[str]:
    """Return the questions of a compound question, at most MOST_PARTS; none if there is only one.

    Questions may follow each other or be joined by "and". How-to questions are not split.
    """
    text = " ".join(question.split())
    if HOW_TO.match(text):
        return []
    sentences = [part for part in _SENTENCE.split(text) if len(part.split()) >= _FEWEST_WORDS]
    if len(sentences) > 1:
        return sentences[:MOST_PARTS]
    clauses = _clauses(text.rstrip(" ?.!"))
    return clauses[:MOST_PARTS] if len(clauses) > 1 else []


def asks_for_several(question: str) -> bool:
    """Return whether the answer may be spread over several documents; steps are in one document."""
    long = len(question.split()) > _LONG and _AND.search(question)
    return bool(split_question(question) or long) and not HOW_TO.match(question)


def _clauses(text: str) -> list[str]:
    """Split a question at each "and" that precedes another question."""
    parts, start = list[str](), 0
    for joint in _AND.finditer(text):
        part, rest = text[start : joint.start()], text[joint.end() :]
        if _CLAUSE.match(rest) and len(part.split()) >= _FEWEST_WORDS and len(rest.split()) >= _FEWEST_WORDS:
            parts.append(part)
            start = joint.end()
    return [*parts, text[start:]]


def _compared(words: Sequence[str]) -> list[str]:
    """Return the question once without the second and once without the first of two things that it joins."""
    joints = [index for index, word in enumerate(words) if _JOINT.fullmatch(word)]
    # "and", "or" and "versus" are more reliable than words that may also be ordinary prepositions.
    joints.sort(key=lambda index: words[index].lower() in {"with", "to", "from"})
    for joint in joints:
        first, last = joint, joint + 1
        while first and _DIFFERS.fullmatch(words[first - 1]):
            first -= 1  # "differs from" is one joint
        left, right = _thing_before(words, first), _thing_after(words, last)
        if left < first and right > last and len(words) > right - left:
            parts = [*words[:first], *words[right:]], [*words[:left], *words[last:]]
            return [" ".join(part) for part in parts]
    return []


def _thing_before(words: Sequence[str], end: int) -> int:
    """Return the start of the thing that ends before `end`: a name, or the words back to the nearest boundary."""
    index = end
    while index > 1 and words[index - 1][:1].isupper():
        index -= 1
    named = index < end
    while not named and index and not _BOUNDARY.fullmatch(words[index - 1]):
        index -= 1
    while index and _LIGHT.fullmatch(words[index - 1]):
        index -= 1
    return index


def _thing_after(words: Sequence[str], start: int) -> int:
    """Return the end of the thing that begins at `start`."""
    index = start
    while index < len(words) and _LIGHT.fullmatch(words[index]):
        index += 1
    first = index
    while index < len(words) and words[index][:1].isupper():
        index += 1
    named = index > first
    while not named and index < len(words) and not _BOUNDARY.fullmatch(words[index]):
        index += 1
    return index if index > first else start
