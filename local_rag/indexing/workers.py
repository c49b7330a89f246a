"""The units of work of an index, and the workers that do them: this process, or the machines of a cluster.

A unit of work is a pure function of its input. Its result is stored under a key of everything that it depends on, so a
worker may fail and the work may be repeated.
"""

import gc
import itertools
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Generator as Stream
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import LifoQueue, Queue
from threading import Condition
from typing import Protocol, TypeVar

import numpy as np

from local_rag.document_records import Skipped
from local_rag.errors import ReadError, StoppedError
from local_rag.indexing.situating_prompts import ContextJob, context_room, write_contexts
from local_rag.indexing.vectors import embed_with_contexts
from local_rag.llama.engine import EngineSettings
from local_rag.llama.generator import Counts, Generator, never
from local_rag.llama.model import LlamaModel, cannot_share
from local_rag.llama.models_in_use import load_embedder, open_engine
from local_rag.llama.optimize import fastest_file, file_for_many, stored_settings, tune
from local_rag.machine import Neighbours, physical_cores
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import Embedder
from local_rag.reading.isolate import IsolatedReader, ReadFile, skipped
from local_rag.reading.split import Splitting

EMBED_BATCH = 256
_AHEAD = 3  # files that each reader reads in advance
_WAITING = 1 << 26  # characters of text that wait to be stored, and as many in chunks
_LONGEST_PAUSE = 1.0  # seconds between two batches while other processes work
WORTH_TUNING = 200  # contexts to write: these take minutes, tuning takes seconds

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
OpenEngine = Callable[..., AbstractContextManager[Generator]]
OnNote = Callable[[str], None]  # receives a remark on what is done before the first result


@dataclass(frozen=True, slots=True)
class EmbeddingJob:
    """A vector to make: its key in the store, the text of the chunk, and its context."""

    key: str
    text: str
    context: str


@dataclass(frozen=True, slots=True)
class WrittenContext:
    """A finished sentence with its key in the store; empty if the model wrote none that can be used."""

    key: str
    text: str


class Workers(Protocol):
    """The workers; each method yields finished results in any order.

    `counts` are the tokens of all contexts so far. `given_up` maps the keys of contexts and vectors that could not be
    made, and were yielded empty, to the reason. `stop` is asked while contexts are written; once it returns true, those
    in flight are given up. `machines` counts the machines now working, 0 if only this one is.
    """

    counts: Counts
    given_up: dict[str, str]
    stop: Callable[[], bool]

    @property
    def machines(self) -> int:
        """Return the number of machines now working."""

    def read(self, paths: Iterable[Path], splitting: Splitting) -> Stream[tuple[Path, ReadFile | Skipped]]:
        """Read and split files, each within limits of time and memory."""

    def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: OnNote) -> Stream[WrittenContext]:
        """Write contexts; take from `jobs` what can be processed, about `expected` in total."""

    def embed(self, jobs: Iterable[EmbeddingJob], note: OnNote) -> Stream[tuple[Sequence[str], np.ndarray]]:
        """Yield keys with their vectors, float32 of shape (len(keys), dimension)."""


def machines_at_work(workers: Workers) -> str:
    """Return how many machines are working, to begin a remark with; empty if only this one is."""
    count = workers.machines
    return f"{count} {'machine' if count == 1 else 'machines'}, " if count else ""


