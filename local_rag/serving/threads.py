"""Run work that may wait for a disk in threads, so that the event loop, and whoever else asks, waits for nothing."""

import asyncio
from _thread import start_new_thread
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from local_rag.errors import LocalRagError

T = TypeVar("T")


class LateError(LocalRagError):
    """Report work that did not end in time."""


class Threads:
    """Run functions in at most `most` threads at a time, and `most_of_one` client's; one waits at most `seconds`.

    A function that hangs, as on a network drive that does not answer, keeps its place until it ends. It does not keep
    the program from ending.
    """

    def __init__(self, *, most: int = 16, most_of_one: int = 6, seconds: float = 20.0) -> None:
        self._free, self._most_of_one, self._seconds = asyncio.Semaphore(most), most_of_one, seconds
        self._of_clients = WeakValueDictionary[str, asyncio.Semaphore]()

    async def __call__(self, work: Callable[[], T], *, client: str = "") -> T:
        """Return the result of a function, which a `client` wants; raise LateError if it does not end in time."""
        places = [self._free]
        if client:  # waits for places of its own first, so it keeps none from others meanwhile
            places.insert(0, self._of_clients.setdefault(client, asyncio.Semaphore(self._most_of_one)))
        try:
            async with asyncio.timeout(self._seconds):
                await _take(places)
                loop = asyncio.get_running_loop()
                done: asyncio.Future[T] = loop.create_future()
                # Thread.start() waits until the thread runs, and the event loop with it: seconds on a busy machine.
                start_new_thread(_run, (work, done, loop, places))
                return await done
        except TimeoutError:
            raise LateError(
                "The library did not answer in time, perhaps because a disk is slow; try it again."
            ) from None


class Shared(Generic[T]):
    """Let all who want the result of a function at the same time share a run, which begins after they have asked."""

    def __init__(self, run: Callable[[], Awaitable[T]]) -> None:
        self._run = run
        self._running: asyncio.Future[T] | None = None
        self._next: asyncio.Future[T] | None = None

    async def __call__(self) -> T:
        """Return the result of a run that begins now, or once the one under way has ended."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._after(self._running))
        return await asyncio.shield(self._next)

    async def _after(self, running: asyncio.Future[T] | None) -> T:
        if running and not running.done():
            await asyncio.wait([running])
        self._running, self._next = self._next, None
        return await self._run()


async def _take(places: Sequence[asyncio.Semaphore]) -> None:
    taken = list[asyncio.Semaphore]()
    try:
        for place in places:
            await place.acquire()
            taken.append(place)
    except BaseException:
        _release(taken)
        raise


def _release(places: Sequence[asyncio.Semaphore]) -> None:
    for place in places:
        place.release()


def _run(
    work: Callable[[], Any],
    done: asyncio.Future[Any],
    loop: asyncio.AbstractEventLoop,
    places: Sequence[asyncio.Semaphore],
) -> None:
    result, failed = None, None
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  it is raised where the result is awaited
        failed = error

    def tell() -> None:
        _release(places)
        if done.done():  # nobody waits any more
            return
        if failed is None:
            done.set_result(result)
        else:
            done.set_exception(failed)

    with suppress(RuntimeError):  # the server has ended
        loop.call_soon_threadsafe(tell)
