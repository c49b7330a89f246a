"""The store's own promises: migrations, refusals, checksums, what counts as orphaned."""

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from local_rag.errors import LibraryError
from local_rag.records import Chunk, Document, Skipped
from local_rag.store.database import Store
from local_rag.store.maintenance import check_pages, count_rows, find_damage, orphaned_contexts, orphaned_vectors
from local_rag.store.schema import SCHEMA_VERSION, STEPS, crc32
from local_rag.store.storage_errors import storage_errors


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "library.sqlite3", create=True)


def put(store: Store, name: str, text: str = "one two") -> int:
    document = Document(Path("/documents") / name, name, text, "text")
    store.put_document(document, [Chunk(0, 0, 3, text[:3])], size=1, modified_ns=2, sha256="s", split_key="k")
    return next(one.id for one in store.documents() if one.path == f"/documents/{name}")


def first_version(path: Path) -> None:
    """Make a library as version 1 made it, with a row in each table."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(STEPS[0] + "PRAGMA user_version = 1;")
        connection.executescript(
            "INSERT INTO roots VALUES ('/documents');"
            "INSERT INTO documents (path, size, modified_ns, sha256, title, text, kind, split_key, context_plan) "
            "VALUES ('/documents/a', 1, 2, 's', 'A', 'one two', 'text', 'k', 'plan');"
            "INSERT INTO chunks (document_id, position, start, end, text, headings, context_key) "
            "VALUES (1, 0, 0, 3, 'one', '[]', 'c');"
            "INSERT INTO contexts VALUES ('c', 'Ein schöner Satz.', 'llm');"
        )
        connection.execute("INSERT INTO vectors VALUES ('v', ?)", (np.arange(4, dtype=np.float32).tobytes(),))
        connection.commit()


def tables(store: Store) -> list[str]:
    return [row[0] for row in store.connection.execute("SELECT sql FROM sqlite_master WHERE sql <> '' ORDER BY name")]


def test_a_library_of_the_first_version_is_brought_up_to_date_and_loses_nothing(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "old" / "library.sqlite3"
    path.parent.mkdir()
    first_version(path)
    old = Store(path)
    assert old.connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert tables(old) == tables(store)
    assert old.roots() == [Path("/documents")]
    (stored,) = old.chunks()
    assert (stored.chunk.text, stored.context, stored.context_kind) == ("one", "Ein schöner Satz.", "llm")
    assert old.vector("v").tolist() == [0, 1, 2, 3]
    assert find_damage(old) == {"contexts": [], "vectors": [], "documents": []}
    assert Store(path).roots(), "opened again, it is left as it is"


def test_an_interrupted_migration_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "library.sqlite3"
    first_version(path)
    monkeypatch.setattr("local_rag.store.schema.STEPS", (*STEPS, "CREATE TABLE more (a);\nCREATE TABLE roots (a)"))
    monkeypatch.setattr("local_rag.store.schema.SCHEMA_VERSION", len(STEPS) + 1)
    with pytest.raises(LibraryError, match="already exists"):
        Store(path)
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'excluded'").fetchall() == []
    assert Store(path).roots() == [Path("/documents")]


def test_a_newer_library_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE what_comes_next (a)")
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(LibraryError, match=r"version 99.*local-rag that made it"):
        Store(path, create=True)
    assert path.read_bytes() == before


def test_a_reader_makes_no_library(tmp_path: Path) -> None:
    (tmp_path / "library.sqlite3").touch()
    with pytest.raises(LibraryError, match="There is no library"):
        Store(tmp_path / "library.sqlite3")
    assert (tmp_path / "library.sqlite3").stat().st_size == 0


def test_commits_are_on_the_disk_before_the_next_step(store: Store) -> None:
    assert store.connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_damaged_rows_are_found(store: Store) -> None:
    text = "one two"
    put(store, "whole"), put(store, "cut"), put(store, "not-utf8")
    store.put_context("whole", "A sentence.", "llm")
    store.put_context("changed", "A sentence.", "llm")
    store.put_context("not-utf8", "A sentence.", "llm")
    store.put_vectors(["whole", "changed"], np.ones((2, 4), dtype=np.float32))
    assert find_damage(store) == {"contexts": [], "vectors": [], "documents": []}
    change = store.connection.execute
    change("UPDATE contexts SET text = 'A sentience.' WHERE key = 'changed'")
    change("UPDATE contexts SET text = CAST(x'41ff' AS TEXT) WHERE key = 'not-utf8'")
    change("UPDATE vectors SET vector = zeroblob(16) WHERE key = 'changed'")
    change("UPDATE documents SET text = ? WHERE title = 'cut'", (text.replace("one", "own"),))
    change("UPDATE documents SET text = CAST(x'6f6e65ff' AS TEXT) WHERE title = 'not-utf8'")
    assert find_damage(store) == {"contexts": ["changed", "not-utf8"], "vectors": ["changed"], "documents": ["2", "3"]}
    with pytest.raises(LibraryError, match="local-rag repair"):
        store.vector("changed")
    assert check_pages(store) == [], "SQLite itself cannot notice"


def test_a_vector_of_another_size_than_the_rest_is_damaged(store: Store) -> None:
    for number in range(3):
        put(store, str(number))
    store.put_vectors(["0", "1"], np.ones((2, 4), dtype=np.float32))
    store.put_vectors(["2", "of another model"], np.ones((2, 8), dtype=np.float32))
    store.plan_vectors((chunk.id, chunk.path[-1]) for chunk in list(store.chunks()))
    assert find_damage(store)["vectors"] == ["2"]


def test_orphans_are_what_no_chunk_wants_once_all_is_planned(store: Store) -> None:
    first, second = put(store, "a"), put(store, "b")
    for key in ("a", "b", "old"):
        store.put_context(key, "A sentence.", "llm")
    store.put_vectors(["a", "b", "old"], np.ones((3, 4), dtype=np.float32))
    chunks = {chunk.document_id: chunk.id for chunk in store.chunks()}
    store.plan_contexts(first, "plan", [(chunks[first], "a")])
    store.plan_vectors([(chunks[first], "a")])
    assert orphaned_contexts(store) == {}, "what the second document wants is not known yet"
    assert orphaned_vectors(store) == {}
    store.plan_contexts(second, "plan", [(chunks[second], "b")])
    store.plan_vectors([(chunks[second], "b")])
    assert list(orphaned_contexts(store)) == ["old"]
    assert orphaned_vectors(store) == {"old": 16}


def test_skipped_files_are_replaced_below_the_paths_that_were_read(store: Store) -> None:
    store.put_skipped([Path("/a")], [(Skipped(Path("/a/x"), "broken"), 1, 2)])
    store.put_skipped([Path("/b")], [(Skipped(Path("/b/y"), "broken"), 3, 4)])
    assert store.skipped() == {"/a/x": (1, 2), "/b/y": (3, 4)}
    store.put_skipped([Path("/a")], [])
    assert store.skipped() == {"/b/y": (3, 4)}


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    def add_one_and_fail() -> None:
        with store.transaction():
            store.add_roots([Path("/documents")])
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        add_one_and_fail()
    assert store.roots() == []
    store.add_roots([Path("/documents")])
    assert store.roots() == [Path("/documents")]


def test_a_full_store_says_so_and_keeps_what_was_finished(store: Store, tmp_path: Path) -> None:
    store.put_context("first", "A sentence.", "llm")
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LibraryError, match="free some space"), storage_errors(tmp_path):
        store.put_vectors([str(n) for n in range(99)], np.ones((99, 384), dtype=np.float32))
    assert count_rows(store)["cached_contexts"] == 1
    assert count_rows(store)["cached_vectors"] == 0
    store.connection.execute("PRAGMA max_page_count = 100000")
    store.put_vectors(["v"], np.ones((1, 384), dtype=np.float32))


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), "No space left on device at /x/y.*free some space"),
        (OSError(errno.EACCES, "Permission denied"), "make the folder writable"),
        (OSError(errno.EIO, "Input/output error"), "check the disk"),
        (sqlite3.DatabaseError("database disk image is malformed"), "damaged.*local-rag repair"),
        (sqlite3.OperationalError("Could not decode to UTF-8 column 'text'"), "damaged.*local-rag repair"),
    ],
)
def test_errors_of_the_disk_become_sentences(error: Exception, advice: str) -> None:
    with pytest.raises(LibraryError, match=advice), storage_errors(Path("/library")):
        raise error


@pytest.mark.parametrize("error", [sqlite3.ProgrammingError("closed"), LibraryError("as it is"), KeyError("x")])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, storage_errors(Path("/library")):
        raise error
    assert caught.value is error


def test_a_locked_store_says_what_to_do(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "library.sqlite3")
    other.connection.execute("PRAGMA busy_timeout = 1")
    with (
        store.transaction(),
        pytest.raises(LibraryError, match=r"locked.*end whatever else uses it"),
        storage_errors(tmp_path),
    ):
        other.put_context("k", "t", "llm")


def test_the_checksum_is_of_the_bytes() -> None:
    assert crc32("llm", "ö") == crc32(b"llm", "ö".encode()) != crc32("llm", "o")
