"""Judge which of the queries found for a question is what it asks: a second reading, by a model of its own.

All queries of a question are read side by side, so that the model sees in what they differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from local_rag.errors import ModelError
from local_rag.models.models_folder import shipped_models
from local_rag.models.onnx_session import OnnxSession
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.reading.ruler import read_tokenizer
from local_rag.tables.encoding import CLS, SEP

CHECKER_FILE = "checker.onnx"  # beside the planner
TOKENIZER = shipped_models() / "minilm-l6-reader" / TOKENIZER_FILE  # that of all MiniLM models
_TABLE, _QUERY = 1, 10  # marks that no text can hold
_LENGTH, _QUESTION, _TABLES, _WORDS = 512, 72, 144, 44  # tokens in all, and of the question, of tables, of a query
_MOST_VALUES = 3  # of a result
_IMPOSSIBLE = -8.0


@dataclass(frozen=True, slots=True)
class Said:
    """What a checker reads of a query: its words with the first values of its result, and its table with the columns.

    Queries of the same table have the same text for it.
    """

    query: str
    table: str


class Checker(Protocol):
    """The interface of a checker."""

    def odds(self, question: str, queries: Sequence[Said]) -> Sequence[float]:
        """Return for each query the log odds that it is what the question asks."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of a question with its queries, and where each query begins and ends."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


def said(words: str, values: Sequence[str], label: str, columns: Sequence[str]) -> Said:
    """Return what a checker reads of a query in `words` with the values of its result."""
    result = ", ".join(values[:_MOST_VALUES]) + (" ..." if len(values) > _MOST_VALUES else "")
    return Said(f"{words.replace('*', '')} = {result}", f"{label}: {', '.join(columns)}")


def encode(tokenizer: Any, question: str, queries: Sequence[Said]) -> Encoded:
    """Return the tokens of a question, of the tables, and of the queries, each behind the number of its table."""

    def tokens(text: str, most: int) -> list[int]:
        ids: list[int] = tokenizer.encode(text[: most * 12], add_special_tokens=False).ids
        return ids[:most]

    ids = [CLS, *tokens(question, _QUESTION), SEP]
    asked = len(ids)
    tables = dict.fromkeys(one.table for one in queries)
    numbers = {table: min(_TABLE + number, _QUERY - 1) for number, table in enumerate(tables)}
    for table, mark in numbers.items():
        ids += [mark, *tokens(table, _TABLES // len(numbers))]
    ids.append(SEP)
    most = min(_WORDS, (_LENGTH - len(ids)) // max(1, len(queries)) - 2)
    spans = list[tuple[int, int]]()
    for one in queries:
        start = len(ids)
        ids += [_QUERY, numbers[one.table], *tokens(one.query, most)]
        spans.append((start, len(ids)))
    return Encoded(tuple(ids), tuple([0] * asked + [1] * (len(ids) - asked)), tuple(spans))


class TrainedChecker:
    """Check with the trained model in a folder; threads may share a checker."""

    def __init__(self, folder: Path) -> None:
        path = folder / CHECKER_FILE
        if not path.is_file():
            raise ModelError(f"The checker of rows is missing: {path}; reinstall local-rag, which comes with it.")
        self._tokenizer = read_tokenizer(TOKENIZER)
        self._session = OnnxSession(path, self._tokenizer)

    def odds(self, question: str, queries: Sequence[Said]) -> Sequence[float]:
        """Return for each query the log odds that it is what the question asks."""
        if not queries:
            return []
        encoded = encode(self._tokenizer, question, queries)
        [of_tokens] = self._session.run_tokens(encoded.ids, encoded.types)
        found = [float(of_tokens[start:end].mean()) for start, end in encoded.spans]
        return [one if isfinite(one) else _IMPOSSIBLE for one in found]
