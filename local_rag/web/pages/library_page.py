"""The page of the library: documents, a running index, models, disk, and what needs attention."""

import time
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from local_rag.catalogue.browsing import Look
from local_rag.catalogue.contents import IndexedDocument
from local_rag.errors import ModelError
from local_rag.models.choice import chosen
from local_rag.models.registry import load_registry, resolve
from local_rag.reading.formats import is_expected
from local_rag.serving.http import json_response
from local_rag.tables.relation_set import relation_as_dict
from local_rag.view import View
from local_rag.web.changes.document_changes import ChangeView
from local_rag.web.pages.changes_page import change_of, look_of, may_change
from local_rag.web.pages.document_page import offset
from local_rag.web.site import PageRequest
from local_rag.web.views.answer_view import STATES

_LISTED = 100  # documents on a page
_MOST_SKIPPED = 500
_LEAST = 2.0  # seconds


class Pace:
    """Measure how fast a count grows, from the first look at it since it began or fell."""

    def __init__(self) -> None:
        self._first = (0.0, -1)

    def rate(self, done: int, *, running: bool) -> float | None:
        """Return how much was done per second since then, None if that is not known yet."""
        now = time.monotonic()
        then, before = self._first = self._first if running and 0 <= self._first[1] <= done else (now, done)
        return (done - before) / (now - then) if now - then >= _LEAST and done > before else None


def library(request: PageRequest) -> Response:
    """Show the library: what needs attention, and the documents that are looked at."""
    wanted, start, seen = look_of(request.query_params), offset(request, "from"), request.library
    listing = seen.documents.browse(wanted, start=start, count=_LISTED)
    going, unread = _progress(request), seen.documents.unread()
    empty = [(path, reason) for path, reason in unread if is_expected(reason)]  # nothing is to be mended there
    view = {
        "status": seen.status(),
        "progress": going,
        "documents": list(map(_view_document, listing.documents)),
        "found": listing.found,
        "folders": listing.folders,
        "above": listing.above,
        "in_part": listing.in_part,
        "skipped": [one for one in unread if one not in empty][:_MOST_SKIPPED],
        "empty": empty[:_MOST_SKIPPED],
        # They belong to who runs the server.
        "models": _models(seen) if request.person.may("owner") and seen.documents.are_all_seen else [],
        "start": start,
        "before": max(0, start - _LISTED) if start else None,
        "after": start + _LISTED if start + _LISTED < listing.found else None,
        "whole": seen.documents.are_all_seen,
    }
    if request.wants_json:
        return json_response(view)
    task = change_of(request)
    return request.page(
        "library.html",
        view=view,
        wanted=wanted,
        address=partial(_address, wanted),
        checkup=request.app.state.checkup.view,
        may_change=may_change(request),
        task=task,
        progress=_shown(request, going, task),
    )


def progress(request: PageRequest) -> Response:
    """Return the part of the page that shows an index of another program; a header says whether one is running."""
    shown = _shown(request, _progress(request), change_of(request))
    return request.part("progress.html", running=bool(shown and shown["running"]), progress=shown)


def sheets(request: PageRequest) -> Response:
    """List the tables of the documents, whose rows can be asked."""
    ids, found = request.library.documents.contents().documents, request.library.tables.listed()
    if request.wants_json:
        return json_response([relation_as_dict(one, request.name_of) for one in found])
    return request.page("sheets.html", tables=found[:_MOST_SKIPPED], ids=ids, count=len(found))


ROUTES = (
    Route("/library", library),
    Route("/library/tables", sheets),
    Route("/library/progress", progress),
)


def _address(wanted: Look, **changed: Any) -> str:
    """Return the address of the documents that are looked at, changed in something."""
    start = changed.pop("start", 0)
    other = replace(wanted, **changed)
    fields = {
        "q": other.words,
        "folder": other.folder,
        "show": "part" if other.part else "",
        "sort": other.order if other.order != "path" else "",
        "down": "1" if other.down else "",
        "from": start,
    }
    query = urlencode({name: value for name, value in fields.items() if value})
    return f"/library?{query}" if query else "/library"


def _progress(request: PageRequest) -> dict[str, Any]:
    """Return how far an index is; the `rate` per second and the seconds `left` are None if unknown.

    Only who sees the whole library is told them.
    """
    library, pace = request.library, request.app.state.pace
    indexing = library.documents.progress()
    total, done = indexing.chunks, indexing.vectors
    rate = pace.rate(done, running=indexing.running) if library.documents.are_all_seen else None
    left = (total - done) / rate if rate else None
    return {"running": indexing.running, "done": done, "total": total, "rate": rate, "left": left}


def _shown(request: PageRequest, progress: dict[str, Any], task: ChangeView) -> dict[str, Any] | None:
    """Return how far an index is that somebody started elsewhere, None for who does not change documents.

    What was ordered on the page is shown with its own progress.
    """
    return progress if may_change(request) and not (task.running and task.what != "contexts") else None


def _view_document(document: IndexedDocument) -> dict[str, Any]:
    """Return a document with its state as text, and what of its file could not be read."""
    state = STATES[document.state] or ("waiting to be embedded" if document.vectors < document.chunks else "ready")
    told = {name: getattr(document, name) for name in ("id", "path", "title", "chunks", "notes", "size")}
    return told | {"state": state, "changed": _day(document.changed)}


def _day(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return ""


def _models(library: View) -> list[dict[str, Any]]:
    """Return the model of each role, with the hash of its weights and its licence as far as they are known."""
    registered, models = load_registry().models, []
    for role, name in chosen(library.settings).items():
        entry: Any = registered.get(name)
        try:
            installed = resolve(name, role)
        except ModelError:
            installed = None
        sha256 = entry.weights.sha256 if entry else installed.identity if installed else ""
        told = {"role": role, "name": Path(name).name, "licence": entry.licence if entry else "your own"}
        models.append({**told, "sha256": sha256, "installed": installed is not None})
    return models
