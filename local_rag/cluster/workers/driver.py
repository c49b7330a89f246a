"""Spread tasks over machines that join, leave and crash. Each item is finished exactly once, or given up and reported.

The driver itself retries, not the engine below it. It keeps what a task has finished, moves the rest to another
machine and counts the tries. Only a task that has begun can have crashed its worker, so only such a task has a try
counted. Its parts are then tried one by one, because one of them may crash workers and the others not.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from local_rag.errors import ClusterError

TRIES = 3  # for a part that crashes its worker
IN_FLIGHT = 2  # tasks at a worker: one runs, one waits
_LOST = 10  # times that a task may fail before it begins, or before its worker reports that it has begun
_IN_A_ROW = 20  # parts given up with nothing finished in between: the documents are probably not the cause
_PAUSE_SECONDS, _LONGEST_PAUSE = 1.0, 60.0  # before a slot that failed gets work again; doubles each time
_PATIENCE_SECONDS = 60.0  # without any machine
_WAIT_SECONDS = 0.5
SILENT_SECONDS = 1800.0  # that a worker may be silent in any case: it loads a model, and fits it to the machine
_SILENT_TIMES = 10  # the longest silence that a result ended so far

Item = TypeVar("Item")
Handle = TypeVar("Handle", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Began:
    """A worker has begun a task."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Some items of a task are finished; `value` is the worker's result for all of them."""

    keys: Sequence[str]
    value: Any


@dataclass(frozen=True, slots=True)
class Ended:
    """A task has ended."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A task, its worker or its machine has failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Some items were tried too often."""

    keys: Sequence[str]
    reason: str


Event = Began | Finished | Ended | Failed


@dataclass(slots=True)
class Task(Generic[Item]):
    """Items by key, each with the number of its part: a document, or a window of a document."""

    items: dict[str, tuple[int, Item]]
    tries: int = 0
    lost: int = 0
    begun: bool = False
    failed_at: str = ""

    def parts(self) -> Iterator["Task[Item]"]:
        """Yield a task for the remaining items of each part, with one more try counted."""
        parts: dict[int, dict[str, tuple[int, Item]]] = {}
        for key, (part, item) in self.items.items():
            parts.setdefault(part, {})[key] = part, item
        for items in parts.values():
            yield Task(items, self.tries + 1, self.lost, failed_at=self.failed_at)


class WorkerPool(Protocol[Handle]):
    """Run tasks in worker slots; a slot is a worker with its model, on a machine of the cluster."""

    def slots(self) -> Sequence[str]:
        """Return the names of the slots that can take work now: machines join and leave."""

    def begin(self, slot: str, items: Mapping[str, Any]) -> Handle:
        """Send items to a slot."""

    def events(self, running: Sequence[Handle], seconds: float) -> Iterable[tuple[Handle, Event]]:
        """Wait at most `seconds` for events of these tasks, and yield them."""

    def abandon(self, slot: str) -> None:
        """End the worker of a slot, which gives nothing any more; another one takes its place."""


