"""Earlier questions: shown with their answers and passages, forgotten, or exported as one file that needs no server."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from local_rag.errors import LibraryError
from local_rag.library import Library
from local_rag.store.asked import Asked, AskedQuestions
from local_rag.web.answering import read_answered
from local_rag.web.asking_pages import form_of
from local_rag.web.evidence import AnswerView, Card, kept_cards, view_answer
from local_rag.web.markup import show_answer
from local_rag.web.site import Site

_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of before, with what was answered."""

    asked: Asked
    view: AnswerView
    cards: Sequence[Card]
    plain: Markup  # the answer without links to the cards


def history_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of the history."""

    def kept() -> AskedQuestions:
        return AskedQuestions(site.owner.library.folder)

    def history(request: Request) -> Response:
        before = request.query_params.get("before", "")
        number = int(before) if re.fullmatch(r"[0-9]{1,18}", before) else None
        asked = kept().latest(_SHOWN, number)
        more, on = asked[-1].id if len(asked) == _SHOWN else None, site.owner.library.settings.history
        return site.page(request, "history.html", turns=_turns(site.owner.library, asked), more=more, on=on)

    def export(request: Request) -> Response:
        asked = kept().get(request.path_params["asked"])
        turns = _turns(site.owner.library, [asked] if asked else [])
        if not turns:
            raise LibraryError("This question was forgotten.")
        name = f"local-rag-{turns[0].asked.at[:10]}-{turns[0].asked.id}.html"
        text = site.fragment("export.html", turns=turns, style=site.style())
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            # Whatever opens the file gets no script, and none is in it.
            "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        }
        return Response(text, media_type="text/html", headers=headers)

    async def forget(request: Request) -> Response:
        named = str((await form_of(request)).get("id", ""))
        if named != "all" and not re.fullmatch(r"[0-9]{1,18}", named):
            raise LibraryError("No question was named; choose one of the history.")
        try:
            kept().forget(None if named == "all" else int(named))
        except OSError as error:
            raise LibraryError(f"The history cannot be changed ({error}); make the library writable.") from None
        return RedirectResponse("/history", 303)

    return [
        Route("/history", history),
        Route("/history/{asked:identifier}.html", export),
        Route("/history/forget", forget, methods=["POST"]),
    ]


def _turns(library: Library, asked: Sequence[Asked]) -> list[Turn]:
    turns = []
    for one in asked:
        if answered := read_answered(one.answer):
            view, plain = view_answer(library, answered), show_answer(answered.answer.text)
            turns.append(Turn(one, view, kept_cards(one.question, answered), plain))
    return turns
