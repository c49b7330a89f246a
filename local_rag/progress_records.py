"""How far work has come, as it is told while it goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal[
    "read",
    "compare",
    "contextualize",
    "embed",
    "publish",
    "ask",
    "answer",
    "draft",
    "check",
    "find",
    "extract",
    "verify",
]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a stage; `detail` is a short remark for the user."""

    stage: Stage
    done: int
    total: int
    detail: str = ""


OnProgress = Callable[[Progress], None]


def ignore(_event: object) -> None:
    """Do nothing with what is told."""
