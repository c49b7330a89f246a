"""The page that inspects a search: the rank and score of each candidate in every stage, and why others are missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.asking import require_question
from local_rag.display import passage_as_dict
from local_rag.errors import QuestionError
from local_rag.retrieval.searcher import Trace
from local_rag.serving.http import require_role, unless_gone
from local_rag.serving.requests import SearchRequest
from local_rag.view import View
from local_rag.web.site import (
    caller_of,
    form_of,
    json_response,
    library_of,
    may_record,
    parse_number,
    person_of,
    site_of,
    text_field,
    wants_json,
)
from local_rag.web.views.answer_view import Card, cards

VIEWS = ("all", "dense", "keyword", "lost")
_ROWS = 150
_MOST_FOUND = 20
_BEGINNING = 140  # characters of a passage that stand for it


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate as evidence, in one line too, with its rank and score in each stage that has it."""

    card: Card
    begins: str
    hits: Mapping[str, tuple[int, float]]
    kept: bool


@dataclass(frozen=True, slots=True)
class Missing:
    """The best rank of any chunk of a document in each stage, None if no chunk is among its candidates."""

    path: str
    chunks: int
    ranks: Mapping[str, int | None]


async def inspect(request: Request) -> Response:
    """Show the candidates of a search."""
    site = site_of(request)
    text, show = request.query_params.get("q", ""), request.query_params.get("show", "all")
    path = request.query_params.get("path", "")
    shared: dict[str, Any] = {"question": text, "path": path, "view": show if show in VIEWS else "all"}
    empty: dict[str, Any] = {"rows": [], "seconds": {}, "missing": [], "counts": {}, "written": "", "stages": []}
    empty |= {"records": False, "wrong": []}
    if not text.strip():
        if person_of(request).may("editor"):
            empty["wrong"] = (await site.aside(library_of(request).wrong_answers))[-_ROWS:]
        return await site.show(request, "inspect.html", **shared | empty)
    asked = SearchRequest(question=text, top=max(_ROWS, library_of(request).settings.passages))
    trace = await unless_gone(request.receive, site.service.search(asked, caller_of(request)).outcome())
    return await site.aside(lambda: _found(request, trace, shared))


def _found(request: Request, trace: Trace, shared: Mapping[str, Any]) -> Response:
    site, library, text, path = site_of(request), library_of(request), shared["question"], shared["path"]
    kept = library.settings.passages
    missing = why_missing(library, trace, path) if path.strip() else []
    rows = [
        Row(
            card,
            card.text.striptags()[:_BEGINNING],
            {hit.list_name: (hit.rank, hit.score) for hit in card.passage.hits},
            number <= kept,
        )
        for number, card in enumerate(cards(library, text, trace.passages), start=1)
    ]
    if wants_json(request):
        name = library.place_names()
        passages = [passage_as_dict(row.card.passage, name) | {"kept": row.kept} for row in rows]
        return json_response({"question": text, "seconds": trace.seconds, "passages": passages, "missing": missing})
    return site.page(
        request,
        "inspect.html",
        **shared,
        rows=[row for row in rows if is_shown(row, shared["view"], kept)],
        seconds=trace.seconds,
        missing=missing,
        counts={view: sum(is_shown(row, view, kept) for row in rows) for view in VIEWS},
        written=request.query_params.get("written", ""),
        file=library.questions_file,
        wrong=[],
        records=may_record(request),
        stages=[name for name in ("dense", "keyword", "fused", "rerank") if any(name in row.hits for row in rows)],
    )


async def keep(request: Request) -> Response:
    """Add a question and the passage that answers it to the library's own dataset, or to those answered wrongly."""
    require_role(request.scope, "editor")
    fields = await form_of(request)
    wrong = "wrong" in fields
    question, chunk = text_field(fields, "question"), parse_number(str(fields.get("wrong" if wrong else "chunk", "")))
    require_question(question)
    if chunk is None:
        raise QuestionError("No passage was named; choose the one that answers the question.")
    library, kept = library_of(request), "wrong" if wrong else "right"
    record = library.record_wrong_answer if wrong else library.record_question
    await site_of(request).aside(lambda: record(question, chunk))
    if wants_json(request):
        return json_response({"kept": kept})
    return RedirectResponse(f"/inspect?{urlencode({'q': question, 'written': kept})}", 303)


ROUTES = (Route("/inspect", inspect), Route("/inspect/question", keep, methods=["POST"]))


def is_shown(row: Row, view: str, kept: int) -> bool:
    """Return whether a candidate belongs to a view: only dense, only keyword, or lost in reranking."""
    if view == "dense":
        return "dense" in row.hits and "keyword" not in row.hits
    if view == "keyword":
        return "keyword" in row.hits and "dense" not in row.hits
    if view == "lost":
        return "rerank" in row.hits and row.hits["fused"][0] <= kept and not row.kept
    return True


def why_missing(library: View, trace: Trace, path: str) -> list[Missing]:
    """Return the best rank in every stage of any chunk of each document whose path contains this text."""
    wanted = path.strip().casefold()
    documents = [number for name, number in library.contents().documents.items() if wanted in name.casefold()]
    found = []
    for document in map(library.document, documents[:_MOST_FOUND]):
        chunks = {passage.chunk_id for passage in document.passages}
        ranks = {name: _best(ranking, chunks) for name, ranking in trace.rankings.items()}
        found.append(Missing(document.path, len(chunks), ranks))
    return found


def _best(ranking: Sequence[int], chunks: set[int]) -> int | None:
    return next((rank for rank, chunk in enumerate(ranking, start=1) if chunk in chunks), None)
