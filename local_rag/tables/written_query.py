"""Let a language model write one SELECT for a question about a view: a second reading beside the planner's.

It is run on the rows of the view alone, and nothing of it is shown. It only tells whether another reader of the same
question comes to the same result.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from math import isclose
from typing import Any

from local_rag.errors import ModelError, QuestionError
from local_rag.llama.generator import Generator, Request
from local_rag.records import TableAnswer
from local_rag.tables.mentions import Mention
from local_rag.tables.query import Query, select, value_of_sql
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View
from local_rag.text.names_apart import names_apart
from local_rag.text.tokens import folded

WriteQuery = Callable[[str, View, Sequence[Mention], RelationSet], Sequence[Sequence[Any]] | None]
"""Returns the rows of a query for a question of a view with its mentions; None if no model can write one."""

_SYSTEM = (
    "You translate a question about a table into one SQLite SELECT whose result is the answer and nothing else. Use "
    "only the columns of the table. Dates are texts like 2024-05-31. Write texts exactly as in the examples, or "
    "LIKE '%part%'."
)
_OPENING, _END = "```sql\nSELECT", re.compile(r"```|;")
_MOST_TOKENS = 100
_SAMPLED, _EXAMPLES, _NAMED = 50, 3, 3  # rows that are looked at, and values of a column that are shown
_LONGEST = 60  # characters of a value or name
_MOST_RESULTS = 60
_ROUNDED = 0.0051  # what a model that rounds to cents may differ by
_TYPES = {"number": "REAL", "date": "DATE", "text": "TEXT"}
# Words of SQL that columns are called by, too; one with another such name only fails to be asked for.
_KEYWORDS = frozenset([
        "all", "and", "as", "asc", "between", "by", "case", "check", "column", "current", "default", "desc", "end",
        "from", "group", "in", "index", "is", "join", "key", "left", "like", "limit", "match", "no", "not", "of", "on",
        "or", "order", "over", "primary", "references", "right", "row", "rows", "select", "set", "table", "then", "to",
        "union", "unique", "update", "values", "view", "when", "where", "with",
])  # fmt: skip


class QueryWriter:
    """Write queries with the generator that `open_generator` opens, without the adapter that it answers with."""

    def __init__(self, open_generator: Callable[[], AbstractContextManager[Generator]]) -> None:
        self._open_generator = open_generator

    def __call__(
        self, question: str, view: View, mentioned: Sequence[Mention], held: RelationSet
    ) -> Sequence[Sequence[Any]] | None:
        """Return the rows of the query that the model writes, none if it is wrong; None if no model can be used."""
        names = _safe_names([column.name for column in view.columns])
        held.hold([one.table for one in view.relations])
        try:
            described = _described(view, names, mentioned, held)
            with self._open_generator() as generator, generator.adapted(None):
                written = _written(question, described, generator)
        except ModelError:
            return None
        columns = ", ".join(f"{value_of_sql(one)} AS {name}" for one, name in zip(view.columns, names, strict=True))
        data = select(Query(view, "count"), columns)
        with suppress(QuestionError):
            return held.select(f"WITH data AS ({data}) SELECT {written}", most=_MOST_RESULTS).rows
        return []


def _safe_names(columns: Sequence[str]) -> list[str]:
    """Return names that need no quotation marks in SQL."""
    plain = [re.sub(r"[^a-z0-9]+", "_", folded(name)).strip("_")[:_LONGEST] or "column" for name in columns]
    plain = [f"{name}_" if name in _KEYWORDS else name for name in plain]
    return names_apart([f"c_{name}" if name[0].isdigit() else name for name in plain], "{}_{}".format)


def _described(view: View, names: Sequence[str], mentioned: Sequence[Mention], held: RelationSet) -> str:
    sample = held.select(select(Query(view, "count"), ", ".join(map(value_of_sql, view.columns))), most=_SAMPLED).rows
    lines = list[str]()
    for at, (column, name) in enumerate(zip(view.columns, names, strict=True)):
        meant = [value for one in mentioned if one.column == at and one.kind == "value" for value in one.values]
        seen = [row[at] for row in sample if row[at] not in (None, "")]
        values = list(dict.fromkeys([*meant[:_NAMED], *list(dict.fromkeys(seen))[:_EXAMPLES]]))
        shown = ", ".join(repr(one[:_LONGEST]) if isinstance(one, str) else f"{one:g}" for one in values)
        said = f"{column.name} in {column.unit}" if column.unit else column.name
        lines.append(f"  {name} {_TYPES[column.kind]}, -- {' '.join(said.split())[:_LONGEST]}: {shown}")
    return "\n".join(
        [f"CREATE TABLE data ( -- {' '.join(view.label.split())[:_LONGEST]}: {view.rows} rows", *lines, ")"]
    )


def _written(question: str, described: str, generator: Generator) -> str:
    """Return what the model writes behind the word SELECT."""
    model = generator.model
    before, after = model.chat_frame(_SYSTEM)
    prefix = [*model.tokenize(before, special=True), *model.tokenize(f"{described}\n\nQuestion: {question}")]
    suffix = [*model.tokenize(after, special=True), *model.tokenize(_OPENING)]
    tokens, text = list[int](), ""
    with closing(generator.stream([Request("query", prefix, suffix, _MOST_TOKENS)])) as events:
        for event in events:
            if event.token is None:
                break
            tokens.append(event.token)
            text = model.detokenize(tokens)
            if _END.search(text):
                break
    return _END.split(text, maxsplit=1)[0].strip()


def says(rows: Sequence[Sequence[Any]], table: TableAnswer) -> bool:
    """Return whether the rows of a query say what an answer says: its value, or its labels, their values, or both."""
    labels, values = [one.label for one in table.values], [one.value for one in table.values]
    pairs = [part for one in table.values for part in (one.label, one.value)]
    wanted: list[list[Any]] = [[table.value]] if table.value is not None else [labels, values, pairs]
    found = [[value for row in rows for value in row if value is not None], [row[0] for row in rows if row]]
    return any(_are_same(one, other) for one in found for other in wanted if other)


def _are_same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    (numbers, texts), (others, words) = map(_parted, (found, wanted))
    alike = len(numbers) == len(others) and texts == words
    return alike and all(isclose(*pair, rel_tol=1e-6, abs_tol=_ROUNDED) for pair in zip(numbers, others, strict=True))


def _parted(values: Sequence[Any]) -> tuple[list[float], list[str]]:
    """Return the numbers among some values, and the others as they are compared, each in order."""
    numbers, texts = list[float](), list[str]()
    for value in values:
        try:
            numbers.append(float(value))
        except (TypeError, ValueError):
            texts.append(" ".join(folded(str(value)).split()))
    return sorted(numbers), sorted(texts)
