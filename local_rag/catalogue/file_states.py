"""Whether files have changed since they were indexed, as far as their disks answer in time."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Literal

from local_rag.indexing.changes import FileState, file_state
from local_rag.store.database import StoredDocument

SeenState = FileState | Literal["unknown"]
_MOST_ASKED = 2000  # files at a time
_THREADS = 8


class FileStates:
    """Look at files in threads of its own; what is not known after `seconds` is unknown.

    A file on a disk that sleeps or a drive that does not answer is asked for only once at a time, and may take as long
    as it wants. So may the hash of a large file, which the next look then knows.
    """

    def __init__(self, state: Callable[[StoredDocument], FileState] = file_state, *, seconds: float = 0.3) -> None:
        self._state, self._seconds = state, seconds
        self._lock = threading.Lock()
        self._asked: dict[StoredDocument, Future[SeenState]] = {}
        self._waiting: deque[StoredDocument] = deque()
        self._threads = 0

    def of(self, documents: Collection[StoredDocument]) -> Mapping[int, SeenState]:
        """Return the state of the file of each document, by the document's id."""
        ends = time.monotonic() + self._seconds
        asked = {document.id: self._ask(document) for document in documents}
        return {key: _known(future, ends) if future else "unknown" for key, future in asked.items()}

    def _ask(self, document: StoredDocument) -> Future[SeenState] | None:
        with self._lock:
            asked = self._asked.get(document)
            if asked is None and len(self._asked) < _MOST_ASKED:
                asked = self._asked[document] = Future()
                self._waiting.append(document)
                if self._threads < _THREADS:
                    self._threads += 1
                    threading.Thread(target=self._look, name="file states", daemon=True).start()
            return asked

    def _look(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                document = self._waiting.popleft()
            state: SeenState = "unknown"
            try:
                state = self._state(document)
            finally:
                with self._lock:
                    asked = self._asked.pop(document)
                asked.set_result(state)


def _known(asked: Future[SeenState], ends: float) -> SeenState:
    try:
        return asked.result(max(0.0, ends - time.monotonic()))
    except TimeoutError:
        return "unknown"
