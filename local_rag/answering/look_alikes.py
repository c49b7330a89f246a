"""Detect that an answer may be about the wrong one of two similar documents."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from local_rag.records import Citation, Passage, heading_path

_SIMILAR = 0.7  # cosine of the word counts of two passages
_WORD = re.compile(r"\w+")


def look_alikes(question: str, citations: Sequence[Citation], read: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return passages that are similar to a cited one, from documents that the answer does not cite.

    A passage is left out if the question names the document it means, with a word that occurs in the heading of the
    cited passage but not in that of the other.
    """
    cited = [citation.passage for citation in citations]
    asked, documents = _words(question).keys(), {passage.path for passage in cited}
    found = []
    for passage in read:
        alike = [one for one in cited if passage.path not in documents and likeness(one.text, passage.text) >= _SIMILAR]
        if alike and not any(asked & (_names(one) - _names(passage)) for one in alike):
            found.append(passage)
    return tuple(found)


def likeness(one: str, other: str) -> float:
    """Return the cosine of the word counts of two texts."""
    words, others = _words(one), _words(other)
    shared = sum(count * others[word] for word, count in words.items())
    length = math.sqrt(sum(count**2 for count in words.values()) * sum(count**2 for count in others.values()))
    return shared / length if length else 0.0


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _names(passage: Passage) -> set[str]:
    """Return the words of a passage's title, headings and file name."""
    return set(_words(f"{heading_path(passage.title, passage.headings)} {passage.path.rpartition('/')[2]}"))
