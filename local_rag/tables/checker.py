"""Judge whether a query, said in words, is what a question asks: a second reading, by a model of its own."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Protocol

from local_rag.errors import ModelError
from local_rag.models.models_folder import shipped_models
from local_rag.models.onnx_session import OnnxSession
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.reading.ruler import CHARACTERS_PER_TOKEN, read_tokenizer

CHECKER_FILE = "checker.onnx"  # beside the planner
TOKENIZER = shipped_models() / "minilm-l6-reader" / TOKENIZER_FILE  # that of all MiniLM models
LENGTH = 160  # tokens of a question with a query
_MOST_VALUES = 3  # of a result
_IMPOSSIBLE = -8.0


class Checker(Protocol):
    """The interface of a checker."""

    def odds(self, question: str, queries: Sequence[str]) -> Sequence[float]:
        """Return for each query, as `said_in_full` says it, the log odds that it is what the question asks."""


def said_in_full(said: str, values: Sequence[str], label: str, columns: Sequence[str]) -> str:
    """Return what a checker reads of a query: its words, the first values of its result, and the table's columns."""
    result = ", ".join(values[:_MOST_VALUES]) + (" ..." if len(values) > _MOST_VALUES else "")
    return f"{said.replace('*', '')} = {result} ({label}: {', '.join(columns)})"


class TrainedChecker:
    """Check with the trained model in a folder; threads may share a checker."""

    def __init__(self, folder: Path) -> None:
        path = folder / CHECKER_FILE
        if not path.is_file():
            raise ModelError(f"The checker of rows is missing: {path}; reinstall local-rag, which comes with it.")
        tokenizer = read_tokenizer(TOKENIZER)
        tokenizer.enable_truncation(LENGTH)
        self._session = OnnxSession(path, tokenizer)

    def odds(self, question: str, queries: Sequence[str]) -> Sequence[float]:
        """Return for each query the log odds that it is what the question asks."""
        most = LENGTH * CHARACTERS_PER_TOKEN
        found = self._session.run([(question[:most], one[:most]) for one in queries])
        return [float(output) if isfinite(output) else _IMPOSSIBLE for _, [output] in found]
