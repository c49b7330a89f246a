"""What other rooms have of the server: its library, and questions in its queue, written down as all are."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias

from starlette.routing import BaseRoute

from local_rag.library import Library
from local_rag.records import EVERYTHING, Answer, AskOptions, Filters, Passage, Turn
from local_rag.serving.requests import Question, answering, searching
from local_rag.serving.worker import Job
from local_rag.web.pages.base import Site, unless_gone


class Desk:
    """Ask on behalf of programs; who gives up waiting ends what it asked for."""

    def __init__(self, site: Site, route: str) -> None:
        self._site, self._route = site, route

    @property
    def library(self) -> Library:
        """Return the library, of which only what opens its own store may be called."""
        return self._site.owner.library

    @property
    def loading(self) -> bool:
        """Say whether a search would wait for models that are still to be loaded."""
        return self._site.owner.loading

    def wake(self) -> None:
        """Load the models behind whoever asks."""
        self._site.owner.wake()

    def record(self, question: str, *, client: str) -> None:
        """Write into the audit log who asked what, where the setting says so."""
        self._site.audit_as(client, self._route, question)

    async def search(self, question: str, *, top: int, filters: Filters, client: str) -> Sequence[Passage]:
        """Search, best first."""
        trace = await self._done(searching, Question(question, top=top, options=AskOptions(filters=filters)), client)
        passages: Sequence[Passage] = trace.passages
        return passages

    async def ask(
        self,
        question: str,
        *,
        client: str,
        earlier: Sequence[Turn] = (),
        filters: Filters = EVERYTHING,
        on_text: Callable[[str], None] = lambda _text: None,
        receive: Callable[[], Any] | None = None,
    ) -> Answer:
        """Answer a question that goes on a conversation; `on_text` is called with the answer as it is written.

        `receive`, of a request, tells when whoever asked has gone away.
        """
        loop = asyncio.get_running_loop()

        def tell(event: str, value: Any) -> None:
            if event == "token":
                with suppress(RuntimeError):  # the server has ended
                    loop.call_soon_threadsafe(on_text, value)

        asked = Question(question, options=AskOptions(filters=filters), earlier=tuple(earlier))
        answer: Answer = (await self._done(answering, asked, client, tell, receive)).answer
        return answer

    async def _done(
        self,
        work: Callable[[Question], Callable[[Library, Job], Any]],
        question: Question,
        client: str,
        tell: Callable[[str, Any], None] = lambda _event, _value: None,
        receive: Callable[[], Any] | None = None,
    ) -> Any:
        self.record(question.text, client=client)
        job = self._site.owner.submit(work(question), tell, client)
        try:
            done = asyncio.wrap_future(job.result)
            return await (unless_gone(receive, done) if receive else done)
        finally:
            self._site.owner.stop(job)


# What another room adds to the server: its routes, and what is entered while they are served.
Face: TypeAlias = Callable[[Desk], tuple[Sequence[BaseRoute], Callable[[], AbstractAsyncContextManager[None]]]]
