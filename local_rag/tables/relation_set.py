"""The relations of a library as somebody sees them: named for SQL, copied to memory when they are asked."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from local_rag.errors import QuestionError
from local_rag.store.database import Store
from local_rag.store.relation_query import MAX_ROWS, QueryResult, RelationCopy
from local_rag.store.relation_rows import StoredRelation, relation_rows, relations
from local_rag.text.tokens import folded

_MOST_ROWS = 1_500_000  # in memory at a time
_LONGEST_NAME = 60  # characters of a table
_RESERVED = frozenset({"rowid", "oid", "_rowid_"})
# The names of tables that a statement reads, and of those that it makes.
_READ = re.compile(r"\b(?:FROM|JOIN)\s+[\[\"`]?([^\W\d]\w*)", re.IGNORECASE)
_MADE = re.compile(r"\b(\w+)\s*(?:\([^()]*\)\s*)?AS\s*\(", re.IGNORECASE)
OpenStore = Callable[[], AbstractContextManager[Store]]


@dataclass(frozen=True, slots=True)
class NamedRelation:
    """A relation with the name of its table and those of its columns in SQL."""

    table: str
    columns: tuple[str, ...]
    stored: StoredRelation

    @property
    def place(self) -> str:
        """Return where it is in its file: a sheet with its cells, a page, or nothing."""
        stored = self.stored
        if stored.sheet:
            return f"{stored.sheet}!{stored.cells}"
        return stored.cells or (f"page {stored.page}" if stored.page else "")


class RelationSet:
    """Copies of relations in memory; those that are asked stay for the next question, for one thread at a time."""

    def __init__(self, named: Sequence[NamedRelation], open_store: OpenStore, stamp: object = None) -> None:
        self.named, self.stamp = tuple(named), stamp
        self._open_store = open_store
        self._by_table = {one.table: one for one in named}
        self._copy = RelationCopy()
        self._held: dict[str, int] = {}
        self.known: dict[Any, Any] = {}  # what was computed from a relation, as long as it is held

    def close(self) -> None:
        """Free the memory."""
        self._copy.close()

    def hold(self, tables: Sequence[str]) -> None:
        """Copy relations that are not in memory yet."""
        missing = [one for one in dict.fromkeys(tables) if one not in self._held]
        more = sum(self._by_table[one].stored.rows for one in missing)
        if missing and sum(self._held.values()) + more > _MOST_ROWS and self._held:
            self._copy.close()
            self._copy, self._held = RelationCopy(), {}
            self.known.clear()
            missing = list(dict.fromkeys(tables))
        if not missing:
            return
        with self._open_store() as store:
            for one in missing:
                relation = self._by_table[one]
                rows = ((row[0], *row[2:]) for row in relation_rows(store, relation.stored.id) if not row[1])
                self._copy.add(one, relation.columns, rows)
                self._held[one] = relation.stored.rows

    def select(self, statement: str, parameters: Sequence[object] = (), **limits: Any) -> QueryResult:
        """Run one SELECT on relations that are held, with the limits of `RelationCopy.select`."""
        return self._copy.select(statement, parameters, **limits)

    def query(self, statement: str, *, most: int = MAX_ROWS) -> QueryResult:
        """Run one SELECT on the relations that it names."""
        words = set(re.findall(r"\w+", statement.lower()))
        if wanted := [one.table for one in self.named if one.table in words]:
            self.hold(wanted)
        try:
            return self.select(statement, most=most)
        except QuestionError as error:
            known = {one.table.lower() for one in self.named} | set(map(str.lower, _MADE.findall(statement)))
            unknown = [name for name in _READ.findall(statement) if name.lower() not in known]
            if unknown and ("no such table" in str(error) or "syntax error" in str(error)):  # a keyword is no name
                raise QuestionError(f"There is no table {unknown[0]}; `local-rag tables` lists the tables.") from None
            raise


def relation_set(
    store: Store, stamp: object, open_store: OpenStore, passes: Callable[[int], bool] = lambda _document: True
) -> RelationSet:
    """Return the relations that a store shows, of the documents that pass."""
    named = _named([one for one in relations(store) if passes(one.document_id)])
    return RelationSet(list(named), open_store, stamp)


def _named(stored: Sequence[StoredRelation]) -> Iterator[NamedRelation]:
    """Name each relation after its file, and its sheet or heading if the file has several; no two alike."""
    in_document, used = Counter(one.document_id for one in stored), Counter[str]()
    for one in stored:
        more = (one.sheet or one.name) if in_document[one.document_id] > 1 else ""
        stem = PurePath(one.path).stem
        name = _as_name(f"{stem} {more}" if folded(more) not in folded(stem) or not more else stem) or "table"
        used[name] += 1
        while used[name] > 1:
            number = used[name]
            if not used[numbered := f"{name}_{number}"]:
                used[numbered] += 1
                name = numbered
                break
            used[name] += 1
        columns = tuple(
            f"{column.name}_" if column.name.lower() in _RESERVED else column.name for column in one.columns
        )
        yield NamedRelation(name, columns, one)


def _as_name(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", folded(text)).strip("_")[:_LONGEST_NAME].strip("_")
    return f"t_{name}" if name[:1].isdigit() else name


def relation_as_dict(one: NamedRelation, name: Callable[[str], str]) -> Mapping[str, Any]:
    """Return what a relation is, for JSON."""
    stored = one.stored
    return {
        "table": one.table,
        "path": name(stored.path),
        "sheet": stored.sheet or None,
        "cells": stored.cells or None,
        "page": stored.page,
        "title": stored.name or stored.title,
        "rows": stored.rows,
        "totals_left_out": stored.totals,
        "columns": [
            {
                "name": sql,
                "kind": column.kind,
                "unit": column.unit or None,
                "formulas_without_value": column.uncomputed,
            }
            for sql, column in zip(one.columns, stored.columns, strict=True)
        ],
    }
