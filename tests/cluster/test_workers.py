import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from local_rag.cluster.workers.machine_worker import facts_of, share_of
from local_rag.cluster.workers.ray_connection import connected
from local_rag.cluster.workers.ray_workers import RayWorkers, as_read_here, differences, pack_contexts, pack_files
from local_rag.document_records import Document, Skipped
from local_rag.errors import ClusterError
from local_rag.files import SCRAPE_STATE, UNKNOWN_STAMP, FileStamp
from local_rag.indexing.situating_prompts import ContextJob, Window
from local_rag.indexing.vectors import embed_with_contexts
from local_rag.indexing.workers import EmbeddingJob
from local_rag.library import Library, Parts
from local_rag.model_records import InstalledModel
from local_rag.models.registry import resolve
from local_rag.reading.isolate import ReadFile
from local_rag.reading.split import READING_VERSION, Splitting
from tests.cluster.conftest import FULL, NODE, Two
from tests.cluster.journaling import POISON, journaling_engine
from tests.fakes import FakeEmbedder, quick_vocabulary

pytestmark = pytest.mark.rest
full = pytest.mark.skipif(not FULL, reason="takes long; run by `scripts/cluster_test.sh full`")
PARTS = Parts(load_embedder=FakeEmbedder, open_engine=journaling_engine, open_vocabulary=quick_vocabulary)


def jobs(windows: int, chunks: int = 8, poison: int = -1) -> Iterator[ContextJob]:
    for number in range(windows):
        text = POISON if number == poison else "text"
        window = Window(f"Document {number}", (text,) * chunks, 0, chunks)
        yield from (ContextJob(f"{number}/{piece}", window, piece) for piece in range(chunks))


def workers(two: Two, embed_model: InstalledModel) -> RayWorkers:
    writer = resolve("smollm2-135m-instruct", "context")
    return RayWorkers(two.address, embed_model, writer, load_embedder=FakeEmbedder, open_engine=journaling_engine)


def write(two: Two, embed_model: InstalledModel, windows: int, at: dict[int, Callable[[], object]]) -> list[str]:
    """Write contexts, calling what is given after so many of them; check that none is written or returned twice."""
    keys = list[str]()
    # Few are said to be expected: for many a worker fits a real model to the machine, which takes minutes.
    for written in workers(two, embed_model).write_contexts(jobs(windows), 0, lambda _remark: None):
        keys.append(written.key)
        assert written.text.startswith("This chunk is about")
        if step := at.get(len(keys)):
            step()
    assert sorted(keys) == sorted(job.key for job in jobs(windows))
    return keys


def test_tasks_hold_at_least_64_chunks_and_end_where_a_window_does() -> None:
    packed = list(pack_contexts(jobs(40), 64))
    assert [len(task.items) for task in packed] == [64] * 5
    assert {len({part for part, _ in task.items.values()}) for task in packed} == {8}
    (large,) = pack_contexts(jobs(1, chunks=300), 64)
    assert len(large.items) == 300


