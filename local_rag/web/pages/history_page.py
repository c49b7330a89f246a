"""The page of earlier conversations: search, continue, rename, forget, or export one as a file."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.conversation import conversation_as_markdown
from local_rag.display import one_line
from local_rag.errors import QuestionError
from local_rag.serving.open_history import KeptOfQuestions
from local_rag.web.site import (
    form_of,
    history_of,
    json_response,
    library_of,
    person_of,
    site_of,
    text_field,
    wants_json,
)
from local_rag.web.views.thread_view import view_turn

_SHOWN = 50
_LONGEST_TITLE = 200
_ALL = "all"


def history(request: Request) -> Response:
    """List conversations, the latest first."""
    site, before, wanted = site_of(request), request.query_params.get("before"), request.query_params.get("q", "")
    with history_of(request) as kept:
        conversations = kept.conversations(count=_SHOWN, before=before, containing=wanted.strip())
        lasting = kept.kept
    if wants_json(request):
        return json_response({"kept": lasting, "conversations": conversations})
    more = conversations[-1].id if len(conversations) == _SHOWN else None
    switched_off = not library_of(request).settings.retention.conversations
    return site.page(
        request,
        "history.html",
        conversations=conversations,
        more=more,
        wanted=wanted,
        kept=lasting,
        left=_left(request),
        switched_off=switched_off,
    )


def export(request: Request) -> Response:
    """Return a conversation as one file."""
    site, conversation = site_of(request), request.path_params["conversation"]
    with history_of(request) as kept:
        turns = [view_turn(turn) for turn in kept.turns(conversation)]
    text = site.fragment("export.html", turns=turns, style=site.style())
    headers = {
        "content-disposition": f'attachment; filename="local-rag-conversation-{conversation}.html"',
        # The file holds no script, and a program that opens it may run none.
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return Response(text, media_type="text/html", headers=headers)


def export_markdown(request: Request) -> Response:
    """Return a conversation as Markdown."""
    conversation = request.path_params["conversation"]
    with history_of(request) as kept:
        text = conversation_as_markdown(kept.turns(conversation))
    headers = {"content-disposition": f'attachment; filename="local-rag-conversation-{conversation}.md"'}
    return Response(text, media_type="text/markdown; charset=utf-8", headers=headers)


async def rename(request: Request) -> Response:
    """Give a conversation a title."""
    fields = await form_of(request)
    title = one_line(text_field(fields, "title"))[:_LONGEST_TITLE].strip()

    def work() -> None:
        with history_of(request) as kept:
            kept.rename(text_field(fields, "id"), title)

    await site_of(request).aside(work)
    return RedirectResponse("/history", 303)


async def forget(request: Request) -> Response:
    """Delete a conversation, or once it is confirmed all."""
    fields, site = await form_of(request), site_of(request)
    named = text_field(fields, "id")
    if not named:
        raise QuestionError("No conversation was named; choose one of the history.")
    if named == _ALL and not fields.get("confirmed"):
        return await site.aside(lambda: site.page(request, "forget.html", left=_left(request)))
    await site.aside(lambda: _forget(request, named))
    return RedirectResponse("/history", 303)


def _forget(request: Request, conversation: str) -> None:
    person, history = person_of(request), site_of(request).service.history
    if conversation != _ALL:
        with history(person.id) as kept:
            kept.forget(conversation)
    elif person.id:
        history.forget_person(person.id)
    else:
        history.forget_all()


def _left(request: Request) -> KeptOfQuestions:
    """Return what is left in the file of what this person can have forgotten."""
    history, person = site_of(request).service.history, person_of(request)
    if not person.id:
        return history.in_file()
    with history(person.id) as kept:
        return KeptOfQuestions(len(kept.conversations()))


ROUTES = (
    Route("/history", history),
    Route("/history/{conversation}.html", export),
    Route("/history/{conversation}.md", export_markdown),
    Route("/history/rename", rename, methods=["POST"]),
    Route("/history/forget", forget, methods=["POST"]),
)
