"""An answer as a stream of events: first the passages, then the words as they are written.

The events, each with JSON as data: `earlier` (`html`) in a conversation, `queue` (`ahead`), `passages` (`count`,
`passages`, `html`), `token` (`text`), `done` (`answer`, `again`, `conversation`, `html`, `cards`), `error` (`message`),
and `ping` while nothing else happens. What is called `html` was rendered here, with everything from documents and
models escaped.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from local_rag.display import answer_as_dict, passage_as_dict, printable_json
from local_rag.errors import LocalRagError
from local_rag.records import Passage
from local_rag.serving.requests import Answered, Question, answering
from local_rag.web.conversation import view_thread
from local_rag.web.evidence import cards, view_answer
from local_rag.web.filtering import as_fields
from local_rag.web.guard import client_of
from local_rag.web.pages.base import Site, until_gone

_PING_SECONDS = 10.0


class EventStream(Response):
    """Send events until there are no more or the reader has gone, who ends whatever makes them."""

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


async def answer_events(site: Site, request: Request, question: Question) -> AsyncGenerator[tuple[str, object]]:
    """Ask, and yield what happens; whoever stops reading stops the answer."""
    told: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(event: str, value: Any) -> None:
        with suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(told.put_nowait, (event, value))

    try:
        if question.conversation:
            yield "earlier", {"html": await asyncio.to_thread(_earlier, site, question)}
        job = site.owner.submit(answering(question, site.history), tell, client_of(request.scope))
    except LocalRagError as error:  # too much is waiting, or the conversation was forgotten
        yield "error", {"message": str(error)}
        return
    job.result.add_done_callback(lambda _result: tell("end", None))
    try:
        while True:
            try:
                # Not wait_for, which may swallow that it was cancelled when a token comes at the same moment.
                async with asyncio.timeout(_PING_SECONDS):
                    event, value = await told.get()
            except TimeoutError:
                yield "ping", {}
                continue
            if event == "end":
                break
            if event == "passages":
                yield "passages", await asyncio.to_thread(_passages, site, question, value)
            else:
                yield event, {"text": value} if event == "token" else {"ahead": value}
        try:
            yield "done", await asyncio.to_thread(_done, site, question, job.result.result())
        except LocalRagError as error:
            yield "error", {"message": str(error)}
        except Exception:
            yield "error", {"message": "The answer failed; see what `local-rag serve` has printed."}
            raise
    finally:
        site.owner.stop(job)


def _earlier(site: Site, question: Question) -> str:
    with site.history() as history:
        # What is to be answered anyway takes the place of the question before.
        apart = question.text if question.options.anyway else ""
        return site.fragment(
            "thread.html", thread=view_thread(history, site.owner.library, question.conversation or 0, apart=apart)
        )


def _passages(site: Site, question: Question, found: Sequence[Passage]) -> dict[str, object]:
    shown = cards(site.owner.library, question.text, found)
    html = site.fragment("cards.html", cards=shown, question=question.text)
    return {"count": len(found), "passages": [passage_as_dict(passage) for passage in found], "html": html}


def _done(site: Site, question: Question, answered: Answered) -> dict[str, object]:
    shown = cards(site.owner.library, question.text, answered.answer.passages, answer=answered.answer)
    view, filters = view_answer(answered.answer, again=answered.again), as_fields(question.options.filters)
    said = {"question": question.text, "filters": filters, "conversation": answered.conversation}
    return {
        "answer": answer_as_dict(answered.answer),
        "again": answered.again,
        "conversation": answered.conversation,
        "html": site.fragment("answer.html", view=view, **said),
        "cards": site.fragment("cards.html", cards=shown, question=question.text),
    }
