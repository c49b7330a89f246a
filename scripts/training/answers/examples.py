"""Examples in tokens: a prompt, the answer, and what is known about both."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Examples:
    """All examples, end to end in `tokens`; `refusal` is the token that a refusal begins with."""

    tokens: np.ndarray
    prompts: np.ndarray  # tokens of each prompt
    answers: np.ndarray  # tokens of each answer, with the one that ends it
    answerable: np.ndarray
    held_out: np.ndarray
    refusal: int

    @property
    def starts(self) -> np.ndarray:
        """Return where each example begins, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.prompts + self.answers)])

    def prompt(self, number: int) -> list[int]:
        """Return the prompt of an example."""
        start = int(self.starts[number])
        return [int(token) for token in self.tokens[start : start + self.prompts[number]]]

    def save(self, path: Path) -> None:
        """Write the examples into one compressed file."""
        np.savez_compressed(path, **{name: getattr(self, name) for name in self.__dataclass_fields__})


def load_examples(path: Path) -> Examples:
    """Read what `save` wrote."""
    with np.load(path) as stored:
        fields = {name: stored[name] for name in stored.files}
    return Examples(**fields | {"refusal": int(fields["refusal"])})
