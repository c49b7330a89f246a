"""Workers on the machines of a Ray cluster; files, contexts and vectors come back one by one to this process.

There is one worker on each machine, or on each of its GPUs, as machines join and leave; each machine is compared with
this one before it gets any work. Ray restarts a process that has died (`max_restarts=-1`) but repeats no work
(`max_task_retries=0`); the driver does.
"""

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Generator as Stream
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.cluster.hosts import head_of, private_addresses
from local_rag.cluster.workers.driver import (
    SILENT_SECONDS,
    Began,
    Driver,
    Ended,
    Event,
    Failed,
    Finished,
    GivenUp,
    Task,
)
from local_rag.cluster.workers.machine_worker import Fitting, Worker, facts_of
from local_rag.cluster.workers.ray_connection import connected, log
from local_rag.document_records import Skipped
from local_rag.errors import ClusterError, ReadError
from local_rag.files import FileStamp
from local_rag.indexing.situating_prompts import ContextJob
from local_rag.indexing.workers import EmbeddingJob, OnNote, OpenEngine, WrittenContext
from local_rag.llama.generator import Counts, never
from local_rag.llama.models_in_use import load_embedder, open_engine
from local_rag.model_records import InstalledModel, Role
from local_rag.models.choice import chosen, writes_sentences
from local_rag.models.embedder import Embedder
from local_rag.reading.isolate import ReadFile, skipped
from local_rag.reading.provenance import scraped_from
from local_rag.reading.read import read_file
from local_rag.reading.split import Splitting
from local_rag.settings import Settings

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


# Sizes of a task. The engine writes several contexts at a time and idles at the end of a task, so tasks are not small.
_FEWEST_CHUNKS, _MOST_CHUNKS = 64, 256
_EMBED_CHUNKS = 256
_FILES, _FILE_BYTES = 16, 4 * 2**20
_LONGEST_READING = 6 * 3600.0


