"""An answer as a stream of server-sent events: first the passages, then the text as it is written.

The events, each with JSON as data: `earlier` (`html`) in a conversation, `queue` (`ahead`), `passages` (`count`,
`passages`, `html`), `token` (`text`), `done` (`answer`, `again`, `conversation`, `html`, `cards`), `error` (`message`),
and `ping` while nothing else happens. Everything in `html` was rendered here, and text from documents and models was
escaped.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from local_rag.display import answer_as_dict, passage_as_dict, printable_json
from local_rag.records import Passage
from local_rag.serving.http import until_gone
from local_rag.serving.job import Failure, PassagesFound, Ping, QueuePosition, Result, TextWritten, failure
from local_rag.serving.requests import AskRequest, Caller, ServedAnswer
from local_rag.web.conversation import view_thread
from local_rag.web.evidence import cards, view_answer
from local_rag.web.filtering import as_fields
from local_rag.web.pages.base import Site

_PING_SECONDS = 10.0


class EventStream(Response):
    """Send events until they end or the client has gone, which closes the generator of the events."""

    def __init__(self, events: AsyncGenerator[tuple[str, object]]) -> None:
        super().__init__(headers={"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        gone = asyncio.ensure_future(until_gone(receive))
        writing = asyncio.ensure_future(self._write(send, gone))
        await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in (writing, gone):
            task.cancel()
        await asyncio.gather(writing, gone, return_exceptions=True)
        await self._events.aclose()
        with suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send, gone: asyncio.Future[None]) -> None:
        async for event, data in self._events:
            if gone.done():
                return
            body = f"event: {event}\ndata: {printable_json(data)}\n\n".encode()
            await send({"type": "http.response.body", "body": body, "more_body": True})


async def answer_events(site: Site, asked: AskRequest, caller: Caller) -> AsyncGenerator[tuple[str, object]]:
    """Ask, and yield what happens; a client that stops reading stops the answer."""
    try:
        if asked.conversation:
            yield "earlier", {"html": await asyncio.to_thread(_earlier, site, asked)}
        job = site.service.ask(asked, caller)
        async with aclosing(job.events(_PING_SECONDS)) as events:
            async for event in events:
                match event:
                    case QueuePosition(ahead):
                        yield "queue", {"ahead": ahead}
                    case PassagesFound(passages):
                        yield "passages", await asyncio.to_thread(_passages, site, asked, passages)
                    case TextWritten(text):
                        yield "token", {"text": text}
                    case Ping():
                        yield "ping", {}
                    case Result(answered):
                        yield "done", await asyncio.to_thread(_done, site, asked, answered)
                    case Failure():
                        yield "error", {"message": event.message}
    except Exception as error:  # noqa: BLE001  too many wait, the conversation was forgotten, or rendering failed
        yield "error", {"message": failure(error).message}


def _earlier(site: Site, asked: AskRequest) -> str:
    with site.service.history() as history:
        # A question that is answered anyway replaces the last turn, which was the same question.
        apart = asked.question if asked.options.anyway else ""
        thread = view_thread(history, site.library, asked.conversation or 0, apart=apart)
        return site.fragment("thread.html", thread=thread)


def _passages(site: Site, asked: AskRequest, found: Sequence[Passage]) -> dict[str, object]:
    html = site.fragment("cards.html", cards=cards(site.library, asked.question, found), question=asked.question)
    return {"count": len(found), "passages": [passage_as_dict(passage) for passage in found], "html": html}


def _done(site: Site, asked: AskRequest, found: ServedAnswer) -> dict[str, object]:
    shown = cards(site.library, asked.question, found.answer.passages, answer=found.answer)
    view, filters = view_answer(found.answer, again=found.again), as_fields(asked.options.filters)
    said = {"question": asked.question, "filters": filters, "conversation": found.conversation}
    return {
        "answer": answer_as_dict(found.answer),
        "again": found.again,
        "conversation": found.conversation,
        "html": site.fragment("answer.html", view=view, **said),
        "cards": site.fragment("cards.html", cards=shown, question=asked.question),
    }
