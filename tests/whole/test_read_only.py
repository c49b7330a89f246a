"""A library that may not be written can be searched and asked."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.document_records import Chunk, Document
from local_rag.files import FileStamp
from local_rag.library import Parts
from local_rag.machine import file_system, is_network, printed_mounts
from local_rag.store.database import Store
from tests.fakes import EMBEDS_QUICKLY, FakeEmbedder, FakeGenerator, generating
from tests.whole.crash.harness import small_disk


@pytest.fixture
def stick(documents: Path, tmp_path: Path) -> Iterator[Path]:
    """A library on a disk of its own, which is then read-only."""
    with small_disk(tmp_path / "stick", "64m") as disk:
        library = disk.path / "lib"
        Library(library, parts=EMBEDS_QUICKLY, profile="tiny", context="headings").index([documents])
        yield library


def protect(stick: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", stick.parent], check=True)
    assert not os.access(stick, os.W_OK)


def search_and_ask(library: Path) -> str:
    generator = FakeGenerator(lambda _prompt: "At seven.")
    parts = Parts(load_embedder=FakeEmbedder, open_engine=generating(generator))
    with Library(library, parts=parts) as opened:
        assert opened.status().documents == 3
        assert len(opened.search("boat harbour", top=50)) == opened.status().chunks
        return opened.ask("When does the boat leave?").text


def test_it_is_searched_and_asked_in_place(stick: Path) -> None:
    with closing(sqlite3.connect(stick / "library.sqlite3")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    protect(stick)
    before = {path: path.read_bytes() for path in stick.rglob("*") if path.is_file()}
    assert search_and_ask(stick) == "At seven. [1]"
    assert {path: path.read_bytes() for path in stick.rglob("*") if path.is_file()} == before


def test_what_stands_in_its_log_is_seen_too(stick: Path, tmp_path: Path) -> None:
    with closing(Store(stick)) as store:
        store.connection.execute("UPDATE documents SET title = 'In the log'")
        for file in stick.glob("library.sqlite3*"):
            shutil.copy(file, tmp_path)
    for name in ("library.sqlite3", "library.sqlite3-wal"):
        shutil.copy(tmp_path / name, stick)
    assert (stick / "library.sqlite3-wal").stat().st_size
    protect(stick)
    with Library(stick, parts=EMBEDS_QUICKLY) as library:
        assert {passage.title for passage in library.search("boat", top=9)} == {"In the log"}


def test_the_file_system_is_told_by_the_longest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path}/with\\040space nfs4 rw 0 0\n")
    assert file_system(tmp_path, mounts) == "ext4"
    assert file_system(tmp_path / "with space" / "lib", mounts) == "nfs4"
    assert file_system(tmp_path, tmp_path / "none") == ""
    assert [is_network(kind) for kind in ("nfs4", "fuse.sshfs", "ext4", "")] == [True, True, False, False]
    printed = "/dev/disk3s1 on / (apfs, local)\n//me@nas/docs on /Volumes/my docs (smbfs, nodev)\n"
    assert printed_mounts(printed) == [("/", "apfs"), ("/Volumes/my docs", "smbfs")]
    assert is_network("smbfs")


def store_of_another_user(count: int) -> tuple[Path, Store]:
    """Return a store that others may read, and the store opened by its owner."""
    folder = Path(tempfile.mkdtemp(prefix="local-rag-test-"))
    folder.chmod(0o755)
    store = Store(folder, create=True)
    put(store, range(count))
    (folder / "library.sqlite3").chmod(0o644)
    return folder, store


def put(store: Store, numbers: Iterable[int]) -> None:
    text = "word " * 200
    documents = [Document(Path(f"/x/{number}.md"), "T", text, "text") for number in numbers]
    chunks = [Chunk(position, 0, 100, text[:100]) for position in range(5)]
    store.put_documents([(one, chunks, (FileStamp(1), "s", "k")) for one in documents])


def read_as_nobody(folder: Path, seconds: float) -> dict[str, int]:
    """Count what another user finds in a store, opened again and again."""
    code = (
        "import os, sys, time, json; from pathlib import Path; from collections import Counter\n"
        "from local_rag.store.database import Store\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "seen, ends = Counter(), time.monotonic() + float(sys.argv[2])\n"
        "while not seen or time.monotonic() < ends:\n"
        "    store = Store(Path(sys.argv[1]))\n"
        "    whole = store.connection.execute('PRAGMA integrity_check').fetchall() == [('ok',)]\n"
        "    seen[f'{whole} {len(store.documents())}'] += 1\n"
        "    store.close()\n"
        "print(json.dumps(seen))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), str(seconds)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_library_of_another_user_is_read_right_while_it_is_written(tmp_path: Path) -> None:
    folder, store = store_of_another_user(100)
    stop = threading.Event()

    def write() -> None:
        numbers = random.Random(1)
        while not stop.is_set():
            put(store, [numbers.randrange(100) for _ in range(10)])
            store.purge(())
            if numbers.random() < 0.3:
                store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert read_as_nobody(folder, 2.0).keys() == {"True 100"}
    finally:
        stop.set()
        writer.join()
    store.close()
    before = {path.name for path in folder.iterdir()}
    assert read_as_nobody(folder, 0).keys() == {"True 100"}, "nobody has it open: a copy is read"
    assert {path.name for path in folder.iterdir()} == before
    shutil.rmtree(folder)
