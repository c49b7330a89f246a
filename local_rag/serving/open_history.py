"""The conversations of a library that stays open, also where none may be kept."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import TypeAlias

from local_rag.asking import KeptOfQuestions
from local_rag.errors import LibraryError
from local_rag.library import Library
from local_rag.store.history import History

OpenHistory: TypeAlias = AbstractContextManager[History]


class Conversations:
    """Open the history of a library, or one in memory that lasts as long as this object."""

    def __init__(self, library: Callable[[], Library]) -> None:
        self._library = library
        self._in_memory = History(library().folder, kept=False)
        self._stamp = ""  # of the index whose documents the history in memory may quote

    @contextmanager
    def __call__(self, person: str = "") -> Iterator[History]:
        """Yield the history as the person with this id may see it."""
        library, kept = self._library(), None
        if library.settings.retention.conversations:
            with suppress(LibraryError):  # a damaged history must not keep the library from answering
                kept = History(library.folder)
        if kept and kept.kept:
            with closing(kept):
                yield kept.of(person)
            return
        if kept:
            kept.close()
        stamp = library.live_stamp()
        if stamp != self._stamp:
            self._forget_what_is_gone(library, stamp)
        yield self._in_memory.of(person)
        if stamp != (now := library.live_stamp()):
            self._forget_what_is_gone(library, now)

    def _forget_what_is_gone(self, library: Library, stamp: str) -> None:
        """Forget what quotes documents that were removed, perhaps by another process, since the last question."""
        library.forget_missing(self._in_memory)
        self._stamp = stamp

    def in_file(self) -> KeptOfQuestions:
        """Return what the history file holds, also if nothing is written to it any more."""
        with suppress(LibraryError):
            return self._library().kept_of_questions()
        return KeptOfQuestions()

    def forget(self, person: str = "") -> None:
        """Delete the conversations of a person, or of all with all that is kept, in memory and in the file."""
        if person:
            self._in_memory.of(person).forget_person()
        else:
            self._in_memory.forget_all()
        self._library().forget_questions(person)
