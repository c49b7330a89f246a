"""Mark in a passage the sentence that fits best and the words of the question."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from local_rag.passage_records import Passage
from local_rag.reading.formats import format_named
from local_rag.text.sentences import sentence_spans, unwrapped
from local_rag.text.tokens import keyword_tokens

_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
_LEAST_SHARED = 2  # words that the best sentence has in common with the question

MarkKind = Literal["best", "term", "passage"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A span of a text that is the `best` sentence, a word (`term`) of the question, or the `passage` in a document."""

    start: int
    end: int
    kind: MarkKind


def marks(text: str, question: str, best: Sequence[tuple[int, int]] = ()) -> list[Mark]:
    """Return what to mark in a passage: the `best` spans, or else the closest sentence, and the words asked."""
    asked = frozenset(keyword_tokens(question))
    spans = [span for span in best if any(span)] or [closest_sentence(text, asked)]
    return [Mark(start, end, "best") for start, end in spans if start < end] + [
        Mark(*word.span(), "term") for word in _WORD.finditer(text) if asked & _tokens(word[0])
    ]


def closest_sentence(text: str, wanted: frozenset[str]) -> tuple[int, int]:
    """Return the span of the sentence that shares the most of the wanted tokens; (0, 0) if none shares enough."""
    best, most = (0, 0), 0
    for start, end in sentence_spans(text):
        shared = len(wanted & frozenset(keyword_tokens(text[start:end])))
        if shared > most:
            best, most = (start, end), shared
    return best if most >= min(_LEAST_SHARED, len(wanted)) else (0, 0)


def readable(passage: Passage) -> str:
    """Return the text of a passage with each paragraph in one line, code as it is; all offsets stay."""
    return passage.text if format_named(PurePath(passage.path).name).kind == "code" else unwrapped(passage.text)


@functools.lru_cache(maxsize=20_000)
def _tokens(word: str) -> frozenset[str]:
    return frozenset(keyword_tokens(word))
