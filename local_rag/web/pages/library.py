"""What the page of the library shows: documents, a running index, models, disk, what is to be mended."""

import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag.errors import ModelError
from local_rag.files import is_locked
from local_rag.library import Library
from local_rag.maintenance.status import Status
from local_rag.models.choice import chosen
from local_rag.models.registry import load_registry, resolve
from local_rag.records import SITUATED
from local_rag.store.database import Store
from local_rag.store.inspection import DocumentState, count_context_kinds, count_rows, document_states
from local_rag.web.evidence import change_of

SHELF = 200  # documents on a page
_WINDOW = 120.0  # seconds over which the rate is taken
_LEAST = 2.0


class Pace:
    """Tell from a few looks at a count how fast it grows."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque(maxlen=200)
        self._lock = threading.Lock()

    def rate(self, done: int) -> float | None:
        """Return how much a second was done since the first look of late; None where that is not known yet."""
        now = time.monotonic()
        with self._lock:
            while self._looks and (now - self._looks[0][0] > _WINDOW or done < self._looks[-1][1]):
                self._looks.popleft()
            self._looks.append((now, done))
            then, before = self._looks[0]
        return (done - before) / (now - then) if now - then >= _LEAST and done > before else None


@dataclass(frozen=True, slots=True)
class ProgressView:
    """How far an index is; `rate` a second and `left` in seconds are None where they are not known."""

    running: bool
    stage: str
    done: int
    total: int
    rate: float | None
    left: float | None


@dataclass(frozen=True, slots=True)
class ShelfDocument:
    """A document with its state in words."""

    id: int
    path: str
    title: str
    chunks: int
    state: str


@dataclass(frozen=True, slots=True)
class ModelView:
    """A model by role, with the hash of its weights and its licence as far as they are known."""

    role: str
    name: str
    licence: str
    sha256: str
    installed: bool


@dataclass(frozen=True, slots=True)
class LibraryView:
    """All that the page of the library shows."""

    status: Status
    progress: ProgressView
    documents: tuple[ShelfDocument, ...]
    skipped: tuple[tuple[str, str], ...]
    models: tuple[ModelView, ...]
    start: int
    before: int | None
    after: int | None


def view_library(library: Library, pace: Pace, *, start: int = 0) -> LibraryView:
    """Gather what the page shows, with the documents from `start` on."""
    status = library.status()
    situated = library.settings.context in SITUATED
    with library.reading() as store:
        documents = tuple(_shelf(one, situated=situated) for one in document_states(store, start=start, count=SHELF))
        skipped = tuple((path, fields[3]) for path, fields in sorted(store.skipped().items())[:SHELF])
        progress = view_progress(store, pace, situated=situated)
    return LibraryView(
        status=status,
        progress=progress,
        documents=documents,
        skipped=skipped,
        models=tuple(_models(library)),
        start=start,
        before=max(0, start - SHELF) if start else None,
        after=start + SHELF if start + SHELF < status.documents else None,
    )


def view_progress(store: Store, pace: Pace, *, situated: bool) -> ProgressView:
    """Say how far an index is that another process may be making; `situated` ones wait for generated contexts too."""
    rows, kinds = count_rows(store), count_context_kinds(store)
    total, stage, done = rows["chunks"], "Embedding", rows["chunks_with_vectors"]
    if situated and done >= total:
        stage, done = "Writing contexts", sum(kinds.values())
    running = is_locked(store.folder / "lock")
    rate = pace.rate(done) if running else None
    return ProgressView(running, stage, done, total, rate, (total - done) / rate if rate else None)


def _shelf(state: DocumentState, *, situated: bool) -> ShelfDocument:
    words = change_of(state.document)
    if not words:
        words = (
            "waiting to be embedded"
            if state.vectors < state.chunks
            else f"headings only; {state.chunks - state.contexts} sentences still to be written"
            if situated and state.contexts < state.chunks
            else "ready"
        )
    note = f"; {state.note}" if state.note else ""
    return ShelfDocument(state.document.id, state.document.path, state.document.title, state.chunks, f"{words}{note}")


def _models(library: Library) -> list[ModelView]:
    known, found = load_registry().models, []
    for role, name in chosen(library.settings).items():
        entry: Any = known.get(name)
        try:
            installed = resolve(name, role)
        except ModelError:
            installed = None
        sha256 = entry.weights.sha256 if entry else installed.identity if installed else ""
        found.append(
            ModelView(role, Path(name).name, entry.licence if entry else "your own", sha256, installed is not None)
        )
    return found
