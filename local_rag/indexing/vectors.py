"""The text of a chunk that is embedded, and the key under which its vector is stored."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_rag.keys import key_of
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import Embedder, input_tokens, tokenizer_of
from local_rag.settings import Settings


@dataclass(frozen=True, slots=True)
class EmbeddingTuning:
    """The weight of headings and contexts beside a chunk, chosen by measurement: see docs/results.md.

    Title and headings take at most `headings_tokens`, and a sentence the room that is left. What distinguishes a
    document is embedded separately and added with `context_weight`, because in one text it would dilute the chunk.
    """

    headings_tokens: int = 48
    context_weight: float = 0.75


TUNING = EmbeddingTuning()
_FEWEST_TOKENS = 8  # of a sentence: it says nothing in less room


def default_chunk_tokens(model: InstalledModel) -> int:
    """Return the default size of chunks in tokens: a fixed share of the embedder's input, within a limit.

    The rest of the input is for title and headings.
    """
    return min(256, input_tokens(model) * 4 // 7)


def chunk_tokens(settings: Settings, model: InstalledModel) -> int:
    """Return the largest size of chunks in tokens, from the settings or the default."""
    return settings.chunk_tokens or default_chunk_tokens(model)


def table_tokens(settings: Settings, model: InstalledModel) -> int:
    """Return the largest size of a table that stays whole: what the embedder takes, so none of its rows is left out.

    The heading above it is part of it. A size of chunks that the user has set is the limit for tables too.
    """
    return settings.chunk_tokens or input_tokens(model)


def embedded_text(
    headings: str,
    text: str,
    sentence: str = "",
    *,
    model: InstalledModel,
    headings_tokens: int = TUNING.headings_tokens,
    text_tokens: int | None = None,
) -> str:
    """Put headings and a sentence before a chunk, cut so that all fit the embedder's input.

    The chunk is never cut: the splitter limits its size. `text_tokens` is that limit, if known: the tokens of the chunk
    are counted only if the rest might not fit beside so many.
    """
    tokenizer, room = tokenizer_of(model), input_tokens(model)
    if sentence or text_tokens is None or text_tokens + headings_tokens > room:
        text_tokens = len(tokenizer.encode(text, add_special_tokens=False).ids)
    room = max(0, room - text_tokens)
    headings, used = _cut(headings, min(room, headings_tokens), tokenizer)
    if sentence:
        room -= used
        sentence = _between_words(sentence, room, tokenizer) if room >= _FEWEST_TOKENS else ""
    return "\n".join(part for part in (headings, sentence, text) if part)


def _cut(text: str, tokens: int, tokenizer: Any) -> tuple[str, int]:
    """Cut a text to so many tokens; return it with the number of its tokens."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    if len(encoding.ids) <= tokens:
        return text, len(encoding.ids)
    return (text[: encoding.offsets[tokens - 1][1]] if tokens else ""), tokens


def _between_words(text: str, tokens: int, tokenizer: Any) -> str:
    """Cut a text to at most so many tokens at the end of a word, if it has spaces between words."""
    kept, _ = _cut(text, tokens, tokenizer)
    if len(kept) == len(text) or text[len(kept)].isspace():
        return kept
    return kept.rpartition(" ")[0] or kept


def embed_with_contexts(
    embedder: Embedder, passages: Sequence[tuple[str, str]], context_weight: float = TUNING.context_weight
) -> np.ndarray:
    """Return a normalised vector for each passage and its context, shape (len(passages), dimension).

    The two are embedded separately and added; an empty context adds nothing.
    """
    vectors = embedder.embed_passages([text for text, _ in passages])
    situated = [row for row, (_, context) in enumerate(passages) if context]
    if situated:
        vectors[situated] += context_weight * embedder.embed_passages([passages[row][1] for row in situated])
        vectors[situated] /= np.linalg.norm(vectors[situated], axis=1, keepdims=True)
    return vectors


@functools.cache
def embedder_identity(model: InstalledModel, tuning: EmbeddingTuning = TUNING) -> str:
    """Return what two vectors must have in common to be comparable; the number stands for the code above."""
    shaped = key_of("vector", 3, tuning.headings_tokens, tuning.context_weight)
    return key_of(model.identity, model.query_prefix, model.passage_prefix, model.pooling, shaped)


def vector_keys(model: InstalledModel, passage: str, context: str) -> tuple[str, ...]:
    """Return the keys under which a vector may be stored; the last is that of a new vector.

    A key is made of everything that a vector depends on. A copy with int8 weights has a key of its own, but a vector
    made with the original weights will do.
    """
    identity = embedder_identity(model)
    reference = key_of(identity, passage, context)
    return (reference, key_of(identity, "int8", passage, context)) if model.int8 else (reference,)
