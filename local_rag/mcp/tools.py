"""Do what the tools promise; nothing here writes to the library."""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from local_rag.display import one_line, printable
from local_rag.errors import LibraryError, ModelError, QuestionError
from local_rag.index.generations import Generations
from local_rag.indexing.changes import file_state
from local_rag.library import Library
from local_rag.maintenance.documents import list_documents as listed_documents
from local_rag.mcp.desk import Desk
from local_rag.mcp.fitting import MAX_FETCH, MAX_SEARCH, cost, fit_passages, fit_text
from local_rag.mcp.shapes import (
    Answered,
    AskArguments,
    CitedPassage,
    Dense,
    DocumentPage,
    FetchArguments,
    Fetched,
    FoundPassage,
    LibraryStatus,
    ListArguments,
    ListedDocument,
    Rank,
    SearchArguments,
    SearchResults,
    StaleReason,
    StatusArguments,
)
from local_rag.records import Filters, Passage, first_day
from local_rag.retrieval.keyword_search import search_keywords
from local_rag.retrieval.search import found_passage
from local_rag.store.database import Store, StoredDocument

_PAGE = 25  # documents
_MOST_STALE, _MOST_FOLDERS, _LONGEST = 10, 20, 300
_LOADING = "The models are still loading: this was found by keywords alone; search again in a while for more."
_ID = re.compile(r"(passage|document)-([0-9]{1,18})")


async def search(desk: Desk, asked: SearchArguments, client: str) -> SearchResults:
    """Find passages; by keywords alone while the models are loading, or where they are missing."""
    filters = Filters(
        within=_several(asked.within),
        types=_several(asked.types),
        since=_day("since", asked.since),
        before=_day("before", asked.before),
        tags=_several(asked.tags),
    )
    if not asked.query.strip():
        raise QuestionError("The query is empty.")
    dense: Dense = "ready"
    note: str | None = None
    if await asyncio.to_thread(lambda: desk.loading):
        dense, note = "loading", _LOADING
        desk.record(asked.query, client=client)
    else:
        try:
            passages = await desk.search(asked.query, top=asked.limit, filters=filters, client=client)
        except ModelError as error:
            dense, note = "unavailable", one_line(f"Found by keywords alone: {error}")
    if dense != "ready":
        passages = await asyncio.to_thread(_by_keywords, desk.library, asked, filters)
    return await asyncio.to_thread(_results, desk.library, passages, dense, note)


def _by_keywords(library: Library, asked: SearchArguments, filters: Filters) -> Sequence[Passage]:
    index = Generations(library.folder).live()
    if index is None:
        raise LibraryError(f"There is no index in {library.folder}; make one with `local-rag index FOLDER`.")
    index.open()
    with library.reading() as store:
        return search_keywords(asked.query, index, store, top=asked.limit, filters=filters)


def _results(library: Library, passages: Sequence[Passage], dense: Dense, note: str | None) -> SearchResults:
    with library.reading() as store:
        chunks = store.chunks_by_id([passage.chunk_id for passage in passages])
        owners = {one.document_id: store.document(one.document_id) for one in chunks.values()}
    found = []
    for passage in passages:
        chunk = chunks.get(passage.chunk_id)
        owner = owners.get(chunk.document_id) if chunk else None
        found.append(
            FoundPassage(
                id=f"passage-{passage.chunk_id}",
                document=f"document-{owner.id}" if owner else "",
                title=_short(passage.title),
                headings=[_short(heading) for heading in passage.headings],
                location=one_line(passage.location),
                text=printable(passage.text),
                generated_context=_generated(passage.context, passage.context_kind),
                ranks={hit.list_name: Rank(rank=hit.rank, score=round(hit.score, 3)) for hit in passage.hits},
                changed_since_indexed=owner is not None and file_state(owner) != "same",
            )
        )
    return fit_passages(found, dense, note)


async def fetch(desk: Desk, asked: FetchArguments, _client: str) -> Fetched:
    """Return a text, from an offset on, as much as there is room for."""
    return await asyncio.to_thread(_fetch, desk.library, asked)


def _fetch(library: Library, asked: FetchArguments) -> Fetched:
    with library.reading() as store:
        span = _span(store, asked)
        document, text = span.document, store.document_text(span.document.id)
    begin, end = span.begin, len(text) if span.end is None else span.end
    if asked.offset and asked.offset >= end - begin:
        raise QuestionError(f"The offset {asked.offset} lies behind the end of {asked.id}; call without it.")
    start = begin + asked.offset
    whole = Fetched(
        id=asked.id,
        document=f"document-{document.id}",
        title=_short(document.title),
        headings=[_short(heading) for heading in span.headings],
        location=one_line(span.location),
        text=printable(text[start:end]),
        generated_context=span.context,
        start=start,
        end=end,
        length=len(text),
        changed_since_indexed=file_state(document) != "same",
    )

    def begun(part: str) -> Fetched:
        goes_on = start + len(part) < end
        following = start + len(part) - begin if goes_on else None
        return whole.model_copy(update={"text": part, "end": start + len(part), "next": following})

    return begun(fit_text(whole.text, begun, MAX_FETCH))


