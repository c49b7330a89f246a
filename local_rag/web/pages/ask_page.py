"""The pages that ask: a question with its answer, the passages alone, and the form to log in."""

from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.asking import EVERYTHING, AskOptions, Filters
from local_rag.display import answer_as_dict, passage_as_dict
from local_rag.serving.http import unless_gone
from local_rag.serving.requests import AskRequest, SearchRequest
from local_rag.web.filtering import as_fields, filters_of
from local_rag.web.site import (
    THEME_COOKIE,
    THEMES,
    caller_of,
    form_of,
    history_of,
    json_response,
    library_of,
    local_address,
    may_record,
    number_field,
    site_of,
    text_field,
    wants_json,
)
from local_rag.web.stream import answer_stream
from local_rag.web.views.answer_view import cards, view_answer
from local_rag.web.views.thread_view import Thread, view_thread

_YEAR = 365 * 24 * 3600
_MOST_TURNS = 100_000


async def home(request: Request) -> Response:
    """Show the form, with a conversation if one is named."""
    site = site_of(request)
    site.service.wake()
    question, thread = request.query_params.get("q", ""), Thread()
    if conversation := request.query_params.get("conversation", ""):
        thread = await site.aside(lambda: _thread(request, conversation, question or None))
    if last := thread.last:
        shown = {"view": last.view, "cards": last.cards}
        return await site.aside(lambda: _page(request, last.kept.question, EVERYTHING, thread, **shown))
    return await site.aside(lambda: _page(request, question, EVERYTHING, thread))


async def ask(request: Request) -> Response:
    """Answer the question of the form: as a stream of events, as JSON or as a page."""
    site, fields = site_of(request), await form_of(request)
    if fields.get("do") == "search":
        query = {"q": text_field(fields, "question"), **as_fields(filters_of(fields))}
        return RedirectResponse(f"/search?{urlencode({name: text for name, text in query.items() if text})}", 303)
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
        turns = number_field(fields, "shown", _MOST_TURNS) or 0
        return answer_stream(request, asked, shown=turns)
    found = await unless_gone(request.receive, site.service.ask(asked, caller_of(request)).outcome())
    if wants_json(request):
        more = {"again": found.again, "conversation": found.conversation, "notice": found.notice}
        name = await site.aside(library_of(request).place_names)
        return json_response(answer_as_dict(found.answer, name) | more)

    def shown() -> Response:
        library, thread = library_of(request), Thread()
        said = cards(library, asked.question, found.answer.passages, answer=found.answer)
        view = view_answer(found.answer, again=found.again, notice=found.notice, changed=found.changed, library=library)
        if found.conversation is not None:
            thread = _thread(request, found.conversation, asked.question)
        return _page(request, asked.question, asked.options.filters, thread, view=view, cards=said)

    return await site.aside(shown)


async def search(request: Request) -> Response:
    """Show the passages that fit a question."""
    site, fields = site_of(request), request.query_params
    if not fields.get("q", "").strip() and not wants_json(request):
        return RedirectResponse("/", 303)
    asked = SearchRequest(
        question=fields.get("q", ""),
        top=number_field(fields, "top") or 10,
        options=AskOptions(rerank=fields.get("rerank", "1") != "0", filters=filters_of(fields)),
    )
    trace = await unless_gone(request.receive, site.service.search(asked, caller_of(request)).outcome())

    def shown() -> Response:
        library = library_of(request)
        if wants_json(request):
            reranked = library.reranks and asked.options.rerank
            name = library.place_names()
            passages = [passage_as_dict(passage, name) for passage in trace.passages]
            return json_response({"question": asked.question, "reranked": reranked, "passages": passages})
        found = cards(library, asked.question, trace.passages)
        return _page(request, asked.question, asked.options.filters, Thread(), cards=found, searched=True)

    response = await site.aside(shown)
    if not wants_json(request):
        response.background = BackgroundTask(site.service.read_ahead, asked, caller_of(request))
    return response


async def log_in(request: Request) -> Response:
    """Show the form for the token, or check the token, or the link that `--open` has opened."""
    site, visit, status, wrong = site_of(request), request.scope["local_rag"], HTTPStatus.OK, ""
    if request.method == "GET":
        status, wanted = visit.status, visit.wanted
        if "once" in request.query_params:
            response = RedirectResponse("/", 303)
            status = visit.log_in_once(request.query_params["once"], response)
            if status is HTTPStatus.OK:
                return response
            wrong = "This link counts once, and no longer than a few minutes; log in with the token."
    else:
        fields = await form_of(request)
        wanted = local_address(text_field(fields, "next"))
        response = RedirectResponse(wanted, 303)
        status = visit.log_in(text_field(fields, "token"), response)
        if status is HTTPStatus.OK:
            return response
        late = status is HTTPStatus.TOO_MANY_REQUESTS
        wrong = "Too many tries; wait a minute." if late else "That is not the token."
    return await site.show(request, "login.html", status=int(status), wrong=wrong, wanted=wanted)


async def log_out(request: Request) -> Response:
    """Forget the client's session."""
    response = RedirectResponse("/", 303)
    request.scope["local_rag"].log_out(response)
    return response


async def theme(request: Request) -> Response:
    """Choose between the light and the dark page."""
    fields = await form_of(request)
    chosen = text_field(fields, "theme")
    response = RedirectResponse(local_address(text_field(fields, "back")), 303)
    if chosen in THEMES:
        response.set_cookie(THEME_COOKIE, chosen, max_age=_YEAR, httponly=True, samesite="strict", path="/")
    return response


ROUTES = (
    Route("/", home),
    Route("/ask", ask, methods=["POST"]),
    Route("/search", search),
    Route("/login", log_in, methods=["GET", "POST"]),
    Route("/logout", log_out, methods=["POST"]),
    Route("/theme", theme, methods=["POST"]),
)


def _page(request: Request, question: str, filters: Filters, thread: Thread, **shown: Any) -> Response:
    said: dict[str, Any] = {"question": question, "filters": as_fields(filters), "thread": thread}
    said |= {"view": None, "cards": [], "searched": False, "may_record": may_record(request)} | shown
    return site_of(request).page(request, "ask.html", **said)


def _thread(request: Request, conversation: str, asked: str | None = None) -> Thread:
    with history_of(request) as history:
        return view_thread(history, library_of(request), conversation, apart=asked)
