"""What the engine holds in the KV cache: prefixes, and the requests that begin with them."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_rag.llama.generator import Request


@dataclass(slots=True, eq=False)
class Resident:
    """A prefix in the KV cache; `put` of its tokens were put into a batch, `ready` of them are evaluated."""

    sequence: int
    tokens: Sequence[int]
    put: int
    ready: int
    users: int = 0


@dataclass(slots=True, eq=False)
class Active:
    """A request under way."""

    request: Request
    resident: Resident
    sequence: int = -1
    done: int = 0
    generated: int = 0
    next_token: int | None = None
    row: int = -1

    @property
    def position(self) -> int:
        """Return where its next token stands."""
        return self.request.start + self.done + self.generated
