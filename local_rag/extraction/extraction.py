"""Extract a table from a library: rows are documents, columns are questions, and only what is not stored is asked."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from local_rag.asking import Filters
from local_rag.errors import StoppedError
from local_rag.extraction.cells import Cell, cell_from
from local_rag.extraction.columns import Column
from local_rag.extraction.document_asker import DocumentAsker, ReadDocument, Search, asked_key
from local_rag.keys import key_of
from local_rag.llama.generator import never
from local_rag.passage_records import found_passage
from local_rag.progress_records import Progress
from local_rag.retrieval.version_families import Versions
from local_rag.serialization import from_plain
from local_rag.store.cell_rows import (
    corrections,
    drop_correction,
    place_of_cells,
    put_cells,
    put_correction,
    stored_cells,
)
from local_rag.store.database import Store, StoredDocument

_MOST_UNWRITTEN = 20_000  # cells
OpenStore = Callable[[], AbstractContextManager[Store]]


@dataclass(frozen=True, slots=True)
class Row:
    """A document of a table, with one cell for each column; None for one that was not asked yet.

    `newest` is the path of the newest version if the document is an older one.
    """

    document: int
    path: str
    title: str
    newest: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, its rows by path, and how many cells of it were `asked` now and not stored before."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    asked: int = 0

    @property
    def missing(self) -> int:
        """Return how many cells were not asked yet."""
        return sum(cell is None for row in self.rows for cell in row.cells)


def table_from(plain: Mapping[str, Any]) -> Table:
    """Return a table from its JSON form; raise ValueError for that of another version."""
    try:
        rows = [
            Row(**{**row, "cells": tuple(cell if cell is None else cell_from(cell) for cell in row["cells"])})
            for row in plain["rows"]
        ]
        return Table(from_plain(tuple[Column, ...], plain["columns"]), tuple(rows), plain["asked"])
    except (KeyError, TypeError) as error:
        raise ValueError(error) from None


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a table is extracted with.

    `models` are the identities of the models, `reading` opens a store that shows what the caller may see, and
    `open_asker` opens the models for one document, with a search in it whose result depends on no other document. What
    people correct is kept for the `audience`, a key of what the caller may see. With `unwritten`, cells are kept in it,
    and nothing is written to a file.
    """

    folder: Path
    models: Sequence[str]
    reading: OpenStore
    open_asker: Callable[[StoredDocument], AbstractContextManager[tuple[DocumentAsker, Search]]]
    apart: Sequence[str] = ()
    audience: str = ""
    unwritten: "UnwrittenCells | None" = None

    def documents(self, filters: Filters, *, newest: bool) -> list[tuple[StoredDocument, str]]:
        """Return the documents of a table, by path, each with the path of its newest version if it is an older one."""
        with self.reading() as store:
            versions = Versions(store, self.apart)
            passing = versions.passing(filters)
            found = [(one, versions.newest(one.path)) for one in store.documents() if one.id in passing]
        return [(one, newer) for one, newer in found if not (newest and newer)]

    def stored(self, columns: Sequence[Column], filters: Filters, *, newest: bool = False, most: int = 0) -> Table:
        """Return what is stored of a table, or of its `most` first documents."""
        documents = self.documents(filters, newest=newest)
        with self.reading() as store:
            rows = [self._row(store, columns, *one) for one in documents[: most or None]]
        return Table(tuple(columns), tuple(rows))

    def run(
        self,
        columns: Sequence[Column],
        filters: Filters,
        *,
        newest: bool = False,
        most: int = 0,
        progress: Callable[[Progress], None] = lambda _step: None,
        stop: Callable[[], bool] = never,
    ) -> Table:
        """Ask what is not stored, store each cell the moment it exists, and return the table.

        Once `stop` returns true, what was asked until then is returned.
        """
        table = self.stored(columns, filters, newest=newest, most=most)
        asked, total = 0, table.missing
        for row in table.rows:
            missing = [column for column, cell in zip(columns, row.cells, strict=True) if cell is None]
            if missing and not stop():

                def tell(answers: int, title: str = row.title, before: int = asked, most: int = len(missing)) -> None:
                    progress(Progress("extract", before + min(answers, most), total, title))

                tell(0)
                with suppress(StoppedError):
                    for cells in self._ask(row.document, missing, stop, tell):
                        asked += cells
                    tell(len(missing))
        done = self.stored(columns, filters, newest=newest, most=most) if asked else table
        return Table(done.columns, done.rows, asked)

    def _ask(
        self, document_id: int, columns: Sequence[Column], stop: Callable[[], bool], tell: Callable[[int], None]
    ) -> Iterator[int]:
        """Ask a document, and yield the number of cells that were stored together; raise StoppedError if stopped.

        `tell` hears after each answer how many there are; a question that is asked twice has two.
        """
        with self.reading() as store:
            document = store.document(document_id)
            if document is None:  # removed meanwhile
                return
            passages = [found_passage(chunk, 0.0, (), "none") for chunk in store.chunks(document_id)]
            read = ReadDocument(document.title, store.document_text(document_id), passages)
        with self.open_asker(document) as (asker, search), self._writing() as store:
            memory = _Said(self, store, document_id, tell)
            for group in asker.ask(read, columns, search, memory, stop):
                cells = {
                    self._key(column, document): json.dumps(asdict(cell), ensure_ascii=False) for column, cell in group
                }
                self.put(store, document_id, cells, instead_of=memory.keys)
                memory.keys.clear()
                yield len(cells)

    def _writing(self) -> AbstractContextManager[Store]:
        return closing(Store(self.folder, write=True)) if self.unwritten is None else self.reading()

    def get(self, store: Store, document_id: int, keys: Sequence[str]) -> dict[str, str]:
        """Return what is kept of a document under these keys, as JSON."""
        found = stored_cells(store, document_id, keys)
        return found if self.unwritten is None else found | self.unwritten.get(place_of_cells(store, document_id), keys)

    def put(self, store: Store, document_id: int, cells: Mapping[str, str], instead_of: Sequence[str] = ()) -> None:
        """Keep cells of a document in the place of what is kept under other keys."""
        if self.unwritten is None:
            put_cells(store, document_id, cells, instead_of)
        else:
            self.unwritten.put(place_of_cells(store, document_id), cells, instead_of)

    def _row(self, store: Store, columns: Sequence[Column], document: StoredDocument, newest: str) -> Row:
        keys = [self._key(column, document) for column in columns]
        corrected = [_corrected(column) for column in columns]
        known = self.get(store, document.id, keys) | corrections(store, document.id, self.audience, corrected)
        cells = [
            _cell_of(known.get(by_person) or known.get(key)) for key, by_person in zip(keys, corrected, strict=True)
        ]
        return Row(document.id, document.path, document.title, newest, tuple(cells))

    def _key(self, column: Column, document: StoredDocument) -> str:
        return asked_key(column, self.models, document.title, document.split_key)


