"""Which chunks need the sentence of a model most, and which of its sentences can be used.

A chunk that can be confused with another, or cannot stand alone, needs one most. A sentence must hold nothing that its
document does not say: code checks each one before it is stored.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from local_rag.indexing.distinction import DANGLING, Distinction
from local_rag.model_records import PLAIN_CONTEXT_FORM
from local_rag.records import heading_path
from local_rag.text.facts import Source, missing_facts
from local_rag.text.tokens import keyword_tokens

_UNAIDED = 0.5  # the need of a chunk that cannot stand alone: less than that of one that can be confused
_FEWEST_WORDS = 5
_COPIED_WORDS = 10  # in a row: so many are copied from the chunk, not written
_LIST_ITEM = re.compile(r"(?:[-*+\u2022]|\d+[.)]|\|)\s*")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a sentence is checked against: its document's title and text, and its chunk."""

    document_id: int
    title: str
    headings: tuple[str, ...]
    passage: str


def needs(texts: Mapping[int, str], distinction: Distinction) -> dict[int, float]:
    """Return the positions of the chunks in need of a sentence, each with how much; `texts` may have to stand alone."""
    unaided = (position for position, text in texts.items() if not stands_alone(text))
    return dict.fromkeys(unaided, _UNAIDED) | dict(distinction.needed)


def stands_alone(text: str) -> bool:
    """Say whether a chunk neither begins with a reference to what precedes it nor is a bare table or list."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return not DANGLING.match(text) and not all(map(_LIST_ITEM.match, lines))


def usable_sentence(sentence: str, subject: Subject, document: Source) -> bool:
    """Say whether every number and name of a sentence is in the document, and it repeats neither chunk nor title."""
    words = _words(sentence)
    if len(words) < _FEWEST_WORDS or missing_facts("", sentence, [document, Source(subject.title)]):
        return False
    if _runs(words, _COPIED_WORDS) & _runs(_words(subject.passage), _COPIED_WORDS):
        return False
    said = set(keyword_tokens(f"{PLAIN_CONTEXT_FORM.opening} {heading_path(subject.title, subject.headings)}"))
    return bool(set(keyword_tokens(sentence)) - said)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _runs(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(length)), strict=False))


class Checker:
    """Check sentences against documents whose texts are read when needed; the facts of a few are kept."""

    def __init__(self, document_text: Callable[[int], str]) -> None:
        self._source = lru_cache(maxsize=8)(lambda document: Source(document_text(document)))

    def usable(self, sentence: str, subject: Subject) -> bool:
        """Say whether a sentence may be stored."""
        return bool(sentence) and usable_sentence(sentence, subject, self._source(subject.document_id))
