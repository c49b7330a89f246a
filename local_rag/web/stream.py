"""An answer as a stream of server-sent events: first the passages, then the text as it is written.

The events, each with JSON as data: `earlier` (`html`, `after`) in a conversation, `queue` (`ahead`), `passages`
(`count`, `passages`, `html`), `token` (`text`, and `replaces` if that is all that stands from now on), `done`
(`answer`, `again`, `conversation`, `notice`, `html`, `cards`), `error` (`message`), and `ping` while nothing else
happens. Everything in `html` was rendered here, and text from documents and models was escaped.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from starlette.requests import Request

from local_rag.display import answer_as_dict, passage_as_dict, printable_json
from local_rag.records import Passage, Written
from local_rag.serving.http import EventStream
from local_rag.serving.job import Failure, Job, PassagesFound, Ping, QueuePosition, Result, failure
from local_rag.serving.requests import AskRequest, SearchRequest, ServedAnswer
from local_rag.web.filtering import as_fields
from local_rag.web.site import caller_of, history_of, library_of, may_record, site_of
from local_rag.web.views.answer_view import cards, view_answer
from local_rag.web.views.thread_view import Thread, view_thread

_PING_SECONDS = 10.0


def answer_stream(request: Request, asked: AskRequest, *, shown: int = 0) -> EventStream:
    """Ask, and return the response that tells what happens; raise BusyError where too many wait.

    The page shows the first `shown` turns of the conversation already.
    """
    job = site_of(request).service.ask(asked, caller_of(request))
    return EventStream(job, _events(request, asked, job, shown))


async def _events(request: Request, asked: AskRequest, job: Job[ServedAnswer], shown: int) -> AsyncGenerator[bytes]:
    site = site_of(request)
    try:
        if asked.conversation:
            yield _event("earlier", {"html": await site.aside(lambda: _earlier(request, asked, shown)), "after": shown})
        async with aclosing(job.events(_PING_SECONDS)) as events:
            async for event in events:
                match event:
                    case QueuePosition(ahead):
                        yield _event("queue", {"ahead": ahead})
                    case PassagesFound(passages):
                        yield _event("passages", await site.aside(lambda: _passages(request, asked, passages)))
                    case Written(text, replaces):
                        yield _event("token", {"text": text, "replaces": replaces})
                    case Ping():
                        yield _event("ping", {})
                    case Result(answered):
                        yield _event("done", await site.aside(lambda: _done(request, asked, answered)))
                        if answered.answer.outcome == "quoted" and not asked.conversation:
                            # "Answer anyway" may follow; what a follow-up is about is not known to a search alone.
                            again = SearchRequest(question=asked.question, options=asked.options)
                            site.service.read_ahead(again, caller_of(request))
                    case Failure():
                        yield _event("error", {"message": event.message})
    except Exception as error:  # noqa: BLE001  the conversation was forgotten, or rendering failed
        yield _event("error", {"message": failure(error).message})


def _event(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: {printable_json(data)}\n\n".encode()


def _earlier(request: Request, asked: AskRequest, shown: int) -> str:
    with history_of(request) as history:
        # A question that is asked again replaces the last turn, which was the same question.
        apart = "" if asked.new_subject else asked.question
        known = asked.conversation and history.holds(asked.conversation)
        thread = (
            view_thread(history, library_of(request), asked.conversation or "", apart=apart, start=shown)
            if known
            else Thread()
        )
        return site_of(request).fragment("thread.html", thread=thread, goes_on=bool(shown))


def _passages(request: Request, asked: AskRequest, found: Sequence[Passage]) -> dict[str, object]:
    site, library = site_of(request), library_of(request)
    name = library.place_names()
    html = site.fragment("cards.html", cards=cards(library, asked.question, found), question=asked.question)
    return {"count": len(found), "passages": [passage_as_dict(passage, name) for passage in found], "html": html}


def _done(request: Request, asked: AskRequest, found: ServedAnswer) -> dict[str, object]:
    site, library = site_of(request), library_of(request)
    shown = cards(library, asked.question, found.answer.passages, answer=found.answer)
    view = view_answer(found.answer, again=found.again, notice=found.notice, changed=found.changed, library=library)
    filters = as_fields(asked.options.filters)
    said: dict[str, Any] = {"question": asked.question, "filters": filters, "conversation": found.conversation}
    said["may_record"] = may_record(request)
    return {
        "answer": answer_as_dict(found.answer, library.place_names()),
        "again": found.again,
        "conversation": found.conversation,
        "notice": found.notice,
        "html": site.fragment("answer.html", view=view, **said),
        "cards": site.fragment("cards.html", cards=shown, question=asked.question),
    }
