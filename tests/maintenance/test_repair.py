"""Damage of every kind is noticed, named and mended."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.index.generations import Generations
from local_rag.indexing.compare import apart_key
from local_rag.store.connect import SALVAGED_FILE
from local_rag.store.database import Store, StoredDocument
from local_rag.store.erasing import Erasing, begin_erasing, erasing
from local_rag.store.salvage import salvage, switch
from tests.conftest import Run
from tests.fakes import QUICK, FakeEmbedder

pytestmark = pytest.mark.slow
QUESTION = "High water in the harbour"


@pytest.fixture
def library(documents: Path) -> Path:
    for number in range(20):
        sections = (f"## Day {n}\n\nHigh water is at {n}:{number} in the harbour.\n\n" for n in range(8))
        (documents / f"{number}.md").write_text(f"# Tides {number}\n\n" + "".join(sections))
    make().index([documents], contexts=True)
    return make().folder


def make() -> Library:
    return Library("lib", parts=QUICK, profile="tiny", context_minutes=9, chunk_tokens=32)


@pytest.fixture
def lib(run: Run) -> Run:
    """Run a command on the library."""
    return lambda *arguments: run(*arguments, "--library", "lib", parts=QUICK)


def live_files(library: Path) -> list[Path]:
    generation = Generations(library).live()
    assert generation
    folders = [generation.folder, *(library / "segments" / name for name in generation.manifest["segments"])]
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def test_a_whole_library_needs_no_repair(library: Path, lib: Run) -> None:
    loaded = FakeEmbedder.loaded
    before = (library / "CURRENT").read_text()
    assert lib("repair").stdout.strip() == "Nothing is damaged."
    assert ((library / "CURRENT").read_text(), FakeEmbedder.loaded) == (before, loaded)


def damage(path: Path, kind: str, choose: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if kind == "missing":
        path.unlink()
    elif kind == "truncated":
        path.write_bytes(data[: choose.randrange(len(data))])
    else:
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        path.write_bytes(data)


@pytest.mark.parametrize("kind", ["missing", "truncated", "flipped"])
def test_a_damaged_index_file_is_noticed_named_and_rebuilt(library: Path, lib: Run, kind: str) -> None:
    choose = random.Random(kind)
    expected = make().search(QUESTION, top=50)
    loaded = FakeEmbedder.loaded
    keywords = [path for path in live_files(library) if "keywords" in path.parts and path.stat().st_size]
    names = ["chunk_ids.npy", "manifest.json", "vectors.npy", choose.choice(keywords).name]
    for name in names:
        path = next(path for path in live_files(library) if path.name == name)
        damage(path, kind, choose)
        if name == "manifest.json" and kind == "flipped" and current_is_readable(library):
            continue  # a flip in the blank space of JSON changes nothing
        with pytest.raises(LibraryError, match=r"local-rag repair") as caught:
            make().search(QUESTION)
        assert str(path) in str(caught.value)
        assert any(str(path) in str(example) for one in make().status().stale for example in one.examples)
        result = lib("repair")
        assert result.exit_code == 0, result.output
        assert str(path) in result.stdout
        assert "rebuilt" in result.stdout
        found = make().search(QUESTION, top=50)
        assert [(one.chunk_id, one.hits) for one in found] == [(one.chunk_id, one.hits) for one in expected]
        assert make().status().stale == ()
    assert FakeEmbedder.loaded <= loaded + 2 * len(names), "only questions needed the embedder"


def current_is_readable(library: Path) -> bool:
    try:
        return Generations(library).live() is not None
    except LibraryError:
        return False


def test_every_flipped_bit_of_an_index_is_noticed(library: Path) -> None:
    generation = Generations(library).live()
    assert generation
    choose = random.Random(7)
    files = [path for path in live_files(library) if path.stat().st_size and path.name != "manifest.json"]
    for _ in range(200):
        path = choose.choice(files)
        whole = path.read_bytes()
        damage(path, "flipped", choose)
        assert len(generation.damage()) == 1
        path.write_bytes(whole)
    assert generation.damage() == []


@pytest.mark.parametrize("pointer", ["", "nonsense", "000999", "../000001", "\udcff"])
def test_a_damaged_pointer_is_noticed_and_mended(library: Path, lib: Run, pointer: str) -> None:
    (library / "CURRENT").write_bytes(pointer.encode("utf-8", "surrogateescape"))
    with pytest.raises(LibraryError, match="local-rag repair"):
        make().search(QUESTION)
    assert lib("repair").exit_code == 0
    assert make().search(QUESTION)


def test_a_damaged_generation_does_not_stop_index_with_a_traceback(library: Path, lib: Run, documents: Path) -> None:
    shutil.rmtree(library / "generations")
    result = lib("index")
    assert result.exit_code == 1
    assert "local-rag repair" in result.stderr
    assert lib("repair").exit_code == 0
    assert lib("index").exit_code == 0


def test_damaged_rows_are_dropped_and_made_again(library: Path, lib: Run) -> None:
    store = Store(library)
    expected = make().search(QUESTION, top=50)
    change = store.connection.execute
    change("UPDATE contexts SET text = text || '!' WHERE key = (SELECT min(key) FROM contexts WHERE text <> '')")
    change("UPDATE vectors SET vector = zeroblob(256) WHERE rowid = (SELECT max(rowid) FROM vectors)")
    change(
        "UPDATE document_texts SET text = replace(text, 'water', 'wader') "
        "WHERE document_id = (SELECT id FROM documents WHERE title = 'Tides 3')"
    )
    store.close()
    result = lib("repair")
    assert result.exit_code == 0, result.output
    assert "1 damaged contexts deleted" in result.stdout
    assert "1 damaged vectors deleted" in result.stdout
    assert "1 damaged documents deleted" in result.stdout
    report = make().index(contexts=True)
    assert report.added == 1
    assert sum(report.contexts.values()) == 1
    texts = [(one.path, one.text, one.context) for one in make().search(QUESTION, top=50)]
    assert sorted(texts) == sorted((one.path, one.text, one.context) for one in expected)
    assert make().status().stale == ()


def pages_of(path: Path, table: str) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        try:
            rows = connection.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype <> 'internal'", (table,)
            ).fetchall()
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no dbstat")
    return [row[0] for row in rows]


def overwrite(path: Path, page: int) -> None:
    with path.open("r+b") as handle:
        handle.seek((page - 1) * 4096)
        handle.write(b"\xff" * 4096)


def contents(library: Path) -> tuple[set[str], set[str]]:
    with closing(sqlite3.connect(library / "library.sqlite3")) as connection:
        return tuple(  # type: ignore[return-value]
            {row[0] for row in connection.execute(f"SELECT key FROM {table}")} for table in ("contexts", "vectors")
        )


@pytest.mark.parametrize("table", ["contexts", "vectors", "chunks", "documents"])
def test_a_damaged_store_is_salvaged_round_the_damage(library: Path, lib: Run, table: str) -> None:
    path = library / "library.sqlite3"
    make().upkeep.clean()  # puts everything into the one file
    contexts, vectors = contents(library)
    pages = pages_of(path, table)
    overwrite(path, pages[len(pages) // 2])
    overwrite(path, pages[-1])
    result = lib("repair")
    assert result.exit_code == 0, result.output
    assert "was damaged" in result.stdout
    assert "Run `local-rag index`" in result.stdout
    assert (library / "library.sqlite3.damaged").exists()
    saved_contexts, saved_vectors = contents(library)
    assert saved_contexts <= contexts
    assert saved_vectors <= vectors
    # A page holds some 40 contexts, or 12 of these vectors: two pages may be lost, and nothing else.
    assert len(contexts - saved_contexts) <= (100 if table == "contexts" else 0)
    assert len(vectors - saved_vectors) <= (40 if table == "vectors" else 0)
    with pytest.raises(LibraryError, match="local-rag index"):
        make().search(QUESTION)
    report = make().index(contexts=True)
    assert report.added == 23
    lost = contexts - saved_contexts - {apart_key("")}  # code says again that a chunk needs no context
    assert sum(report.contexts.values()) == len(lost)
    assert make().search(QUESTION)
    assert make().status().stale == ()
    assert "library.sqlite3.damaged" in make().upkeep.clean().leftovers
    assert not (library / "library.sqlite3.damaged").exists()


def test_a_salvage_keeps_what_sets_documents_apart(library: Path, documents: Path, lib: Run) -> None:
    """The documents that arrived one by one were each compared with fewer others than there are now."""
    path = library / "library.sqlite3"
    for number in range(20, 24):
        text = f"# Tides {number}\n\n" + "".join(
            f"## Day {n}\n\nHigh water is at {n}:9 in Port {number}.\n\n" for n in range(8)
        )
        (documents / f"{number}.md").write_text(text)
        make().index(contexts=True)
    make().upkeep.clean()
    overwrite(path, pages_of(path, "chunks")[-1])
    assert lib("repair").exit_code == 0
    report = make().index(contexts=True)
    assert (report.added, report.contexts) == (27, {})
    with closing(Store(library)) as store:
        store.connection.execute("INSERT INTO distinctions VALUES ('of no document', '[]', 0)")
    make().upkeep.clean()
    with closing(Store(library)) as store:
        held = store.connection.execute("SELECT count(*) FROM distinctions").fetchone()[0]
    assert held == len({one.sha256 for one in store_documents(library)})


def store_documents(library: Path) -> list[StoredDocument]:
    with closing(Store(library)) as store:
        return store.documents()


def test_what_is_no_database_at_all_is_replaced_and_said(library: Path, lib: Run, documents: Path) -> None:
    for path in library.glob("library.sqlite3*"):
        path.write_bytes(b"\x00garbage" * 1000)
    with pytest.raises(LibraryError, match="local-rag repair"):
        make().search(QUESTION)
    result = lib("repair")
    assert result.exit_code == 0, result.output
    assert "0 contexts, 0 vectors, 0 roots" in result.stdout
    assert "`local-rag index FOLDER`" in result.stdout
    assert make().index([documents], contexts=True).added == 23


def test_a_salvaged_store_knows_what_is_still_to_be_erased(library: Path, documents: Path) -> None:
    with closing(Store(library, write=True)) as store:
        begin_erasing(store, (), [documents / "secret.md"], ["5ec1e7"], ())
    salvage(library)
    switch(library)
    with closing(Store(library)) as store:
        assert erasing(store) == Erasing(frozenset({str(documents / "secret.md")}), frozenset({"5ec1e7"}), begun=True)


def test_a_killed_salvage_goes_on(library: Path, lib: Run, documents: Path) -> None:
    contexts, vectors = contents(library)
    salvage(library)
    with pytest.raises(LibraryError, match=r"interrupted.*local-rag repair"):
        make().index([documents], contexts=True)
    assert lib("repair").exit_code == 0
    assert not (library / SALVAGED_FILE).exists()
    assert contents(library) == (contexts, vectors)
    report = make().index(contexts=True)
    assert (report.added, report.contexts) == (23, {})


def test_nothing_to_repair_is_said(tmp_path: Path, lib: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = lib("repair")
    assert result.exit_code == 1
    assert "There is no library" in result.stderr
    assert not Path("lib").exists()


def test_a_newer_library_is_refused_not_salvaged(library: Path, lib: Run) -> None:
    with closing(sqlite3.connect(library / "library.sqlite3")) as connection:
        connection.execute("PRAGMA user_version = 99")
    result = lib("repair")
    assert result.exit_code == 1
    assert "version 99" in result.stderr
    assert not list(library.glob("*.damaged"))
