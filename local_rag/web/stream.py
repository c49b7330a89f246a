"""An answer as a stream of server-sent events: first the passages, then the text as it is written.

The events, each with JSON as data: `earlier` (`html`, `after`) in a conversation, `queue` (`ahead`), `passages`
(`count`, `passages`, `html`), `token` (`text`, and `replaces` if that is all that stands from now on), `done`
(`answer`, `again`, `conversation`, `notice`, `html`, `cards`), `error` (`message`), and `ping` while nothing else
happens. Everything in `html` was rendered here, and text from documents and models was escaped.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from local_rag.display import answer_as_dict, passage_as_dict, printable_json
from local_rag.records import Passage, Written
from local_rag.serving.http import EventStream
from local_rag.serving.job import Failure, Job, PassagesFound, Ping, QueuePosition, Result, failure
from local_rag.serving.requests import AskRequest, SearchRequest, ServedAnswer
from local_rag.web.forms import as_fields
from local_rag.web.site import PageRequest
from local_rag.web.views.answer_view import Thread, cards, view_answer, view_thread

_PING_SECONDS = 10.0


def answer_stream(request: PageRequest, asked: AskRequest, *, shown: int = 0) -> EventStream:
    """Ask, and return the response that tells what happens; raise BusyError where too many wait.

    The page shows the first `shown` turns of the conversation already.
    """
    job = request.service.ask(asked, request.caller)
    return EventStream(job, _events(request, asked, job, shown))


async def _events(request: PageRequest, asked: AskRequest, job: Job[ServedAnswer], shown: int) -> AsyncGenerator[bytes]:
    try:
        if asked.conversation:
            html = await request.aside(lambda: _earlier(request, asked, shown))
            yield _event("earlier", {"html": html, "after": shown})
        async with aclosing(job.events(_PING_SECONDS)) as events:
            async for event in events:
                match event:
                    case QueuePosition(ahead):
                        yield _event("queue", {"ahead": ahead})
                    case PassagesFound(passages):
                        yield _event("passages", await request.aside(lambda: _passages(request, asked, passages)))
                    case Written(text, replaces):
                        yield _event("token", {"text": text, "replaces": replaces})
                    case Ping():
                        yield _event("ping", {})
                    case Result(served):
                        yield _event("done", await request.aside(lambda: _done(request, asked, served)))
                        if served.answer.outcome == "quoted" and not asked.conversation:
                            # "Answer anyway" may follow; what a follow-up is about is not known to a search alone.
                            again = SearchRequest(question=asked.question, options=asked.options)
                            request.service.read_ahead(again, request.caller)
                    case Failure():
                        yield _event("error", {"message": event.message})
    except Exception as error:  # noqa: BLE001  the conversation was forgotten, or rendering failed
        yield _event("error", {"message": failure(error).message})


def _event(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: {printable_json(data)}\n\n".encode()


def _earlier(request: PageRequest, asked: AskRequest, shown: int) -> str:
    conversation, thread = asked.conversation or "", Thread()
    # A question that is asked again replaces the last turn, which was the same question.
    apart = "" if asked.new_subject else asked.question
    with request.history() as history:
        if history.holds(conversation):
            turns = history.turns(conversation)
            thread = view_thread(turns, request.library, conversation, apart=apart, start=shown)
    return request.site.fragment("thread.html", thread=thread, goes_on=bool(shown))


def _passages(request: PageRequest, asked: AskRequest, passages: Sequence[Passage]) -> dict[str, object]:
    library = request.library
    name, evidence = library.place_names(), cards(library, asked.question, passages)
    html = request.site.fragment("cards.html", cards=evidence, question=asked.question)
    return {"count": len(passages), "passages": [passage_as_dict(passage, name) for passage in passages], "html": html}


def _done(request: PageRequest, asked: AskRequest, served: ServedAnswer) -> dict[str, object]:
    library, answer, fragment = request.library, served.answer, request.site.fragment
    evidence = cards(library, asked.question, answer.passages, answer=answer)
    return {
        "answer": answer_as_dict(answer, library.place_names()),
        "again": served.again,
        "conversation": served.conversation,
        "notice": served.notice,
        "html": fragment(
            "answer.html",
            view=view_answer(answer, again=served.again, notice=served.notice, changed=served.changed, library=library),
            question=asked.question,
            filters=as_fields(asked.options.filters),
            conversation=served.conversation,
            may_record=request.may_rate,
        ),
        "cards": fragment("cards.html", cards=evidence, question=asked.question),
    }
