"""Split a question that asks for several things into its parts, by rule, so that each is searched on its own."""

import re
from collections.abc import Sequence

MOST_PARTS = 3
_FEWEST_WORDS = 3  # of a part that is a question of its own
_LONG = 12  # words, of a question that with an "and" asks for more than one thing
HOW_TO = re.compile(
    r"\s*(?:how\s+to|how\s+(?:do|can|could|should|would|must|may)\s+(?:i|we|you|one|they|people|someone|somebody)|"
    r"what\s+(?:do|should|must)\s+(?:i|we|you|one)\s+(?:have\s+to\s+)?do|what\s+(?:to\s+do|are\s+the\s+steps)|steps|walk\s+me|"
    r"instructions)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=\?)\s+")
_AND = re.compile(r",?\s+and\s+", re.IGNORECASE)
# What begins a question of its own behind "and".
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
# Words that may stand before what is meant, and words that are no part of it.
_LIGHT = re.compile(
    r"in|on|at|of|for|from|to|by|with|under|after|before|during|the|an?|that|those|ones?|its|their", re.IGNORECASE
)
_BOUNDARY = re.compile(
    rf"between|both|compared?|is|are|do|does|did|has|have|which|what|how|whether|{_LIGHT.pattern}", re.IGNORECASE
)


def split_question(question: str) -> list[str]:
    """Return the parts of a question that asks for several things, at most three; none where it asks for one.

    Besides those of `split_clauses` these are the question for each of two things that it compares.
    """
    clauses, plain = split_clauses(question), " ".join(question.split()).rstrip(" ?.!")
    if clauses or HOW_TO.match(plain) or not _COMPARES.search(plain):
        return clauses
    return _compared(plain.split())


def split_clauses(question: str) -> list[str]:
    """Return the questions that are asked in one, at most three; none where that is one.

    Two questions in a row are two, and so are two joined by "and". What is asked for in steps stays whole.
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
    """Say whether what a question asks for may stand in several documents; steps stand in one."""
    long = len(question.split()) > _LONG and _AND.search(question)
    return bool(split_question(question) or long) and not HOW_TO.match(question)


def _clauses(text: str) -> list[str]:
    """Cut a question at each "and" that another question follows."""
    parts, begun = list[str](), 0
    for joint in _AND.finditer(text):
        part, rest = text[begun : joint.start()], text[joint.end() :]
        if _CLAUSE.match(rest) and len(part.split()) >= _FEWEST_WORDS and len(rest.split()) >= _FEWEST_WORDS:
            parts.append(part)
            begun = joint.end()
    return [*parts, text[begun:]]


def _compared(words: Sequence[str]) -> list[str]:
    """Return the question without the second and without the first of two things that it joins."""
    joints = [place for place, word in enumerate(words) if _JOINT.fullmatch(word)]
    # "and", "or" and "versus" join more surely than what may be a preposition like any other.
    joints.sort(key=lambda place: words[place].lower() in {"with", "to", "from"})
    for joint in joints:
        first, last = joint, joint + 1
        while first and _DIFFERS.fullmatch(words[first - 1]):
            first -= 1  # "differs from" is one joint
        left, right = _thing_before(words, first), _thing_behind(words, last)
        if left < first and right > last and len(words) > right - left:
            parts = [*words[:first], *words[right:]], [*words[:left], *words[last:]]
            return [" ".join(part) for part in parts]
    return []


def _thing_before(words: Sequence[str], end: int) -> int:
    """Return where the thing that ends before `end` begins: a name, or words back to what is no part of it."""
    place = end
    while place > 1 and words[place - 1][:1].isupper():
        place -= 1
    named = place < end
    while not named and place and not _BOUNDARY.fullmatch(words[place - 1]):
        place -= 1
    while place and _LIGHT.fullmatch(words[place - 1]):
        place -= 1
    return place


def _thing_behind(words: Sequence[str], start: int) -> int:
    """Return where the thing that begins at `start` ends."""
    place = start
    while place < len(words) and _LIGHT.fullmatch(words[place]):
        place += 1
    begun = place
    while place < len(words) and words[place][:1].isupper():
        place += 1
    named = place > begun
    while not named and place < len(words) and not _BOUNDARY.fullmatch(words[place]):
        place += 1
    return place if place > begun else start
