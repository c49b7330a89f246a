"""The page of earlier conversations: search, continue, rename, forget, or export one as a file."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from local_rag.asking import KeptOfQuestions
from local_rag.conversation import conversation_as_markdown
from local_rag.display import one_line
from local_rag.errors import QuestionError
from local_rag.serving.http import json_response
from local_rag.web.forms import Fields, local_address, text_field
from local_rag.web.site import PageRequest, attachment, style
from local_rag.web.views.thread_view import view_kept

_SHOWN, _BESIDE = 50, 30
_LONGEST_TITLE = 200
_ALL = "all"
# An exported file holds no script, and a program that opens it may run none.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def history(request: PageRequest) -> Response:
    """List conversations, the latest first."""
    before, wanted = request.query_params.get("before"), request.query_params.get("q", "")
    with request.history() as kept:
        conversations = kept.conversations(count=_SHOWN, before=before, containing=wanted.strip())
        lasting = kept.kept
    if request.wants_json:
        return json_response({"kept": lasting, "conversations": conversations})
    return request.page(
        "history.html",
        conversations=conversations,
        more=conversations[-1].id if len(conversations) == _SHOWN else None,
        wanted=wanted,
        kept=lasting,
        left=_left(request),
        switched_off=not request.library.settings.retention.conversations,
        here_back="/history",
    )


def side_list(request: PageRequest, conversation: str) -> dict[str, Any]:
    """Return what the list of conversations beside an open one shows."""
    with request.history() as kept:
        listed = kept.conversations(count=_BESIDE)
    return {"conversations": listed, "open_now": conversation}


def beside(request: PageRequest) -> Response:
    """Return the list of conversations beside the one that the address names."""
    conversation = request.query_params.get("conversation", "")
    return request.part("side.html", running=False, **side_list(request, conversation))


def menu(request: PageRequest) -> Response:
    """Show what can be done with a conversation of the list beside an open one: thirty such menus slow a page down."""
    named, open_now = (request.query_params.get(name, "") for name in ("id", "open"))
    with request.history() as kept:
        one = kept.conversation(named)
    here = f"/?{urlencode({'conversation': open_now})}" if open_now else "/"
    shown: dict[str, Any] = {"one": one, "here_back": here, "back": "/" if named == open_now else here}
    return request.page_or_part("conversation.html", "conversation_menu.html", **shown)


def export(request: PageRequest) -> Response:
    """Return a conversation as one file, or as a page to print."""
    conversation = request.path_params["conversation"]
    with request.history() as kept:
        turns = [
            view_kept(turn, number, request.name_of) for number, turn in enumerate(kept.turns(conversation), start=1)
        ]
    text = request.site.fragment("export.html", turns=turns, style=style())
    if request.query_params.get("show"):
        return HTMLResponse(text, headers={"content-security-policy": _POLICY})
    return attachment(text, f"local-rag-conversation-{conversation}.html", "text/html", _POLICY)


def export_markdown(request: PageRequest) -> Response:
    """Return a conversation as Markdown."""
    conversation = request.path_params["conversation"]
    with request.history() as kept:
        text = conversation_as_markdown(kept.turns(conversation), request.name_of)
    return attachment(text, f"local-rag-conversation-{conversation}.md", "text/markdown; charset=utf-8")


async def rename(request: PageRequest) -> Response:
    """Give a conversation a title."""
    fields = await request.fields()
    title = one_line(text_field(fields, "title"))[:_LONGEST_TITLE].strip()
    return await _change(request, fields, lambda kept: kept.rename(text_field(fields, "id"), title))


async def pin(request: PageRequest) -> Response:
    """Put a conversation above the others, or back among them."""
    fields = await request.fields()
    return await _change(request, fields, lambda kept: kept.pin(text_field(fields, "id"), on=bool(fields.get("on"))))


async def forget(request: PageRequest) -> Response:
    """Delete a conversation, or once it is confirmed all."""
    fields = await request.fields()
    named = text_field(fields, "id")
    if not named:
        raise QuestionError("No conversation was named; choose one of the history.")
    if named == _ALL and not fields.get("confirmed"):
        return await request.aside(lambda: request.page("forget.html", left=_left(request)))
    if named != _ALL:
        return await _change(request, fields, lambda kept: kept.forget(named))
    await request.aside(lambda: request.service.history.forget(request.person.id))
    return request.done(_back(fields))


async def _change(request: PageRequest, fields: Fields, change: Callable[[Any], None]) -> Response:
    def work() -> None:
        with request.history() as kept:
            change(kept)

    await request.aside(work)
    return request.done(_back(fields))


def _back(fields: Fields) -> str:
    return local_address(text_field(fields, "back") or "/history")


def _left(request: PageRequest) -> KeptOfQuestions:
    """Return what is left in the file of what this person can have forgotten."""
    if not request.person.id:
        return request.service.history.in_file()
    with request.history() as kept:
        return KeptOfQuestions(len(kept.conversations()))


ROUTES = (
    Route("/history", history),
    Route("/history/{conversation}.html", export),
    Route("/history/{conversation}.md", export_markdown),
    Route("/history/beside", beside),
    Route("/history/menu", menu),
    Route("/history/pin", pin, methods=["POST"]),
    Route("/history/rename", rename, methods=["POST"]),
    Route("/history/forget", forget, methods=["POST"]),
)
