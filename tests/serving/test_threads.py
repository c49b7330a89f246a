"""Work beside the event loop: one client that asks for much keeps no place from others."""

import asyncio
import threading
import time

import pytest

from local_rag.serving.threads import LateError, Shared, Threads


def test_one_client_does_not_take_all_places() -> None:
    async def ask() -> str:
        threads, go_on = Threads(most=3, most_of_one=2, seconds=0.3), threading.Event()
        asked = [asyncio.ensure_future(threads(go_on.wait, client="anna")) for _ in range(5)]
        await asyncio.sleep(0.05)
        assert await threads(lambda: "ben", client="ben") == "ben"
        late = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, LateError) for one in late)
        with pytest.raises(LateError):
            await threads(lambda: "anna", client="anna")  # what hangs keeps its place until it ends
        go_on.set()
        await asyncio.sleep(0.1)
        return await threads(lambda: "anna", client="anna")

    assert asyncio.run(ask()) == "anna"


def test_the_event_loop_does_not_wait_for_a_thread_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _self: time.sleep(5))

    async def ask() -> float:
        began = time.monotonic()
        assert await Threads()(lambda: "anna") == "anna"
        return time.monotonic() - began

    assert asyncio.run(ask()) < 3


def test_all_who_ask_meanwhile_share_the_next_run_and_none_that_began_before() -> None:
    async def ask() -> list[list[int]]:
        runs, go_on = 0, asyncio.Event()

        async def run() -> int:
            nonlocal runs
            runs += 1
            number = runs
            await go_on.wait()
            return number

        shared = Shared(run)
        first = [asyncio.ensure_future(shared()) for _ in range(3)]
        await asyncio.sleep(0.01)
        later = [asyncio.ensure_future(shared()) for _ in range(3)]
        later[0].cancel()  # who leaves ends it for nobody else
        go_on.set()
        return [await asyncio.gather(*first), await asyncio.gather(*later[1:]), [await shared()]]

    assert asyncio.run(ask()) == [[1, 1, 1], [2, 2], [3]]


def test_a_shared_run_that_fails_fails_for_all_and_the_next_one_begins() -> None:
    outcomes = [ValueError("one"), None]

    async def run() -> str:
        if problem := outcomes.pop(0):
            raise problem
        return "two"

    async def ask() -> str:
        shared = Shared(run)
        failed = await asyncio.gather(shared(), shared(), return_exceptions=True)
        assert [str(one) for one in failed] == ["one", "one"]
        return await shared()

    assert asyncio.run(ask()) == "two"
