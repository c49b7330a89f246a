"""The units of work in this process: each result under its key, models loaded only for work that there is."""

from pathlib import Path
from threading import Barrier

import numpy as np

from local_rag.document_records import Skipped
from local_rag.indexing.situating_prompts import ContextJob, Window
from local_rag.indexing.vectors import embed_with_contexts
from local_rag.indexing.workers import EMBED_BATCH, EmbeddingJob, LocalWorkers, WrittenContext, _ahead
from local_rag.llama.generator import Counts
from local_rag.model_records import InstalledModel
from local_rag.reading.split import Splitting
from tests.fakes import FakeEmbedder, FakeGenerator, generating

EMBEDDER = InstalledModel(name="minilm", role="embed", path=Path("e"), identity="e", context_length=256)
WRITER = InstalledModel(name="smollm", role="context", path=Path("c"), identity="c", context_length=8192)


def test_files_are_read_one_after_another_and_those_that_cannot_be_are_told_apart(
    tmp_path: Path, splitting: Splitting
) -> None:
    (tmp_path / "a.md").write_text("# Boat\n\nIt leaves at seven.\n")
    (tmp_path / "empty.md").touch()
    names = ["a.md", "empty.md", "missing.md", "a.md"]
    results = list(LocalWorkers(EMBEDDER, None).read([tmp_path / name for name in names], splitting))
    assert [path.name for path, _ in results] == names
    (_, good), (_, empty), (_, missing), (_, again) = results
    assert not isinstance(good, Skipped)
    assert good.document.title == "Boat"
    assert good == again
    assert empty == Skipped(tmp_path / "empty.md", "empty", lasting=True)
    assert missing == Skipped(tmp_path / "missing.md", "cannot be opened (No such file or directory)")


def test_vectors_come_in_batches_under_their_keys_from_a_model_loaded_once() -> None:
    loaded, notes = list[FakeEmbedder](), list[str]()

    def load(model: InstalledModel) -> FakeEmbedder:
        loaded.append(FakeEmbedder(model))
        return loaded[-1]

    workers = LocalWorkers(EMBEDDER, None, load_embedder=load)
    assert list(workers.embed([], notes.append)) == []
    assert loaded == []
    jobs = [EmbeddingJob(str(number), f"word {number}", "the sea" * (number % 2)) for number in range(EMBED_BATCH + 1)]
    results = list(workers.embed(iter(jobs), notes.append))
    assert [len(keys) for keys, _ in results] == [EMBED_BATCH, 1]
    assert [key for keys, _ in results for key in keys] == [job.key for job in jobs]
    vectors = np.concatenate([vectors for _, vectors in results])
    assert np.allclose(vectors, embed_with_contexts(loaded[0], [(job.text, job.context) for job in jobs]))
    assert (len(loaded), notes) == (1, ["loading minilm"])


def test_contexts_are_written_and_counted() -> None:
    generator, notes = FakeGenerator(lambda _prompt: " gives the weeks of leave."), list[str]()
    workers = LocalWorkers(EMBEDDER, WRITER, open_engine=generating(generator))
    job = ContextJob("key", Window("Title", ("one",), 0, 1), 0)
    (written,) = workers.write_contexts([job], 1, notes.append)
    assert written == WrittenContext("key", "This chunk gives the weeks of leave.")
    assert notes == ["loading smollm"]
    generator.counts.generated = 7
    assert workers.counts == Counts(generated=7)
    list(workers.write_contexts([job], 1, notes.append))
    assert workers.counts.generated == 7, "counted on from one run to the next"


def test_as_many_calls_are_made_at_a_time_as_there_are_threads() -> None:
    meeting = Barrier(3)

    def meet(number: int) -> int:
        meeting.wait(timeout=60)
        return number

    assert list(_ahead(meet, range(6), lambda: None, 3)) == [0, 1, 2, 3, 4, 5]


def test_few_files_wait_if_their_texts_are_large() -> None:
    begun, most = list[int](), 0

    def read(item: int) -> int:
        begun.append(item)
        return item

    results = _ahead(read, range(30), lambda: None, 4, lambda _item: 1 << 25)
    for taken, result in enumerate(results):
        assert result == taken
        most = max(most, len(begun) - taken)
    assert len(begun) == 30
    assert most <= 4 + 3, "two large texts wait, and each thread has one"
