"""What a person with limits sees of a library: a store that shows it, and to every query nothing else is there.

Numbers of documents and passages count what is hidden, so such a person is told others. They are made of what the
person sees: of a document's path and content, and of the place of a passage in it.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from local_rag.passage_records import DocumentFacts
from local_rag.store.database import Store

_PLACES = 1 << 20  # passages of a document
_TOLD = 1 << 33  # with a place, what JavaScript reads of a number without loss
_COMPARED = "compared_limits"  # among what a store remembers
# The tables whose rows are of a document, or of a path, and the column that names it.
_TABLES = """
SELECT tables.name, columns.name FROM main.sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' AND (columns.name = 'document_id' OR (columns.name = 'path'
AND tables.name NOT IN ('documents', 'cells', 'corrections')))
"""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The documents that a person sees, each with the number that the person is told; roots, and files not read.

    `version` is that of the store when this was found out. Without `contexts`, what code and models say of documents is
    not seen: it was made beside documents that the person does not see.
    """

    version: object
    contexts: bool
    told: Mapping[int, int]
    meant: Mapping[int, int]
    paths: tuple[str, ...]

    def document_meant(self, told: int) -> int:
        """Return the document with a number that a person was told, 0 for one that the person does not see."""
        return self.meant.get(told, 0)

    def passages_told(self, store: Store, chunks: Sequence[int]) -> dict[int, int]:
        """Return the number to tell for each of these chunks that the person sees."""
        query = "SELECT id, document_id, position FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        rows = store.connection.execute(query, (json.dumps(list(chunks)),))
        return {chunk: self.told[document] * _PLACES + place + 1 for chunk, document, place in rows}

    def passage_meant(self, store: Store, told: int) -> int:
        """Return the chunk with a number that a person was told, 0 for one that the person does not see."""
        document, place = divmod(told, _PLACES)
        query = "SELECT id FROM chunks WHERE document_id = ? AND position = ?"
        return sum(store.column(query, self.document_meant(document), place - 1))


def seen_stamp(store: Store) -> object:
    """Return a value that changes when other documents may be seen: with paths, times, roots, and what is read."""
    newest = store.column("SELECT seq FROM sqlite_sequence WHERE name = 'documents'")
    unread = store.column("SELECT path FROM skipped ORDER BY path")
    return store.version(), newest, unread, compared_limits(store)


def find_seen(store: Store, passes: Callable[[DocumentFacts], bool], *, contexts: bool) -> Seen:
    """Find out what somebody sees of a store: the documents that pass, unread files whose path does, and their roots.

    Of a file that was not read, neither tags nor a date are known.
    """
    version = store.version()
    seen = {facts.id for facts in store.facts() if passes(facts)}
    rows = store.connection.execute("SELECT id, path, sha256 FROM documents ORDER BY path, sha256, NOT live, id")
    documents = [row for row in rows if row[0] in seen]
    told: dict[int, int] = {}
    meant: dict[int, int] = {}
    for document, path, content in documents:
        number = int.from_bytes(sha256(f"{path}\0{content}".encode("utf-8", "surrogateescape")).digest()[:8])
        while (number := number % _TOLD or 1) in meant:  # the same file, read in another way; or by a rare chance
            number += 1
        told[document], meant[number] = number, document
    unread = [path for path in store.unread() if passes(DocumentFacts(0, path, 0, "", ()))]
    roots = _holding(store.roots(), [path for _, path, _ in documents])
    return Seen(version, contexts, told, meant, (*map(str, roots), *unread))


def _holding(roots: Iterable[Path], paths: Collection[str]) -> list[Path]:
    return [root for root in roots if any(path == str(root) or path.startswith(f"{root}/") for path in paths)]


def show_only(store: Store, seen: Seen) -> None:
    """Let a store hold only what a person sees, for every query from now on; it cannot be written."""
    run = store.connection.execute
    run("PRAGMA temp_store = MEMORY")
    run("CREATE TEMP TABLE seen_documents (id INTEGER PRIMARY KEY)")
    run("INSERT INTO seen_documents SELECT value FROM json_each(?)", (json.dumps(list(seen.told)),))
    run("CREATE TEMP TABLE seen_paths (path TEXT PRIMARY KEY)")
    run("INSERT OR IGNORE INTO seen_paths SELECT value FROM json_each(?)", (json.dumps(seen.paths),))
    # Where a name is found in the temporary database, SQLite looks no further.
    for table, column in [("documents", "id"), *run(_TABLES).fetchall()]:
        seen_rows = "SELECT path FROM seen_paths" if column == "path" else "SELECT id FROM seen_documents"
        run(f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} WHERE {column} IN ({seen_rows})")  # noqa: S608
    # Cells belong to a document by its path and content.
    for table in ("cells", "corrections"):
        seen_rows = "(path, sha256) IN (SELECT path, sha256 FROM documents)"
        run(f"CREATE TEMP VIEW {table} AS SELECT rowid, * FROM main.{table} WHERE {seen_rows}")  # noqa: S608
    if not seen.contexts:
        run("CREATE TEMP VIEW contexts AS SELECT * FROM main.contexts WHERE 0")
    run("PRAGMA query_only = ON")


def compared_limits(store: Store) -> list[str]:
    """Return the limits, as JSON, by which documents were compared only with what the same people see."""
    return list(map(str, store.remembered(_COMPARED) or ()))


def note_compared(store: Store, limits: Iterable[str]) -> None:
    """Record by which limits documents are compared."""
    store.remember({_COMPARED: sorted(limits)})
