"""Extract a table in a process that kills itself while a model says its answer number so many.

    python -m tests.extraction.killed_run FOLDER ANSWERS

FOLDER holds the library `lib` of test_extract.py. Each question that is asked is a line of FOLDER/asked.txt.
"""

import os
import signal
import sys
from collections.abc import Generator, Iterable
from pathlib import Path

from local_rag.llama.generator import Request, Token
from tests.extraction.test_extract import COLUMNS, answer, opened
from tests.fakes import FakeGenerator


class Mortal(FakeGenerator):
    """Write down what is asked, and die within an answer."""

    def __init__(self, log: Path, answers: int) -> None:
        super().__init__(answer)
        self._log, self._left = log, answers

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        for token in super().stream(self._written(requests)):
            if token.token is None:
                self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            yield token

    def _written(self, requests: Iterable[Request]) -> Iterable[Request]:
        for request in requests:
            with self._log.open("a") as log:
                log.write(f"{list(request.prefix)} {list(request.suffix)}\n")
            yield request


def main(folder: Path, answers: int) -> None:
    """Extract all cells that are missing, or die."""
    with opened(folder, Mortal(folder / "asked.txt", answers)) as library:
        print(library.extract(COLUMNS).missing)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