class RayWorkers:
    """Do the work on every machine of the cluster at an address, with one worker and one model on each."""

    def __init__(
        self,
        address: str,
        embed_model: InstalledModel,
        context_model: InstalledModel | None,
        *,
        load_embedder: Callable[[InstalledModel], Embedder] = load_embedder,
        open_engine: OpenEngine = open_engine,
    ) -> None:
        self._address = address
        self._names: dict[Role, str] = {"embed": embed_model.name}
        if context_model is not None:
            self._names["context"] = context_model.name
        self._opened = load_embedder, open_engine
        self._drivers = list[Driver[Any, Any]]()
        self._own: dict[str, str] = {}
        self.counts = Counts()
        self.given_up: dict[str, str] = {}
        self.stop: Callable[[], bool] = never  # not asked: tasks that have begun end

    @property
    def machines(self) -> int:
        """Return the number of workers that can take work now."""
        return self._drivers[-1].slots if self._drivers else 0

    def read(self, paths: Iterable[Path], splitting: Splitting) -> Stream[tuple[Path, ReadFile | Skipped]]:
        """Read the bytes of files here and parse them on the machines, which need no access to the files."""
        unread, stamps = deque[Skipped](), dict[str, FileStamp]()
        with self._driving("read", splitting=splitting) as (driver, _):
            for done in driver.run(pack_files(paths, unread, stamps)):
                while unread:
                    yield unread[0].path, unread.popleft()
                if isinstance(done, Finished):
                    key, stamp = done.keys[0], stamps.pop(done.keys[0])
                    read = done.value
                    yield Path(key), as_read_here(Path(key), read, stamp) if isinstance(read, ReadFile) else read
                else:
                    reason = f"crashed the worker that read it ({done.reason})"
                    yield from ((Path(key), Skipped(Path(key), reason, lasting=True)) for key in done.keys)
        yield from ((skipped.path, skipped) for skipped in unread)

    def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: OnNote) -> Stream[WrittenContext]:
        """Write contexts. A chunk that crashes every worker gets none; `given_up` holds the reason."""
        note("connecting to the cluster")
        with self._driving("write", expected=expected) as (driver, slots):
            note(f"loading {self._names['context']} on {slots} machines")
            size = min(_MOST_CHUNKS, max(_FEWEST_CHUNKS, expected // (8 * max(1, slots))))
            for done in driver.run(pack_contexts(jobs, size)):
                if isinstance(done, GivenUp):
                    self.given_up |= dict.fromkeys(done.keys, done.reason)
                    yield from (WrittenContext(key, "") for key in done.keys)
                elif isinstance(done.value, Counts):
                    for name in ("prompt", "prefix", "suffix", "generated"):
                        setattr(self.counts, name, getattr(self.counts, name) + getattr(done.value, name))
                else:
                    yield WrittenContext(done.keys[0], done.value)

    def embed(self, jobs: Iterable[EmbeddingJob], note: OnNote) -> Stream[tuple[Sequence[str], np.ndarray]]:
        """Embed. A text that crashes every worker gets a vector of zeros, which is similar to no question."""
        waiting = iter(jobs)
        first = next(waiting, None)
        if first is None:
            return
        note("connecting to the cluster")
        without, dimension = list[str](), 0
        with self._driving("embed") as (driver, slots):
            note(f"loading {self._names['embed']} on {slots} machines")
            for done in driver.run(pack_texts(itertools.chain([first], waiting))):
                if isinstance(done, GivenUp):
                    self.given_up |= dict.fromkeys(done.keys, done.reason)
                    without += done.keys
                else:
                    dimension = done.value.shape[1]
                    yield done.keys, done.value
        if without and not dimension:
            raise ClusterError(f"No machine of the cluster can embed ({self.given_up[without[0]]}).")
        if without:
            yield without, np.zeros((len(without), dimension), dtype=np.float32)

    @contextmanager
    def _driving(
        self, method: str, *, expected: int = 0, splitting: Splitting | None = None
    ) -> Iterator[tuple[Driver[Any, Any], int]]:
        """Connect, compare all machines with this one, and yield a driver and its number of slots."""
        host = head_of(self._address)[0]
        fitting = Fitting(self._names, private_addresses(host) | {host}, *self._opened, expected, splitting)
        with ExitStack() as stack:
            ray = stack.enter_context(connected(self._address))
            self._own = self._own or facts_of(self._names)
            pool = stack.enter_context(RayWorkerPool(ray, method, fitting, self._own, log))
            pool.require_same()
            # Reading has limits of its own, and a scan of many pages takes long.
            driver = Driver[Any, Any](pool, log, silent=_LONGEST_READING if method == "read" else SILENT_SECONDS)
            self._drivers.append(driver)
            stack.callback(self._drivers.remove, driver)  # not always the last: reading may end before embedding
            yield driver, len(pool.slots())


def as_read_here(path: Path, read: ReadFile, stamp: FileStamp) -> ReadFile:
    """Add to a document what only the machine with its folder knows: its stamp, and what `scrape` noted of it."""
    document = read.document
    if path.suffix.lower() == ".pdf" and not document.provenance.url:
        provenance = replace(document.provenance, url=scraped_from(path, read.sha256))
        document = replace(document, provenance=provenance)
    return replace(read, document=document, stamp=stamp)


def pack_contexts(jobs: Iterable[ContextJob], size: int) -> Iterator[Task[ContextJob]]:
    """Pack jobs into tasks of at least `size` chunks that end where a window ends; each window is a part."""
    items, part, window = dict[str, tuple[int, ContextJob]](), 0, None
    for job in jobs:
        if job.window is not window:
            if len(items) >= size:
                yield Task(items)
                items = {}
            part, window = part + 1, job.window
        items[job.key] = part, job
    if items:
        yield Task(items)


def pack_texts(jobs: Iterable[EmbeddingJob]) -> Iterator[Task[EmbeddingJob]]:
    """Pack texts into tasks; each text is a part."""
    waiting = iter(jobs)
    while batch := list(itertools.islice(waiting, _EMBED_CHUNKS)):
        yield Task({job.key: (part, job) for part, job in enumerate(batch)})


def pack_files(paths: Iterable[Path], unread: deque[Skipped], stamps: dict[str, FileStamp]) -> Iterator[Task[bytes]]:
    """Pack files into tasks of a few megabytes; each file is a part.

    Add the stamps of those that were read to `stamps`, and files that cannot be read to `unread`.
    """
    items, size = dict[str, tuple[int, bytes]](), 0
    for path in paths:
        try:
            data, stamps[str(path)] = read_file(path)
        except (ReadError, OSError) as error:
            unread.append(skipped(path, error))
            continue
        items[str(path)] = len(items), data
        size += len(data)
        if len(items) >= _FILES or size >= _FILE_BYTES:
            yield Task(items)
            items, size = {}, 0
    if items:
        yield Task(items)


@dataclass(frozen=True, slots=True)
class Machine:
    """The versions and model hashes of a machine, and how they differ from those of this machine."""

    name: str
    facts: Mapping[str, str]
    differences: tuple[str, ...]


def compare_machines(settings: Settings) -> list[Machine]:
    """Return this machine and all machines of the cluster; raise ClusterError if it cannot be reached."""
    names = chosen(settings)
    wanted: tuple[Role, ...] = ("embed", "context") if writes_sentences(settings) else ("embed",)
    fitted = {role: names[role] for role in wanted if role in names}
    own = facts_of(fitted)
    host = head_of(settings.cluster.address)[0]
    fitting = Fitting(fitted, private_addresses(host) | {host}, load_embedder, open_engine)
    with connected(settings.cluster.address) as ray, RayWorkerPool(ray, "embed", fitting, own, log) as pool:
        found = pool.compare()
    if not found:
        raise ClusterError(
            f"No machine of the cluster at {settings.cluster.address} takes work; join one with `local-rag cluster "
            f"start --join {settings.cluster.address}`."
        )
    missing = tuple(f"{name} {value}" for name, value in own.items() if value.startswith("missing"))
    others = [Machine(name, facts, tuple(differences(own, facts))) for name, facts in found.items()]
    return [Machine("this machine", own, missing), *others]
