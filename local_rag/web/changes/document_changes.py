"""What `serve` does to the documents of a library: one order after another, each in a process of its own."""

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local_rag.display import STAGES
from local_rag.errors import BusyError, LocalRagError
from local_rag.web.changes.change_process import GO_ON, WAIT, Order

COMMAND = (sys.executable, "-P", "-m", "local_rag.web.changes.change_process")
_MOST_WAITING = 20
_STOP_SECONDS = 20.0
_AGAIN_SECONDS = 20.0  # until an erasure is tried again, perhaps because another process writes
_QUIET_SECONDS = 60.0  # without a question, until sentences are written
_DONE = {"index": "Indexed.", "remove": "Removed.", "erase": "Erased."}
_WHILE_IDLE = {"watch", "contexts"}  # what any other order interrupts


@dataclass(frozen=True, slots=True)
class ChangeView:
    """What is being done: the order, its stage, how much of it, and the seconds `left` if they can be told.

    `message` says how the last order ended. With `watching`, changes are indexed as they happen. What is `mine` is
    stopped by who looks at it.
    """

    running: bool = False
    what: str = ""
    stage: str = ""
    done: int = 0
    total: int = 0
    left: float | None = None
    waiting: int = 0
    watching: bool = False
    message: str = ""
    mine: bool = False


