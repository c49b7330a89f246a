"""The interface of text generators: requests, tokens, and the protocols that the engine and test fakes implement."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Generator as Stream
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from local_rag.errors import ModelError

OPENING, CLOSING = "<think>", "</think>"  # of the thoughts that a model writes before its answer


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt in tokens: a shared prefix and a suffix of its own.

    With a `cut`, the suffix follows the first `cut` tokens of the prefix. With a token `refusal`, the odds of an answer
    that begins otherwise are told.
    """

    key: str
    prefix: Sequence[int]
    suffix: Sequence[int]
    max_tokens: int
    cut: int | None = None
    refusal: int | None = None

    @property
    def start(self) -> int:
        """Return the position of the suffix."""
        return len(self.prefix) if self.cut is None else self.cut


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token. `token` is None when the request ended; `whole` is true if it ended before its limit.

    `odds`, of the first token of a request with a refusal, are the log odds that it is another one; not a number from
    an engine that does not tell them.
    """

    key: str
    token: int | None
    whole: bool = False
    odds: float = math.nan


@dataclass(slots=True)
class Counts:
    """Numbers of tokens: in all prompts, evaluated as prefix and as suffix, and generated."""

    prompt: int = 0
    prefix: int = 0
    suffix: int = 0
    generated: int = 0

    @property
    def evaluated(self) -> int:
        """Return the number of prompt tokens that were evaluated."""
        return self.prefix + self.suffix

    @property
    def reused(self) -> int:
        """Return the number of prompt tokens that came from the KV cache."""
        return max(0, self.prompt - self.evaluated)


class Vocabulary(Protocol):
    """A model's tokens and chat template, available without its weights."""

    path: Path
    context_length: int

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text; pass `special` only for local-rag's own text, never for documents."""

    def detokenize(self, tokens: list[int]) -> str:
        """Return the text of tokens; a character may span several."""

    def chat_frame(self, system: str) -> tuple[str, str]:
        """Return what the chat template puts before and after the user's message."""


class Generator(Protocol):
    """A loaded model that generates text; prompts with the same beginning share its evaluation.

    Within `stopping`, it calls `stop` between two operations and raises StoppedError once that returns true.
    """

    counts: Counts
    context_tokens: int

    @property
    def model(self) -> Vocabulary:
        """Return the model's vocabulary."""

    def stopping(self, stop: Callable[[], bool]) -> AbstractContextManager[None]:
        """Let `stop` end what is generated inside the context."""

    def adapted(self, adapter: Path | None) -> AbstractContextManager[None]:
        """Read and generate with an adapter (LoRA) inside the context; raise ModelError if that is impossible.

        With None, do so without the adapter that is used outside of the context.
        """

    def stream(self, requests: Iterable[Request]) -> Stream[Token]:
        """Yield every token as it is generated, and one last `Token` with None for each request."""

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int], bool]]:
        """Yield (key, tokens, ended by itself) for each request, in the order in which they end."""

    def read(self, prefix: Sequence[int]) -> None:
        """Evaluate a prefix that a request will perhaps have; do nothing where no prefix is kept."""

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray | None:
        """Return the log probabilities of the next token after a prompt, shape (vocabulary,).

        None from an engine that does not tell them. One that tells some gives all others the least of these.
        """


def log_odds_against(log_probability: float) -> float:
    """Return the log odds of everything but what has this log probability."""
    return math.log(max(-math.expm1(log_probability), 1e-12)) - log_probability


def log_odds_of_yes(log_probabilities: np.ndarray, model: Vocabulary) -> float:
    """Return the log odds of Yes against No as the next token.

    They are not a number if the engine does not tell them: one that tells only the most probable tokens gives all
    others the same odds.
    """
    yes, no = (
        sum(math.exp(log_probabilities[model.tokenize(f"{space}{word}")[0]]) for space in ("", " ") for word in words)
        for words in (("Yes", "yes"), ("No", "no"))
    )
    return math.log(yes / no) if yes != no and yes and no else math.nan


def never() -> bool:
    """Return False: the default of `stop`."""
    return False


class Stoppable:
    """What generators share: they keep `stop`, `never` outside of `stopping`, and neither adapters nor prefixes."""

    def __init__(self) -> None:
        self.stop: Callable[[], bool] = never

    @contextmanager
    def stopping(self, stop: Callable[[], bool]) -> Iterator[None]:
        """Let `stop` end what is generated inside the context."""
        self.stop = stop
        try:
            yield
        finally:
            self.stop = never

    def read(self, _prefix: Sequence[int]) -> None:
        """Do nothing."""

    def adapted(self, adapter: Path | None) -> AbstractContextManager[None]:
        """Refuse an adapter."""
        if adapter is None:
            return nullcontext()
        raise ModelError(f"This engine cannot use the adapter {adapter}; answer with a GGUF file in this process.")


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the length of the longest common prefix of two sequences."""
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))
