"""What a user made or waited for stays: settings, contexts that a repair saved, files that are not ours."""

import json
import os
import shutil
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.index.generations import Generations
from local_rag.progress_records import Progress
from local_rag.store.database import Store
from local_rag.store.published import copy_library
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, QUICK


def make(**settings: Any) -> Library:
    return Library("lib", parts=QUICK, profile="tiny", **({"context_minutes": 9} | settings))


def cached(library: Library) -> tuple[int, int]:
    found = library.status().cached
    return found["cached_contexts"], found["cached_vectors"]


def test_clean_after_repair_keeps_what_repair_saved(documents: Path, run: Run) -> None:
    make().index([documents], contexts=True)
    before = cached(make())
    path = Path("lib/library.sqlite3")
    with closing(Store(Path("lib"))) as store:
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = store.connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'documents'").fetchone()[0]
        size = store.connection.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(data)
    assert run("repair", "--library", "lib", parts=QUICK).exit_code == 0
    result = run("clean", "--library", "lib", parts=QUICK)
    assert "last `index` did not finish" in result.stderr
    assert cached(make()) == before
    report = make().index([documents], contexts=True)
    assert report.contexts == {}, "nothing that was saved was written again"


def test_clean_keeps_contexts_while_documents_read_anew_wait_for_their_plan(documents: Path) -> None:
    make().index([documents], contexts=True)
    before = cached(make())

    def stop(progress: Progress) -> None:
        if progress.stage == "publish":
            raise KeyboardInterrupt

    for path in documents.rglob("*.*"):
        path.write_text(path.read_text() + "\nAnd more.\n")
    with pytest.raises(KeyboardInterrupt):
        make().index(progress=stop)
    cleaning = make().upkeep.clean()
    assert (cleaning.contexts, cleaning.vectors, cleaning.kept_caches) == (0, 0, True)
    assert cached(make()) >= before


def test_the_users_settings_stay_as_they_are(documents: Path) -> None:
    mine = '# Mine.\nanswer_model = "smollm2-135m-instruct"\npassages = 7\ndense_weight = 0.1\n'
    Path("lib").mkdir()
    Path("lib/settings.toml").write_text(mine)
    make(chunk_tokens=32).index([documents], contexts=True)
    assert Path("lib/settings.toml").read_text() == mine
    library = Library("lib", parts=QUICK)
    assert (library.settings.passages, library.settings.chunk_tokens, library.settings.profile) == (7, 32, "tiny")


def test_flags_of_a_run_that_was_refused_are_not_remembered(documents: Path, run: Run) -> None:
    make(context="headings").index([documents], contexts=True)
    with pytest.raises(LibraryError, match="--chunk-tokens 254"):
        make(chunk_tokens=400).index(contexts=True)
    assert Library("lib", parts=QUICK).index(contexts=True).published is False
    assert run("index", "--library", "lib", "--chunk-tokens", "32").exit_code == 0
    assert Library("lib").settings.chunk_tokens == 32
    assert run("index", "--library", "lib", "--chunk-tokens", "0").exit_code == 0
    assert Library("lib").settings.chunk_tokens == 0
    assert run("index", "--library", "lib", "--chunk-tokens", "7").exit_code == 2


def test_clean_deletes_only_names_of_its_own(documents: Path, run: Run) -> None:
    make(context="headings").index([documents], contexts=True)
    (documents / "new.md").write_text("# New\n\nA new one.\n")
    make(context="headings").index(contexts=True)
    mine = ["draft.tmp/thesis.txt", "report.damaged.txt", "generations/photos/cat.jpg", "generations/old.tmp/x"]
    for name in mine:
        (Path("lib") / name).parent.mkdir(parents=True, exist_ok=True)
        (Path("lib") / name).write_text("mine")
    cleaned = json.loads(run("clean", "--library", "lib", "--json").stdout)
    assert (len(cleaned["generations"]), cleaned["leftovers"]) == (1, [])
    (documents / "boat.txt").unlink()
    make(context="headings").index(contexts=True)
    assert [name for name in mine if not (Path("lib") / name).exists()] == []


