"""Split a question that asks for several things into parts with rules; each is searched and answered separately."""

import re

from local_rag.retrieval.question import Question

MOST_PARTS = 3
_FEWEST_WORDS = 3  # of a part that counts as a question
_SENTENCE = re.compile(r"(?<=\?)\s+")
_AND = re.compile(r"(?:,|(?<!\s))\s++and\s++", re.IGNORECASE)
# The beginning of a separate question after "and".
_CLAUSE = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|(?:is|are|was|were|do|does|did|can|may|must|should|will|has|have)"
    r"\s+\w+)\b",
    re.IGNORECASE,
)


def read_question(text: str, typed: str = "") -> Question:
    """Return a question with its parts; raise QuestionError for one that cannot be asked."""
    return Question(text, tuple(split_clauses(text)), typed)


def split_clauses(question: str) -> list[str]:
    """Return the questions of a compound question, at most MOST_PARTS; none if there is only one.

    Questions may follow each other or be joined by "and".
    """
    text = " ".join(question.split())
    parts = [part for part in _SENTENCE.split(text) if len(part.split()) >= _FEWEST_WORDS]
    if len(parts) < 2:  # noqa: PLR2004
        parts = _clauses(text.rstrip(" ?.!"))
    return [_as_question(part) for part in parts[:MOST_PARTS]] if len(parts) > 1 else []


def _as_question(part: str) -> str:
    return f"{part[:1].upper()}{part[1:].rstrip(' ?')}?"


def _clauses(text: str) -> list[str]:
    """Split a question at each "and" that precedes another question."""
    parts, start = list[str](), 0
    for joint in _AND.finditer(text):
        part, rest = text[start : joint.start()], text[joint.end() :]
        if _CLAUSE.match(rest) and len(part.split()) >= _FEWEST_WORDS and len(rest.split()) >= _FEWEST_WORDS:
            parts.append(part)
            start = joint.end()
    return [*parts, text[start:]]
