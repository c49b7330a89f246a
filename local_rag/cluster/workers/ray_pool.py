"""The worker pool of a Ray cluster: one worker on each machine, or on each of its GPUs, as machines join and leave.

Ray restarts a process that has died (`max_restarts=-1`) but repeats no work (`max_task_retries=0`); the driver does.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local_rag.cluster.workers.driver import Began, Ended, Event, Failed, Finished
from local_rag.cluster.workers.machine_worker import Fitting, Worker
from local_rag.errors import ClusterError

_REFRESH_SECONDS = 1.0
_FACTS_SECONDS = 300.0  # to hash the models of a machine


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster: its id in Ray, its address, and its number of GPUs, each of which gets a worker."""

    id: str
    address: str
    gpus: int


def nodes_of(ray: Any) -> list[Node]:
    """Return the machines that are alive and take work; a machine that joined with no core is only a driver."""
    return [
        Node(one["NodeID"], one["NodeManagerAddress"], int(one["Resources"].get("GPU", 0)))
        for one in ray.nodes()
        if one["Alive"] and one["Resources"].get("CPU")
    ]


def differences(own: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Describe the facts in which a machine differs from this one."""
    if "answer" in found:
        return [found["answer"]]
    wrong = {name: value for name, value in own.items() if found.get(name) != value}
    return [f"{name} {found.get(name, 'missing')} instead of {value}" for name, value in wrong.items()]


class RayWorkerPool:
    """Workers of one kind on all machines; a context manager that ends them.

    `own` are the facts of this machine. A machine with other facts gets no work.
    """

    def __init__(
        self, ray: Any, method: str, fitting: Fitting, own: Mapping[str, str], log: Callable[[str], None]
    ) -> None:
        self._ray, self._method, self._fitting, self._own, self._log = ray, method, fitting, own, log
        self._actors: dict[str, Any] = {}
        self._unchecked: dict[str, Any] = {}  # references to facts that have not arrived; None if the facts differ
        self._next_refresh = 0.0

    def __enter__(self) -> "RayWorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors.values():
            self._ray.kill(actor)

    def slots(self) -> Sequence[str]:
        """Return the slots whose facts are those of this machine, as machines join and leave."""
        if time.monotonic() >= self._next_refresh:
            self._next_refresh = time.monotonic() + _REFRESH_SECONDS
            self._refresh()
            for slot, reference in list(self._unchecked.items()):
                if reference is not None and self._ray.wait([reference], timeout=0)[0]:
                    self._check(slot, reference)
        return [slot for slot in self._actors if slot not in self._unchecked]

    def compare(self) -> dict[str, dict[str, str]]:
        """Wait for the facts of every machine and return them; for a machine that fails, return only the reason."""
        self._refresh()
        return {slot: self._facts(reference) for slot, reference in self._unchecked.items()}

    def require_same(self) -> None:
        """Compare every machine with this one; raise ClusterError if one differs."""
        for slot, found in self.compare().items():
            if wrong := differences(self._own, found):
                raise ClusterError(
                    f"The machine {slot} of the cluster differs from this one: {', '.join(wrong)}; fix the "
                    "machine, or stop Ray on it with `local-rag cluster stop`."
                )
            del self._unchecked[slot]

    def _refresh(self) -> None:
        """Start workers on machines that have joined, one per GPU or one in all; forget machines that have left."""
        wanted = {
            f"{node.address} {node.id[:8]}" + (f" GPU {number}" if node.gpus else ""): (node, number)
            for node in nodes_of(self._ray)
            for number in range(max(1, node.gpus))
        }
        self._actors = {slot: actor for slot, actor in self._actors.items() if slot in wanted}
        self._unchecked = {slot: reference for slot, reference in self._unchecked.items() if slot in wanted}
        for slot in wanted.keys() - self._actors.keys():
            actor = self._actors[slot] = self._start(*wanted[slot])
            self._unchecked[slot] = actor.facts.remote()

    def _start(self, node: Node, number: int) -> Any:
        at = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
        gpus = 1 if node.gpus else 0
        options = {"num_cpus": 0, "num_gpus": gpus, "max_restarts": -1, "max_task_retries": 0}
        kind = self._ray.remote(Worker).options(**options, scheduling_strategy=at)
        return kind.remote(self._fitting, number, max(1, node.gpus))

    def _facts(self, reference: Any) -> dict[str, str]:
        try:
            found: dict[str, str] = self._ray.get(reference, timeout=_FACTS_SECONDS)
        except self._ray.exceptions.RayError as error:
            found = {"answer": _reason(error)}
        return found

    def _check(self, slot: str, reference: Any) -> None:
        """Let a machine take work if its facts are those of this one; ask again if its worker has died."""
        found = self._facts(reference)
        if wrong := differences(self._own, found):
            self._log(f"{slot} gets no work: {', '.join(wrong)}")
            self._unchecked[slot] = self._actors[slot].facts.remote() if "answer" in found else None
        else:
            del self._unchecked[slot]

    def begin(self, slot: str, items: Mapping[str, Any]) -> Any:
        """Send items to the worker of a slot."""
        return getattr(self._actors[slot], self._method).remote(dict(items))

    def abandon(self, slot: str) -> None:
        """End the worker of a slot; Ray starts another one in its place."""
        if slot in self._actors:
            self._ray.kill(self._actors[slot], no_restart=False)

    def events(self, running: Sequence[Any], seconds: float) -> Iterator[tuple[Any, Event]]:
        """Wait until tasks have results; yield their events."""
        for stream in self._ray.wait(list(running), timeout=seconds)[0]:
            try:
                result = self._ray.get(next(stream))
            except StopIteration:
                yield stream, Ended()
            # A dead process is reported as unavailable, a lost machine as unschedulable: both are RayError.
            except self._ray.exceptions.RayError as error:
                yield stream, Failed(_reason(error))
            else:
                yield stream, Began() if result is None else Finished(*result)


def _reason(error: Exception) -> str:
    """Describe an error in one line: the exception that the worker itself raised, if there is one."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0][:300]}" if lines else type(cause).__name__
