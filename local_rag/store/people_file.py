"""The people who may use a library that is served: their roles, what each may see, and the hashes of their tokens.

They stand in a file of their own beside the library, which no bundle holds and only its owner may read.
"""

import json
import os
import secrets
import sqlite3
import time
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
_VERSION = 2  # of the tables; 0 is that of a new file
_INVITATION_SECONDS = 7 * 24 * 3600.0
_LONGEST_CONTACT = 200  # characters
_COUNTER = slice(24, 28)  # of the bytes of an SQLite file: it counts the transactions that changed it
_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS people (
    id TEXT PRIMARY KEY,                    -- random, so that nobody inherits what belonged to another of this name
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    role TEXT NOT NULL,
    within TEXT NOT NULL,                   -- JSON: globs and paths
    tags TEXT NOT NULL,                     -- JSON
    token_sha256 TEXT NOT NULL UNIQUE       -- the token is random and long, so a plain hash tells nothing of it
);
-- Links that let a person in once; like a token, the code of one is kept nowhere.
CREATE TABLE IF NOT EXISTS invitations (
    code_sha256 TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    expires REAL NOT NULL                   -- seconds after 1970
);
CREATE TABLE IF NOT EXISTS contact (text TEXT NOT NULL);  -- whom to ask for a link
PRAGMA user_version = 2;
"""


def add_person(
    folder: Path, name: str, role: PersonRole, *, within: Sequence[str] = (), tags: Sequence[str] = ()
) -> str:
    """Add a person to a library and return the token, which is kept nowhere; raise QuestionError for a bad name."""
    if not is_library(folder):
        raise LibraryError(no_library(folder))
    token = secrets.token_urlsafe(32)
    row = _row(name, role, within, tags)
    with _opened(folder, write=True) as connection:
        try:
            query = "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)"
            connection.execute(query, (secrets.token_hex(8), *row, token_hash(token)))
        except sqlite3.IntegrityError:
            raise LibraryError(
                f"There is already a person {name}; choose another name, or remove this person with `local-rag people "
                "remove`."
            ) from None
    return token


def _row(name: str, role: PersonRole, within: Sequence[str], tags: Sequence[str]) -> tuple[str, str, str, str]:
    """Return what is kept of a person; raise QuestionError for what cannot be."""
    if not (0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()):
        raise QuestionError(
            f"The name {name[:LONGEST_NAME]!r} cannot be used; give 1 to {LONGEST_NAME} printable signs."
        )
    if not all(text.strip() for text in (*within, *tags)):
        raise QuestionError("A filter of a person is empty, which would hide nothing; leave it out or write a pattern.")
    return name, role, json.dumps(within), json.dumps(tags)


def _nobody() -> MissingError:
    return MissingError("There is no such person any more; look at the list of people again.")


def list_people(folder: Path) -> list[Person]:
    """Return the people of a library by name."""
    return sorted(read_people(folder).values(), key=lambda person: person.name.casefold())


def read_people(folder: Path) -> Mapping[str, Person]:
    """Return the people of a library by the hashes of their tokens; there are none without the file."""
    rows = _rows(folder, "SELECT token_sha256, id, name, role, within, tags FROM people")
    return {token: _person(*row) for token, *row in rows}


def _rows(folder: Path, query: str, *values: object) -> list[Any]:
    """Return what a query finds, nothing without the file."""
    path = folder / PEOPLE_FILE
    if not path.exists() or not path.stat().st_size:  # made by a run that was killed before it added anybody
        return []
    with _opened(folder) as connection:
        return connection.execute(query, values).fetchall()


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


def patterns_of_limits(folder: Path) -> set[str]:
    """Return all patterns in the limits of people, as they were given."""
    return {pattern for person in read_people(folder).values() for pattern in person.limits.within}


def forget_limits(folder: Path, is_erased: Callable[[str], bool]) -> None:
    """Delete the patterns that name what is erased from the limits of people; who had no other sees nothing."""
    if not any(map(is_erased, patterns_of_limits(folder))):
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

    def of(self, identifier: str) -> Person:
        """Return the person with an id; raise MissingError if there is none."""
        for person in self.now().values():
            if person.id == identifier:
                return person
        raise _nobody()

    def given_limits(self, person: Person) -> Filters:
        """Return the limits of a person as they were given, without the folder of the person's own files."""
        own = str(uploads_folder(self._folder) / person.id)
        return replace(person.limits, within=tuple(one for one in person.limits.within if one != own))

    def add(self, name: str, role: PersonRole, limits: Filters) -> Person:
        """Add a person who comes in through a link alone; see `add_person` for errors."""
        add_person(self._folder, name, role, within=limits.within, tags=limits.tags)
        return next(person for person in list_people(self._folder) if person.name == name)

    def change(self, person: Person, name: str, role: PersonRole, limits: Filters) -> None:
        """Give a person another name, role or limits; raise MissingError if it was removed."""
        row = _row(name, role, limits.within, limits.tags)
        with _opened(self._folder, write=True) as connection:
            try:
                update = "UPDATE people SET name = ?, role = ?, within = ?, tags = ? WHERE id = ?"
                if not connection.execute(update, (*row, person.id)).rowcount:
                    raise _nobody()
            except sqlite3.IntegrityError:
                raise LibraryError(f"There is already a person {name}; choose another name.") from None

    def remove(self, person: Person) -> None:
        """Remove a person: the token, the link and all sessions count no more."""
        remove_person(self._folder, person.name)

    def invite(self, person: Person) -> str:
        """Return the code of a link that lets a person in once; an earlier one counts no more."""
        code = secrets.token_urlsafe(32)
        with _opened(self._folder, write=True) as connection:
            if not connection.execute("SELECT 1 FROM people WHERE id = ?", (person.id,)).fetchone():
                raise _nobody()
            connection.execute("DELETE FROM invitations WHERE person = ? OR expires < ?", (person.id, time.time()))
            row = (token_hash(code), person.id, time.time() + _INVITATION_SECONDS)
            connection.execute("INSERT INTO invitations VALUES (?, ?, ?)", row)
        return code

    def invitations(self) -> dict[str, float]:
        """Return when the link of each person who has not used it expires, by the ids of the people."""
        return dict(_rows(self._folder, "SELECT person, expires FROM invitations WHERE expires >= ?", time.time()))

    def invited(self, code: str) -> Person | None:
        """Return the person whom a link lets in, None if it was used or has expired, or never was one."""
        query = (
            "SELECT id, name, role, within, tags FROM invitations JOIN people ON id = person "
            "WHERE code_sha256 = ? AND expires >= ?"
        )
        rows = _rows(self._folder, query, token_hash(code), time.time())
        return _person(*rows[0]) if rows else None

    def accept(self, code: str) -> tuple[Person, str] | None:
        """Use up a link; return the person with a new token, which is kept nowhere, or None like `invited`."""
        if (person := self.invited(code)) is None:
            return None
        token = secrets.token_urlsafe(32)
        with _opened(self._folder, write=True) as connection:
            used = "DELETE FROM invitations WHERE code_sha256 = ? AND expires >= ?"
            if not connection.execute(used, (token_hash(code), time.time())).rowcount:  # somebody else was faster
                return None
            connection.execute("UPDATE people SET token_sha256 = ? WHERE id = ?", (token_hash(token), person.id))
        return person, token

    @property
    def contact(self) -> str:
        """Whom to ask for a link, as an owner has written it; empty if none has."""
        rows = _rows(self._folder, "SELECT text FROM contact")
        return str(rows[0][0]) if rows else ""

    def set_contact(self, text: str) -> None:
        """Keep whom to ask for a link; raise QuestionError for what is no line of text."""
        if len(text) > _LONGEST_CONTACT or not text.isprintable():
            raise QuestionError(f"Whom to ask is one line of at most {_LONGEST_CONTACT} printable signs.")
        with _opened(self._folder, write=True) as connection:
            connection.execute("DELETE FROM contact")
            if text:
                connection.execute("INSERT INTO contact VALUES (?)", (text,))

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
                connection.execute("PRAGMA foreign_keys = ON")
                if version != _VERSION:
                    connection.executescript(_TABLES)
            yield connection
    except (OSError, sqlite3.DatabaseError, ValueError) as error:
        raise LibraryError(f"The people of this library cannot be read or changed: {path} ({error}).") from error
