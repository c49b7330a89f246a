"""The page that inspects a search: the rank and score of each candidate in every stage, and why others are missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from local_rag.asking import require_question
from local_rag.display import passage_as_dict
from local_rag.errors import QuestionError
from local_rag.retrieval.searcher import Trace
from local_rag.serving.http import json_response
from local_rag.serving.requests import SearchRequest
from local_rag.view import View
from local_rag.web.forms import parse_number, text_field
from local_rag.web.site import PageRequest
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


async def inspect(request: PageRequest) -> Response:
    """Show the candidates of a search."""
    query = request.query_params
    text, view = query.get("q", ""), query.get("show", "all")
    shown: dict[str, Any] = {"question": text, "path": query.get("path", ""), "view": view if view in VIEWS else "all"}
    if not text.strip():
        return await request.aside(lambda: _page(request, shown))
    asked = SearchRequest(question=text, top=max(_ROWS, request.library.settings.passages))
    trace = await request.outcome(request.service.search(asked, request.caller))
    return await request.aside(lambda: _trace(request, trace, shown))


def _trace(request: PageRequest, trace: Trace, shown: Mapping[str, Any]) -> Response:
    library, text, path = request.library, shown["question"], shown["path"]
    kept = library.settings.passages
    missing = why_missing(library, trace, path) if path.strip() else []
    rows = [
        Row(
            card,
            card.text.striptags()[:_BEGINNING],
            {hit.list_name: (hit.rank, hit.score) for hit in card.passage.hits},
            number <= kept,
        )
        for number, card in enumerate(cards(library, text, trace.passages, name=request.name_of), start=1)
    ]
    if request.wants_json:
        passages = [passage_as_dict(row.card.passage, request.name_of) | {"kept": row.kept} for row in rows]
        return json_response({"question": text, "seconds": trace.seconds, "passages": passages, "missing": missing})
    return _page(
        request,
        shown,
        rows=[row for row in rows if is_shown(row, shown["view"], kept)],
        seconds=trace.seconds,
        missing=missing,
        counts={view: sum(is_shown(row, view, kept) for row in rows) for view in VIEWS},
        written=request.query_params.get("written", ""),
        file=library.feedback.questions_file,
        records=request.may_record,
        stages=[name for name in ("dense", "keyword", "fused", "rerank") if any(name in row.hits for row in rows)],
    )


def _page(request: PageRequest, shown: Mapping[str, Any], **traced: Any) -> Response:
    wrong = request.library.feedback.wrong_answers()[-_ROWS:] if not traced and request.person.may("editor") else []
    empty: dict[str, Any] = {"rows": [], "seconds": {}, "missing": [], "counts": {}, "stages": []}
    empty |= {"written": "", "records": False}
    return request.page("inspect.html", wrong=wrong, **shown, **empty | traced)


async def keep(request: PageRequest) -> Response:
    """Add a question and the passage that answers it to the library's own dataset."""
    request.require("editor")
    fields = await request.fields()
    question, chunk = text_field(fields, "question"), parse_number(str(fields.get("chunk", "")))
    require_question(question)
    if not chunk:
        raise QuestionError("No passage was named; choose the one that answers the question.")
    await request.aside(lambda: request.library.feedback.record_question(question, chunk))
    return request.done(f"/inspect?{urlencode({'q': question, 'written': 'right'})}", {"kept": "right"})


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


def why_missing(library: View, trace: Trace, path: str) -> list[dict[str, Any]]:
    """Return the best rank in every stage of any chunk of each document whose path contains this text.

    It is None where no chunk is among the candidates of a stage.
    """
    wanted = path.strip().casefold()
    documents = [number for name, number in library.documents.contents().documents.items() if wanted in name.casefold()]
    missing = []
    for document in map(library.documents.get, documents[:_MOST_FOUND]):
        chunks = {passage.chunk_id for passage in document.passages}
        ranks = {
            name: next((rank for rank, chunk in enumerate(ranking, start=1) if chunk in chunks), None)
            for name, ranking in trace.rankings.items()
        }
        missing.append({"path": document.path, "chunks": len(chunks), "ranks": ranks})
    return missing
