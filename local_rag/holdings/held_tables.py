"""The tables of a library's documents, as somebody may see them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from local_rag.asking import EVERYTHING, FilterFields, Filters, as_filters
from local_rag.errors import LibraryError
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import Column
from local_rag.extraction.extraction import correct_cell
from local_rag.extraction.saved_tables import SavedTables
from local_rag.holdings.access import Access
from local_rag.store.relation_query import MAX_ROWS, QueryResult
from local_rag.store.relation_rows import relations_stamp
from local_rag.tables.answer import FromRows, answer_from_rows
from local_rag.tables.relation_set import HeldRows, NamedRelation, RelationSet, relation_set

_MOST_NOTES = 3  # on tables that are left out


class Tables:
    """The tables that the documents hold, for questions and for SQL, and those that were extracted and saved."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def listed(self, *, filters: Filters | FilterFields = EVERYTHING) -> list[NamedRelation]:
        """Return the tables of the documents that pass the filters, each with its name in SQL and its columns."""
        with self._taken_relations(as_filters(filters)) as taken:
            return list(taken.named)

    def query(self, statement: str, *, most: int = MAX_ROWS) -> QueryResult:
        """Run one SELECT on a copy of the tables that `listed` returns; raise QuestionError for anything else.

        It ends after a limit of time, and returns `most` rows at most.
        """
        with self._taken_relations(EVERYTHING) as taken:
            return taken.query(statement, most=most)

    @contextmanager
    def _taken_relations(self, filters: Filters) -> Iterator[RelationSet]:
        """Yield tables for this caller alone; who asks meanwhile gets others, and waits for no query of anybody."""
        kept, taken, key = self._access.shared.queries, HeldRows(), (self._access.limits, filters)
        with kept.alone:
            if held := kept.sets.pop(key, None):
                taken.sets[key] = held
        try:
            yield self._relations(filters, taken)
        finally:
            with kept.alone:
                kept.keep(taken.sets)

    @contextmanager
    def held(self, filters: Filters) -> Iterator[RelationSet]:
        """Yield the tables that questions are asked of, kept from question to question, for one thread at a time."""
        with self._access.shared.rows.alone:
            try:
                yield self._relations(filters, self._access.shared.rows)
            finally:  # a question may have brought rows for which others make room
                self._access.shared.rows.keep({})

    def answer(self, question: str, *, filters: Filters = EVERYTHING, earlier: Sequence[str] = ()) -> FromRows | None:
        """Return what rows say to a question that follows `earlier` ones, with notes on tables that are left out."""
        with self.held(filters) as held:
            found = held.answered(lambda: answer_from_rows(question, held, earlier))
            if found is None or not held.left_out:
                return found
            notes = (*found.table.notes, *list(held.left_out.values())[:_MOST_NOTES])
            return replace(found, table=replace(found.table, notes=notes))

    def _relations(self, filters: Filters, held: HeldRows) -> RelationSet:
        """Return the tables of the documents that are seen and pass filters; they stay open while nothing changes."""
        sets = held.sets
        with self._access.opened() as (store, _seen):
            stamp = relations_stamp(store)
            known = sets.pop((self._access.limits, filters), None)
            if known is None or known.stamp != stamp:
                if known:
                    known.close()
                known = relation_set(store, stamp, self._access.reading, self._access.passing(store, filters))
        held.keep({(self._access.limits, filters): known})
        return known

    def saved(self, person: str = "") -> SavedTables:
        """Return the tables that a person has saved; without an id, those of who serves the library."""
        return SavedTables(self._access.folder, person, kept=self._access.settings.retention.conversations)

    def correct_cell(self, document_id: int, column: Column, cell: Cell | None) -> None:
        """Keep a person's cell of a document in place of what the model said; None lets the model's count again.

        Raise LibraryError if nothing of questions is kept, or the document is no longer in the library.
        """
        if not self._access.settings.retention.conversations:
            raise LibraryError("The setting history is off, so no correction is written to a file; turn it on first.")
        with self._access.opened() as (store, seen):
            meant = seen.document_meant(document_id) if seen else document_id
            if store.document(meant) is None:
                raise LibraryError("This document is no longer in the library.")
        correct_cell(self._access.folder, self._access.asker.limits, meant, column, cell)
