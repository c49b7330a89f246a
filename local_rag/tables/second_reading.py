"""Read a question about rows a second time: the answer model writes one SELECT, and its result is compared.

It is asked where the planner alone is not sure. What it writes is never the answer, only a reason to believe a program
with the same result.
"""

import re
from collections.abc import Sequence

from local_rag.errors import QuestionError
from local_rag.llama.generator import Generator, Request
from local_rag.records import TableAnswer
from local_rag.tables.mentions import Mention
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View, values_of
from local_rag.text.tokens import folded

_SYSTEM = (
    "You translate a question about a table into one SQLite SELECT whose result is the answer and nothing else. "
    "Use only the columns of the table. Dates are texts like 2024-05-31. Write texts exactly as in the examples."
)
_OPENING = "```sql\nSELECT"
_TYPES = {"number": "REAL", "date": "DATE", "text": "TEXT"}
_MOST_TOKENS, _MOST_EXAMPLES, _LONGEST_EXAMPLE, _MOST_ROWS, _SECONDS = 90, 3, 40, 200, 2.0
_NEAR = 0.0101  # two numbers that are the same when rounded to two digits
_RESERVED = frozenset("order group index table from to in as set values where select by all case end then when".split())  # noqa: SIM905


def read_in_sql(
    question: str, view: View, mentioned: Sequence[Mention], held: RelationSet, generator: Generator
) -> list[tuple[object, ...]] | None:
    """Return the rows of the SELECT that the model writes for a view; None if it writes none that can be run."""
    model, names = generator.model, _safe_names(view)
    before, after = model.chat_frame(_SYSTEM)
    prefix = [*model.tokenize(before, special=True), *model.tokenize(f"{_described(view, mentioned, names, held)}\n\n")]
    suffix = [*model.tokenize(f"Question: {' '.join(question.split())}"), *model.tokenize(after, special=True)]
    suffix += model.tokenize(_OPENING)
    with generator.adapted(None):
        [(_, tokens, _)] = generator.complete([Request("rows", prefix, suffix, _MOST_TOKENS)])
    written = model.detokenize(tokens).partition("```")[0].partition(";")[0].strip()
    head, _, source = view.source.rpartition("|")
    columns = ", ".join(one.sql for one in view.columns)
    head = f"{head.rstrip()}, " if head else "WITH "
    try:
        return held.select(
            f"{head}t ({', '.join(names)}) AS (SELECT {columns} FROM {source}) SELECT {written}",  # noqa: S608
            most=_MOST_ROWS,
            seconds=_SECONDS,
        ).rows
    except QuestionError:
        return None


def _described(view: View, mentioned: Sequence[Mention], names: Sequence[str], held: RelationSet) -> str:
    """Return the view as a statement that makes a table, with what its cells hold and the question names."""
    lines = list[str]()
    for at, (column, name) in enumerate(zip(view.columns, names, strict=True)):
        found = [text for one in mentioned if one.column == at and one.end for text in one.values]
        if column.kind == "text":
            found += [some[0] for some in list(values_of(column, held).whole.values())[:_MOST_EXAMPLES]]
        shown = ", ".join(repr(text[:_LONGEST_EXAMPLE]) for text in dict.fromkeys(found[: 2 * _MOST_EXAMPLES]))
        said = f"{column.name}{f' in {column.unit}' if column.unit else ''}{f': {shown}' if shown else ''}"
        lines.append(f"  {name} {_TYPES[column.kind]}, -- {said}")
    return f"CREATE TABLE t ( -- {view.label}, {view.rows} rows\n" + "\n".join(lines) + "\n)"


def _safe_names(view: View) -> list[str]:
    """Return names that need no quotation marks, no two alike."""
    names = list[str]()
    for column in view.columns:
        name = re.sub(r"[^a-z0-9]+", "_", folded(column.name)).strip("_")[:40] or "c"
        name = f"c_{name}" if name[0].isdigit() or name in _RESERVED else name
        while name in names:
            name += "_"
        names.append(name)
    return names


def agrees(table: TableAnswer, rows: Sequence[tuple[object, ...]]) -> bool:
    """Return whether a SELECT has the values of an answer, in its first column or in all."""
    labels = [one.label for one in table.values]
    said = [table.value] if table.value is not None else labels
    firsts = [row[0] for row in rows if row and row[0] is not None]
    every = [value for row in rows for value in row if value is not None]
    of_values = [one.value for one in table.values]
    return any(_same(one, other) for one in (said, of_values) for other in (firsts, every))


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    if not some or len(some) != len(others):
        return False
    left = list(others)
    for one in some:
        known = next((other for other in left if _is_same(one, other)), None)
        if known is None:
            return False
        left.remove(known)
    return True


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= _NEAR
    if one in {"yes", "no"} and isinstance(other, int | float):
        return (one == "yes") == (other > 0)
    return str(one).strip().casefold() == str(other).strip().casefold()