class LocalWorkers:
    """Do the work in this process, with one large model in memory at a time; other processes read files."""

    def __init__(
        self,
        embed_model: InstalledModel,
        context_model: InstalledModel | None,
        *,
        load_embedder: Callable[[InstalledModel], Embedder] = load_embedder,
        open_engine: OpenEngine = open_engine,
    ) -> None:
        self._embed_model, self._context_model = embed_model, context_model
        self._load_embedder, self._open_engine = load_embedder, open_engine
        self.counts = Counts()
        self.given_up: dict[str, str] = {}
        self.machines = 0
        self.stop: Callable[[], bool] = never

    def read(self, paths: Iterable[Path], splitting: Splitting) -> Stream[tuple[Path, ReadFile | Skipped]]:
        """Read as many files at a time as there are cores, each in a process of its own, a few in advance."""
        with ExitStack() as stack:
            readers = [stack.enter_context(IsolatedReader(splitting)) for _ in range(physical_cores())]
            free = LifoQueue[IsolatedReader]()  # last in, first out: a few files start no more processes than they need
            for reader in readers:
                free.put(reader)

            def stop() -> None:
                for reader in readers:
                    reader.stop()

            with closing(_ahead(partial(_read, free), paths, stop, len(readers), _characters)) as read:
                yield from read

    def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: OnNote) -> Stream[WrittenContext]:
        """Write several contexts at a time, with the engine tuned to this machine if there are many.

        The model is loaded once there is one to write.
        """
        assert self._context_model is not None
        waiting = iter(jobs)
        if (first := next(waiting, None)) is None:  # all were written before
            return
        with open_writer(self._context_model, expected, note, self._open_engine) as engine:
            engine.counts = self.counts
            with engine.stopping(self.stop), suppress(StoppedError):
                for key, text in write_contexts(itertools.chain([first], waiting), engine):
                    yield WrittenContext(key, text)

    def embed(self, jobs: Iterable[EmbeddingJob], note: OnNote) -> Stream[tuple[Sequence[str], np.ndarray]]:
        """Embed in batches; the model is loaded for the first one and freed after the last."""
        waiting, neighbours = iter(jobs), Neighbours()
        embedder = None
        while batch := list(itertools.islice(waiting, EMBED_BATCH)):
            if embedder is None:
                note(f"loading {self._embed_model.name}")
                embedder = self._load_embedder(self._embed_model)
            started = time.monotonic()
            yield [job.key for job in batch], embed_with_contexts(embedder, [(job.text, job.context) for job in batch])
            if neighbours.threads() < physical_cores():  # perhaps somebody searches and waits
                time.sleep(min(_LONGEST_PAUSE, time.monotonic() - started))
        # The context model is loaded next: only one large model at a time.
        del embedder
        gc.collect()


@contextmanager
def open_writer(model: InstalledModel, expected: int, note: OnNote, open_engine: OpenEngine) -> Iterator[Generator]:
    """Open the engine that writes contexts, tuned to this machine if there are many to write."""
    note(f"loading {model.name}")
    many = expected >= WORTH_TUNING

    def fit(loaded: LlamaModel) -> EngineSettings:
        if loaded.keeps_state:
            raise cannot_share(loaded.path)
        settings = stored_settings(loaded.path, gpu_layers=loaded.gpu_layers)
        if settings is None and many:
            settings = tune(loaded, note)
        return settings or EngineSettings()

    path = file_for_many(model, note) if many else fastest_file(model)
    with open_engine(path, context_tokens=context_room, settings=fit, adapter=model.adapter) as engine:
        yield engine


def _read(free: "Queue[IsolatedReader]", path: Path) -> tuple[Path, ReadFile | Skipped]:
    reader = free.get()
    try:
        return path, reader.read(path)
    except (ReadError, OSError) as error:
        return path, skipped(path, error)
    finally:
        free.put(reader)


def _characters(read: tuple[Path, ReadFile | Skipped]) -> int:
    return 0 if isinstance(read[1], Skipped) else len(read[1].document.text)


def _ahead(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    stop: Callable[[], None],
    threads: int = 1,
    weigh: Callable[[_Result], int] = lambda _result: 0,
) -> Stream[_Result]:
    """Yield the results of a function in order, calling it in threads a few items ahead; `stop` aborts all calls.

    While the results that wait weigh more than `_WAITING`, only the call whose result is next begins.
    """
    thread, change = ThreadPoolExecutor(threads), Condition()
    called = deque[Future[tuple[_Result, int]]]()
    waiting = taken = 0

    def call(number: int, item: _Item) -> tuple[_Result, int]:
        nonlocal waiting
        with change:
            change.wait_for(lambda: waiting <= _WAITING or number <= taken)
        result = function(item)
        weight = weigh(result)
        with change:
            waiting += weight
        return result, weight

    def take() -> _Result:
        nonlocal waiting, taken
        result, weight = called.popleft().result()
        with change:
            waiting, taken = waiting - weight, taken + 1
            change.notify_all()
        return result

    try:
        for number, item in enumerate(items):
            called.append(thread.submit(call, number, item))
            if len(called) > _AHEAD * threads:
                yield take()
        while called:
            yield take()
    finally:
        thread.shutdown(wait=False, cancel_futures=True)
        with change:
            taken = sys.maxsize  # none waits any longer
            change.notify_all()
        if called:
            stop()
        thread.shutdown()
