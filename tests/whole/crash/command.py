"""Run the real command line with models that answer at once and always alike, and keep a journal of what was stored.

A line of the journal (the file CRASH_JOURNAL) is written the moment a context or vector is in the store: whatever it
names may never be lost again. With CRASH_MODELS=real the tiny models run instead of the fakes. CRASH_SLOW makes each
context take so many seconds.
"""

import os
import time
from collections.abc import Generator, Iterable

from local_rag.cli.main import main
from local_rag.indexing.contextualize import ContextJob
from local_rag.indexing.work import LocalWorkers, OnNote, WrittenContext
from local_rag.library import Parts
from tests.fakes import FakeEmbedder, QuickWorkers, journaling, quick_vocabulary


class SlowWorkers(QuickWorkers):
    """Write contexts slowly."""

    def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: OnNote) -> Generator[WrittenContext]:
        """Sleep before each context."""
        for written in super().write_contexts(jobs, expected, note):
            time.sleep(float(os.environ["CRASH_SLOW"]))
            yield written


def parts() -> Parts:
    """Put the parts together as the environment says."""
    workers: type[LocalWorkers] = SlowWorkers if "CRASH_SLOW" in os.environ else QuickWorkers
    if os.environ.get("CRASH_MODELS") == "real":
        workers = LocalWorkers
    if "CRASH_JOURNAL" in os.environ:
        descriptor = os.open(os.environ["CRASH_JOURNAL"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

        def journal(table: str, keys: Iterable[str]) -> None:
            os.write(descriptor, "".join(f"{table} {key}\n" for key in keys).encode())

        workers = journaling(workers, journal)
    if os.environ.get("CRASH_MODELS") == "real":
        return Parts(make_workers=workers)
    return Parts(load_embedder=FakeEmbedder, open_vocabulary=quick_vocabulary, make_workers=workers)


if __name__ == "__main__":
    main(parts())
