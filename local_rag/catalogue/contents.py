"""Look into a library while it is in use: where passages lead, a whole document, how far an index is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_rag.catalogue.file_states import FileStates, SeenState
from local_rag.errors import MissingError
from local_rag.files import is_locked
from local_rag.records import ContextMode, Passage, found_passage
from local_rag.store.counts import count_contexts, count_rows, document_states
from local_rag.store.database import Store


@dataclass(frozen=True, slots=True)
class Location:
    """The document of a passage and the state of its file.

    `document` is None if the library does not hold the document any more, or not on this machine.
    """

    document: int | None = None
    state: SeenState = "same"


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document as it was indexed, with its passages in reading order."""

    id: int
    path: str
    title: str
    state: SeenState
    text: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """The paths of the documents, each with the document's id, and the folders and files that were indexed."""

    documents: Mapping[str, int]
    roots: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """How far a document is indexed: its chunks, and how many of them have a context and a vector.

    `notes` say what of the file could not be read.
    """

    id: int
    path: str
    title: str
    state: SeenState
    chunks: int
    vectors: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far an `index` is that another process may be running; chunks wait for sentences if `situated`."""

    running: bool
    situated: bool
    chunks: int
    vectors: int
    sentences: int


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


def indexed_documents(store: Store, files: FileStates, *, start: int, count: int) -> list[IndexedDocument]:
    """Return how far `count` documents are, in the order of their paths from `start` on."""
    found = document_states(store, start=start, count=count)
    states = files.of([one.document for one in found])
    return [
        IndexedDocument(
            one.document.id,
            one.document.path,
            one.document.title,
            states[one.document.id],
            one.chunks,
            one.vectors,
            one.notes,
        )
        for one in found
    ]


def index_progress(store: Store, context: ContextMode) -> IndexProgress:
    """Return how far the documents are indexed."""
    rows, kinds = count_rows(store), count_contexts(store)
    return IndexProgress(
        running=is_locked(store.folder / "lock"),
        situated=context == "auto",
        chunks=rows["chunks"],
        vectors=rows["chunks_with_vectors"],
        sentences=kinds.get("model", 0) + kinds.get("dropped", 0),
    )
