"""Earlier conversations: gone on with, forgotten, or exported as one file that needs no server."""

import re

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from local_rag.errors import LibraryError
from local_rag.web.conversation import view_turn
from local_rag.web.pages.ask import form_of
from local_rag.web.pages.base import Site, json_response, wants_json

_SHOWN = 50


def history_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of the history."""

    def history(request: Request) -> Response:
        before = request.query_params.get("before", "")
        number = int(before) if re.fullmatch(r"[0-9]{1,18}", before) else None
        with site.history() as kept:
            conversations, lasting = kept.conversations(count=_SHOWN, before=number), kept.kept
        if wants_json(request):
            return json_response({"kept": lasting, "conversations": conversations})
        more = conversations[-1].id if len(conversations) == _SHOWN else None
        return site.page(request, "history.html", conversations=conversations, more=more, kept=lasting)

    def export(request: Request) -> Response:
        number = request.path_params["conversation"]
        with site.history() as kept:
            turns = [view_turn(turn) for turn in kept.turns(number)]
        text = site.fragment("export.html", turns=turns, style=site.style())
        headers = {
            "content-disposition": f'attachment; filename="local-rag-conversation-{number}.html"',
            # Whatever opens the file gets no script, and none is in it.
            "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        }
        return Response(text, media_type="text/html", headers=headers)

    async def forget(request: Request) -> Response:
        named = str((await form_of(request)).get("id", ""))
        if named != "all" and not re.fullmatch(r"[0-9]{1,18}", named):
            raise LibraryError("No conversation was named; choose one of the history.")
        with site.history() as kept:
            if named == "all":
                kept.forget_all()
            else:
                kept.forget(int(named))
        return RedirectResponse("/history", 303)

    return [
        Route("/history", history),
        Route("/history/{conversation:identifier}.html", export),
        Route("/history/forget", forget, methods=["POST"]),
    ]
