"""Look into a library while it is in use: where passages lead, a whole document, how far an index is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_rag.errors import MissingError
from local_rag.files import is_locked
from local_rag.maintenance.file_states import FileStates, SeenState
from local_rag.maintenance.visible import GONE, require_visible, visible_ids
from local_rag.records import EVERYTHING, ContextMode, Filters, Passage
from local_rag.retrieval.found_passage import found_passage
from local_rag.store.database import Store
from local_rag.store.inspection import count_contexts, count_rows, document_states


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


def locate(
    store: Store, passages: Sequence[Passage], files: FileStates, filters: Filters = EVERYTHING
) -> list[Location]:
    """Return the location of each passage, none for one whose document does not pass the filters."""
    chunks = store.chunks_by_id([passage.chunk_id for passage in passages])
    visible = visible_ids(store, filters, {chunk.document_id for chunk in chunks.values()})
    chunks = {key: chunk for key, chunk in chunks.items() if visible is None or chunk.document_id in visible}
    owners = {chunk.document_id: store.document(chunk.document_id) for chunk in chunks.values()}
    states = files.of([owner for owner in owners.values() if owner])
    found = []
    for passage in passages:
        chunk = chunks.get(passage.chunk_id)
        # In an older index another chunk may have had the number of a kept passage.
        document = chunk.document_id if chunk and chunk.path == passage.path else None
        found.append(Location() if document is None else Location(document, states[document]))
    return found


def find_passage(store: Store, chunk_id: int, filters: Filters = EVERYTHING) -> Passage:
    """Return the passage of a chunk with its context; raise MissingError if no document that passes holds it."""
    chunk = store.chunks_by_id([chunk_id]).get(chunk_id)
    visible = visible_ids(store, filters, [chunk.document_id]) if chunk else None
    if chunk is None or (visible is not None and not visible):
        raise MissingError("This passage is no longer in the library; search again.")
    return found_passage(chunk, 0.0, ())


def whole_document(
    store: Store, document_id: int, files: FileStates, *, with_text: bool, filters: Filters = EVERYTHING
) -> WholeDocument:
    """Return a document; raise MissingError if the library does not hold it any more, or if it does not pass."""
    require_visible(store, filters, document_id)
    document = store.document(document_id)
    if document is None:
        raise MissingError(GONE)
    text, passages = "", tuple[Passage, ...]()
    if with_text:
        text = store.document_text(document_id)
        passages = tuple(found_passage(chunk, 0.0, ()) for chunk in store.chunks(document_id))
    state = files.of([document])[document.id]
    return WholeDocument(document.id, document.path, document.title, state, text, passages)


def indexed_documents(
    store: Store, files: FileStates, *, start: int, count: int, filters: Filters = EVERYTHING
) -> list[IndexedDocument]:
    """Return how far `count` of the documents that pass are, in the order of their paths from `start` on."""
    found = document_states(store, start=start, count=count, among=visible_ids(store, filters))
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


def index_progress(store: Store, context: ContextMode, filters: Filters = EVERYTHING) -> IndexProgress:
    """Return how far the documents that pass are indexed."""
    visible = visible_ids(store, filters)
    rows, kinds = count_rows(store, visible), count_contexts(store, visible)
    return IndexProgress(
        running=is_locked(store.folder / "lock"),
        situated=context == "auto",
        chunks=rows["chunks"],
        vectors=rows["chunks_with_vectors"],
        sentences=kinds.get("model", 0) + kinds.get("dropped", 0),
    )
