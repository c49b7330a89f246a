"""The inspector: each candidate of a search with its rank and score in every stage, and why others are missing."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from local_rag.display import display_path, one_line, passage_as_dict
from local_rag.errors import LibraryError
from local_rag.library import Library
from local_rag.records import Passage
from local_rag.retrieval.search import Trace
from local_rag.serving.requests import Question, searching
from local_rag.store.database import Store
from local_rag.web.pages.ask import form_of
from local_rag.web.pages.base import Site, json_response, wants_json

QUESTIONS_FOLDER = "questions"
VIEWS = ("all", "dense", "keyword", "lost")
_ROWS = 150
_MOST_FOUND = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate: its rank and score in each stage, None where a stage did not have it."""

    passage: Passage
    place: str
    document: int | None
    hits: Mapping[str, tuple[int, float]]
    kept: bool


@dataclass(frozen=True, slots=True)
class Missing:
    """The best rank of any chunk of a document in each stage, None where it is not among the candidates."""

    path: str
    chunks: int
    ranks: Mapping[str, int | None]


def inspector_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of the inspector."""

    async def inspect(request: Request) -> Response:
        text, show = request.query_params.get("q", ""), request.query_params.get("show", "all")
        path = request.query_params.get("path", "")
        shared: dict[str, Any] = {"question": text, "path": path, "view": show if show in VIEWS else "all"}
        empty: dict[str, Any] = {"rows": [], "seconds": {}, "missing": [], "counts": {}, "written": "", "stages": []}
        if not text.strip():
            return await site.show(request, "inspect.html", **shared | empty)
        site.audit(request, text)
        top = max(_ROWS, site.owner.library.settings.passages)
        trace = await site.outcome(request, searching(Question(text, top=top)))
        kept = site.owner.library.settings.passages
        with site.owner.library.reading() as store:
            chunks = store.chunks_by_id([passage.chunk_id for passage in trace.passages])
            missing = why_missing(store, trace, path) if path.strip() else []
        rows = [
            Row(
                passage,
                one_line(display_path(passage.location)),
                chunks[passage.chunk_id].document_id if passage.chunk_id in chunks else None,
                {hit.list_name: (hit.rank, hit.score) for hit in passage.hits},
                place <= kept,
            )
            for place, passage in enumerate(trace.passages, start=1)
        ]
        if wants_json(request):
            passages = [passage_as_dict(row.passage) | {"kept": row.kept} for row in rows]
            return json_response({"question": text, "seconds": trace.seconds, "passages": passages, "missing": missing})
        stages = [name for name in ("dense", "keyword", "fused", "rerank") if any(name in row.hits for row in rows)]
        return await site.show(
            request,
            "inspect.html",
            **shared,
            rows=[row for row in rows if is_shown(row, shared["view"], kept)],
            seconds=trace.seconds,
            missing=missing,
            counts={view: sum(is_shown(row, view, kept) for row in rows) for view in VIEWS},
            written=questions_file(site.owner.library) if "written" in request.query_params else "",
            stages=stages,
        )

    async def keep(request: Request) -> Response:
        fields = await form_of(request)
        question, chunk = str(fields.get("question", "")), str(fields.get("chunk", ""))
        Question(question)
        if not (chunk.isascii() and chunk.isdigit() and len(chunk) <= 18):  # noqa: PLR2004
            raise LibraryError("No passage was named; choose the one that answers the question.")
        write_question(site.owner.library, question, int(chunk))
        return RedirectResponse(f"/inspect?{urlencode({'q': question, 'written': 1})}", 303)

    return [Route("/inspect", inspect), Route("/inspect/question", keep, methods=["POST"])]


def is_shown(row: Row, view: str, kept: int) -> bool:
    """Say whether a candidate belongs to a view: only dense, only keyword, or lost in reranking."""
    if view == "dense":
        return "dense" in row.hits and "keyword" not in row.hits
    if view == "keyword":
        return "keyword" in row.hits and "dense" not in row.hits
    if view == "lost":
        return "rerank" in row.hits and row.hits["fused"][0] <= kept and not row.kept
    return True


def why_missing(store: Store, trace: Trace, path: str) -> list[Missing]:
    """Return, for each document whose path holds this text, the best rank of its chunks in every stage."""
    wanted = path.strip().casefold()
    documents = [document for document in store.documents() if wanted in document.path.casefold()]
    found = []
    for document in documents[:_MOST_FOUND]:
        chunks = {stored.id for stored in store.chunks(document.id)}
        ranks = {name: _best(ranking, chunks) for name, ranking in trace.rankings.items()}
        found.append(Missing(document.path, len(chunks), ranks))
    return found


def _best(ranking: Sequence[int], chunks: set[int]) -> int | None:
    return next((rank for rank, chunk in enumerate(ranking, start=1) if chunk in chunks), None)


def questions_file(library: Library) -> Path:
    """Say where questions are written, as lines of an evaluation dataset."""
    return library.folder / QUESTIONS_FOLDER / "questions.jsonl"


def write_question(library: Library, question: str, chunk_id: int) -> None:
    """Add a question and the span that answers it to the library's own dataset."""
    with library.reading() as store:
        chunk = store.chunks_by_id([chunk_id]).get(chunk_id)
    if chunk is None:
        raise LibraryError("This passage is no longer in the library; search again.")
    golden = {"document": chunk.path, "start": chunk.chunk.start, "end": chunk.chunk.end}
    path = questions_file(library)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(json.dumps({"question": question, "golden": [golden]}, ensure_ascii=False) + "\n")
    except OSError as error:
        raise LibraryError(f"{path} cannot be written ({error.strerror}); make the library writable.") from None
