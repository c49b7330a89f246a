"""What a generator of text is given and gives, and what it must be able to do: a fake needs no more."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt as a prefix to share and a suffix of its own, both in tokens.

    With a `cut` the suffix stands behind the first `cut` tokens of the prefix only.
    """

    key: str
    prefix: Sequence[int]
    suffix: Sequence[int]
    max_tokens: int
    cut: int | None = None

    @property
    def start(self) -> int:
        """Return the position of the suffix."""
        return len(self.prefix) if self.cut is None else self.cut


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token; `token` is None when the request ended, and `whole` says that it ended by itself."""

    key: str
    token: int | None
    whole: bool = False


@dataclass(slots=True)
class Counts:
    """Tokens of all prompts, those of them that were really evaluated, and tokens generated."""

    prompt: int = 0
    prefix: int = 0
    suffix: int = 0
    generated: int = 0

    @property
    def evaluated(self) -> int:
        """Count the prompt tokens that were evaluated."""
        return self.prefix + self.suffix

    @property
    def reused(self) -> int:
        """Count the prompt tokens that were taken from the KV cache instead."""
        return max(0, self.prompt - self.evaluated)


class Vocabulary(Protocol):
    """A model's tokens and chat template; its weights need not be loaded."""

    path: Path
    context_length: int

    @property
    def parameters(self) -> int:
        """Count the model's weights, where they are loaded."""

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text; `special` ones only for text of our own."""

    def piece(self, token: int) -> bytes:
        """Return the bytes of one token; a character may span several tokens."""

    def detokenize(self, tokens: list[int]) -> str:
        """Return the text of tokens."""

    def chat_frame(self, system: str) -> tuple[str, str]:
        """Return what the chat template puts before and after the user's message."""


class Generator(Protocol):
    """A model that is loaded to generate text; prompts that begin alike share their evaluation.

    `stop` is asked between two operations; once it says yes, what is being generated ends with StoppedError.
    """

    counts: Counts
    context_tokens: int
    stop: Callable[[], bool]

    @property
    def model(self) -> Vocabulary:
        """Return the model's vocabulary."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Token]:
        """Yield every token as it is generated, and for each request one last `Token` with None."""

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int], bool]]:
        """Yield key, tokens and whether it ended by itself for each request, in the order in which they end."""

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray:
        """Return the log probabilities of the next token after a prompt, shape (vocabulary,)."""


def never() -> bool:
    """Let what is being generated go on to its end."""
    return False


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the tokens that two sequences begin with in common."""
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))
