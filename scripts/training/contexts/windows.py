"""Windows in tokens: the text of a document up to its last chunk, and what is to be written after each chunk."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scripts.training.answers.examples import Examples


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows, end to end; a branch is a request and the text that answers it, after the first `cuts` tokens.

    Questions count in full, sentences half.
    """

    prefixes: np.ndarray  # tokens of all windows
    prefix_ends: np.ndarray  # where each window ends in `prefixes`
    branches: np.ndarray  # tokens of all branches: request, text, end of turn
    branch_ends: np.ndarray
    owners: np.ndarray  # window of each branch, ascending
    cuts: np.ndarray  # tokens of the window that each branch follows
    requests: np.ndarray  # tokens of each request
    questions: np.ndarray  # whether each branch is a question
    held_out: np.ndarray  # of each window

    def window(self, number: int) -> np.ndarray:
        """Return the tokens of a window."""
        return self.prefixes[self.prefix_ends[number - 1] if number else 0 : self.prefix_ends[number]]

    def branch(self, number: int) -> np.ndarray:
        """Return the tokens of a branch."""
        return self.branches[self.branch_ends[number - 1] if number else 0 : self.branch_ends[number]]

    def of_window(self, number: int) -> range:
        """Return the branches of a window."""
        first, last = np.searchsorted(self.owners, [number, number + 1])
        return range(int(first), int(last))

    def size(self, number: int) -> int:
        """Return the tokens of a window and of its branches."""
        return len(self.window(number)) + sum(len(self.branch(one)) for one in self.of_window(number))

    def examples(self) -> Examples:
        """Return each branch as a prompt of its own and its answer, for an adapter."""
        tokens, prompts = list[np.ndarray](), list[int]()
        for number, owner in enumerate(self.owners):
            tokens += [self.window(int(owner))[: self.cuts[number]], self.branch(number)]
            prompts.append(int(self.cuts[number] + self.requests[number]))
        lengths = np.array([len(self.branch(number)) for number in range(len(self.owners))])
        return Examples(
            tokens=np.concatenate(tokens),
            prompts=np.array(prompts, dtype=np.int32),
            answers=(lengths - self.requests).astype(np.int32),
            answerable=np.ones(len(prompts), dtype=bool),
            held_out=self.held_out[self.owners],
            refusal=int(self.branches[-1]),  # the end of a turn: none is refused
        )

    def save(self, path: Path) -> None:
        """Write the windows into one compressed file."""
        np.savez_compressed(path, **{name: getattr(self, name) for name in self.__dataclass_fields__})


def load_windows(path: Path) -> Windows:
    """Read what `save` wrote."""
    with np.load(path) as stored:
        return Windows(**{name: stored[name] for name in stored.files})
