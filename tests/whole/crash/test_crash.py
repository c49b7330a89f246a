"""Kill and starve `local-rag index`, a few times here and hundreds of times by scripts/crash_test.sh."""

import errno
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.indexing.distinction import terms_of
from tests.fakes import EMBEDS_QUICKLY
from tests.whole.crash.harness import (
    MOST,
    QUESTIONS,
    Trial,
    build_faults,
    check_sentence,
    kill_at_every_rename,
    kill_repeatedly,
    small_disk,
    was_killed,
    write_document,
    write_documents,
    write_lists,
)

pytestmark = pytest.mark.rest
_KILLS = 15
_SENTENCE_KILLS = 5


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build_faults(tmp_path_factory.mktemp("faults"))
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture
def trial(tmp_path: Path, faults: Path) -> Trial:
    return Trial(tmp_path / "trial", faults)


def test_nothing_sets_the_documents_apart(tmp_path: Path) -> None:
    found = set()
    for number in range(MOST):
        for revision in (0, number, MOST - 1):
            write_document(tmp_path / "one.md", number, revision)
            found.add(frozenset(terms_of("House rules", (tmp_path / "one.md").read_text()).spellings.split("\n")))
    assert len(found) == 1


def test_nothing_finished_is_lost_when_the_run_is_killed(trial: Trial) -> None:
    runs = list(kill_repeatedly(trial, random.Random(5), _KILLS))
    assert len(runs) == _KILLS


def test_no_sentence_is_lost_when_a_run_with_auto_is_killed(tmp_path: Path, faults: Path) -> None:
    trial, choose, killed = Trial(tmp_path / "trial", faults), random.Random(3), 0
    write_lists(trial.documents)
    for _ in range(_SENTENCE_KILLS):
        killed += was_killed(trial.index(at=choose.randrange(150, 450), action="kill"))
        trial.check()
    assert killed
    assert trial.index().returncode == 0
    trial.check()
    assert trial.acknowledged("contexts")
    again = trial.index()
    assert "Writing contexts" not in again.stderr, "everything was written"


@pytest.mark.parametrize("at", range(4))
def test_a_kill_between_the_renames_of_a_publish_loses_nothing(trial: Trial, at: int) -> None:
    write_documents(trial.documents)
    run = trial.index(at=at, action="kill", only="rename")
    assert was_killed(run)
    assert run.hit.startswith("rename")
    trial.check()
    assert trial.index().returncode == 0
    trial.check()


def test_a_kill_between_any_two_renames_loses_nothing(trial: Trial) -> None:
    write_documents(trial.documents, 4)
    assert trial.index().returncode == 0
    assert kill_at_every_rename(trial) >= 3, "of a segment, a generation and the pointer"


@pytest.mark.parametrize(
    ("number", "sticky", "only", "at"),
    [
        (errno.ENOSPC, True, "pwrite64", 30),
        (errno.EIO, False, "fdatasync", 20),
        (errno.EACCES, False, "mkdir", 3),
        (errno.ENOSPC, True, "write", 12),
        (errno.EIO, False, "rename", 1),
    ],
)
def test_a_failing_write_is_one_sentence_and_loses_nothing(
    trial: Trial, number: int, sticky: bool, only: str, at: int
) -> None:
    write_documents(trial.documents)
    run = trial.index(at=at, action=number, only=only, sticky=int(sticky))
    assert run.hit, f"there were not so many {only}"
    check_sentence(run)
    assert os.strerror(number) in run.stderr or "disk" in run.stderr
    trial.check()
    assert trial.index().returncode == 0
    trial.check()
    trial.compare_with_undisturbed_run()


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, faults: Path) -> None:
    with small_disk(tmp_path / "disk", "600k") as disk:
        trial = Trial(tmp_path / "trial", faults, library=disk.path / "library")
        write_documents(trial.documents, 12)
        run = trial.index()
        check_sentence(run)
        assert "free some space" in run.stderr
        trial.check()
        disk.resize("64m")
        assert trial.index().returncode == 0
        trial.check()
        trial.compare_with_undisturbed_run()


@pytest.fixture
def writer(trial: Trial) -> Iterator["subprocess.Popen[str]"]:
    """A process that writes contexts slowly."""
    write_documents(trial.documents, 30)
    command = [sys.executable, "-m", "tests.whole.crash.command", "index", str(trial.documents), "--contexts"]
    process = subprocess.Popen(
        [*command, "--library", str(trial.library), "--profile", "tiny"],
        env=os.environ | {"CRASH_SLOW": "0.02", "LOCAL_RAG_PUBLISH_SECONDS": "0.05", "LOCAL_RAG_CONTEXT_MINUTES": "9"},
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_readers_see_whole_indexes_while_a_writer_publishes(trial: Trial, writer: "subprocess.Popen[str]") -> None:
    generations: set[str] = set()
    searches = 0
    with Library(trial.library, parts=EMBEDS_QUICKLY, profile="tiny") as library:
        while writer.poll() is None:
            try:
                found = library.search(QUESTIONS[searches % 3], top=500)
            except LibraryError:
                if generations:
                    raise
                continue  # nothing is published yet
            searches += 1
            generations.add(library.retrieval.manifest()["content"])
            assert len(found) == len({passage.chunk_id for passage in found}) > 0
    assert writer.returncode == 0
    assert len(generations) > 1
    assert searches > len(generations)


def test_a_second_writer_names_the_first_and_a_dead_one_holds_nothing(
    trial: Trial, writer: "subprocess.Popen[str]"
) -> None:
    while not (trial.library / "CURRENT").exists() and writer.poll() is None:
        pass
    run = trial.index()
    check_sentence(run)
    assert f"process {writer.pid}" in run.stderr
    writer.kill()
    writer.wait()
    assert trial.index().returncode == 0
