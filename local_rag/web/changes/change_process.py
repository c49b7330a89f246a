"""Index or remove documents in a process of its own: `python -m local_rag.web.changes.change_process`.

One line on standard input says what to do; while sentences are written, `wait` and `go on` may follow it. Each line on
standard output is an event: `progress` with stage, done and total, and at the end `done`, or `failed` with a sentence.
SIGTERM stops it; what is finished is kept.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from threading import Event
from typing import Any

from local_rag.errors import LocalRagError
from local_rag.indexing.watch import Watch, batches
from local_rag.library import Library, Parts
from local_rag.machine import give_way
from local_rag.progress_records import Progress
from local_rag.serialization import from_plain

WAIT, GO_ON = "wait", "go on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to do with a library, and the id of the person who orders it.

    `index` paths, or without any all that was indexed; `remove` paths; `erase` what the library holds orders for; write
    `contexts`; or `watch`.
    """

    library: str
    do: str
    paths: tuple[str, ...] = ()
    person: str = ""

    def line(self) -> bytes:
        """Return the order as the process reads it."""
        return json.dumps(asdict(self)).encode() + b"\n"


class Turns:
    """Whether sentences may be written, as the lines say that follow an order; they end when the server has gone."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._may_write, self._ended = Event(), False
        self._may_write.set()
        threading.Thread(target=self._follow, args=[lines], daemon=True).start()

    def _follow(self, lines: Iterable[str]) -> None:
        for line in lines:
            (self._may_write.clear if line.strip() == WAIT else self._may_write.set)()
        self._ended = True
        self._may_write.set()

    def stop(self) -> bool:
        """Wait for the turn; return whether the server has gone."""
        self._may_write.wait()
        return self._ended


def carry_out(
    order: Order, tell: Callable[..., None], parts: Parts, *, lines: Iterable[str] = (), sealed: bool = True
) -> None:
    """Do what an order says; raise LocalRagError if it cannot be done."""

    def on_progress(progress: Progress) -> None:
        tell("progress", stage=progress.stage, done=progress.done, total=progress.total)

    with Library(order.library, sealed=sealed, parts=parts) as library:
        if order.do == "remove":
            library.remove(order.paths)
            return
        if order.do == "erase":
            library.upkeep.erase_ordered()
            return
        if order.do == "contexts":
            library.upkeep.write_contexts(stop=Turns(lines).stop, progress=on_progress)
            return
        # Other orders wait for this one, so the sentences are left until nobody asks.
        library.index(order.paths, contexts=False, progress=on_progress)
        if order.do != "watch":
            return
        tell("waiting")
        with closing(Watch(library.folder)) as watch:
            for _ in batches(watch, lambda: [root.path for root in library.upkeep.roots()], Event()):
                with suppress(LocalRagError):  # another writer: the next change is seen again
                    library.index(contexts=False, progress=on_progress)
                tell("waiting")


def main(parts: Parts = Parts(), *, sealed: bool = True) -> None:  # noqa: B008
    """Read an order, carry it out, and say how it went."""
    give_way()
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def tell(event: str, **fields: Any) -> None:
        print(json.dumps({"event": event, **fields}), flush=True)

    try:
        order: Order = from_plain(Order, json.loads(sys.stdin.readline()))
        carry_out(order, tell, parts, lines=sys.stdin, sealed=sealed)
        tell("done")
    except LocalRagError as error:
        tell("failed", message=str(error))
    except (KeyboardInterrupt, BrokenPipeError):  # stopped, or the server has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(130)


if __name__ == "__main__":
    main()
