"""Repair a library after a crash, or on a full or failing disk.

A library is always in one of these states. A killed process or a power cut leaves one of the first ten, which need no
repair. The others need `local-rag repair`, and every command that finds one says so; only 15 needs `local-rag index`.

| state                                              | what a reader sees     | what fixes it                        |
|----------------------------------------------------|------------------------|--------------------------------------|
| 1. no store, or an empty one (killed at the start) | "There is no library"  | `index` makes it                     |
| 2. a log beside the store (killed while writing)   | the last commit        | SQLite, at the next opening          |
| 3. some documents read, some superseded            | the live index, whole  | `index` reads the rest               |
| 4. contexts or vectors missing                     | the live index, whole  | `index` makes the missing ones       |
| 5. vectors stored, document not marked as embedded | the live index, whole  | `index` finds them by their keys     |
| 6. `*.tmp` (killed while publishing)               | the live index, whole  | the next publish, or `clean`         |
| 7. a segment that no generation names              | the live index, whole  | the next publish, or `clean`         |
| 8. segments merged, their sources still present    | the live index, whole  | the next publish, or `clean`         |
| 9. a generation that `CURRENT` does not name yet   | the live index, whole  | the next publish, or `clean`         |
| 10. older generations, superseded documents        | the live index, whole  | the next `index`, or `clean`         |
| 11. a file of the live index missing or changed    | an error naming it     | branch A: published again            |
| 12. rows of the store not as they were written     | passages, some damaged | branch B: deleted and made again     |
| 13. pages of the store that cannot be read         | an error naming it     | branch C: salvaged                   |
| 14. `library.sqlite3.salvaged` (killed in C)       | an error naming it     | branch C continues                   |
| 15. the store put back from a backup, or the index | an error naming it     | `index` publishes what is stored     |
"""

import shutil
from contextlib import closing
from pathlib import Path

from local_rag.errors import DamagedLibraryError, LibraryError
from local_rag.files import no_library
from local_rag.index.generations import SEGMENTS
from local_rag.index.protocol import Indexes
from local_rag.indexing.indexer import Indexer
from local_rag.store.connect import SALVAGED_FILE
from local_rag.store.counts import count_rows
from local_rag.store.database import Store
from local_rag.store.housekeeping import check_pages, drop, find_damage
from local_rag.store.salvage import salvage, switch
from local_rag.store.schema import STORE_FILE


def repair_store(folder: Path) -> list[str]:
    """Repair the SQLite file (branch C); return what was done, one sentence each."""
    path = folder / STORE_FILE
    if (folder / SALVAGED_FILE).exists():
        _switch(folder)
        return ["An interrupted salvage was finished; run `local-rag index` to read the documents again."]
    if not path.exists():
        raise LibraryError(no_library(folder))
    if problems := _problems(folder):
        counts = salvage(folder)
        _switch(folder)
        kept = ", ".join(f"{counts[name]:,} {name}" for name in ("contexts", "vectors", "roots"))
        return [
            f"{path} was damaged ({problems[0]}); copied to a new file: {kept}. The damaged file is kept as "
            f"{path.name}.damaged until `local-rag clean`.",
            "Run `local-rag index" + (" FOLDER" if not counts["roots"] else "") + "` to read the documents again.",
        ]
    return []


def repair_index(store: Store, indexes: Indexes, indexer: Indexer) -> list[str]:
    """Delete damaged rows (branch B) and rebuild a damaged index (branch A); return what was done."""
    done = []
    damaged = find_damage(store)
    drop(store, damaged)
    for name, remedy in (
        ("contexts", "`local-rag index` writes them again"),
        ("vectors", "made again"),
        ("documents", "`local-rag index` reads them again"),
    ):
        if damaged[name]:
            done.append(f"{len(damaged[name]):,} damaged {name} deleted: {remedy}.")
    problems = _index_problems(indexes)
    if (problems or any(damaged.values())) and count_rows(store, ("documents",))["documents"]:
        indexer.publish(rebuild=True)
        done += [f"{problem}: the index was rebuilt." for problem in problems]
    elif problems:
        (store.folder / "CURRENT").unlink(missing_ok=True)
        done += [f"{problem}: run `local-rag index` to rebuild the index." for problem in problems]
    return done


def _problems(folder: Path) -> list[str]:
    """Return what is wrong with the pages of a store; raise LibraryError for one that is newer, locked or forbidden."""
    try:
        store = Store(folder)
    except DamagedLibraryError as error:
        return [error.reason]
    with closing(store):
        return check_pages(store)


def _switch(folder: Path) -> None:
    """Switch to the salvaged store, after deleting the index, whose chunks that store lacks."""
    (folder / "CURRENT").unlink(missing_ok=True)
    for name in ("generations", SEGMENTS):
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    switch(folder)


def _index_problems(indexes: Indexes) -> list[str]:
    try:
        live = indexes.live()
    except DamagedLibraryError as error:
        return [error.reason]
    return live.damage() if live else []
