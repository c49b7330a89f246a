"""The page of earlier conversations: continue, forget, or export one as a file that needs no server."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.errors import QuestionError
from local_rag.web.conversation import view_turn
from local_rag.web.pages.base import Site, form_of, json_response, site_of, text_field, wants_json

_SHOWN = 50
_ALL = "all"


def history(request: Request) -> Response:
    """List conversations, the latest first."""
    site, before = site_of(request), request.query_params.get("before")
    with site.service.history() as kept:
        conversations, lasting = kept.conversations(count=_SHOWN, before=before), kept.kept
    if wants_json(request):
        return json_response({"kept": lasting, "conversations": conversations})
    more = conversations[-1].id if len(conversations) == _SHOWN else None
    left, switched_off = site.service.history.in_file(), not site.library.settings.retention.conversations
    return site.page(
        request,
        "history.html",
        conversations=conversations,
        more=more,
        kept=lasting,
        left=left,
        switched_off=switched_off,
    )


def export(request: Request) -> Response:
    """Return a conversation as one file."""
    site, conversation = site_of(request), request.path_params["conversation"]
    with site.service.history() as kept:
        turns = [view_turn(turn) for turn in kept.turns(conversation)]
    text = site.fragment("export.html", turns=turns, style=site.style())
    headers = {
        "content-disposition": f'attachment; filename="local-rag-conversation-{conversation}.html"',
        # The file holds no script, and a program that opens it may run none.
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return Response(text, media_type="text/html", headers=headers)


async def forget(request: Request) -> Response:
    """Delete a conversation, or once it is confirmed all."""
    fields, site = await form_of(request), site_of(request)
    named = text_field(fields, "id")
    if not named:
        raise QuestionError("No conversation was named; choose one of the history.")
    if named == _ALL and not fields.get("confirmed"):
        return await site.aside(lambda: site.page(request, "forget.html", left=site.service.history.in_file()))
    await site.aside(lambda: _forget(site, named))
    return RedirectResponse("/history", 303)


def _forget(site: Site, conversation: str) -> None:
    if conversation == _ALL:
        site.service.history.forget_all()
        return
    with site.service.history() as kept:
        kept.forget(conversation)


ROUTES = (
    Route("/history", history),
    Route("/history/{conversation}.html", export),
    Route("/history/forget", forget, methods=["POST"]),
)
