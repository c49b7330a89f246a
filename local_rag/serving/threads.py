"""Run work that may wait for a disk in threads, so that the event loop, and whoever else asks, waits for nothing."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from local_rag.errors import LocalRagError

T = TypeVar("T")


class LateError(LocalRagError):
    """Report work that did not end in time."""


class Threads:
    """Run functions in at most `most` threads at a time; who asks for one waits at most `seconds` for it.

    A function that hangs, as on a network drive that does not answer, keeps its place until it ends. It does not keep
    the program from ending.
    """

    def __init__(self, *, most: int = 16, seconds: float = 20.0) -> None:
        self._free, self._seconds = asyncio.Semaphore(most), seconds

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return the result of a function; raise LateError if it does not end in time."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
                loop = asyncio.get_running_loop()
                done: asyncio.Future[T] = loop.create_future()
                threading.Thread(target=self._run, args=(work, done, loop), name="aside", daemon=True).start()
                return await done
        except TimeoutError:
            raise LateError(
                "The library did not answer in time, perhaps because a disk is slow; try it again."
            ) from None

    def _run(self, work: Callable[[], Any], done: asyncio.Future[Any], loop: asyncio.AbstractEventLoop) -> None:
        result, failed = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  it is raised where the result is awaited
            failed = error

        def tell() -> None:
            self._free.release()
            if done.done():  # nobody waits any more
                return
            if failed is None:
                done.set_result(result)
            else:
                done.set_exception(failed)

        with suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(tell)
