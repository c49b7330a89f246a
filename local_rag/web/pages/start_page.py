"""What is seen first: what the library holds, and questions that it answers; and the way to anything by its name."""

from heapq import nsmallest
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from local_rag.asking import KeptConversation
from local_rag.errors import LocalRagError
from local_rag.serving.http import json_response
from local_rag.web.site import PageRequest

_MOST_NAMED = 12  # documents, and conversations


def view_start(request: PageRequest) -> dict[str, Any]:
    """Return what the library holds, None if that cannot be read, and questions to begin with."""
    try:
        held = request.library.overview()
        questions = request.app.state.suggested.of(request.person) if held.documents else ()
    except LocalRagError:
        return {"held": None, "questions": ()}
    return {"held": held, "questions": questions}


def open_anything(request: PageRequest) -> Response:
    """List the documents and conversations whose names hold what is typed."""
    wanted = request.query_params.get("q", "").strip().casefold()
    documents, conversations = _documents(request, wanted), _conversations(request, wanted)
    if request.wants_json:
        return json_response({"documents": documents, "conversations": conversations})
    shown: dict[str, Any] = {"wanted": wanted, "documents": documents, "conversations": conversations}
    return request.page_or_part("open.html", "named.html", **shown)


def _documents(request: PageRequest, wanted: str) -> list[dict[str, str]]:
    """Return documents by the place of what is typed: in the name of the file before one of its folders."""
    name, words = request.library.place_names(), wanted.split()
    found = []
    for path, number in request.library.contents().documents.items():
        shown = name(path)
        folded = shown.casefold()
        if all(word in folded for word in words):
            in_name = all(word in folded.rpartition("/")[2] for word in words)
            found.append((not in_name, folded, {"name": shown, "address": f"/document/{number}"}))
    return [page for *_, page in nsmallest(_MOST_NAMED, found, key=lambda one: one[:2])]


def _conversations(request: PageRequest, wanted: str) -> list[dict[str, str]]:
    with request.history() as history:
        kept: list[KeptConversation] = history.conversations(count=_MOST_NAMED, containing=wanted)
    return [{"name": one.title, "address": f"/?conversation={one.id}"} for one in kept]


ROUTES = (Route("/open", open_anything),)
