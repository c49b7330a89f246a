"""Work beside the event loop: one client that asks for much keeps no place from others."""

import asyncio
import threading
import time

import pytest

from local_rag.serving.threads import LateError, Threads


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