@dataclass(frozen=True, slots=True)
class _Span:
    """What an id names: characters of a document; `end` is None for all that there are."""

    document: StoredDocument
    begin: int
    end: int | None
    location: str
    headings: tuple[str, ...] = ()
    context: str = ""


def _span(store: Store, asked: FetchArguments) -> _Span:
    """Find what an id names: a document, or a passage with its neighbours."""
    named = _ID.fullmatch(asked.id)
    if named is None:
        raise QuestionError(f"The id {asked.id!r} is none; take one that search or list_documents gives.")
    kind, number = named[1], int(named[2])
    chunk = store.chunks_by_id([number]).get(number) if kind == "passage" else None
    owner = number if kind == "document" else chunk.document_id if chunk else None
    document = store.document(owner) if owner is not None else None
    if document is None:
        raise QuestionError(f"There is no {asked.id} any more; search again.")
    if chunk is None:
        return _Span(document, 0, None, document.path)
    place = chunk.chunk.position
    near = [one for one in store.chunks(document.id) if abs(one.chunk.position - place) <= asked.around]
    first = found_passage(near[0], 0.0, (), situated=False)
    return _Span(
        document,
        near[0].chunk.start,
        max(one.chunk.end for one in near),
        first.location,
        chunk.chunk.headings,
        _generated(chunk.context, chunk.context_kind),
    )


async def list_documents(desk: Desk, asked: ListArguments, _client: str) -> DocumentPage:
    """Return a page of the documents, by path."""
    return await asyncio.to_thread(_list, desk.library, asked)


def _list(library: Library, asked: ListArguments) -> DocumentPage:
    filters = Filters(within=_several(asked.within))
    with library.reading() as store:
        listed = listed_documents(
            store, Generations(library.folder), filters, after=_path_of(asked.cursor), most=_PAGE + 1
        )
        ids = {document.path: document.id for document in store.documents()}
    documents = [
        ListedDocument(
            id=f"document-{ids[one.path]}",
            title=_short(one.title),
            location=one_line(one.path),
            about=_short(one.about),
            state=one.state,
            date=one.date,
            passages=one.chunks,
        )
        for one in listed
        if one.path in ids
    ]
    shown = min(_PAGE, len(documents))
    while True:
        following = _cursor_of(listed[shown - 1].path) if shown < len(documents) else None
        page = DocumentPage(results=documents[:shown], next=following)
        if shown <= 1 or cost(page) <= MAX_SEARCH:
            return page
        shown -= 1


async def status(desk: Desk, _asked: StatusArguments, _client: str) -> LibraryStatus:
    """Say what the library holds and what is stale."""
    found = await asyncio.to_thread(desk.library.status)
    loading = await asyncio.to_thread(lambda: desk.loading)
    return LibraryStatus(
        library=one_line(found.library),
        folders=[one_line(root) for root in found.roots[:_MOST_FOLDERS]],
        documents=found.documents,
        passages=found.chunks,
        generated_contexts=sum(count for kind, count in found.contexts.items() if kind in {"llm", "repaired"}),
        missing_contexts=found.contexts.get("missing", 0),
        models={role: one_line(Path(name).name) for role, name in found.models.items()},
        dense="loading" if loading else "ready",
        stale=[
            StaleReason(reason=_short(one.reason), command=one_line(one.command)) for one in found.stale[:_MOST_STALE]
        ],
    )


async def ask(desk: Desk, asked: AskArguments, client: str) -> Answered:
    """Answer a question with the library's own model."""
    if not asked.question.strip():
        raise QuestionError("The question is empty.")
    answer = await desk.ask(asked.question, client=client)
    return Answered(
        question=printable(answer.question),
        answered=answer.answered,
        text=printable(answer.text),
        citations=[_cited(citation.passage, citation.number) for citation in answer.citations],
        closest=[_cited(passage, None) for passage in answer.closest],
    )


Handler = Callable[[Desk, Any, str], Awaitable[BaseModel]]
HANDLERS: Mapping[str, Handler] = {
    "search": search,
    "fetch": fetch,
    "list_documents": list_documents,
    "status": status,
    "ask": ask,
}


def _cited(passage: Passage, number: int | None) -> CitedPassage:
    return CitedPassage(
        number=number,
        id=f"passage-{passage.chunk_id}",
        title=_short(passage.title),
        location=one_line(passage.location),
    )


def _generated(context: str, kind: str) -> str:
    """Return a context that a model has written; one made of the headings says nothing more."""
    return printable(context) if kind in {"llm", "repaired"} else ""


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _several(given: Sequence[str] | str) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else given
    return tuple(text.strip() for text in texts if text.strip())


def _day(name: str, text: str | None) -> date | None:
    if not text or not text.strip():
        return None
    try:
        return first_day(text.strip())
    except ValueError:
        raise QuestionError(f"{name} is {text!r}; give a date such as 2024-05-01, 2024-05 or 2024.") from None


def _cursor_of(path: str) -> str:
    return base64.urlsafe_b64encode(path.encode("utf-8", "surrogatepass")).decode()


def _path_of(cursor: str | None) -> str:
    """Return the path behind which a page begins."""
    try:
        return base64.b64decode((cursor or "").encode(), altchars=b"-_", validate=True).decode("utf-8", "surrogatepass")
    except ValueError:
        raise QuestionError("The cursor is none that list_documents gave; leave it away to begin anew.") from None
