"""What a library holds: its documents with their state, where passages lead, and how far an index is."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from local_rag.asking import Filters
from local_rag.catalogue.links import LinkedDocument, Links
from local_rag.errors import MissingError
from local_rag.files import is_locked
from local_rag.index.protocol import Indexes
from local_rag.indexing.changes import FileState, file_state
from local_rag.indexing.roots import Roots
from local_rag.passage_records import Passage, found_passage
from local_rag.retrieval.filters import document_filter
from local_rag.store.counts import count_rows
from local_rag.store.database import Store, StoredDocument

SeenState = FileState | Literal["unknown"]
_MOST_ASKED = 2000  # files at a time
_THREADS = 8


class FileStates:
    """Look at files in threads of its own; what is not known after `seconds` is unknown.

    A file on a disk that sleeps or a drive that does not answer is asked for only once at a time, and may take as long
    as it wants. So may the hash of a large file, which the next look then knows.
    """

    def __init__(self, state: Callable[[StoredDocument], FileState] = file_state, *, seconds: float = 0.3) -> None:
        self._state, self._seconds = state, seconds
        self._lock = threading.Lock()
        self._asked: dict[StoredDocument, Future[SeenState]] = {}
        self._waiting: deque[StoredDocument] = deque()
        self._threads = 0

    def of(self, documents: Collection[StoredDocument]) -> Mapping[int, SeenState]:
        """Return the state of the file of each document, by the document's id."""
        ends = time.monotonic() + self._seconds
        asked = {document.id: self._ask(document) for document in documents}
        return {key: _known(future, ends) if future else "unknown" for key, future in asked.items()}

    def _ask(self, document: StoredDocument) -> Future[SeenState] | None:
        with self._lock:
            asked = self._asked.get(document)
            if asked is None and len(self._asked) < _MOST_ASKED:
                asked = self._asked[document] = Future()
                self._waiting.append(document)
                if self._threads < _THREADS:
                    self._threads += 1
                    threading.Thread(target=self._look, name="file states", daemon=True).start()
            return asked

    def _look(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                document = self._waiting.popleft()
            state: SeenState = "unknown"
            try:
                state = self._state(document)
            finally:
                with self._lock:
                    asked = self._asked.pop(document)
                asked.set_result(state)


def _known(asked: Future[SeenState], ends: float) -> SeenState:
    try:
        return asked.result(max(0.0, ends - time.monotonic()))
    except TimeoutError:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Location:
    """The document of a passage and the state of its file.

    `document` is None if the library does not hold the document any more, or not on this machine.
    """

    document: int | None = None
    state: SeenState = "same"


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document as it was indexed, with its passages in reading order, its other names, and its links."""

    id: int
    path: str
    title: str
    state: SeenState
    text: str
    passages: tuple[Passage, ...]
    names: tuple[str, ...] = ()
    links: tuple[LinkedDocument, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """The paths of the documents, each with the document's id, and the folders and files that were indexed."""

    documents: Mapping[str, int]
    roots: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """How far a document is indexed: its chunks, and how many of them have a context and a vector.

    `notes` say what of the file could not be read; it was last `changed` that many seconds after 1970.
    """

    id: int
    path: str
    title: str
    state: SeenState
    chunks: int
    vectors: int
    notes: tuple[str, ...]
    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How many documents and chunks there are, how many of these have vectors, and whether a process changes them."""

    running: bool
    documents: int
    chunks: int
    vectors: int


def locate(store: Store, passages: Sequence[Passage], files: FileStates) -> list[Location]:
    """Return the location of each passage."""
    chunks = store.chunks_by_id([passage.chunk_id for passage in passages])
    owners = {chunk.document_id: store.document(chunk.document_id) for chunk in chunks.values()}
    states = files.of([owner for owner in owners.values() if owner])
    found = []
    for passage in passages:
        chunk = chunks.get(passage.chunk_id)
        # In an older index another chunk may have had the number of a kept passage.
        document = chunk.document_id if chunk and chunk.path == passage.path else None
        found.append(Location() if document is None else Location(document, states[document]))
    return found


def find_passage(store: Store, chunk_id: int) -> Passage:
    """Return the passage of a chunk with its context; raise MissingError if there is none."""
    if (chunk := store.chunks_by_id([chunk_id]).get(chunk_id)) is None:
        raise MissingError("This passage is no longer in the library; search again.")
    return found_passage(chunk, 0.0, ())


def whole_document(store: Store, document_id: int, files: FileStates, *, with_text: bool) -> WholeDocument:
    """Return a document; raise MissingError if the library does not hold it any more."""
    document = store.document(document_id)
    if document is None:
        raise MissingError("This document is no longer in the library; search again.")
    text, passages = "", tuple[Passage, ...]()
    if with_text:
        text = store.document_text(document_id)
        passages = tuple(found_passage(chunk, 0.0, ()) for chunk in store.chunks(document_id))
    state = files.of([document])[document.id]
    return WholeDocument(document.id, document.path, document.title, state, text, passages)


def index_progress(store: Store) -> IndexProgress:
    """Return how far the documents are indexed."""
    rows = count_rows(store, ("documents", "chunks", "chunks_with_vectors"))
    return IndexProgress(is_locked(store.folder / "lock"), *rows.values())


# `waiting`: read, but not in the live index yet; `changed`: the file has changed since it was read.
State = Literal["indexed", "waiting", "changed", "missing", "unreachable"]


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document; `modified` is the time of its file when it was read, `date` its own date, None if it has none.

    `about` consists of the document's first sentences and its parts. `names` are its other names, and `links` lead to
    other documents and from them to it.
    """

    path: str
    title: str
    about: str
    state: State
    size: int
    modified: str
    date: str | None
    url: str | None
    author: str | None
    tags: tuple[str, ...] | None
    chunks: int
    names: tuple[str, ...] = ()
    links: tuple[LinkedDocument, ...] = ()


def list_documents(
    store: Store, indexes: Indexes, filters: Filters, *, after: str = "", most: int | None = None
) -> list[ListedDocument]:
    """Return the live documents that pass the filters, by path: at most `most`, with paths after `after`."""
    documents = store.documents_after(after)
    if filters:
        passes = document_filter(filters, store.roots())
        chosen = {facts.id for facts in store.facts() if passes(facts)}
        documents = (document for document in documents if document.id in chosen)
    known, live = {document.path: document for document in islice(documents, most)}, indexes.live()
    states = _states(known, Roots(store, store.roots(), known))
    indexed = set(np.intersect1d(live.documents()[0], [one.id for one in known.values()]).tolist()) if live else set()
    listed, links = [], Links(store)
    for document in known.values():
        first, chunks = store.first_row(document.id), store.count_chunks(document.id)
        whole, said = first if first and first.kind == "document" else None, first.provenance if first else None
        state = states.get(document.path) or ("indexed" if document.id in indexed or not chunks else "waiting")
        listed.append(
            ListedDocument(
                path=document.path,
                title=document.title,
                about=whole.chunk.text if whole else "",
                state=state,
                size=document.stamp.size,
                modified=datetime.fromtimestamp(document.stamp.modified_ns // 10**9).isoformat(sep=" "),
                date=(said and said.date) or None,
                url=(said and said.url) or None,
                author=(said and said.author) or None,
                tags=(said and said.tags) or None,
                chunks=chunks,
                names=links.other_names(document.id),
                links=links.of(document.id, document.path),
            )
        )
    return listed


def _states(documents: Mapping[str, StoredDocument], roots: Roots) -> dict[str, State]:
    states: dict[str, State] = {}
    for path, document in documents.items():
        if roots.is_out_of_reach(document):
            states[path] = "unreachable"
        elif (state := file_state(document)) != "same":
            states[path] = state
    return states
