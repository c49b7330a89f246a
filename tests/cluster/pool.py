"""A pool of fake worker slots: they finish tasks at once, and fail as often as a test wants."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local_rag.cluster.workers.driver import Began, Ended, Event, Failed, Finished


class Hang:
    """From now on the slot gives nothing, with one of `hanging` for the first time."""


class FakeWorkerPool:
    """Finish an item an event; a task ends its worker by chance, or because it holds poison.

    A finished item is counted in `done`; `held` is the most items at the slots at any time.
    """

    def __init__(
        self,
        slots: int,
        *,
        failing: float = 0.0,
        seed: int = 0,
        poison: frozenset[str] = frozenset(),
        hanging: frozenset[str] = frozenset(),
    ) -> None:
        self.names = [f"machine {number}" for number in range(slots)]
        self._failing, self._chance, self._poison = failing, random.Random(seed), poison
        self._running: dict[int, tuple[str, Iterator[Event | Hang]]] = {}
        self._hanging, self._stuck, self.abandoned = hanging, set[str](), list[str]()
        self._number = 0
        self.done, self.begun = Counter[str](), Counter[str]()
        self.held = 0
        self.placed: list[tuple[str, tuple[str, ...]]] = []

    def slots(self) -> Sequence[str]:
        return self.names

    def begin(self, slot: str, items: Mapping[str, Any]) -> int:
        self._number += 1
        self._running[self._number] = slot, self._work(list(items))
        self.placed.append((slot, tuple(items)))
        self.held = max(self.held, len(self._running))
        return self._number

    def _work(self, keys: list[str]) -> Iterator[Event | Hang]:
        if self._chance.random() < self._failing / 4:
            yield Failed("lost before it began")
            return
        yield Began()
        for key in keys:
            self.begun[key] += 1
            if key in self._hanging and self.begun[key] == 1:
                yield Hang()
            if key in self._poison or self._chance.random() < self._failing:
                yield Failed("killed")
                return
            self.done[key] += 1
            yield Finished([key], f"made of {key}")
        yield Ended()

    def events(self, running: Sequence[int], seconds: float) -> Iterator[tuple[int, Event]]:
        for handle in running:
            slot, work = self._running[handle]
            if slot in self._stuck:
                continue
            event = next(work) if slot in self.names else Failed("its machine has gone")
            if isinstance(event, Hang):
                self._stuck.add(slot)
                continue
            if isinstance(event, Ended | Failed):
                del self._running[handle]
            yield handle, event

    def abandon(self, slot: str) -> None:
        self._stuck.discard(slot)
        self.abandoned.append(slot)
        self._running = {handle: task for handle, task in self._running.items() if task[0] != slot}


class Clock:
    """A clock that goes on only when somebody sleeps, or looks at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