def correct_cell(folder: Path, audience: str, document_id: int, column: Column, cell: Cell | None) -> None:
    """Store a person's cell for an audience in place of what the model said; with None, let the model's count again."""
    with closing(Store(folder, write=True)) as store:
        if cell is None:
            drop_correction(store, document_id, audience, _corrected(column))
        else:
            plain = json.dumps(asdict(cell), ensure_ascii=False)
            put_correction(store, document_id, audience, _corrected(column), plain)


class UnwrittenCells:
    """Cells in memory alone, by the place of their document and their key; of many, those asked last."""

    def __init__(self) -> None:
        self._cells: dict[tuple[tuple[str, ...], str], str] = {}
        self._alone = Lock()

    def get(self, place: tuple[str, ...], keys: Sequence[str]) -> dict[str, str]:
        """Return what is kept under these keys."""
        return {key: cell for key in keys if (cell := self._cells.get((place, key))) is not None}

    def put(self, place: tuple[str, ...], cells: Mapping[str, str], instead_of: Sequence[str]) -> None:
        """Keep cells in the place of what is kept under other keys."""
        with self._alone:
            for key in instead_of:
                self._cells.pop((place, key), None)
            self._cells |= {(place, key): cell for key, cell in cells.items()}
            for oldest in list(self._cells)[: max(0, len(self._cells) - _MOST_UNWRITTEN)]:
                del self._cells[oldest]


class _Said:
    """What the models said about a document, kept beside its cells until these are stored.

    `keys` are those of what was kept or found here.
    """

    def __init__(self, kept: Extraction, store: Store, document: int, tell: Callable[[int], None]) -> None:
        self._kept, self._store, self._document, self._tell = kept, store, document, tell
        self._answers = 0
        self.keys: list[str] = []

    def get(self, key: str) -> str | None:
        said = self._key(key)
        found = self._kept.get(self._store, self._document, [said]).get(said)
        if found is not None:
            self._heard()
        return found

    def put(self, key: str, said: str) -> None:
        self._kept.put(self._store, self._document, {self._key(key): said})
        self._heard()

    def _heard(self) -> None:
        self._answers += 1
        self._tell(self._answers)

    def _key(self, key: str) -> str:
        self.keys.append(said := key_of("said", *self._kept.models, key))
        return said


def _corrected(column: Column) -> str:
    return key_of("corrected", column.key)


def _cell_of(plain: str | None) -> Cell | None:
    """Return a stored cell; None for one of another version, which is asked again."""
    if plain is None:
        return None
    try:
        return cell_from(json.loads(plain))
    except ValueError:
        return None
