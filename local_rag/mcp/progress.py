"""What a host is told while it waits for a tool, if its request has a progress token."""

import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from local_rag.answering.remarks import remarks
from local_rag.display import one_line, printable
from local_rag.mcp.shapes import shortened
from local_rag.records import Written
from local_rag.serving.job import Failure, Job, PassagesFound, Ping, QueuePosition, Result
from local_rag.serving.requests import ServedAnswer

T = TypeVar("T")
Tell = Callable[[str], Awaitable[None]]
_PING_SECONDS = 10.0  # hosts give up on what says nothing
_WRITTEN_SECONDS = 0.25  # between two messages of the text as it is written
_LONGEST = 2000  # characters of a message


class Progress:
    """Tell messages, whose number is what progresses; how many will follow is not known."""

    def __init__(self, report: Callable[[float, float | None, str | None], Awaitable[None]]) -> None:
        self._report, self._told = report, 0

    async def __call__(self, message: str) -> None:
        """Tell a message."""
        self._told += 1
        await self._report(self._told, None, shortened(message, _LONGEST))


async def followed(job: Job[T], tell: Tell) -> T:
    """Return the result of a job, or raise its error; tell what stands before it, and an answer as it is written."""
    text, told = "", 0.0
    async with aclosing(job.events(_PING_SECONDS)) as events:
        async for event in events:
            match event:
                case QueuePosition(ahead, seconds) if ahead:
                    await tell(f"{ahead} before you" + (f", about {max(1, round(seconds))} s" if seconds else ""))
                case PassagesFound(passages):
                    await tell(f"Reading {len(passages)} passage{'s' if len(passages) != 1 else ''}")
                case Written(more, replaces):
                    text = more if replaces else text + more
                    if replaces or time.monotonic() - told >= _WRITTEN_SECONDS:
                        told = time.monotonic()
                        await tell(printable(text))
                case Ping():
                    await tell("Still at work")
                case Result(value):
                    if isinstance(value, ServedAnswer):
                        for remark in remarks(value.answer, str, value.changed):
                            await tell(one_line(remark))
                    return value
                case Failure(error):
                    raise error
    raise AssertionError("a job ends with a result or a failure")
