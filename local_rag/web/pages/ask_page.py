"""The pages that ask: an answer, the passages alone, a list of what all documents hold; and the colours of the page."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.background import BackgroundTask
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.asking import EVERYTHING, AskOptions, Filters
from local_rag.display import answer_as_dict, found_as_csv, found_as_dict, passage_as_dict, rows_as_csv
from local_rag.records import FoundPlace
from local_rag.serving.http import json_response
from local_rag.serving.requests import AskRequest, SearchRequest
from local_rag.web.forms import as_fields, as_query, filters_of, local_address, number_field, text_field
from local_rag.web.site import THEME_COOKIE, THEMES, PageRequest, attachment
from local_rag.web.stream import answer_stream
from local_rag.web.views.answer_view import Thread, cards, view_answer, view_list, view_thread

_YEAR = 365 * 24 * 3600
_MOST_TURNS = 100_000
_SORTS: Mapping[str, Callable[[FoundPlace], Any]] = {
    "place": lambda place: (place.passage.path, place.passage.start),
    "text": lambda place: place.passage.text.casefold(),
    "occurrences": lambda place: place.occurrences,
}


def home(request: PageRequest) -> Response:
    """Show the form, with a conversation if one is named."""
    request.service.wake()
    question, thread = request.query_params.get("q", ""), Thread()
    if conversation := request.query_params.get("conversation", ""):
        thread = _thread(request, conversation, question or None)
    if last := thread.last:
        return _page(request, last.kept.question, EVERYTHING, thread, view=last.view, cards=last.cards)
    return _page(request, question, EVERYTHING, thread)


async def ask(request: PageRequest) -> Response:
    """Answer the question of the form: as a stream of events, as JSON or as a page."""
    fields = await request.fields()
    if fields.get("do") == "search":
        query = as_query("q", text_field(fields, "question"), filters_of(fields))
        return RedirectResponse(f"/search?{urlencode(query)}", 303)
    asked = AskRequest(
        question=text_field(fields, "question") or text_field(fields, "q"),
        options=AskOptions(
            passages=number_field(fields, "passages"), filters=filters_of(fields), anyway=bool(fields.get("anyway"))
        ),
        in_history=True,
        conversation=str(fields.get("conversation") or "") or None,
        new_subject=bool(fields.get("new_subject")),
    )
    if "text/event-stream" in request.headers.get("accept", ""):
        return answer_stream(request, asked, shown=number_field(fields, "shown", _MOST_TURNS) or 0)
    served = await request.outcome(request.service.ask(asked, request.caller))

    def show() -> Response:
        library, answer, thread = request.library, served.answer, Thread()
        if request.wants_json:
            more = {"again": served.again, "conversation": served.conversation, "notice": served.notice}
            return json_response(answer_as_dict(answer, library.place_names()) | more)
        evidence = cards(library, asked.question, answer.passages, answer=answer)
        view = view_answer(answer, again=served.again, notice=served.notice, changed=served.changed, library=library)
        if served.conversation is not None:
            thread = _thread(request, served.conversation, asked.question)
        return _page(request, asked.question, asked.options.filters, thread, view=view, cards=evidence)

    return await request.aside(show)


async def search(request: PageRequest) -> Response:
    """Show the passages that fit a question."""
    fields = request.query_params
    if not fields.get("q", "").strip() and not request.wants_json:
        return RedirectResponse("/", 303)
    asked = SearchRequest(
        question=fields.get("q", ""),
        top=number_field(fields, "top") or 10,
        options=AskOptions(rerank=fields.get("rerank", "1") != "0", filters=filters_of(fields)),
    )
    trace = await request.outcome(request.service.search(asked, request.caller))

    def show() -> Response:
        library = request.library
        if request.wants_json:
            name, reranked = library.place_names(), library.reranks and asked.options.rerank
            passages = [passage_as_dict(passage, name) for passage in trace.passages]
            return json_response({"question": asked.question, "reranked": reranked, "passages": passages})
        evidence = cards(library, asked.question, trace.passages)
        return _page(request, asked.question, asked.options.filters, Thread(), cards=evidence, searched=True)

    response = await request.aside(show)
    if not request.wants_json:
        response.background = BackgroundTask(request.service.read_ahead, asked, request.caller)
    return response


async def rows(request: PageRequest) -> Response:
    """Return all rows that a query selects from the tables that the caller sees, as CSV."""

    def select() -> Response:
        result = request.library.query_tables(request.query_params.get("query", ""))
        return attachment(rows_as_csv(result.columns, result.rows), "rows.csv", "text/csv")

    return await request.aside(select)


async def find(request: PageRequest) -> Response:
    """Show what all documents hold for a question that counts or lists, sorted as its links say, or as a file."""
    fields = request.query_params
    if not fields.get("q", "").strip() and not request.wants_json:
        return RedirectResponse("/", 303)
    asked = SearchRequest(question=fields.get("q", ""), options=AskOptions(filters=filters_of(fields)))
    found = await request.outcome(request.service.find(asked, request.caller))
    sort, down = fields.get("sort", ""), bool(fields.get("down"))

    def show() -> Response:
        library = request.library
        if request.wants_json:
            return json_response(found_as_dict(found, library.place_names()))
        places = sorted(found.places, key=_SORTS[sort], reverse=down) if sort in _SORTS else found.places
        ordered = replace(found, places=tuple(places))
        if fields.get("format") == "csv":
            return attachment(found_as_csv(ordered, library.place_names()), "found.csv", "text/csv")
        listed = view_list(ordered, library.contents().documents)
        address = f"/find?{urlencode(as_query('q', asked.question, asked.options.filters))}"
        return request.page("find.html", question=asked.question, listed=listed, address=address, sort=sort, down=down)

    return await request.aside(show)


async def theme(request: PageRequest) -> Response:
    """Choose between the light and the dark page."""
    fields = await request.fields()
    chosen = text_field(fields, "theme")
    response = RedirectResponse(local_address(text_field(fields, "back")), 303)
    if chosen in THEMES:
        response.set_cookie(THEME_COOKIE, chosen, max_age=_YEAR, httponly=True, samesite="strict", path="/")
    return response


ROUTES = (
    Route("/", home),
    Route("/ask", ask, methods=["POST"]),
    Route("/search", search),
    Route("/find", find),
    Route("/rows", rows),
    Route("/theme", theme, methods=["POST"]),
)


def _page(request: PageRequest, question: str, filters: Filters, thread: Thread, **shown: Any) -> Response:
    usual: dict[str, Any] = {"view": None, "cards": [], "searched": False, "may_record": request.may_rate}
    return request.page("ask.html", question=question, filters=as_fields(filters), thread=thread, **usual | shown)


def _thread(request: PageRequest, conversation: str, asked: str | None = None) -> Thread:
    with request.history() as history:
        return view_thread(history.turns(conversation), request.library, conversation, apart=asked)
