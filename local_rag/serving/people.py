"""Who may use a library that is served, as its file says at this moment."""

from collections.abc import Callable, Mapping
from pathlib import Path

from local_rag.records import Person
from local_rag.store.people import hash_of, people_stamp, read_people

__all__ = ["People", "hash_of"]


class People:
    """The people of a library; who was added or removed counts from the next request on."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._known: tuple[object, Mapping[str, Person]] = (None, {})

    def now(self) -> Mapping[str, Person]:
        """Return the people by the hashes of their tokens; raise LibraryError if the file cannot be read."""
        folder = self._folder()
        stamp, people = self._known
        if (now := people_stamp(folder)) != stamp:
            people = read_people(folder)  # at this stamp, or a later one, which the next look sees
            self._known = now, people
        return people
