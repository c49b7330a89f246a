"""An answer as a stream of server-sent events: first the passages, then the text as it is written.

The events, each with JSON as data: `earlier` (`html`, `after`) in a conversation, `queue` (`ahead`, `seconds`),
`passages` (`count`, `passages`, `html`), `token` (`text`, and `replaces` if that is all that stands from now on),
`done` (`answer`, `again`, `conversation`, `notice`, `anchor`, `html`, `cards`), `error` (`message`), and `ping` while
nothing else happens. Everything in `html` was rendered here, and text from documents and models was escaped.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from local_rag.asking import KeptTurn
from local_rag.display import answer_as_dict, passage_as_dict, printable_json
from local_rag.records import Passage, Written
from local_rag.serving.http import EventStream
from local_rag.serving.job import Failure, Job, PassagesFound, Ping, QueuePosition, Result, failure
from local_rag.serving.requests import AskRequest, SearchRequest, ServedAnswer
from local_rag.web.site import PageRequest
from local_rag.web.views.answer_view import cards
from local_rag.web.views.thread_view import anchor_of, view_new, view_thread

_PING_SECONDS = 10.0


def answer_stream(request: PageRequest, asked: AskRequest, *, shown: int = 0) -> EventStream:
    """Ask, and return the response that tells what happens; raise BusyError where too many wait.

    The page shows the first `shown` turns of the conversation already.
    """
    job = request.service.ask(asked, request.caller)
    return EventStream(job, _events(request, asked, job, shown))


async def _events(request: PageRequest, asked: AskRequest, job: Job[ServedAnswer], shown: int) -> AsyncGenerator[bytes]:
    try:
        before = await request.aside(lambda: turns_before(request, asked)) if asked.conversation else []
        number = len(before) + 1
        if asked.conversation:
            html = await request.aside(lambda: _earlier(request, asked, before, shown))
            yield _event("earlier", {"html": html, "after": shown})
        async with aclosing(job.events(_PING_SECONDS)) as events:
            async for event in events:
                match event:
                    case QueuePosition(ahead, seconds):
                        yield _event("queue", {"ahead": ahead, "seconds": seconds})
                    case PassagesFound(passages):
                        found = await request.aside(partial(_passages, request, asked, passages, number))
                        yield _event("passages", found)
                    case Written(text, replaces):
                        yield _event("token", {"text": text, "replaces": replaces})
                    case Ping():
                        yield _event("ping", {})
                    case Result(served):
                        if asked.conversation and not served.notice:
                            now = await request.aside(lambda: _turns_before_own(request, asked))
                            if len(now) > len(before):  # another tab asked in the same conversation before this one
                                html = await request.aside(partial(_earlier, request, asked, now, len(before)))
                                yield _event("earlier", {"html": html, "after": len(before)})
                                number = len(now) + 1
                        done = await request.aside(partial(_done, request, asked, served, number))
                        yield _event("done", done)
                        if served.answer.outcome == "quoted" and not asked.conversation:
                            # "Answer anyway" may follow; what a follow-up is about is not known to a search alone.
                            again = SearchRequest(question=asked.question, options=asked.options)
                            request.service.read_ahead(again, request.caller)
                    case Failure():
                        yield _event("error", {"message": event.message})
    except Exception as error:  # noqa: BLE001  the conversation was forgotten, or rendering failed
        yield _event("error", {"message": failure(error).message})


def turns_before(request: PageRequest, asked: AskRequest) -> list[KeptTurn]:
    """Return the turns that stand before the answer; a question that is asked again replaces the last one."""
    conversation = asked.conversation or ""
    with request.history() as history:
        turns = history.turns(conversation) if history.holds(conversation) else []
    again = turns and not asked.new_subject and turns[-1].question == asked.question
    return turns[:-1] if again else turns


def _turns_before_own(request: PageRequest, asked: AskRequest) -> Sequence[KeptTurn]:
    """Return the turns that stand before the one that was just answered."""
    with request.history() as history:
        turns = history.turns(asked.conversation or "")
    return turns[: max((place for place, turn in enumerate(turns) if turn.question == asked.question), default=0)]


def _event(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: {printable_json(data)}\n\n".encode()


def _earlier(request: PageRequest, asked: AskRequest, before: Sequence[KeptTurn], shown: int) -> str:
    thread = view_thread(before, request.library, request.name_of, asked.conversation or "", start=shown)
    return request.site.fragment("thread.html", thread=thread, may_record=request.may_rate)


def _passages(request: PageRequest, asked: AskRequest, passages: Sequence[Passage], number: int) -> dict[str, object]:
    name, anchor = request.name_of, f"{anchor_of(number)}-source"
    evidence = cards(request.library, asked.question, passages, anchor=anchor, name=name)
    html = request.site.fragment("cards.html", cards=evidence)
    return {"count": len(passages), "passages": [passage_as_dict(passage, name) for passage in passages], "html": html}


def _done(request: PageRequest, asked: AskRequest, served: ServedAnswer, number: int) -> dict[str, object]:
    library, fragment = request.library, request.site.fragment
    turn = view_new(asked, served, number, library, request.name_of)
    return {
        "answer": answer_as_dict(served.answer, request.name_of),
        "again": served.again,
        "conversation": served.conversation,
        "notice": served.notice,
        "anchor": turn.anchor,
        "html": fragment(
            "answer.html",
            view=turn.view,
            question=asked.question,
            fields=turn.fields,
            conversation=served.conversation,
            may_record=request.may_rate,
        ),
        "cards": fragment("cards.html", cards=turn.cards),
    }
