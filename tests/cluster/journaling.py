"""What stands for models in the workers of a test's cluster; it is imported there by its name."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from local_rag.llama.generator import Request
from tests.fakes import FakeGenerator

JOURNAL = "LOCAL_RAG_TEST_JOURNAL"
POISON = "POISON"


class JournalingWriter(FakeGenerator):
    """Write a context in a twentieth of a second and note who has written which; a poisoned prompt ends the process."""

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int], bool]]:
        for key, tokens, whole in super().complete(requests):
            if POISON in self.prompts[-1]:
                os._exit(7)
            time.sleep(0.05)
            with Path(os.environ[JOURNAL]).open("a") as journal:
                journal.write(f"{os.getpid()} {key}\n")
            yield key, tokens, whole


@contextmanager
def journaling_engine(_path: Path, **_options: object) -> Iterator[JournalingWriter]:
    yield JournalingWriter(lambda prompt: f" is about {len(prompt)} characters of a prompt.")
