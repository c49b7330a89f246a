"""A worker on a machine of a cluster: it runs the units of work of `indexing/workers.py` with a model loaded once."""

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock

from local_rag.cluster.workers.ray_connection import state_folder
from local_rag.errors import ModelError, ReadError
from local_rag.files import file_sha256, pinned_versions
from local_rag.indexing.situating_prompts import ContextJob, write_contexts
from local_rag.indexing.vectors import embed_with_contexts
from local_rag.indexing.workers import EmbeddingJob, OpenEngine, open_writer
from local_rag.llama.generator import Counts, Generator
from local_rag.model_records import InstalledModel, Role
from local_rag.models.embedder import Embedder
from local_rag.models.models_folder import default_models_directory, sha256_of
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.models.registry import load_registry, resolve
from local_rag.offline import Cluster, close
from local_rag.reading.isolate import IsolatedReader, skipped
from local_rag.reading.split import READING_VERSION, Splitting

_EMBED_BATCH = 64

# A worker yields None when it begins, then keys with their results.
Results = Iterator[tuple[Sequence[str], Any] | None]


@dataclass(frozen=True, slots=True)
class Fitting:
    """The models of a worker, by role and name, and how they are opened; each machine finds the files itself.

    `hosts` are the only hosts that Python's sockets may reach, apart from the machine itself.
    """

    names: Mapping[Role, str]
    hosts: frozenset[str]
    load_embedder: Callable[[InstalledModel], Embedder]
    open_engine: OpenEngine
    expected: int = 0
    splitting: Splitting | None = None


def facts_of(names: Mapping[Role, str]) -> dict[str, str]:
    """Return what must be the same on all machines: the code that runs, and the files of each model."""
    found = {"Python": platform.python_version(), "local-rag": _code(), "reading": str(READING_VERSION)}
    for name in pinned_versions():
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    for role, name in names.items():
        try:
            model = resolve(name, role)
            found[f"{role} model"] = f"{name} {_files_sha256(model)[:16]}"
        except (ModelError, OSError) as error:
            found[f"{role} model"] = f"missing: {error}"
    return found


def _code() -> str:
    """Return the version of local-rag with a hash of its files, which change between releases too."""
    folder, digest = Path(__file__).parents[2], hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder)} {file_sha256(file)}\n".encode())
    return f"{version('local-rag')} {digest.hexdigest()[:16]}"


def _sha256(file: Path) -> str:
    """Return the hash of a large file, which is remembered: each stage asks for it."""
    return sha256_of(file, state_folder())


def _files_sha256(model: InstalledModel) -> str:
    """Return one hash for the files of a model: those in the registry, or all files of a user's own model."""
    registry, folder = load_registry(), default_models_directory()
    if model.name in registry.models:
        parts = registry.parts(model.name)
        files = [part.folder(folder) / file.name for part in parts for file in part.files]
    else:
        files = sorted(one for one in model.path.rglob("*") if one.is_file()) if model.path.is_dir() else [model.path]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + bytes.fromhex(_sha256(file)))
    return digest.hexdigest()


def share_of(processors: Iterable[int], number: int, workers: int) -> set[int]:
    """Return the processors of one of the workers of a machine: neighbours, which may be threads of one core."""
    some = sorted(processors)
    first, last = (len(some) * one // workers for one in (number, number + 1))
    return set(some[first : max(last, first + 1)])


class Worker:
    """Run tasks of one kind, one at a time; the model is loaded for the first and kept."""

    def __init__(self, fitting: Fitting, number: int, workers: int) -> None:
        # Ray sets it to 1 for an actor that reserves no core.
        os.environ.pop("OMP_NUM_THREADS", None)
        if hasattr(os, "sched_setaffinity"):  # before a library counts the cores
            os.sched_setaffinity(0, share_of(os.sched_getaffinity(0), number, workers))
        close(Cluster(fitting.hosts))
        self._fitting = fitting
        self._open = ExitStack()
        self._writer: Generator | None = None
        self._embedder: Embedder | None = None
        self._reader: IsolatedReader | None = None

    def facts(self) -> dict[str, str]:
        """Return what must be the same on all machines."""
        return facts_of(self._fitting.names)

    def write(self, jobs: Mapping[str, ContextJob]) -> Results:
        """Write contexts; yield each key with its text as soon as it is finished, then the token counts."""
        yield None
        if self._writer is None:
            fitting, model = self._fitting, self._model("context")
            # One worker at a time tunes the model to the machine; the others reuse the result.
            with FileLock(state_folder() / "writer.lock"):
                self._writer = self._open.enter_context(
                    open_writer(model, fitting.expected, lambda _remark: None, fitting.open_engine)
                )
        self._writer.counts = Counts()
        for key, text in write_contexts(jobs.values(), self._writer):
            yield [key], text
        yield [], self._writer.counts

    def embed(self, jobs: Mapping[str, EmbeddingJob]) -> Results:
        """Embed; yield the keys and vectors of each batch."""
        yield None
        if self._embedder is None:
            self._embedder = self._fitting.load_embedder(self._model("embed"))
        waiting = list(jobs.values())
        for start in range(0, len(waiting), _EMBED_BATCH):
            batch = waiting[start : start + _EMBED_BATCH]
            vectors = embed_with_contexts(self._embedder, [(job.text, job.context) for job in batch])
            yield [job.key for job in batch], vectors

    def read(self, files: Mapping[str, bytes]) -> Results:
        """Read and split files, given as bytes by path; yield each path with what was read, or why it was skipped."""
        yield None
        for name, data in files.items():
            yield [name], self._read(Path(name), data)

    def _read(self, path: Path, data: bytes) -> Any:
        """Read a copy of a file, under its name, in an isolated process."""
        if self._reader is None:
            splitting = self._fitting.splitting
            assert splitting is not None
            tokenizer = self._model("embed").path / TOKENIZER_FILE
            self._reader = self._open.enter_context(IsolatedReader(replace(splitting, tokenizer=tokenizer)))
        with tempfile.TemporaryDirectory(prefix="local-rag-") as folder:
            copy = Path(folder) / path.name
            copy.write_bytes(data)
            try:
                read = self._reader.read(copy)
            except (ReadError, OSError) as error:
                return skipped(path, error)
        return replace(read, document=replace(read.document, path=path))

    def _model(self, role: Role) -> InstalledModel:
        return resolve(self._fitting.names[role], role)
