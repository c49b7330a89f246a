"""What `serve` does to the documents of a library: one order after another, each in a process of its own."""

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local_rag.errors import BusyError
from local_rag.serving.maintain import Order

COMMAND = (sys.executable, "-P", "-m", "local_rag.serving.maintain")
_MOST_WAITING = 20
_STOP_SECONDS = 20.0
_NAMES = {
    "read": "Reading",
    "compare": "Comparing documents",
    "contextualize": "Writing contexts",
    "embed": "Embedding",
    "publish": "Publishing",
}


@dataclass(frozen=True, slots=True)
class TaskView:
    """What is being done: the order, its stage, how much of it, and the seconds `left` if they can be told.

    `message` says how the last order ended. With `watching`, changes are indexed as they happen.
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


class Tasks:
    """Carry out orders for one library until it is closed; `command` starts the process that does."""

    def __init__(self, library: Path, command: Sequence[str] = COMMAND) -> None:
        self._library, self._command = str(library), tuple(command)
        self._changed = threading.Condition()
        self._orders = deque[Order]()
        self._process: subprocess.Popen[bytes] | None = None
        self._view, self._began = TaskView(), 0.0
        self._watching = self._stopped = self._closed = False
        self._thread: threading.Thread | None = None

    def view(self) -> TaskView:
        """Return what is being done."""
        with self._changed:
            view = replace(self._view, waiting=len(self._orders), watching=self._watching)
            if self._orders and not view.running:  # the thread has not taken it yet
                view = TaskView(running=True, what=self._orders[0].do, watching=self._watching)
        spent = time.monotonic() - self._began
        if not view.running or not 0 < view.done < view.total or spent < 1:
            return view
        return replace(view, left=spent / view.done * (view.total - view.done))

    def submit(self, do: str, paths: Sequence[Path | str] = (), *, erase: bool = False) -> None:
        """Queue an order; raise BusyError where too many wait."""
        order = Order(library=self._library, do=do, paths=tuple(map(str, paths)), erase=erase)
        with self._changed:
            if order in self._orders:
                return
            if len(self._orders) >= _MOST_WAITING or self._closed:
                raise BusyError("Too many changes of the documents are waiting; try again when some are done.")
            self._orders.append(order)
            self._go_on()

    def watch(self, *, on: bool) -> None:
        """Index changes as they happen from now on, or no longer."""
        with self._changed:
            self._watching = on
            self._go_on()

    def stop(self) -> None:
        """Stop what is being done, and drop what waits; what is finished is kept."""
        with self._changed:
            self._orders.clear()
            self._watching, self._stopped = False, True
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
        """Begin with what waits; it comes before watching, which is then taken up again."""
        if self._view.what == "watch":
            self._interrupt()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tasks", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _interrupt(self) -> None:
        if self._process:
            with suppress(OSError):
                self._process.terminate()

    def _run(self) -> None:
        while order := self._next():
            self._carry_out(order)

    def _next(self) -> Order | None:
        with self._changed:
            self._changed.wait_for(lambda: self._orders or self._watching or self._closed)
            if self._closed:
                return None
            self._stopped = False
            order = self._orders.popleft() if self._orders else Order(library=self._library, do="watch")
            kept = self._view.message if order.do == "watch" else ""
            self._view, self._began = TaskView(running=True, what=order.do, message=kept), time.monotonic()
            return order

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
                dropped = order.do == "watch" and (self._orders or not self._watching)
                if self._closed or self._stopped or dropped:  # meanwhile
                    self._interrupt()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(OSError):
                process.stdin.write(order.line())
                process.stdin.close()
            for line in process.stdout:
                with suppress(ValueError, KeyError):  # something else has printed
                    message = self._take(json.loads(line)) or message
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
                self._show(_NAMES.get(event["stage"], ""), int(event["done"]), int(event["total"]))
        return ""

    def _show(self, stage: str, done: int, total: int) -> None:
        with self._changed:
            if stage != self._view.stage:
                self._began = time.monotonic()
            self._view = replace(self._view, stage=stage, done=done, total=total)

    def _end(self, order: Order, problem: str) -> None:
        with self._changed:
            interrupted = self._stopped or self._closed or order.do == "watch"
            said = (
                "Stopped; what was finished is kept."
                if self._stopped
                else ""
                if interrupted or not problem
                else problem
            )
            done = {"index": "Indexed.", "remove": "Removed."}.get(order.do, "")
            self._view = TaskView(message=said or (done if not interrupted else self._view.message))
            if order.do == "watch" and problem and not interrupted:
                self._watching = False
