"""The conversations of a library that stays open, also where none may be kept."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

from local_rag.errors import LibraryError
from local_rag.library import Library
from local_rag.store.history import History, KeptTurn

__all__ = ["Conversations", "History", "KeptTurn"]


class Conversations:
    """Open the history of a library, or one in memory that lasts as long as this object."""

    def __init__(self, library: Callable[[], Library]) -> None:
        self._library = library
        self._unkept: History | None = None

    @contextmanager
    def __call__(self) -> Iterator[History]:
        """Yield the history."""
        library, kept = self._library(), None
        with suppress(LibraryError):  # a damaged history must not keep the library from answering
            kept = History(library.folder, kept=library.settings.history)
        if kept and kept.kept:
            with closing(kept):
                yield kept
        else:
            self._unkept = self._unkept or kept or History(library.folder, kept=False)
            yield self._unkept
