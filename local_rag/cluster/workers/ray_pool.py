"""The machines of a Ray cluster as the driver sees them: a worker on each, found and lost while it runs.

Ray starts a process again that has died (`max_restarts=-1`), but repeats no work (`max_task_retries=0`): the driver
does.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local_rag.cluster.workers.driver import Began, Ended, Event, Failed, Finished
from local_rag.cluster.workers.worker import Fitting, Worker
from local_rag.errors import ClusterError

_LOOK_SECONDS = 1.0
_FACTS_SECONDS = 300.0  # to hash the models of a machine


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster: Ray's id for it, its address, and on how many GPUs it can have a worker each."""

    id: str
    address: str
    gpus: int


def nodes_of(ray: Any) -> list[Node]:
    """Return the machines that are there and take work: one that has joined with no core only drives."""
    return [
        Node(one["NodeID"], one["NodeManagerAddress"], int(one["Resources"].get("GPU", 0)))
        for one in ray.nodes()
        if one["Alive"] and one["Resources"].get("CPU")
    ]


def differences(own: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Say in which facts a machine differs from this one."""
    if "answer" in found:
        return [found["answer"]]
    return [
        f"{name} {found.get(name, 'missing')} instead of {value}"
        for name, value in own.items()
        if found.get(name) != value
    ]


class RayWorkerPool:
    """Workers of one kind on all machines; use it as a context manager, which ends them.

    `own` are the facts of this machine: one that differs gets no work.
    """

    def __init__(
        self, ray: Any, method: str, fitting: Fitting, own: Mapping[str, str], log: Callable[[str], None]
    ) -> None:
        self._ray, self._method, self._fitting, self._own, self._log = ray, method, fitting, own, log
        self._actors: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}  # for their facts, which are not there yet, or are wrong
        self._next_look = 0.0

    def __enter__(self) -> "RayWorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors.values():
            self._ray.kill(actor)

    def places(self) -> Sequence[str]:
        """Name the workers that fit, also those of machines that have joined since, and not of those that have gone."""
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK_SECONDS
            self._look()
            for place, reference in list(self._asked.items()):
                if reference is not None and self._ray.wait([reference], timeout=0)[0]:
                    self._judge(place, reference)
        return [place for place in self._actors if place not in self._asked]

    def compare(self) -> dict[str, dict[str, str]]:
        """Return the facts of every machine, once it has said them; one that cannot says only why."""
        self._look()
        return {place: self._facts(reference) for place, reference in self._asked.items()}

    def require_same(self) -> None:
        """Compare every machine with this one; raise ClusterError where one differs."""
        for place, found in self.compare().items():
            if wrong := differences(self._own, found):
                raise ClusterError(
                    f"The machine {place} of the cluster differs from this one: {', '.join(wrong)}; see `local-rag "
                    "cluster check`, and mend it or let it leave."
                )
            del self._asked[place]

    def _look(self) -> None:
        """Give each machine that has come a worker, or one for each of its GPUs; forget those that have gone."""
        wanted = {
            f"{node.address} {node.id[:8]}" + (f" GPU {number}" if node.gpus else ""): node
            for node in nodes_of(self._ray)
            for number in range(max(1, node.gpus))
        }
        self._actors = {place: actor for place, actor in self._actors.items() if place in wanted}
        self._asked = {place: reference for place, reference in self._asked.items() if place in wanted}
        for place in wanted.keys() - self._actors.keys():
            actor = self._actors[place] = self._start(wanted[place])
            self._asked[place] = actor.facts.remote()

    def _start(self, node: Node) -> Any:
        at = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
        kind = self._ray.remote(Worker).options(
            num_cpus=0,
            num_gpus=1 if node.gpus else 0,
            max_restarts=-1,
            max_task_retries=0,
            scheduling_strategy=at,
        )
        return kind.remote(self._fitting)

    def _facts(self, reference: Any) -> dict[str, str]:
        try:
            found: dict[str, str] = self._ray.get(reference, timeout=_FACTS_SECONDS)
        except self._ray.exceptions.RayError as error:
            found = {"answer": _reason(error)}
        return found

    def _judge(self, place: str, reference: Any) -> None:
        """Let a machine that has joined take work if it fits; ask it again if it died meanwhile."""
        found = self._facts(reference)
        if wrong := differences(self._own, found):
            self._log(f"{place} gets no work: {', '.join(wrong)}")
            self._asked[place] = self._actors[place].facts.remote() if "answer" in found else None
        else:
            del self._asked[place]

    def begin(self, place: str, items: Mapping[str, Any]) -> Any:
        """Send items to a worker."""
        return getattr(self._actors[place], self._method).remote(dict(items))

    def events(self, running: Sequence[Any], seconds: float) -> Iterator[tuple[Any, Event]]:
        """Wait until a task has a result; yield what happened to it."""
        for stream in self._ray.wait(list(running), timeout=seconds)[0]:
            try:
                result = self._ray.get(next(stream))
            except StopIteration:
                yield stream, Ended()
            # A process that has died shows as unavailable, a lost machine as no place to run: all are RayError.
            except self._ray.exceptions.RayError as error:
                yield stream, Failed(_reason(error))
            else:
                yield stream, Began() if result is None else Finished(*result)


def _reason(error: Exception) -> str:
    """Name an error in one line: a worker's own exception as it was there."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0][:300]}" if lines else type(cause).__name__