def test_an_open_library_sees_that_another_was_made_in_its_place(documents: Path) -> None:
    (documents / "boat.txt").write_text("Trains leave at nine.\n")
    make(context="headings").index([documents], contexts=True)
    with Library("lib", parts=EMBEDS_QUICKLY) as reader:
        assert "Trains" in reader.search("trains leave", top=1)[0].text
        for path in sorted(Path("lib").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (documents / "boat.txt").write_text("Planes leave at noon.\n")
        make(context="headings").index([documents], contexts=True)
        found = reader.search("planes leave", top=1)[0].text
        assert "Planes" in found
        assert not any("Trains" in passage.text for passage in reader.search("trains leave", top=50))


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_erase_leaves_nothing_of_a_document_in_any_file(documents: Path, run: Run) -> None:
    secret = "Zanzibarquartz"
    parts = "".join(f"\n## Part {number}\n\n{secret} glows in cave {number}.\n" for number in range(9))
    (documents / "secret.md").write_text(f"# {secret}\n{parts}")
    make().index([documents], contexts=True)
    (documents / "new.md").write_text("# New\n\nSo that there are two indexes.\n")
    make().index([documents], contexts=True)
    with closing(Store(Path("lib"))) as store:
        traces = store.connection.execute(
            "SELECT contexts.text, vector FROM chunks JOIN vectors ON vectors.key = vector_key "
            "JOIN contexts ON contexts.key = sentence_key WHERE chunks.text LIKE ?",
            (f"%{secret}%",),
        ).fetchall()
    sentences = [text.encode() for text, _ in traces if text]
    assert sentences
    before = bytes_of(Path("lib"))
    assert all(one in before for one in (secret.encode(), *sentences, *(vector for _, vector in traces)))
    Path("lib/library.sqlite3.damaged").write_text(secret)
    result = run("remove", documents / "secret.md", "--erase", "--library", "lib", parts=QUICK)
    assert "contains no trace of them" in result.stdout
    left = bytes_of(Path("lib"))
    assert secret.encode() not in left
    assert secret.lower().encode() not in left
    assert not any(one in left for one in (*sentences, *(vector for _, vector in traces)))
    with Library("lib", parts=EMBEDS_QUICKLY) as library:
        assert len(library.search("boat leave", top=50)) == library.status().chunks > 0


def test_a_preview_of_clean_says_what_clean_does(documents: Path) -> None:
    make(context="headings").index([documents], contexts=True)
    for path in documents.rglob("*.md"):
        path.write_text(path.read_text() + "\n\n## More\n\nAnd more of it.\n")
    make(context="headings").index(contexts=True)
    preview, done = make().upkeep.clean(dry_run=True), make().upkeep.clean()
    assert preview.vectors > 0
    assert preview.documents > 0
    assert replace(preview, bytes=0) == replace(done, bytes=0)
    assert make().upkeep.clean(dry_run=True).documents == 0


def test_clean_rewrites_no_store_in_which_little_is_free(documents: Path) -> None:
    make(context="headings").index([documents], contexts=True)
    with closing(Store(Path("lib"))) as store:
        put = store.connection.execute("CREATE TABLE more AS SELECT randomblob(4000) AS x FROM chunks a, chunks b")
        put.fetchall()
    store_file = Path("lib/library.sqlite3")
    make().upkeep.clean()
    inode, size = store_file.stat().st_ino, store_file.stat().st_size
    with closing(Store(Path("lib"))) as store:
        changes = store.connection.execute("PRAGMA schema_version").fetchone()
    make().upkeep.clean()
    with closing(Store(Path("lib"))) as store:
        assert store.connection.execute("PRAGMA schema_version").fetchone() == changes, "VACUUM would change it"
        store.connection.execute("DROP TABLE more")
    make().upkeep.clean()
    assert store_file.stat().st_size < size
    assert store_file.stat().st_ino == inode


def test_a_manifest_that_cannot_be_read_costs_no_segment(documents: Path) -> None:
    make(context="headings").index([documents], contexts=True)
    indexes = Generations(Path("lib").resolve())
    manifest = Path("lib/generations") / indexes.live_name() / "manifest.json"
    content = manifest.read_bytes()
    manifest.unlink()
    indexes.prune()
    manifest.write_bytes(content)
    live = indexes.live()
    assert live is not None
    assert live.damage() == []


def test_a_library_that_was_copied_without_times_is_hashed_once(documents: Path) -> None:
    make(context="headings").index([documents], contexts=True)
    shutil.copytree("lib", "copy", copy_function=shutil.copyfile)
    files = [path for path in Path("copy/segments").rglob("*") if path.is_file() and path.name != "manifest.json"]
    for path in files:
        os.utime(path, (1_000_000, 1_000_000))
    live = Generations(Path("copy").resolve()).live()
    assert live is not None
    assert live.damage(hash_all=False) == []
    assert all(path.stat().st_mtime > 1_000_000 for path in files), "so the next opening need not hash them"
    files[0].write_bytes(b"x" * files[0].stat().st_size)
    os.utime(files[0], (1_000_000, 1_000_000))
    assert len(live.damage(hash_all=False)) == 1
    assert files[0].stat().st_mtime == 1_000_000


def test_a_library_is_copied_whole_while_its_index_is_replaced(documents: Path, tmp_path: Path) -> None:
    make(context="headings").index([documents], contexts=True)

    def write() -> None:
        for number in range(12):
            (documents / "boat.txt").write_text(f"The boat leaves at {number}.\n")
            make(context="headings").index(contexts=True)

    writer = threading.Thread(target=write)
    writer.start()
    copies = 0
    while writer.is_alive() or not copies:
        copies += 1
        copy = tmp_path / f"copy {copies}"
        copy_library(Path("lib").resolve(), copy)
        live = Generations(copy).live()
        assert live is not None
        assert live.damage() == []
        with closing(Store(copy)) as store:
            assert len(store.chunks_by_id(live.chunk_ids())) == len(live.chunk_ids())
    writer.join()