def test_what_cannot_be_opened_is_told_and_not_sent(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    unread, stamps = deque[Skipped](), dict[str, FileStamp]()
    (task,) = pack_files([tmp_path / "a.md", tmp_path / "b.md"], unread, stamps)
    assert list(task.items) == [str(tmp_path / "a.md")]
    assert [skipped.path.name for skipped in unread] == ["b.md"]
    assert [stamp.size for stamp in stamps.values()] == [4]


def test_facts_tell_what_really_runs(embed_model: InstalledModel) -> None:
    facts = facts_of({"embed": embed_model.name})
    assert facts["local-rag"].split()[0] == version("local-rag")
    assert len(facts["local-rag"].split()[1]) == 16
    assert facts["reading"] == str(READING_VERSION)
    assert {"pypdfium2", "mammoth", "lxml", "openpyxl", "semantic-text-splitter", "numpy"} <= set(facts)
    assert differences(facts, facts | {"lxml": "0.1"}) == [f"lxml 0.1 instead of {facts['lxml']}"]


def test_workers_of_one_machine_share_its_cores() -> None:
    assert share_of(range(8), 0, 1) == set(range(8))
    assert [share_of(range(8), number, 3) for number in range(3)] == [{0, 1}, {2, 3, 4}, {5, 6, 7}]
    assert [share_of({1, 3}, number, 4) for number in range(4)] == [{1}, {1}, {3}, {3}], "more GPUs than cores"


def test_a_scraped_file_keeps_its_address_though_a_worker_has_read_it(tmp_path: Path) -> None:
    path, sha256 = tmp_path / "example.org" / "paper.pdf", "0" * 64
    state = {"https://example.org/paper.pdf": {"file": "example.org/paper.pdf", "sha256": sha256}}
    (tmp_path / SCRAPE_STATE).write_text(json.dumps(state))
    read = ReadFile(sha256, Document(path, "Paper", "text", "text"), ())
    found = as_read_here(path, read, UNKNOWN_STAMP)
    assert found.document.provenance.url == "https://example.org/paper.pdf"
    other = as_read_here(path, replace(read, sha256="1" * 64), UNKNOWN_STAMP)
    assert other.document == read.document


def test_vectors_and_files_come_from_both_machines_as_from_this_one(
    two: Two, embed_model: InstalledModel, splitting: Splitting, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some, notes = workers(two, embed_model), list[str]()
    texts = [EmbeddingJob(str(number), f"word {number}", "the sea" * (number % 2)) for number in range(600)]
    found = {
        key: row for keys, rows in some.embed(iter(texts), notes.append) for key, row in zip(keys, rows, strict=True)
    }
    wanted = embed_with_contexts(FakeEmbedder(embed_model), [(job.text, job.context) for job in texts])
    assert np.allclose(np.stack([found[job.key] for job in texts]), wanted)
    (tmp_path / "boat.md").write_text("# Boat\n\nIt leaves at seven.\n")
    (tmp_path / "empty.md").write_text("")
    read = dict(some.read([tmp_path / name for name in ("boat.md", "empty.md", "missing.md")], splitting))
    boat = read[tmp_path / "boat.md"]
    assert not isinstance(boat, Skipped)
    assert (boat.document.title, boat.document.path) == ("Boat", tmp_path / "boat.md")
    assert read[tmp_path / "empty.md"] == Skipped(tmp_path / "empty.md", "empty", lasting=True)
    assert isinstance(read[tmp_path / "missing.md"], Skipped)
    assert notes[-1] == "loading all-minilm-l6-v2 on 2 machines"
    assert capsys.readouterr().out == "", "stdout is for results"


def test_a_worker_that_is_killed_loses_nothing_and_repeats_nothing(two: Two, embed_model: InstalledModel) -> None:
    killed = list[int]()

    def kill() -> None:
        killed.append(two.written()[-1][0])
        os.kill(killed[0], signal.SIGKILL)

    write(two, embed_model, 32, {40: kill})
    times = Counter(key for _, key in two.written())
    # What it had finished and not yet sent is all that may be written again.
    assert sum(times.values()) - len(times) <= 2
    assert len({pid for pid, _ in two.written()}) >= 2


def test_a_poisoned_document_is_given_up_and_all_others_are_written(two: Two, embed_model: InstalledModel) -> None:
    some = workers(two, embed_model)
    written = {one.key: one for one in some.write_contexts(jobs(16, poison=3), 0, lambda _remark: None)}
    assert len(written) == 128
    assert set(some.given_up) == {f"3/{piece}" for piece in range(8)}
    assert {key for key, one in written.items() if not one.text} == set(some.given_up)


def test_a_library_is_the_same_from_a_cluster_as_from_one_machine(two: Two, documents: Path, tmp_path: Path) -> None:
    (documents / "odd.md").write_text(f"# Odd\n\n{POISON} is the name of a cat.\n")
    rows = []
    for name, address in (("here", ""), ("there", two.address)):
        if not address:  # where poison would end this process
            (documents / "odd.md").rename(tmp_path / "odd.md")
        library = Library(tmp_path / name, parts=PARTS, cluster={"address": address}, profile="tiny", context_minutes=9)
        with library:
            report = library.index([documents], contexts=True)
            assert [note.path.name for note in report.notes] == (["odd.md"] if address else [])
            if not address:
                (tmp_path / "odd.md").rename(documents / "odd.md")
            with library.documents.reading() as store:
                rows.append([(one.path, one.chunk.text, one.terms, one.sentence) for one in store.chunks()])
            assert library.search("parental leave in Norway", top=1, rerank=False)[0].path.endswith("leave.md")
    assert rows[0] == [row for row in rows[1] if not row[0].endswith("odd.md")]
    assert [row[3] for row in rows[1] if row[0].endswith("odd.md")] == [""]


def test_connections_end_in_any_order(two: Two) -> None:
    reading, embedding = ExitStack(), ExitStack()
    ray = reading.enter_context(connected(two.address))
    embedding.enter_context(connected(two.address))
    reading.close()
    assert ray.is_initialized()
    embedding.close()
    assert not ray.is_initialized()


@full
def test_a_machine_that_dies_and_one_that_joins(two: Two, embed_model: InstalledModel) -> None:
    def lose() -> None:
        two.cluster.remove_node(two.nodes.pop(), allow_graceful=False)

    def join() -> None:
        two.nodes.append(two.cluster.add_node(**NODE))

    write(two, embed_model, 96, {100: lose, 250: join})
    assert len({pid for pid, _ in two.written()}) >= 3


DRIVE = """
import sys
from pathlib import Path
from tests.cluster.test_workers import PARTS
from local_rag.library import Library
settings = {"cluster": {"address": sys.argv[2]}, "profile": "tiny", "context_minutes": 9}
Library(Path(sys.argv[1]), parts=PARTS, **settings).index([sys.argv[3]], contexts=True)
"""


@full
def test_a_driver_that_is_killed_goes_on_where_it_was(two: Two, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(200):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nIt is about {number} boats.\n")
    command = [sys.executable, "-c", DRIVE, str(tmp_path / "library"), two.address, str(folder)]
    with subprocess.Popen(command) as process:
        while len(two.written()) < 40:
            time.sleep(0.1)
            assert process.poll() is None
        process.kill()
    first = len(two.written())
    subprocess.run(command, check=True)
    times = Counter(key for _, key in two.written())
    wanted = 200  # a context of each
    assert len(times) == wanted
    assert sum(times.values()) - wanted <= first - 40 + 10, "what was stored is not written again"


@full
def test_a_wrong_token_is_refused_in_one_sentence(two: Two, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("0" * 64)
    (tmp_path / "token").chmod(0o600)
    shutil.copytree(
        Path(os.environ["LOCAL_RAG_CLUSTER_TOKEN_FILE"]).parent / "cluster-authority", tmp_path / "cluster-authority"
    )
    done = subprocess.run(
        [sys.executable, "-c", DRIVE, str(tmp_path / "library"), two.address, str(Path(__file__).parent)],
        env=os.environ | {"LOCAL_RAG_CLUSTER_TOKEN_FILE": str(tmp_path / "token")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1].startswith(f"{ClusterError.__module__}.ClusterError: The cluster at")
    assert "differs from that of the cluster" in done.stderr, done.stderr
    assert done.stdout == ""
