"""Rewrite a follow-up as a question that stands alone, and search for it in addition to the original question.

Small models change the meaning, as published results and our own show. Rewriting therefore requires a
model of 3B or more, and the original question, combined with the earlier ones, always has the same weight.
"""

import re
from collections.abc import Sequence

from local_rag.asking import Turn
from local_rag.errors import ModelError
from local_rag.llama.generator import Generator, Request, Vocabulary
from local_rag.records import Passage
from local_rag.retrieval.fusion import reciprocal_rank_fusion

_SYSTEM = "You rewrite questions for a search engine."
_REQUEST = (
    "Write the last question anew so that it can be understood without what stands before it: put in the names and "
    "things that it leaves out, and keep its meaning. Reply with that question only."
)
_FEWEST_PARAMETERS = 2.8e9  # a model called 3B may have a little less than 3 billion
_TURNS, _MOST_CHARACTERS, _MOST_WORDS, _MAX_TOKENS = 3, 300, 40, 80
OWN_WEIGHT = 2.0  # of the original question, against the rewritten one
_LABEL = re.compile(r"(?:(?<!\s)\s++)?(?:[-*\u2022]|(?<!\d)\d++[.)]|question\s*+:)\s*+", re.IGNORECASE)


def require_rewriter(model: Vocabulary) -> None:
    """Raise ModelError for a model that is too small to rewrite questions."""
    if model.parameters < _FEWEST_PARAMETERS:
        raise ModelError(
            f"--rewrite needs an answer model of 3 billion parameters or more, but {model.path.name} has "
            f"{model.parameters / 1e9:.1f} billion; remove it, or name a larger model with `--answer-model`."
        )


def rewrite(question: str, earlier: Sequence[Turn], generator: Generator) -> str | None:
    """Return a follow-up as a question that stands alone, or None if the model wrote nothing usable or no change."""
    model = generator.model
    require_rewriter(model)
    head, tail = model.chat_frame(_SYSTEM)
    said = "".join(f"Question: {_line(turn.question)}\nAnswer: {_line(turn.answer)}\n\n" for turn in earlier[-_TURNS:])
    prefix = [*model.tokenize(head, special=True), *model.tokenize(f"{said}Question: {' '.join(question.split())}\n")]
    request = Request("rewrite", prefix, model.tokenize(f"{_REQUEST}{tail}", special=True), _MAX_TOKENS)
    ((_, tokens, whole),) = generator.complete([request])
    lines = (_LABEL.sub("", line, count=1).strip(" \"'") for line in model.detokenize(tokens).splitlines())
    found = next(filter(None, lines), "")
    return found if whole and found and found != question and len(found.split()) <= _MOST_WORDS else None


def fuse_passages(own: Sequence[Passage], others: Sequence[Passage], *, k: int) -> list[Passage]:
    """Fuse the results for a question with those for its rewritten form."""
    passages = {passage.chunk_id: passage for passage in (*others, *own)}
    rankings = {"own": [passage.chunk_id for passage in own], "others": [passage.chunk_id for passage in others]}
    return [
        passages[chunk] for chunk, _ in reciprocal_rank_fusion(rankings, k=k, weights={"own": OWN_WEIGHT, "others": 1})
    ]


def _line(text: str) -> str:
    """Return a text as one line of limited length."""
    return " ".join(text.split())[:_MOST_CHARACTERS]
