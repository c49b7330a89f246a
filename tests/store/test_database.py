"""The store's own promises: all tables or none, refusals, checksums, what counts as orphaned."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from local_rag.document_records import Chunk, Document, Provenance
from local_rag.errors import DamagedLibraryError, LibraryError
from local_rag.files import FileStamp
from local_rag.store.connect import remembered_settings
from local_rag.store.context_rows import (
    documents_to_compare,
    earlier_distinction,
    forget_distinctions,
    has_context,
    plan_code_contexts,
    put_context,
    put_distinction,
    stored_distinction,
)
from local_rag.store.counts import count_rows, document_states, is_unfinished
from local_rag.store.database import Store, UnreadFile
from local_rag.store.housekeeping import check_pages, find_damage, orphaned_contexts, orphaned_vectors
from local_rag.store.salvage import salvage, switch
from local_rag.store.schema import SCHEMA_VERSION, STORE_FILE, crc32, create_tables
from local_rag.store.storage_errors import storage_errors
from local_rag.store.vector_rows import (
    EmbeddingPlan,
    documents_to_embed,
    mark_embedded,
    put_plans,
    put_vectors,
    stored_vector,
)
from tests.fakes import FakeIndex


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, create=True)) as store:
        yield store


def put(store: Store, name: str, text: str = "one two") -> int:
    document = Document(Path("/documents") / name, name, text, "text")
    store.put_document(document, [Chunk(0, 0, 3, text[:3])], size=1, modified_ns=2, sha256="s", split_key="k")
    return next(one.id for one in store.documents() if one.path == f"/documents/{name}")


def test_what_a_document_says_of_itself_stays_with_it_until_it_is_deleted(store: Store) -> None:
    said = Provenance("https://example.org", "2024-05-01", "Ada", ("a", "ü"))
    document = Document(Path("/documents/a"), "a", "one two", "text", provenance=said)
    store.put_document(document, [Chunk(0, 0, 3, "one")], size=1, modified_ns=2, sha256="s", split_key="k")
    put(store, "b")
    assert [stored.provenance for stored in store.chunks()] == [said, Provenance()]
    store.supersede(store.documents())
    store.purge([])
    assert store.connection.execute("SELECT count(*) FROM provenance").fetchone() == (0,)


def test_each_note_on_a_live_document_is_one(store: Store) -> None:
    document = Document(Path("/documents/a"), "a", "one two", "text", notes=("2 images", "a page: “3”"))
    store.put_document(document, (), size=1, modified_ns=1, sha256="a", split_key="s")
    put(store, "b")
    assert [(str(one.path), one.note) for one in store.notes()] == [
        ("/documents/a", "2 images"),
        ("/documents/a", "a page: “3”"),
    ]
    [first, second] = document_states(store, [one.id for one in store.documents()])
    assert (first.notes, second.notes) == (("2 images", "a page: “3”"), ())
    store.supersede([first.document])
    assert store.notes() == []


def test_tables_are_created_all_or_none_and_once(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / STORE_FILE, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE vectors (a)")
        before = list(connection.iterdump())
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            create_tables(connection)
        assert list(connection.iterdump()) == before
        connection.execute("DROP TABLE vectors")
        for _ in range(2):
            create_tables(connection)
            assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


@pytest.mark.parametrize(
    ("version", "refusal"),
    [
        (99, r"has schema version 99.*local-rag that made it"),
        (SCHEMA_VERSION, rf"has schema version {SCHEMA_VERSION}.*delete .*`local-rag index PATH`\.$"),
        (SCHEMA_VERSION - 1, rf"has schema version {SCHEMA_VERSION - 1}.*delete .*`local-rag index PATH`\.$"),
    ],
)
def test_a_library_of_another_version_is_refused_and_not_touched(tmp_path: Path, version: int, refusal: str) -> None:
    path = tmp_path / STORE_FILE
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE another (a)")
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(LibraryError, match=refusal):
            Store(tmp_path, create=create)
    assert path.read_bytes() == before


def test_a_library_of_before_page_labels_is_read_and_gets_them_when_it_is_written(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        put(store, "a")
        store.connection.execute("DROP TABLE page_labels")
    with closing(Store(tmp_path)) as store:
        assert [one.chunk.page_label for one in store.chunks()] == [""]
    with closing(Store(tmp_path, write=True)) as store:
        chunk = Chunk(0, 0, 3, "one", page=2, page_label="ii")
        document = Document(Path("/documents/b"), "b", "one two", "text")
        store.put_document(document, [chunk], size=1, modified_ns=2, sha256="s", split_key="k")
    with closing(Store(tmp_path)) as store:
        assert [(one.chunk.page, one.chunk.page_label) for one in store.chunks()] == [(None, ""), (2, "ii")]


def test_a_reader_makes_no_library(tmp_path: Path) -> None:
    for _ in range(2):  # without the file, and with an empty one
        with pytest.raises(LibraryError, match="There is no library"):
            Store(tmp_path)
        (tmp_path / STORE_FILE).touch()
    assert (tmp_path / STORE_FILE).stat().st_size == 0


def test_commits_are_on_the_disk_before_the_next_step(store: Store) -> None:
    assert store.connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_damaged_rows_are_found(store: Store) -> None:
    text = "one two"
    put(store, "whole"), put(store, "cut"), put(store, "not-utf8")
    put_context(store, "whole", "A sentence.", "model")
    put_context(store, "changed", "A sentence.", "model")
    put_context(store, "not-utf8", "A sentence.", "model")
    put_vectors(store, ["whole", "changed"], np.ones((2, 4), dtype=np.float32))
    assert find_damage(store) == {"contexts": [], "vectors": [], "documents": []}
    change = store.connection.execute
    change("UPDATE contexts SET text = 'A sentience.' WHERE key = 'changed'")
    change("UPDATE contexts SET text = CAST(x'41ff' AS TEXT) WHERE key = 'not-utf8'")
    change("UPDATE vectors SET vector = zeroblob(16) WHERE key = 'changed'")
    change("UPDATE document_texts SET text = ? WHERE document_id = 2", (text.replace("one", "own"),))
    change("UPDATE document_texts SET text = CAST(x'6f6e65ff' AS TEXT) WHERE document_id = 3")
    assert find_damage(store) == {"contexts": ["changed", "not-utf8"], "vectors": ["changed"], "documents": ["2", "3"]}
    with pytest.raises(DamagedLibraryError, match="local-rag repair") as caught:
        stored_vector(store, "changed")
    assert caught.value.reason == "A stored vector is damaged"
    assert check_pages(store) == [], "SQLite itself cannot notice"


def test_a_vector_of_another_size_than_the_rest_is_damaged(store: Store) -> None:
    for number in range(3):
        put(store, str(number))
    put_vectors(store, ["0", "1"], np.ones((2, 4), dtype=np.float32))
    put_vectors(store, ["2", "of another model"], np.ones((2, 8), dtype=np.float32))
    chunks = list(store.chunks())
    put_plans(store, [EmbeddingPlan(chunk.document_id, [(chunk.id, chunk.path[-1])], 1, 1, 0) for chunk in chunks])
    assert find_damage(store)["vectors"] == ["2"]


def test_orphans_are_what_no_chunk_wants(store: Store) -> None:
    document = put(store, "a")
    (chunk,) = store.chunks(document)
    for key in ("wanted", "old"):
        put_context(store, key, "A sentence.", "model")
    put_vectors(store, ["wanted", "old"], np.ones((2, 4), dtype=np.float32))
    plan_code_contexts(store, document, "plan", [(chunk.id, "wanted", None)])
    put_plans(store, [EmbeddingPlan(document, [(chunk.id, "wanted")], 1, 1, 0)])
    assert orphaned_contexts(store) == {"old": len("A sentence.")}
    assert orphaned_vectors(store) == {"old": 16}


@pytest.mark.parametrize("mode", ["auto", "headings"])
def test_an_index_is_unfinished_until_it_holds_every_chunk_with_its_vector_and_its_context(
    store: Store, mode: str
) -> None:
    assert is_unfinished(store, None)
    (chunk,) = store.chunks(document := put(store, "a"))
    live, other = FakeIndex([chunk.id], [], held={document: 7}), FakeIndex([chunk.id], [], held={document: 8})
    live.manifest = other.manifest = {"fingerprint": {"context": mode}}
    assert is_unfinished(store, live), "its vector is not planned"
    put_plans(store, [EmbeddingPlan(document, [(chunk.id, "v")], 7, 1, 0)])
    assert is_unfinished(store, live), "its vector is not made"
    put_vectors(store, ["v"], np.ones((1, 4), dtype=np.float32))
    mark_embedded(store, [document], "plan")
    assert is_unfinished(store, live) == (mode == "auto"), "its context is not planned"
    plan_code_contexts(store, document, "plan", [(chunk.id, "c", 0.8)])
    assert is_unfinished(store, live), "its vector was made without knowing of a context"
    mark_embedded(store, [document], "plan")
    assert is_unfinished(store, live) == (mode == "auto"), "its context is not written"
    put_context(store, "c", "A sentence.", "model")
    assert is_unfinished(store, live), "its vector was made without the context"
    mark_embedded(store, [document], "plan")
    assert not is_unfinished(store, live), "its sentence may wait"
    assert is_unfinished(store, other), "it holds another version of the document"


def test_a_plan_for_a_long_document_does_not_write_its_text_again(store: Store, tmp_path: Path) -> None:
    document = put(store, "long", "one " * 500_000)
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (chunk,) = store.chunks(document)
    put_distinction(store, document, "[]")
    plan_code_contexts(store, document, "plan", [(chunk.id, "c", None)])
    forget_distinctions(store)
    assert (tmp_path / f"{STORE_FILE}-wal").stat().st_size < 500_000


def test_copies_share_a_distinction_until_the_last_one_is_deleted(store: Store) -> None:
    def put_copy(path: str, title: str = "Title", sha256: str = "s") -> int:
        document = Document(Path(path), title, "one two", "text")
        return store.put_document(document, (), size=1, modified_ns=2, sha256=sha256, split_key="k")

    first, copy, other = put_copy("/a"), put_copy("/b"), put_copy("/c", title="Other")
    assert [one.id for one in documents_to_compare(store, "plan")] == [first, copy, other]
    put_distinction(store, first, "[1]")
    assert (stored_distinction(store, first), stored_distinction(store, copy), stored_distinction(store, other)) == (
        "[1]",
        "[1]",
        "",
    )
    assert [one.id for one in documents_to_compare(store, "plan")] == [other]
    changed = put_copy("/a", sha256="t")
    (new,) = (one for one in store.documents() if one.id == changed)
    assert earlier_distinction(store, new) == "[1]"
    store.purge([])
    assert (stored_distinction(store, copy), earlier_distinction(store, new)) == ("[1]", "")
    store.supersede(one for one in store.documents() if one.id == copy)
    store.purge([])
    assert store.connection.execute("SELECT count(*) FROM distinctions").fetchone() == (0,)


def test_skipped_files_are_replaced_where_they_were_looked_at(store: Store) -> None:
    broken = UnreadFile(FileStamp(1, 2, 3, 4), "broken", "k")
    odd, worse = (UnreadFile(FileStamp(size=size), "odd", "") for size in (5, 6))
    store.put_unread([], {"/a/x": broken, "/b/y": odd})
    assert store.unread() == {"/a/x": broken, "/b/y": odd}
    store.put_unread(["/a/x"], {"/b/y": worse})
    assert store.unread() == {"/b/y": worse}


def test_roots_are_kept_with_the_device_they_were_seen_on(store: Store) -> None:
    here, there = Path("/here"), Path("/there")
    store.add_roots([here, there])
    store.see_disks({here: 7}, {"/here/stick": 8, "/here/share": 9}, [])
    store.add_roots([here])
    assert store.root_devices() == {here: 7, there: None}
    assert store.mounts() == {"/here/stick": 8, "/here/share": 9}
    store.see_disks({}, {"/here/share": 10}, ["/here/stick"])
    assert store.mounts() == {"/here/share": 10}


def test_settings_are_remembered(store: Store, tmp_path: Path) -> None:
    assert remembered_settings(tmp_path) == remembered_settings(tmp_path / "nowhere") == {}
    store.remember({"profile": "tiny", "chunk_tokens": 64})
    store.remember({"profile": "small"})
    assert remembered_settings(tmp_path) == {"profile": "small", "chunk_tokens": 64}


def test_an_id_is_never_used_again(store: Store, tmp_path: Path) -> None:
    last = put(store, "a")
    chunk = max(row.id for row in store.rows(last))
    store.supersede(store.documents())
    store.purge(())
    again = put(store, "b")
    assert again > last
    assert min(row.id for row in store.rows(again)) > chunk
    store.close()
    salvage(tmp_path)
    switch(tmp_path)
    with closing(Store(tmp_path)) as salvaged:
        assert put(salvaged, "c") > again


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    def write_one_and_fail() -> None:
        with store.transaction():
            put_context(store, "k", "A sentence.", "model")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_one_and_fail()
    assert not has_context(store, "k")
    put_context(store, "k", "A sentence.", "model")
    assert has_context(store, "k")


def test_a_full_store_says_so_and_keeps_what_was_finished(store: Store, tmp_path: Path) -> None:
    put_context(store, "first", "A sentence.", "model")
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LibraryError, match="free some space"), storage_errors(tmp_path):
        put_vectors(store, [str(n) for n in range(99)], np.ones((99, 384), dtype=np.float32))
    assert count_rows(store)["cached_contexts"] == 1
    assert count_rows(store)["cached_vectors"] == 0
    store.connection.execute("PRAGMA max_page_count = 100000")
    put_vectors(store, ["v"], np.ones((1, 384), dtype=np.float32))


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/library/x"), "device at /library/x.*full: free some space"),
        (OSError(errno.EACCES, "Permission denied"), "make the folder writable"),
        (OSError(errno.EIO, "Input/output error"), "check the disk"),
        (sqlite3.DatabaseError("database disk image is malformed"), "damaged.*local-rag repair"),
        (sqlite3.OperationalError("Could not decode to UTF-8 column 'text'"), "damaged.*local-rag repair"),
    ],
)
def test_errors_of_the_disk_become_sentences(error: Exception, advice: str) -> None:
    with pytest.raises(LibraryError, match=advice), storage_errors(Path("/library")):
        raise error


@pytest.mark.parametrize(
    "error", [sqlite3.ProgrammingError("closed"), sqlite3.IntegrityError("x"), LibraryError("as it is"), KeyError("x")]
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, storage_errors(Path("/library")):
        raise error
    assert caught.value is error


def test_an_error_that_is_no_damage_is_not_called_so(store: Store, tmp_path: Path) -> None:
    for statement in ("SELECT 1 FROM documents WHERE nothing", "CREATE TABLE documents (a)", "COMMIT"):
        with pytest.raises(sqlite3.Error), storage_errors(tmp_path):
            store.connection.execute(statement)
    store.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100)
    with pytest.raises(sqlite3.DataError), storage_errors(tmp_path):
        store.connection.execute("SELECT ?", ("x" * 1000,))


def test_a_table_or_column_that_is_gone_is_damage(store: Store, tmp_path: Path) -> None:
    store.connection.execute("ALTER TABLE skipped DROP COLUMN reason")
    with pytest.raises(DamagedLibraryError, match="repair"), storage_errors(tmp_path):
        store.connection.execute("SELECT reason FROM skipped")


def test_a_locked_store_says_what_to_do(store: Store, tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as other, store.transaction():
        other.connection.execute("PRAGMA busy_timeout = 1")
        with pytest.raises(LibraryError, match=r"locked.*end the other programs that use it"), storage_errors(tmp_path):
            put_context(other, "k", "t", "model")


def test_the_checksum_is_of_the_bytes() -> None:
    assert crc32("llm", "ö") == crc32(b"llm", "ö".encode()) != crc32("llm", "o")


def test_a_document_is_made_again_when_its_contexts_are_others(store: Store) -> None:
    (chunk,) = store.chunks(document := put(store, "a"))
    put_plans(store, [EmbeddingPlan(document, [(chunk.id, "v")], 1, 1, 0)])
    mark_embedded(store, [document], "plan")
    assert documents_to_embed(store, "plan") == []
    assert documents_to_embed(store, "other") == [document]
    put_context(store, "c", "Written for a copy of it.", "model")
    assert documents_to_embed(store, "plan") == []
    plan_code_contexts(store, document, "contexts", [(chunk.id, "c", None)])
    assert documents_to_embed(store, "plan") == [document], (
        "the context was there before anybody knew that it is wanted"
    )
    mark_embedded(store, [document], "plan")
    plan_code_contexts(store, document, "contexts", [(chunk.id, "c", None)])
    assert documents_to_embed(store, "plan") == []
    put_context(store, "c", "Written again.", "model")
    assert documents_to_embed(store, "plan") == [document]
    mark_embedded(store, [document], "plan")
    put_context(store, "c", "Written again.", "model")
    assert documents_to_embed(store, "plan") == [], "the same context changes nothing"


def test_two_libraries_have_two_ids_and_a_salvaged_one_keeps_its_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with closing(Store(tmp_path / "one", create=True)) as one, closing(Store(tmp_path / "two", create=True)) as two:
        known = one.library_id()
        assert known != two.library_id()
        assert len(known) == 32
    salvage(tmp_path / "one")
    switch(tmp_path / "one")
    with closing(Store(tmp_path / "one")) as salvaged:
        assert salvaged.library_id() == known
