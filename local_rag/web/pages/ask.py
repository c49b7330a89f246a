"""The pages that ask: the question and its answer, the passages alone, and the form to log in."""

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from local_rag.display import answer_as_dict, passage_as_dict
from local_rag.errors import QuestionError
from local_rag.records import EVERYTHING, AskOptions
from local_rag.serving.requests import Question, answering, searching
from local_rag.web.conversation import Thread, view_thread
from local_rag.web.evidence import cards, view_answer
from local_rag.web.filtering import as_fields, filters_of
from local_rag.web.pages.base import THEME_COOKIE, THEMES, Site, json_response, wants_json
from local_rag.web.stream import EventStream, answer_events

_MOST_FIELDS = 50
_BODY_SECONDS = 20
_YEAR = 365 * 24 * 3600
_LARGEST = 2**53  # number of a conversation


def asking_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of these pages."""

    async def home(request: Request) -> Response:
        site.owner.wake()
        question, thread = request.query_params.get("q", ""), Thread()
        if number := _number(request.query_params, "conversation", _LARGEST):
            thread = await asyncio.to_thread(_thread, site, number)
        said: dict[str, Any] = {"filters": as_fields(EVERYTHING), "thread": thread, "searched": False}
        if last := thread.last:
            return await site.show(
                request, "ask.html", **said, question=last.kept.question, view=last.view, cards=last.cards
            )
        return await site.show(request, "ask.html", **said, question=question, view=None, cards=[])

    async def ask(request: Request) -> Response:
        fields = await form_of(request)
        if fields.get("do") == "search":
            query = {"q": _text(fields, "question"), **as_fields(filters_of(fields))}
            return RedirectResponse(f"/search?{urlencode({name: text for name, text in query.items() if text})}", 303)
        question = Question(
            _text(fields, "question") or _text(fields, "q"),
            options=AskOptions(
                passages=_number(fields, "passages"),
                filters=filters_of(fields),
                anyway=bool(fields.get("anyway")),
            ),
            conversation=_number(fields, "conversation", _LARGEST),
            new_subject=bool(fields.get("new_subject")),
        )
        site.audit(request, question.text)
        if "text/event-stream" in request.headers.get("accept", ""):
            return EventStream(answer_events(site, request, question))
        answered = await site.outcome(request, answering(question, site.history))
        if wants_json(request):
            more = {"again": answered.again, "conversation": answered.conversation}
            return json_response(answer_as_dict(answered.answer) | more)
        shown = cards(site.owner.library, question.text, answered.answer.passages, answer=answered.answer)
        view, thread = view_answer(answered.answer, again=answered.again), Thread()
        if answered.conversation is not None:
            thread = await asyncio.to_thread(_thread, site, answered.conversation, question.text)
        said: dict[str, Any] = {
            "question": question.text,
            "filters": as_fields(question.options.filters),
            "thread": thread,
        }
        return await site.show(request, "ask.html", **said, view=view, cards=shown, searched=False)

    async def search(request: Request) -> Response:
        if not request.query_params.get("q", "").strip() and not wants_json(request):
            return RedirectResponse("/", 303)
        question = Question(
            request.query_params.get("q", ""),
            top=_number(request.query_params, "top") or 10,
            options=AskOptions(
                rerank=request.query_params.get("rerank", "1") != "0", filters=filters_of(request.query_params)
            ),
        )
        site.audit(request, question.text)
        trace = await site.outcome(request, searching(question))
        if wants_json(request):
            reranked = site.owner.library.reranks and question.options.rerank
            passages = [passage_as_dict(passage) for passage in trace.passages]
            return json_response({"question": question.text, "reranked": reranked, "passages": passages})
        shown = cards(site.owner.library, question.text, trace.passages)
        said: dict[str, Any] = {
            "question": question.text,
            "filters": as_fields(question.options.filters),
            "thread": Thread(),
        }
        return await site.show(request, "ask.html", **said, view=None, cards=shown, searched=True)

    async def login(request: Request) -> Response:
        if request.method == "GET":
            return await site.show(request, "login.html", status=request.scope["local_rag"]["status"], wrong="")
        fields = await form_of(request)
        response = RedirectResponse("/", 303)
        status = request.scope["local_rag"]["login"](request.scope, _text(fields, "token"), response)
        if status is HTTPStatus.OK:
            return response
        wrong = "Too many tries; wait a minute." if status is HTTPStatus.TOO_MANY_REQUESTS else "That is not the token."
        return await site.show(request, "login.html", status=int(status), wrong=wrong)

    async def logout(request: Request) -> Response:
        response = RedirectResponse("/", 303)
        request.scope["local_rag"]["logout"](request.scope, response)
        return response

    async def theme(request: Request) -> Response:
        fields = await form_of(request)
        chosen, back = _text(fields, "theme"), _text(fields, "back")
        # A path of ours and nothing that a browser could take for another host.
        response = RedirectResponse(back if back.startswith("/") and back[1:2] not in ("/", "\\") else "/", 303)
        if chosen in THEMES:
            response.set_cookie(THEME_COOKIE, chosen, max_age=_YEAR, httponly=True, samesite="strict", path="/")
        return response

    return [
        Route("/", home),
        Route("/ask", ask, methods=["POST"]),
        Route("/search", search),
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/theme", theme, methods=["POST"]),
    ]


async def form_of(request: Request) -> dict[str, Any]:
    """Read the fields of a form, or of a JSON object, from a body that the guard has bounded."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await request.body()
    except TimeoutError:
        raise QuestionError("The form did not arrive in time; send it again.") from None
    try:
        if request.headers.get("content-type", "").startswith("application/json"):
            fields = json.loads(body or b"{}")
            if isinstance(fields, dict):
                return fields
            raise QuestionError('The body is no JSON object; send `{"question": ...}`.')
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except (ValueError, RecursionError) as error:
        raise QuestionError("The form cannot be read; send UTF-8 as a form or as JSON.") from error


def _thread(site: Site, conversation: int, asked: str | None = None) -> Thread:
    with site.history() as history:
        return view_thread(history, site.owner.library, conversation, apart=asked)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name, "")
    return value if isinstance(value, str) else ""


def _number(fields: Mapping[str, Any], name: str, largest: int = 1000) -> int | None:
    """Read a number from 1 on; None where there is none."""
    text = str(fields.get(name) or "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(largest)) and 1 <= int(text) <= largest):
        raise QuestionError(f"The field {name} is {text[:20]!r}; give a number from 1 to {largest:,}.")
    return int(text)
