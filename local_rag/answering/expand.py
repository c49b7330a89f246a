"""Expand a question: also search for rephrasings that the answer model writes, and fuse all lists.

Off by default because published results and our own show that it hurts if search is strong and the model small.
"""

import re
from collections.abc import Sequence

from local_rag.llama.generator import Generator, Request
from local_rag.records import Passage
from local_rag.retrieval.fusion import reciprocal_rank_fusion

_SYSTEM = "You rewrite questions for a search engine."
_REQUEST = "Write three other ways to ask this, one a line, with the same names and numbers and other words."
_MOST, MOST_WORDS, _MAX_TOKENS = 3, 40, 120
OWN_WEIGHT = 2.0  # of the original question, against each rephrasing
_LABEL = re.compile(r"\s*(?:[-*\u2022]|\d+[.)]|question\s*:)\s*", re.IGNORECASE)


def rephrase(question: str, generator: Generator) -> list[str]:
    """Return other ways to ask a question, at most _MOST."""
    model = generator.model
    head, tail = model.chat_frame(_SYSTEM)
    prefix = [*model.tokenize(head, special=True), *model.tokenize(f"Question: {' '.join(question.split())}\n")]
    request = Request("expand", prefix, model.tokenize(f"{_REQUEST}{tail}", special=True), _MAX_TOKENS)
    ((_, tokens, _),) = generator.complete([request])
    found = questions_in(model.detokenize(tokens))
    return [line for line in found if line != question and len(line.split()) <= MOST_WORDS][:_MOST]


def questions_in(text: str) -> list[str]:
    """Return the questions that a model wrote one per line, without duplicates, labels and quotation marks."""
    found = dict.fromkeys(_LABEL.sub("", line, count=1).strip(" \"'") for line in text.splitlines())
    return [line for line in found if line]


def fuse_passages(lists: Sequence[Sequence[Passage]], weights: Sequence[float], *, k: int) -> list[Passage]:
    """Fuse the results for a question, which come first, with those for its rephrasings."""
    passages = {passage.chunk_id: passage for found in reversed(lists) for passage in found}
    rankings = {str(number): [passage.chunk_id for passage in found] for number, found in enumerate(lists)}
    named = dict(zip(rankings, weights, strict=True))
    return [passages[chunk] for chunk, _ in reciprocal_rank_fusion(rankings, k=k, weights=named)]