class DocumentChanges:
    """Carry out orders for one library until it is closed; `command` starts the process that does.

    An erasure is recorded in the library before it is ordered. It cannot be stopped, and is tried again until it is
    done. While nobody asks and no folder is watched, the sentences that are `unwritten` are written.
    """

    def __init__(
        self,
        library: Path,
        command: Sequence[str] = COMMAND,
        erases_later: Callable[[], bool] = lambda: False,
        *,
        unwritten: Callable[[], int] = lambda: 0,
        quiet_seconds: float = _QUIET_SECONDS,
    ) -> None:
        self._library, self._command, self._erases_later = str(library), tuple(command), erases_later
        self._unwritten, self._quiet_seconds = unwritten, quiet_seconds
        self._answering, self._quiet_since = False, time.monotonic()
        self._to_write = True  # whether there may be something to write
        self._changed = threading.Condition()
        self._orders = deque[Order]()
        self._running: Order | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._view, self._began = ChangeView(), 0.0
        self._watchers = set[str]()  # the people who want changes to be indexed
        self._unerased, self._again = "", 0.0  # why an erasure has failed, and when it is tried again
        self._watch_after = 0.0  # watching has failed: perhaps another process writes
        self._stopped = self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Take up what was to be erased when the server ended, and write sentences while nobody asks."""
        with suppress(LocalRagError):
            if self._erases_later():
                self.submit("erase")
        with self._changed:
            self._go_on()

    def give_way(self, answering: bool) -> None:
        """Let sentences wait while a question is answered."""
        with self._changed:
            self._answering, self._quiet_since = answering, time.monotonic()
            if self._process and self._running and self._running.do == "contexts":
                self._say(WAIT if answering else GO_ON)
            self._changed.notify_all()

    def _say(self, line: str) -> None:
        if self._process and self._process.stdin:
            with suppress(OSError, ValueError):  # it has ended
                self._process.stdin.write(f"{line}\n".encode())
                self._process.stdin.flush()

    def view(self, person: str = "", *, whole: bool = True) -> ChangeView:
        """Return what is being done; not the `whole` of it, but of what this person has ordered, without numbers."""
        with self._changed:
            running, view = self._running, self._view
            if not whole and not (running and running.person == person):
                view = ChangeView()
            orders = [order for order in self._orders if whole or order.person == person]
            if orders and not view.running:  # it has yet to be taken
                view = ChangeView(running=True, what=orders[0].do)
            watches = person in self._watchers
            begun = [order for order in (*orders, running) if order and order.person == person]
            mine = watches or any(order.do != "erase" for order in begun)
            if not whole:
                return ChangeView(view.running, view.what, waiting=len(orders), watching=watches, mine=mine)
            message = " ".join(filter(None, (view.message, self._unerased)))
            view = replace(view, waiting=len(orders), watching=bool(self._watchers), message=message, mine=mine)
        spent = time.monotonic() - self._began
        if not view.running or not 0 < view.done < view.total or spent < 1:
            return view
        return replace(view, left=spent / view.done * (view.total - view.done))

    def submit(self, do: str, paths: Sequence[Path | str] = (), person: str = "") -> None:
        """Queue an order; raise BusyError where too many wait."""
        order = Order(library=self._library, do=do, paths=tuple(map(str, paths)), person=person)
        with self._changed:
            if order in self._orders:
                return
            if self._closed or (len(self._orders) >= _MOST_WAITING and do != "erase"):
                raise BusyError("Too many changes of the documents are waiting; try again when some are done.")
            self._orders.append(order)
            self._go_on()

    def watch(self, *, on: bool, person: str = "") -> None:
        """Index changes as they happen from now on, or no longer for this person."""
        with self._changed:
            (self._watchers.add if on else self._watchers.discard)(person)
            self._go_on()

    def stop(self, person: str = "") -> None:
        """Stop what this person has ordered, erasures excepted; what is finished is kept."""
        with self._changed:
            self._orders = deque(order for order in self._orders if order.person != person or order.do == "erase")
            self._watchers.discard(person)
            running = self._running
            if running and running.do == "watch" and not self._watchers:
                self._interrupt()
            elif running and running.person == person and running.do not in {"erase", "watch"}:
                self._stopped = True
                self._interrupt()

    def close(self) -> None:
        """Stop for good, and wait until the process has ended."""
        with self._changed:
            self._closed = True
            self._orders.clear()
            self._interrupt()
            self._changed.notify_all()
        if self._thread:
            self._thread.join(_STOP_SECONDS)
        with self._changed:
            if self._process:
                self._process.kill()

    def _go_on(self) -> None:
        """Begin with what waits; it comes before watching and sentences, which are then taken up again."""
        if self._view.what in _WHILE_IDLE:
            self._interrupt()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="changes", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _interrupt(self) -> None:
        if self._process:
            with suppress(OSError):
                self._process.terminate()

    def _run(self) -> None:
        while order := self._next():
            if order.do == "contexts" and not self._has_unwritten():
                self._end(order, "")
            else:
                self._carry_out(order)

    def _has_unwritten(self) -> bool:
        with suppress(LocalRagError):
            return self._unwritten() > 0
        return False

    def _next(self) -> Order | None:
        with self._changed:
            self._running = None
            while not (
                self._orders or self._watches_now() or self._closed or self._is_due() or self._until_quiet() == 0
            ):
                waits = self._unerased or self._watchers
                self._changed.wait(_AGAIN_SECONDS if waits else self._until_quiet())
            if self._closed:
                return None
            self._stopped = False
            if self._is_due() and not self._orders:
                self._orders.append(Order(library=self._library, do="erase"))
            idle = Order(library=self._library, do="watch" if self._watchers else "contexts")
            order = self._orders.popleft() if self._orders else idle
            self._running, self._to_write = order, order.do != "contexts"
            kept = self._view.message if order is idle else ""
            self._view, self._began = ChangeView(running=True, what=order.do, message=kept), time.monotonic()
            return order

    def _until_quiet(self) -> float | None:
        """Return for how long to wait until sentences may be written; None if there is nothing to write."""
        if self._answering or not self._to_write or self._watchers:
            return None
        return max(0.0, self._quiet_since + self._quiet_seconds - time.monotonic())

    def _watches_now(self) -> bool:
        return bool(self._watchers) and time.monotonic() >= self._watch_after

    def _is_due(self) -> bool:
        return bool(self._unerased) and time.monotonic() >= self._again

    def _carry_out(self, order: Order) -> None:
        message = "it ended early; see what `local-rag serve` has printed"
        try:
            process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            self._end(order, f"it could not be started ({error.strerror})")
            return
        with process:
            with self._changed:
                self._process = process
                wanted = "watch" if self._watchers else "contexts"
                dropped = order.do in _WHILE_IDLE and (self._orders or order.do != wanted)
                if self._closed or self._stopped or dropped:  # meanwhile
                    self._interrupt()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(OSError):
                process.stdin.write(order.line())
                process.stdin.flush()
                if order.do != "contexts":
                    process.stdin.close()
            with self._changed:
                if order.do == "contexts" and self._answering:  # meanwhile
                    self._say(WAIT)
            for line in process.stdout:
                with suppress(ValueError, KeyError):  # something else has printed
                    message = self._take(json.loads(line)) or message
            with suppress(OSError):  # it was stopped before it read its order, which is still to be written
                process.stdin.close()
        with self._changed:
            self._process = None
        self._end(order, "" if message == "done" else message)

    def _take(self, event: dict[str, Any]) -> str:
        """Note an event; return how the order ended if it has, `done` or a sentence."""
        match event["event"]:
            case "done":
                return "done"
            case "failed":
                return str(event["message"])
            case "waiting":
                self._show("", 0, 0)
            case "progress":
                self._show(STAGES.get(event["stage"], ""), int(event["done"]), int(event["total"]))
        return ""

    def _show(self, stage: str, done: int, total: int) -> None:
        with self._changed:
            if stage != self._view.stage:
                self._began = time.monotonic()
            self._view = replace(self._view, stage=stage, done=done, total=total)

    def _end(self, order: Order, problem: str) -> None:
        with self._changed:
            interrupted = self._stopped or self._closed or order.do in _WHILE_IDLE
            if order.do == "watch" and problem and not (self._orders or self._stopped):
                self._watch_after = time.monotonic() + _AGAIN_SECONDS
            if order.do == "contexts" and problem and (self._orders or self._watchers):  # it was interrupted for these
                self._to_write = True
            if order.do == "erase":
                self._unerased = f"Not erased yet, it is tried again: {problem}" if problem else ""
                self._again = time.monotonic() + _AGAIN_SECONDS
                message = "" if problem or interrupted else _DONE["erase"]
            elif self._stopped:
                message = "Stopped; what was finished is kept."
            elif interrupted:
                message = self._view.message
            else:
                message = problem or _DONE[order.do]
            self._view = ChangeView(message=message)
