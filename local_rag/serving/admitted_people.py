"""Who may use a library that is served, as its file says at this moment."""

from collections.abc import Callable, Mapping
from pathlib import Path

from local_rag.asking import Person
from local_rag.store.people_file import hash_of, people_stamp, read_people, with_uploads

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
            # At this stamp, or a later one, which the next look sees.
            people = {token: with_uploads(person, folder) for token, person in read_people(folder).items()}
            self._known = now, people
        return people

    def present(self, person: Person) -> Person | None:
        """Return a person as it is now, None if it was removed; who serves the library always is."""
        return next((one for one in self.now().values() if one.id == person.id), None) if person.id else person
