"""The people who may use a library that is served: their roles, what each may see, and the hashes of their tokens.

They stand in a file of their own beside the library, which no bundle holds and only its owner may read.
"""

import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from local_rag.asking import PERSON_ROLES, Filters, Person, PersonRole
from local_rag.errors import LibraryError, MissingError, QuestionError
from local_rag.files import no_library, uploads_folder
from local_rag.keys import token_hash
from local_rag.store.connect import is_library

PEOPLE_FILE = "people.sqlite3"
LONGEST_NAME = 60  # characters
NOTHING = "/"  # a pattern that no document matches
_VERSION = 1  # of the table
_COUNTER = slice(24, 28)  # of the bytes of an SQLite file: it counts the transactions that changed it
_TABLE = """
CREATE TABLE IF NOT EXISTS people (
    id TEXT PRIMARY KEY,                    -- random, so that nobody inherits what belonged to another of this name
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    role TEXT NOT NULL,
    within TEXT NOT NULL,                   -- JSON: globs and paths
    tags TEXT NOT NULL,                     -- JSON
    token_sha256 TEXT NOT NULL UNIQUE       -- the token is random and long, so a plain hash tells nothing of it
)
"""


def add_person(
    folder: Path, name: str, role: PersonRole, *, within: Sequence[str] = (), tags: Sequence[str] = ()
) -> str:
    """Add a person to a library and return the token, which is kept nowhere; raise QuestionError for a bad name."""
    if not is_library(folder):
        raise LibraryError(no_library(folder))
    if not (0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()):
        raise QuestionError(
            f"The name {name[:LONGEST_NAME]!r} cannot be used; give 1 to {LONGEST_NAME} printable signs."
        )
    if not all(text.strip() for text in (*within, *tags)):
        raise QuestionError("A filter of a person is empty, which would hide nothing; leave it out or write a pattern.")
    token = secrets.token_urlsafe(32)
    row = (secrets.token_hex(8), name, role, json.dumps(within), json.dumps(tags), token_hash(token))
    with _opened(folder, write=True) as connection:
        try:
            connection.execute("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            raise LibraryError(
                f"There is already a person {name}; run `local-rag people remove` first to give a new token."
            ) from None
    return token


def list_people(folder: Path) -> list[Person]:
    """Return the people of a library by name."""
    return sorted(read_people(folder).values(), key=lambda person: person.name.casefold())


def read_people(folder: Path) -> Mapping[str, Person]:
    """Return the people of a library by the hashes of their tokens; there are none without the file."""
    path = folder / PEOPLE_FILE
    if not path.exists() or not path.stat().st_size:  # made by a run that was killed before it added anybody
        return {}
    with _opened(folder) as connection:
        rows = connection.execute("SELECT token_sha256, id, name, role, within, tags FROM people").fetchall()
    return {token: _person(*row) for token, *row in rows}


def _with_uploads(person: Person, library: Path) -> Person:
    """Let a person who adds files see these too."""
    if not person.limits.within or not person.may("editor"):
        return person
    within = *person.limits.within, str(uploads_folder(library) / person.id)
    return replace(person, limits=replace(person.limits, within=within))


def limits_of_people(folder: Path) -> set[Filters]:
    """Return the limits of the people of a library who do not see everything."""
    people = (_with_uploads(person, folder) for person in read_people(folder).values())
    return {person.limits for person in people if person.limits}


def remove_person(folder: Path, name: str) -> Person:
    """Remove a person and return it; raise MissingError if there is none of this name."""
    if (folder / PEOPLE_FILE).exists():
        with _opened(folder, write=True) as connection:
            query = "DELETE FROM people WHERE name = ? RETURNING id, name, role, within, tags"
            if row := connection.execute(query, (name,)).fetchone():
                return _person(*row)
    raise MissingError(f"There is no person {name[:LONGEST_NAME]!r}; `local-rag people list` names them.")


def forget_limits(folder: Path, is_erased: Callable[[str], bool]) -> None:
    """Delete the patterns that name what is erased from the limits of people; who had no other sees nothing."""
    if not any(is_erased(pattern) for person in read_people(folder).values() for pattern in person.limits.within):
        return
    with _opened(folder, write=True) as connection:
        for identifier, within in connection.execute("SELECT id, within FROM people").fetchall():
            patterns = json.loads(within)
            kept = [pattern for pattern in patterns if not is_erased(pattern)] or (patterns and [NOTHING])
            connection.execute("UPDATE people SET within = ? WHERE id = ?", (json.dumps(kept), identifier))


class People:
    """The people of a library that is served; who was added or removed counts from the next look on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: tuple[object, Mapping[str, Person]] = (None, {})

    def now(self) -> Mapping[str, Person]:
        """Return the people by the hashes of their tokens; raise LibraryError if the file cannot be read."""
        stamp, people = self._known
        if (now := self._stamp()) != stamp:
            # At this stamp, or a later one, which the next look sees.
            people = {token: _with_uploads(person, self._folder) for token, person in read_people(self._folder).items()}
            self._known = now, people
        return people

    def present(self, person: Person) -> Person | None:
        """Return a person as it is now, None if it was removed; who serves the library always is."""
        if not person.id:
            return person
        return next((present for present in self.now().values() if present.id == person.id), None)

    def _stamp(self) -> object:
        """Return a value that changes whenever somebody is added or removed."""
        try:
            with (self._folder / PEOPLE_FILE).open("rb") as file:
                beginning = file.read(_COUNTER.stop)
                return os.fstat(file.fileno()).st_ino, beginning[_COUNTER]
        except FileNotFoundError:
            return None


def _person(identifier: str, name: str, role: Any, within: str, tags: str) -> Person:
    if role not in PERSON_ROLES:
        raise LibraryError(f"The person {name} has the role {role!r}, which this version of local-rag does not know.")
    return Person(identifier, name, role, Filters(within=tuple(json.loads(within)), tags=tuple(json.loads(tags))))


@contextmanager
def _opened(folder: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the file, which is made for writing if it is missing; what is written is written whole or not at all."""
    path = folder / PEOPLE_FILE
    try:
        if write:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        address = f"{path.resolve().as_uri()}?mode={'rw' if write else 'ro'}"
        with closing(sqlite3.connect(address, timeout=30, uri=True)) as connection, connection:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version not in (0, _VERSION):
                raise LibraryError(
                    f"{path} was written by another version of local-rag; delete it and add the people again."
                )
            if write:
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            yield connection
    except (OSError, sqlite3.DatabaseError, ValueError) as error:
        raise LibraryError(f"The people of this library cannot be read or changed: {path} ({error}).") from error