@dataclass(slots=True)
class Driver(Generic[Item, Handle]):
    """Run tasks in the slots of a pool, and retry what fails."""

    pool: WorkerPool[Handle]
    log: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    slots: int = 0  # that can take work now
    _pauses: dict[str, tuple[float, float]] = field(default_factory=dict)  # by slot: until when, and how long next time
    _in_a_row: int = 0
    silent: float = SILENT_SECONDS
    _empty_since: float | None = None
    _seen: dict[str, float] = field(default_factory=dict)  # by slot: when it last gave something, or got its first task
    _longest: float = 0.0  # silence that a result ended

    def run(self, tasks: Iterable[Task[Item]]) -> Iterator[Finished | GivenUp]:
        """Yield what is finished or given up, in any order. Take a task from `tasks` only when a slot is free."""
        fresh, retries = iter(tasks), deque[Task[Item]]()
        running: dict[Handle, tuple[str, Task[Item]]] = {}
        while True:
            more = self._hand_out(fresh, retries, running)
            if not running:
                if not retries and not more:
                    return
                self.sleep(_WAIT_SECONDS / 5)
                continue
            yield from self._abandon_silent(running, retries)
            for handle, event in self.pool.events(list(running), _WAIT_SECONDS):
                slot, task = running[handle]
                self._hear(slot, event)
                if isinstance(event, Ended | Failed):
                    del running[handle]
                    yield from self._ended(slot, task, event, retries)
                elif isinstance(event, Began):
                    task.begun = True
                else:
                    new = [key for key in event.keys if task.items.pop(key, None)]
                    self._pauses.pop(slot, None)
                    self._in_a_row = 0
                    if len(new) == len(event.keys):
                        yield event

    def _hand_out(
        self, fresh: Iterator[Task[Item]], retries: deque[Task[Item]], running: dict[Handle, tuple[str, Task[Item]]]
    ) -> bool:
        """Give the slots the tasks that they can take; return whether there may be more tasks."""
        slots = self._find_slots(bool(running))
        loads = Counter(slot for slot, _ in running.values())
        while free := self._free(slots, loads):
            task = self._retry(retries, free, slots) or next(fresh, None)
            if task is None:
                return False
            slot = next(one for one in free if one != task.failed_at or len(slots) == 1)
            items = {key: item for key, (_, item) in task.items.items()}
            if not loads[slot]:
                self._seen[slot] = self.clock()
            running[self.pool.begin(slot, items)] = slot, task
            loads[slot] += 1
        return True

    def _hear(self, slot: str, event: Event) -> None:
        """Note when a slot gave something, and after how long a silence."""
        now = self.clock()
        if isinstance(event, Finished):
            self._longest = max(self._longest, now - self._seen[slot])
        self._seen[slot] = now

    def _abandon_silent(
        self, running: dict[Handle, tuple[str, Task[Item]]], retries: deque[Task[Item]]
    ) -> Iterator[GivenUp]:
        """Abandon the workers that have been silent for much longer than any that gave a result; retry their tasks."""
        now, most = self.clock(), max(self.silent, _SILENT_TIMES * self._longest)
        for slot in {slot for slot, _ in running.values() if now - self._seen[slot] > most}:
            self.pool.abandon(slot)
            for handle in [one for one, (at, _) in running.items() if at == slot]:
                _, task = running.pop(handle)
                yield from self._ended(slot, task, Failed(f"gave nothing for {most:.0f} seconds"), retries)

    def _find_slots(self, busy: bool) -> Sequence[str]:
        """Return the slots that there are; raise ClusterError if there has been none for too long."""
        slots = self.pool.slots()
        self.slots = len(slots)
        if slots or busy:
            self._empty_since = None
            return slots
        now = self.clock()
        self._empty_since = now if self._empty_since is None else self._empty_since
        if now - self._empty_since > _PATIENCE_SECONDS:
            raise ClusterError(
                "No machine of the cluster takes work; join one with `local-rag cluster start --join ADDRESS`, and run "
                "the same command again (finished work is kept)."
            )
        return slots

    def _free(self, slots: Sequence[str], loads: Counter[str]) -> list[str]:
        """Return the slots that can take a task, the least loaded first."""
        now = self.clock()
        free = [one for one in slots if loads[one] < IN_FLIGHT and self._pauses.get(one, (0.0,))[0] <= now]
        return sorted(free, key=lambda one: loads[one])

    @staticmethod
    def _retry(retries: deque[Task[Item]], free: Sequence[str], slots: Sequence[str]) -> Task[Item] | None:
        """Take the first task that a free slot may retry: not the slot where it failed, unless it is the only one."""
        for number, task in enumerate(retries):
            if len(slots) == 1 or any(one != task.failed_at for one in free):
                del retries[number]
                return task
        return None

    def _ended(
        self, slot: str, task: Task[Item], event: Ended | Failed, retries: deque[Task[Item]]
    ) -> Iterator[GivenUp]:
        """Queue the remaining items of a task again, part by part if it had begun; yield what was tried too often."""
        if isinstance(event, Failed):
            seconds = self._pauses.get(slot, (0.0, _PAUSE_SECONDS))[1]
            self._pauses[slot] = self.clock() + seconds, min(2 * seconds, _LONGEST_PAUSE)
        if not task.items:  # only its last message was lost
            return
        reason = event.reason if isinstance(event, Failed) else "ended before it was finished"
        self.log(f"{slot}: {len(task.items)} items left, tried {task.tries} times: {reason}")
        begun, task.failed_at, task.begun = task.begun, slot, False
        if not begun and task.lost < _LOST:
            task.lost += 1
            retries.append(task)
            return
        for part in task.parts():
            if part.tries < TRIES:
                retries.append(part)
                continue
            self._in_a_row += 1
            if self._in_a_row >= _IN_A_ROW:
                raise ClusterError(
                    f"The last {_IN_A_ROW} documents all failed {TRIES} times on the cluster ({reason}), so the "
                    "documents are probably not the cause; run `local-rag cluster check`, then the same command again."
                )
            yield GivenUp(list(part.items), reason)
