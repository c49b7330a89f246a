"""Spread tasks over machines that come, go and crash: each item is finished exactly once, or given up and named.

It is the driver that tries again, not the engine below it: what a task has finished is kept, what is left moves to
another machine, and tries are counted. Only a task that had begun can have ended its worker, so that only it has a try
counted; its parts are then tried one by one, since one of them may be poison and the others not.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from local_rag.errors import ClusterError

TRIES = 3  # of a part that ends its worker
IN_FLIGHT = 2  # tasks at a worker, of which one waits: no more are asked for than that
_LOST = 10  # times that a task may fail before it has begun, or without that being heard
_IN_A_ROW = 20  # parts given up with nothing finished between them: the fault is not theirs
_REST_SECONDS, _LONGEST_REST = 1.0, 60.0  # before a worker that failed gets work again, twice as long each time
_PATIENCE_SECONDS = 60.0  # with no machine at all
_WAIT_SECONDS = 0.5

Item = TypeVar("Item")
Handle = TypeVar("Handle", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Began:
    """A task has reached its worker and begun."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Some items of a task are finished; `value` is whatever the worker made of them all."""

    keys: Sequence[str]
    value: Any


@dataclass(frozen=True, slots=True)
class Ended:
    """A task has come to its end."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A task, its worker or its machine has failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What was tried too often."""

    keys: Sequence[str]
    reason: str


Event = Began | Finished | Ended | Failed


@dataclass(slots=True)
class Task(Generic[Item]):
    """Items by their keys, each with the number of the part that it belongs to: a document, or a window of one."""

    items: dict[str, tuple[int, Item]]
    tries: int = 0
    lost: int = 0
    begun: bool = False
    failed_at: str = ""

    def parts(self) -> Iterator["Task[Item]"]:
        """Yield a task for what is left of each part, with one more try counted."""
        parts: dict[int, dict[str, tuple[int, Item]]] = {}
        for key, (part, item) in self.items.items():
            parts.setdefault(part, {})[key] = part, item
        for items in parts.values():
            yield Task(items, self.tries + 1, self.lost, failed_at=self.failed_at)


class WorkerPool(Protocol[Handle]):
    """What runs tasks; a place is a worker with its model, on a machine that is there now."""

    def places(self) -> Sequence[str]:
        """Name the places that can take work now: those of machines that have joined, without those that have gone."""

    def begin(self, place: str, items: Mapping[str, Any]) -> Handle:
        """Send items to a place."""

    def events(self, running: Sequence[Handle], seconds: float) -> Iterable[tuple[Handle, Event]]:
        """Wait at most so long for something to happen; yield it."""


@dataclass(slots=True)
class Driver(Generic[Item, Handle]):
    """Run tasks on machines; `clock` and `sleep` are the time's, and a test's."""

    machines: WorkerPool[Handle]
    log: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    at_work: int = 0
    _rests: dict[str, tuple[float, float]] = field(default_factory=dict)  # until when, and for how long the next time
    _in_a_row: int = 0
    _alone_since: float | None = None

    def run(self, tasks: Iterable[Task[Item]]) -> Iterator[Finished | GivenUp]:
        """Yield what is finished or given up, in any order; a task is asked for when there is a worker for it."""
        fresh, again = iter(tasks), deque[Task[Item]]()
        running: dict[Handle, tuple[str, Task[Item]]] = {}
        while True:
            more = self._hand_out(fresh, again, running)
            if not running:
                if not again and not more:
                    return
                self.sleep(_WAIT_SECONDS / 5)
                continue
            for handle, event in self.machines.events(list(running), _WAIT_SECONDS):
                place, task = running[handle]
                if isinstance(event, Ended | Failed):
                    del running[handle]
                    yield from self._ended(place, task, event, again)
                elif isinstance(event, Began):
                    task.begun = True
                else:
                    new = [key for key in event.keys if task.items.pop(key, None)]
                    self._rests.pop(place, None)
                    self._in_a_row = 0
                    if len(new) == len(event.keys):
                        yield event

    def _hand_out(
        self, fresh: Iterator[Task[Item]], again: deque[Task[Item]], running: dict[Handle, tuple[str, Task[Item]]]
    ) -> bool:
        """Give the places what they can take; say whether there may be more."""
        places = self._places(bool(running))
        loads = Counter(place for place, _ in running.values())
        while free := self._free(places, loads):
            task = self._retry(again, free, places) or next(fresh, None)
            if task is None:
                return False
            place = next(one for one in free if one != task.failed_at or len(places) == 1)
            items = {key: item for key, (_, item) in task.items.items()}
            running[self.machines.begin(place, items)] = place, task
            loads[place] += 1
        return True

    def _places(self, busy: bool) -> Sequence[str]:
        """Look which places there are; raise ClusterError after a while with none."""
        places = self.machines.places()
        self.at_work = len(places)
        if places or busy:
            self._alone_since = None
            return places
        now = self.clock()
        self._alone_since = now if self._alone_since is None else self._alone_since
        if now - self._alone_since > _PATIENCE_SECONDS:
            raise ClusterError(
                "No machine of the cluster takes work; join one with `local-rag cluster start --join ADDRESS`, and run "
                "the same command again: what is finished is kept."
            )
        return places

    def _free(self, places: Sequence[str], loads: Counter[str]) -> list[str]:
        """Return the places that can take a task, the least loaded first."""
        now = self.clock()
        free = [one for one in places if loads[one] < IN_FLIGHT and self._rests.get(one, (0.0,))[0] <= now]
        return sorted(free, key=lambda one: loads[one])

    @staticmethod
    def _retry(again: deque[Task[Item]], free: Sequence[str], places: Sequence[str]) -> Task[Item] | None:
        """Take the first task to repeat that a free place may have: not where it failed, if there is another."""
        for number, task in enumerate(again):
            if len(places) == 1 or any(one != task.failed_at for one in free):
                del again[number]
                return task
        return None

    def _rest(self, place: str) -> None:
        """Leave a place in peace for a while, which is longer each time."""
        seconds = self._rests.get(place, (0.0, _REST_SECONDS))[1]
        self._rests[place] = self.clock() + seconds, min(2 * seconds, _LONGEST_REST)

    def _ended(
        self, place: str, task: Task[Item], event: Ended | Failed, again: deque[Task[Item]]
    ) -> Iterator[GivenUp]:
        """Have what is left of a task done again, part by part if it had begun; yield what was tried too often."""
        if isinstance(event, Failed):
            self._rest(place)
        if not task.items:  # else its last message alone was lost
            return
        reason = event.reason if isinstance(event, Failed) else "ended before it was finished"
        self.log(f"{place}: {len(task.items)} items left, tried {task.tries} times: {reason}")
        begun, task.failed_at, task.begun = task.begun, place, False
        if not begun and task.lost < _LOST:
            task.lost += 1
            again.append(task)
            return
        for part in task.parts():
            if part.tries < TRIES:
                again.append(part)
                continue
            self._in_a_row += 1
            if self._in_a_row >= _IN_A_ROW:
                raise ClusterError(
                    f"The last {_IN_A_ROW} documents all failed {TRIES} times on the cluster ({reason}), so the fault "
                    "is hardly theirs; see `local-rag cluster check`, and run the same command again."
                )
            yield GivenUp(list(part.items), reason)
