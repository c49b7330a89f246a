"""The relations of a library as somebody sees them: named for SQL, copied to memory when they are asked."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from threading import RLock
from typing import Any, NoReturn, TypeVar

from local_rag.asking import Filters
from local_rag.document_records import page_number
from local_rag.errors import QuestionError
from local_rag.store.database import Store
from local_rag.store.relation_query import MAX_ROWS, EndedError, QueryResult, RelationCopy
from local_rag.store.relation_rows import StoredRelation, relation_blocks, relations
from local_rag.text.names_apart import names_apart
from local_rag.text.tokens import folded

MOST_ROWS = 1_500_000  # in memory: of a set, and of all sets that are kept
_MOST_SETS = 4  # of different filters and limits, that are kept
_LONGEST_NAME = 60  # characters of a table
_RESERVED, _RESERVED_PREFIX = frozenset({"rowid", "oid", "_rowid_"}), "sqlite_"  # of columns, of tables
# The names of tables that a statement reads, and of those that it makes.
_READ = re.compile(r"\b(?:FROM|JOIN)\s+[\[\"`]?([^\W\d]\w*)", re.IGNORECASE)
_MADE = re.compile(r"\b(\w+)\s*(?:\([^()]*\)\s*)?AS\s*\(", re.IGNORECASE)
T = TypeVar("T")
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
        return stored.cells or (f"page {page_number(stored.page, stored.page_label)}" if stored.page else "")


class LeftOutError(QuestionError):
    """Report a relation that cannot be held, and that its set does not name any more."""


class RelationSet:
    """Copies of relations in memory; those that are asked stay for the next question, for one thread at a time.

    `left_out` says why relations that cannot be held are not among those that are `named`.
    """

    def __init__(self, named: Sequence[NamedRelation], open_store: OpenStore, stamp: object = None) -> None:
        self.named, self.stamp = tuple(named), stamp
        self.left_out: dict[str, str] = {}
        self._open_store = open_store
        self._by_table = {one.table: one for one in named}
        self._copy = RelationCopy()
        self._held: dict[str, int] = {}
        self.known: dict[Any, Any] = {}  # what was computed from a relation, as long as it is held

    @property
    def rows(self) -> int:
        """Return how many rows are held."""
        return sum(self._held.values())

    def close(self) -> None:
        """Free the memory."""
        self._copy.close()
        self._held.clear()
        self.known.clear()

    def hold(self, tables: Sequence[str]) -> None:
        """Copy relations that are not in memory yet.

        Raise LeftOutError for one that cannot be copied, and QuestionError for more than are held together.
        """
        wanted = list(dict.fromkeys(tables))
        if self._held and not self._copy.is_running:
            self.close()
        if reason := next((self.left_out[one] for one in wanted if one in self.left_out), ""):
            raise LeftOutError(reason)
        if missing := [one for one in wanted if one not in self._held]:
            if self.rows + self._rows_of(missing) > MOST_ROWS:
                self._require_room(wanted)
                self.close()
                missing = wanted
            with self._open_store() as store:
                for one in missing:
                    self._copy_from(store, self._by_table[one])

    def _rows_of(self, tables: Sequence[str]) -> int:
        return sum(self._by_table[one].stored.rows for one in tables)

    def _require_room(self, tables: Sequence[str]) -> None:
        for one in tables:
            if self._rows_of([one]) > MOST_ROWS:
                self._leave_out(self._by_table[one], f"more than {MOST_ROWS:,} rows")
        if self._rows_of(tables) > MOST_ROWS:
            raise QuestionError(
                f"{', '.join(tables)[:200]} have more than {MOST_ROWS:,} rows together; ask about fewer tables."
            )

    def _copy_from(self, store: Store, relation: NamedRelation) -> None:
        try:
            self._copy.add_blocks(relation.table, relation.columns, relation_blocks(store, relation.stored.id))
        except QuestionError as error:
            if isinstance(error, EndedError):
                self.close()
            self._leave_out(relation, str(error).rstrip("."))
        self._held[relation.table] = relation.stored.rows

    def _leave_out(self, relation: NamedRelation, reason: str) -> NoReturn:
        """Name a relation no longer: whatever it holds, the others are asked."""
        place = ", ".join(filter(None, [relation.stored.path.rpartition("/")[2], relation.place]))
        told = f"The table {relation.table} ({place}) is left out, because it cannot be held: {reason}."
        self.left_out[relation.table] = told
        self.named = tuple(one for one in self.named if one is not relation)
        self.known.clear()
        raise LeftOutError(told)

    def select(self, statement: str, parameters: Sequence[object] = (), **limits: Any) -> QueryResult:
        """Run one SELECT on relations that are held, with the limits of `RelationCopy.select`."""
        return self._copy.select(statement, parameters, **limits)

    def answered(self, answer: Callable[[], T | None]) -> T | None:
        """Return what is answered from relations, if any is; again without each one that cannot be held."""
        while True:
            found, named = None, self.named
            with suppress(QuestionError):  # also a limit of time or memory
                found = answer()
            if self.named == named:
                return found

    def query(self, statement: str, *, most: int = MAX_ROWS) -> QueryResult:
        """Run one SELECT on the relations that it names."""
        words = set(re.findall(r"\w+", statement.lower()))
        while wanted := [one.table for one in self.named if one.table in words]:
            with suppress(LeftOutError):  # perhaps the statement only has a word like its name
                self.hold(wanted)
                break
        try:
            return self.select(statement, most=most)
        except QuestionError as error:
            known = {one.table.lower() for one in self.named} | set(map(str.lower, _MADE.findall(statement)))
            unknown = [name for name in _READ.findall(statement) if name.lower() not in known]
            if unknown and ("no such table" in str(error) or "syntax error" in str(error)):  # a keyword is no name
                missing = f"There is no table {unknown[0]}; `local-rag tables` lists the tables."
                raise QuestionError(self.left_out.get(unknown[0].lower(), missing)) from None
            raise


@dataclass(slots=True)
class HeldRows:
    """Tables in memory, those of the limits and filters that were asked last, for one thread at a time."""

    sets: dict[tuple[Filters, Filters], RelationSet] = field(default_factory=dict)
    alone: RLock = field(default_factory=RLock)

    def keep(self, sets: Mapping[tuple[Filters, Filters], RelationSet]) -> None:
        """Keep more of them, in the place of those that were asked longest ago."""
        for key, one in sets.items():
            if known := self.sets.pop(key, None):
                known.close()
            self.sets[key] = one
        while len(self.sets) > _MOST_SETS or (len(self.sets) > 1 and self._rows > MOST_ROWS):
            self.sets.pop(next(iter(self.sets))).close()

    @property
    def _rows(self) -> int:
        return sum(one.rows for one in self.sets.values())

    def close(self) -> None:
        """Free the memory of all that are kept."""
        with self.alone:
            while self.sets:
                self.sets.popitem()[1].close()


def relation_set(
    store: Store, stamp: object, open_store: OpenStore, passes: Callable[[int], bool] = lambda _document: True
) -> RelationSet:
    """Return the relations that a store shows, of the documents that pass."""
    named = _named([one for one in relations(store) if passes(one.document_id)])
    return RelationSet(list(named), open_store, stamp)


def _named(stored: Sequence[StoredRelation]) -> Iterator[NamedRelation]:
    """Name each relation after its file, and its sheet or heading if the file has several; no two alike."""
    in_document, names = Counter(one.document_id for one in stored), list[str]()
    for one in stored:
        more = (one.sheet or one.name) if in_document[one.document_id] > 1 else ""
        stem = PurePath(one.path).stem
        names.append(_as_name(f"{stem} {more}" if folded(more) not in folded(stem) or not more else stem) or "table")
    for name, one in zip(names_apart(names, "{}_{}".format), stored, strict=True):
        columns = [column.name.replace("\0", " ") or "_" for column in one.columns]
        columns = [f"{column}_" if column.lower() in _RESERVED else column for column in columns]
        yield NamedRelation(name, tuple(names_apart(columns)), one)


def _as_name(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", folded(text)).strip("_")[:_LONGEST_NAME].strip("_")
    return f"t_{name}" if name[:1].isdigit() or name.startswith(_RESERVED_PREFIX) else name


def relation_as_dict(one: NamedRelation, name: Callable[[str], str]) -> Mapping[str, Any]:
    """Return what a relation is, for JSON."""
    stored = one.stored
    return {
        "table": one.table,
        "path": name(stored.path),
        "sheet": stored.sheet or None,
        "cells": stored.cells or None,
        "page": stored.page,
        "page_label": stored.page_label or None,
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
