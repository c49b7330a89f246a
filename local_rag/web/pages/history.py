"""The page of earlier conversations: continue, forget, or export one as a file that needs no server."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.errors import QuestionError
from local_rag.web.conversation import view_turn
from local_rag.web.pages.base import Site, form_of, json_response, parse_number, site_of, wants_json

_SHOWN = 50


def history(request: Request) -> Response:
    """List conversations, the latest first."""
    site, before = site_of(request), parse_number(request.query_params.get("before", ""))
    with site.service.history() as kept:
        conversations, lasting = kept.conversations(count=_SHOWN, before=before), kept.kept
    if wants_json(request):
        return json_response({"kept": lasting, "conversations": conversations})
    more = conversations[-1].id if len(conversations) == _SHOWN else None
    return site.page(request, "history.html", conversations=conversations, more=more, kept=lasting)


def export(request: Request) -> Response:
    """Return a conversation as one file."""
    site, number = site_of(request), request.path_params["conversation"]
    with site.service.history() as kept:
        turns = [view_turn(turn) for turn in kept.turns(number)]
    text = site.fragment("export.html", turns=turns, style=site.style())
    headers = {
        "content-disposition": f'attachment; filename="local-rag-conversation-{number}.html"',
        # The file holds no script, and a program that opens it may run none.
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return Response(text, media_type="text/html", headers=headers)


async def forget(request: Request) -> Response:
    """Delete a conversation, or all."""
    named = str((await form_of(request)).get("id", ""))
    number = parse_number(named)
    if named != "all" and number is None:
        raise QuestionError("No conversation was named; choose one of the history.")
    site = site_of(request)
    await site.aside(lambda: _forget(site, number))
    return RedirectResponse("/history", 303)


def _forget(site: Site, number: int | None) -> None:
    with site.service.history() as kept:
        if number is None:
            kept.forget_all()
        else:
            kept.forget(number)


ROUTES = (
    Route("/history", history),
    Route("/history/{conversation:identifier}.html", export),
    Route("/history/forget", forget, methods=["POST"]),
)
