"""The records of models: what each is for, how to use it, and where it is installed."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Literal

Role = Literal["context", "answer", "embed", "rerank"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """How probable it is that an answer is right, by signals of its model: a logistic regression.

    `recipe` names the prompt it was fitted for; with another prompt it says nothing. `weights` belong to the signals by
    name. An answer is given if its probability is at least `answer_from`, and nothing is quoted below `quote_from`.
    """

    recipe: str
    bias: float
    weights: Mapping[str, float]
    answer_from: float
    quote_from: float


def probability_of(log_odds: float) -> float:
    """Return the probability that log odds mean; beyond 30 it is as good as 0 or 1, and the exponential overflows."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, log_odds))))


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How a model is asked to answer: the `request` that ends its prompt, and the `refusal` that it was trained for.

    The first token of the refusal says, before anything is written, whether the sources answer the question. A model
    without a refusal is asked instead whether its answer is right.
    """

    request: str
    refusal: str = ""


PLAIN_FORM = AnswerForm("Answer the question in one or two short sentences.")


@dataclass(frozen=True, slots=True)
class ContextForm:
    """How a model is asked to write the context of a chunk: the `request` that ends its prompt.

    The `opening` is the beginning of its sentence, which it goes on with; a model that was trained to write contexts
    needs none. With a `separator`, a special token of the model, it was trained without chat template and tags: its
    prompt is the title, the separator before each chunk, and the request.
    """

    request: str
    opening: str = ""
    separator: str = ""


# A request of half the length made contexts shorter and chunks slightly harder to find: docs/results.md.
PLAIN_CONTEXT_FORM = ContextForm(
    request="Please give a short succinct context to situate the last chunk within the overall document for the "
    "purposes of improving search retrieval of the chunk. Answer only with the succinct context, in one sentence, and "
    "nothing else.",
    opening="This chunk",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """How to use a model."""

    context_length: int  # in tokens
    query_prefix: str = ""
    passage_prefix: str = ""
    # Named as in sentence-transformers; None: the model's own configuration decides.
    pooling: Literal["mean", "cls", "lasttoken"] | None = None
    calibration: Calibration | None = None  # of an answer model
    form: AnswerForm = PLAIN_FORM  # of an answer model
    translates: bool = False  # an answer model: puts questions into English well enough to search and answer
    context_form: ContextForm = PLAIN_CONTEXT_FORM  # of a context model
    sentence_form: ContextForm | None = None  # of one that was trained to ask questions, and for sentences too
    int8: bool = False  # an embedder: its weights were rounded to int8, and find as much
    fused_weight: float = 0.0  # of the fused rank beside a reranker's own; 0: only the reranker's order counts
    weak_below: float | None = None  # a passage with a lower reranker score hardly fits; None: not measured
    # A passage is about a subject if its cosine and that of its closest sentences add up to this; None: not measured.
    about_from: float | None = None
    # A passage with at least this cosine is close to a question with which it shares no word; None: not measured.
    close_from: float | None = None
    # A question whose cosine to the one before it, by an embedder, is lower than this begins a new subject.
    new_subject_below: float = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledModel(ModelUse):
    """A model on disk, ready to load."""

    name: str
    role: Role
    path: Path  # a GGUF file or a sentence-transformers folder
    identity: str  # the SHA-256 that identifies its weights
    engine: str = ""  # the address of the engine that runs it; `path` is then only its name
    adapter: Path | None = None  # changes what a generator says
    base: str = ""  # the identity of the model that the adapter changes
