"""The page of the library: documents, a running index, models, disk, and what needs attention."""

import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from local_rag.catalogue.contents import IndexedDocument, IndexProgress
from local_rag.catalogue.library_status import Status
from local_rag.errors import ModelError
from local_rag.models.choice import chosen
from local_rag.models.registry import load_registry, resolve
from local_rag.serving.http import json_response
from local_rag.view import View
from local_rag.web.pages.changes_page import change_of, may_change
from local_rag.web.pages.document_page import offset
from local_rag.web.site import PageRequest
from local_rag.web.views.answer_view import STATES

_LISTED = 200  # documents on a page
_WINDOW = 120.0  # seconds over which the rate is taken
_LEAST = 2.0


class Pace:
    """Measure how fast a count grows, from a few looks at it."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque(maxlen=200)
        self._lock = threading.Lock()

    def rate(self, done: int) -> float | None:
        """Return how much was done per second over the last looks, None if that is not known yet."""
        now = time.monotonic()
        with self._lock:
            while self._looks and (now - self._looks[0][0] > _WINDOW or done < self._looks[-1][1]):
                self._looks.popleft()
            self._looks.append((now, done))
            then, before = self._looks[0]
        return (done - before) / (now - then) if now - then >= _LEAST and done > before else None


@dataclass(frozen=True, slots=True)
class ProgressView:
    """How far an index is; `rate` per second and `left` in seconds are None if unknown."""

    running: bool
    stage: str
    done: int
    total: int
    rate: float | None
    left: float | None


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document with its state as text, and what of its file could not be read."""

    id: int
    path: str
    title: str
    chunks: int
    state: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelView:
    """The model of a role, with the hash of its weights and its licence as far as they are known."""

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
    documents: tuple[DocumentView, ...]
    skipped: tuple[tuple[str, str], ...]
    models: tuple[ModelView, ...]
    start: int
    before: int | None
    after: int | None
    whole: bool


def library(request: PageRequest) -> Response:
    """Show the library."""
    view = view_library(request.library, request.app.state.pace, start=offset(request, "from"))
    if request.wants_json:
        return json_response(view)
    checkup, task = request.app.state.checkup.view, change_of(request)
    return request.page("library.html", view=view, checkup=checkup, may_change=may_change(request), task=task)


def progress(request: PageRequest) -> Response:
    """Return the part of the page that shows a running index; a header says whether one is running."""
    library = request.library
    progress = view_progress(library.index_progress(), request.app.state.pace if library.is_whole else None)
    return request.part("progress.html", running=progress.running, progress=progress)


ROUTES = (Route("/library", library), Route("/library/progress", progress))


def view_library(library: View, pace: Pace, *, start: int = 0) -> LibraryView:
    """Gather what the page shows, with the documents from `start` on."""
    status, indexing = library.status(), library.index_progress()
    documents, skipped = library.indexed_documents(start=start, count=_LISTED)
    return LibraryView(
        status=status,
        progress=view_progress(indexing, pace if library.is_whole else None),
        documents=tuple(map(_view_document, documents)),
        skipped=tuple(skipped),
        models=tuple(_models(library)),
        start=start,
        before=max(0, start - _LISTED) if start else None,
        after=start + _LISTED if start + _LISTED < status.documents else None,
        whole=library.is_whole,
    )


def view_progress(indexing: IndexProgress, pace: Pace | None) -> ProgressView:
    """Return how far an index is: chunks are embedded first, then those that are situated wait for sentences.

    Without a pace, which only who sees the whole library may see, neither rate nor time left are given.
    """
    total, stage, done = indexing.chunks, "Embedding", indexing.vectors
    if indexing.situated and done >= total:
        stage, done = "Writing contexts", indexing.sentences
    rate = pace.rate(done) if indexing.running and pace else None
    return ProgressView(indexing.running, stage, done, total, rate, (total - done) / rate if rate else None)


def _view_document(document: IndexedDocument) -> DocumentView:
    state = STATES[document.state] or ("waiting to be embedded" if document.vectors < document.chunks else "ready")
    return DocumentView(document.id, document.path, document.title, document.chunks, state, document.notes)


def _models(library: View) -> list[ModelView]:
    registered, models = load_registry().models, []
    for role, name in chosen(library.settings).items():
        entry: Any = registered.get(name)
        try:
            installed = resolve(name, role)
        except ModelError:
            installed = None
        sha256 = entry.weights.sha256 if entry else installed.identity if installed else ""
        licence = entry.licence if entry else "your own"
        models.append(ModelView(role, Path(name).name, licence, sha256, installed is not None))
    return models
