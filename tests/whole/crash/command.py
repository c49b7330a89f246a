"""Run the real command line with models that answer at once and always alike, and keep a journal of what was stored.

A line of the journal (the file CRASH_JOURNAL) is written the moment a context or vector is in the store: whatever it
names may never be lost again. With CRASH_MODELS=real the tiny models run instead of the fakes. CRASH_SLOW makes each
context take so many seconds. CRASH_UNLISTABLE names a folder that cannot be listed, CRASH_SAVED two files: as soon as
the first was read, the second takes its place. CRASH_DRIVES lets every folder with a file `.drive` be on another disk.
"""

import os
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, cast

from local_rag.cli.main import main
from local_rag.document_records import Skipped
from local_rag.indexing.situating_prompts import ContextJob
from local_rag.indexing.workers import LocalWorkers, OnNote, WrittenContext
from local_rag.library import Parts
from local_rag.reading.isolate import ReadFile
from local_rag.reading.split import Splitting
from tests.fakes import FakeEmbedder, FaultyDisk, QuickWorkers, journaling, quick_vocabulary


class SlowWorkers(QuickWorkers):
    """Write contexts slowly."""

    def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: OnNote) -> Generator[WrittenContext]:
        """Sleep before each context."""
        for written in super().write_contexts(jobs, expected, note):
            time.sleep(float(os.environ["CRASH_SLOW"]))
            yield written


class SavingWorkers(QuickWorkers):
    """Let a file be saved as soon as it was read, before what was read is stored."""

    def read(self, paths: Iterable[Path], splitting: Splitting) -> Generator[tuple[Path, ReadFile | Skipped]]:
        """Replace the file after it was read."""
        path, saved = map(Path, os.environ["CRASH_SAVED"].split(os.pathsep))
        for one, result in super().read(paths, splitting):
            if one == path and saved.exists():
                saved.replace(path)
            yield one, result


class DriveStatus:
    """What the system would say of a path on another disk."""

    def __init__(self, status: os.stat_result) -> None:
        self._status, self.st_dev = status, status.st_dev + 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._status, name)


class SoakDisk(FaultyDisk):
    """A disk with a folder that cannot be listed, and with drives that are mounted below others."""

    def status(self, path: str) -> os.stat_result:
        """Look at a path."""
        status = super().status(path)
        folders = (Path(path), *Path(path).parents) if "CRASH_DRIVES" in os.environ else ()
        on_drive = any((one / ".drive").exists() for one in folders)
        return cast(os.stat_result, DriveStatus(status)) if on_drive else status


def parts() -> Parts:
    """Put the parts together as the environment says."""
    workers: type[LocalWorkers] = SlowWorkers if "CRASH_SLOW" in os.environ else QuickWorkers
    if "CRASH_SAVED" in os.environ:
        workers = SavingWorkers
    disk = SoakDisk(Path(os.environ.get("CRASH_UNLISTABLE", "/nowhere")))
    if os.environ.get("CRASH_MODELS") == "real":
        workers = LocalWorkers
    if "CRASH_JOURNAL" in os.environ:
        descriptor = os.open(os.environ["CRASH_JOURNAL"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

        def journal(table: str, keys: Iterable[str]) -> None:
            os.write(descriptor, "".join(f"{table} {key}\n" for key in keys).encode())

        workers = journaling(workers, journal)
    if os.environ.get("CRASH_MODELS") == "real":
        return Parts(make_workers=workers)
    return Parts(load_embedder=FakeEmbedder, open_vocabulary=quick_vocabulary, make_workers=workers, disk=disk)


if __name__ == "__main__":
    main(parts())
