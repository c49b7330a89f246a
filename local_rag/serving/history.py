"""The conversations of a library that stays open, also where none may be kept."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from local_rag.errors import LibraryError
from local_rag.library import Library
from local_rag.store.history import History, KeptTurn, kept_history

__all__ = ["Conversations", "History", "KeptTurn", "LeftInFile"]


@dataclass(frozen=True, slots=True)
class LeftInFile:
    """What the history file holds."""

    conversations: int = 0
    answers: int = 0


class Conversations:
    """Open the history of a library, or one in memory that lasts as long as this object."""

    def __init__(self, library: Callable[[], Library]) -> None:
        self._library = library
        self._in_memory = History(library().folder, kept=False)
        self._stamp = ""  # of the index whose documents the history in memory may quote

    @contextmanager
    def __call__(self) -> Iterator[History]:
        """Yield the history."""
        library, kept = self._library(), None
        if library.settings.retention.conversations:
            with suppress(LibraryError):  # a damaged history must not keep the library from answering
                kept = History(library.folder)
        if kept and kept.kept:
            with closing(kept):
                yield kept
            return
        if kept:
            kept.close()
        stamp = library.live_stamp()
        if stamp != self._stamp:
            self._forget_what_is_gone(library, stamp)
        yield self._in_memory
        if stamp != (now := library.live_stamp()):
            self._forget_what_is_gone(library, now)

    def _forget_what_is_gone(self, library: Library, stamp: str) -> None:
        """Forget what quotes documents that were removed, perhaps by another process, since the last question."""
        library.forget_missing(self._in_memory)
        self._stamp = stamp

    def in_file(self) -> LeftInFile:
        """Return what the history file holds, also if nothing is written to it any more."""
        with suppress(LibraryError), kept_history(self._library().folder) as history:
            if history:
                return LeftInFile(len(history.conversations()), history.cached_answers())
        return LeftInFile()

    def forget_all(self) -> None:
        """Delete all that is kept, in memory and in the file, also if nothing is written to it any more."""
        self._in_memory.forget_all()
        with kept_history(self._library().folder) as history:
            if history:
                history.forget_all()
