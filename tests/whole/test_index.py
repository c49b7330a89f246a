"""The pipeline: what `index` does to the library, with a fake embedder and, for contexts, the tiny model."""

import os
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.index.generations import Generations
from local_rag.index.segment import write_manifest
from local_rag.model_records import InstalledModel
from local_rag.progress_records import Progress
from local_rag.store.database import Store
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, QUICK, FakeEmbedder


@pytest.fixture
def library(documents: Path) -> Library:
    return Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings")


def first_path(library: Library, question: str) -> str:
    return Path(library.search(question, top=1)[0].path).name


def test_index_then_search(library: Library, documents: Path) -> None:
    report = library.index([documents])
    assert (report.added, report.skipped, report.published) == (3, [], True)
    assert report.chunks >= 3
    (passage,) = library.search("boat harbour seven", top=1)
    assert passage.path == str(documents / "boat.txt")
    assert passage.line == 1
    assert "harbour" in passage.text
    assert {hit.list_name for hit in passage.hits} == {"dense", "keyword", "fused"}
    found = library.search("parental leave Norway weeks", top=1)[0]
    assert (found.path, found.title) == (str(documents / "norway" / "leave.md"), "Leave in Norway")


def test_a_second_run_costs_nothing(library: Library, documents: Path) -> None:
    library.index([documents])
    loaded = FakeEmbedder.loaded
    live = Generations(library.folder).live_name()
    report = library.index()
    assert (report.unchanged, report.added, report.published) == (3, 0, False)
    assert FakeEmbedder.loaded == loaded
    assert Generations(library.folder).live_name() == live


def test_new_changed_moved_and_deleted_files(library: Library, documents: Path) -> None:
    library.index([documents])
    loaded = FakeEmbedder.loaded
    (documents / "ireland.md").rename(documents / "norway" / "eire.md")
    report = library.index([documents])
    assert (report.moved, report.added, report.removed, report.unchanged) == (1, 0, 0, 2)
    assert FakeEmbedder.loaded == loaded, "a moved file needs no new vector"
    assert first_path(library, "parental leave Ireland half pay") == "eire.md"

    (documents / "boat.txt").write_text("The zeppelin leaves at noon.")
    (documents / "new.md").write_text("# Kites\n\nKites are flown on Sundays.\n")
    report = library.index([documents])
    assert (report.changed, report.added, report.unchanged) == (1, 1, 2)
    assert first_path(library, "zeppelin noon") == "boat.txt"
    assert first_path(library, "kites sundays") == "new.md"

    (documents / "new.md").unlink()
    report = library.index([documents])
    assert (report.removed, report.unchanged) == (1, 3)
    assert first_path(library, "kites sundays") != "new.md"


def test_a_touched_file_is_unchanged(library: Library, documents: Path) -> None:
    library.index([documents])
    (documents / "boat.txt").touch()
    assert library.index([documents]).unchanged == 3


def test_a_folder_named_through_a_symbolic_link_is_followed(library: Library, documents: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(documents)
    assert library.index([tmp_path / "link"]).added == 3
    (documents / "boat.txt").unlink()
    assert library.index([tmp_path / "link"]).removed == 1


def test_a_deleted_path_can_be_named(library: Library, documents: Path) -> None:
    library.index([documents])
    (documents / "boat.txt").unlink()
    assert library.index([documents / "boat.txt"]).removed == 1


def test_indexing_another_folder_keeps_the_first(library: Library, documents: Path, tmp_path: Path) -> None:
    library.index([documents])
    other = tmp_path / "other"
    other.mkdir()
    (other / "kites.md").write_text("Kites are flown on Sundays.")
    report = library.index([other])
    assert (report.added, report.removed) == (1, 0)
    assert library.index().unchanged == 4


def test_bad_files_are_listed_and_the_run_goes_on(library: Library, documents: Path) -> None:
    (documents / "empty.md").write_text("")
    (documents / "noise.txt").write_bytes(bytes(range(256)))
    (documents / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    report = library.index([documents])
    assert report.added == 3
    assert {item.path.name for item in report.skipped} == {"empty.md", "noise.txt", "broken.pdf"}
    assert all(item.reason for item in report.skipped)


def test_other_chunk_sizes_split_again(library: Library, documents: Path) -> None:
    library.index([documents])
    with Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings", chunk_tokens=16) as smaller:
        report = smaller.index()
        assert report.changed == 3
        assert report.chunks > 3
    with Library("lib", parts=EMBEDS_QUICKLY, profile="tiny") as remembered:
        assert remembered.settings.chunk_tokens == 16
        assert not remembered.index().published


def test_a_users_own_model_is_remembered_by_its_full_path(
    documents: Path, embed_model: InstalledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.path.relpath(embed_model.path)
    Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings", embed_model=own).index([documents])
    monkeypatch.chdir(documents)
    with Library("../lib", parts=EMBEDS_QUICKLY) as library:
        assert library.settings.embed_model == str(embed_model.path)
        assert library.search("boat")


def test_headings_reach_the_indexes(library: Library, documents: Path) -> None:
    (documents / "bare.md").write_text("# Zanzibar\n\n## Cloves\n\n" + "They are dried in the sun. " * 60)
    library.index([documents])
    found = [passage for passage in library.search("Zanzibar", top=20) if passage.path.endswith("bare.md")]
    assert len(found) > 1, "chunks that do not name Zanzibar themselves are found by it"


def test_nothing_to_index(library: Library, tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="name a folder"):
        library.index()
    (tmp_path / "void").mkdir()
    assert library.index([tmp_path / "void"]).chunks == 0
    assert library.search("anything") == []
    with pytest.raises(LibraryError, match="does not exist"):
        library.index([tmp_path / "missing"])


def test_search_before_index(library: Library) -> None:
    with pytest.raises(LibraryError, match="local-rag index"):
        library.search("anything")


def test_chunks_too_large_for_the_embedder_are_refused(documents: Path) -> None:
    with pytest.raises(LibraryError, match="--chunk-tokens 254"):
        Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings", chunk_tokens=500).index([documents])


def test_a_question_with_another_embedder_is_refused(library: Library, documents: Path) -> None:
    library.index([documents])
    generation = Generations(library.folder).live()
    assert generation
    fingerprint = {**generation.manifest["fingerprint"], "embedder": "other", "embedder_name": "bge-small-en-v1.5"}
    write_manifest(generation.folder, {**generation.manifest, "fingerprint": fingerprint})
    with pytest.raises(LibraryError, match=r"bge-small-en-v1.5.*local-rag index"):
        library.search("boat")


def test_a_second_writer_is_told_who_writes(library: Library, documents: Path) -> None:
    with library.upkeep.writing(create=True), pytest.raises(LibraryError, match=f"process {os.getpid()}"):
        Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings").index([documents])


def test_a_reader_finds_every_passage_while_a_writer_supersedes_them(library: Library, documents: Path) -> None:
    library.index([documents])
    before = library.search("boat harbour", top=20)
    store = Store(library.folder)
    store.supersede(store.documents())
    generation = Generations(library.folder).live()
    assert generation
    store.purge(generation.documents()[0].tolist())
    assert library.search("boat harbour", top=20) == before
    store.purge([])
    assert library.search("boat harbour", top=20) == []


class Interrupted(BaseException):
    """Stands for Ctrl-C."""


def contexts(library: Library) -> dict[str, tuple[str, str]]:
    with sqlite3.connect(library.folder / "library.sqlite3") as connection:
        query = "SELECT key, text, kind FROM contexts WHERE kind IN ('model', 'dropped')"
        return {key: (text, kind) for key, text, kind in connection.execute(query)}


def test_contexts_are_written_kept_and_resumed(documents: Path) -> None:
    (documents / "long.md").write_text(
        "# Tides\n\n" + "".join(f"## Day {n}\n\nHigh water at {n}:00.\n\n" for n in range(8))
    )
    library = Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context_minutes=9, chunk_tokens=24)

    def stop(progress: Progress) -> None:
        if progress.stage == "contextualize" and progress.done == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        library.index([documents], contexts=True, progress=stop)
    kept = contexts(library)
    assert len(kept) == 3

    report = library.index(contexts=True)
    assert contexts(library).items() >= kept.items()
    assert sum(report.contexts.values()) == len(contexts(library)) - 3
    assert report.tokens_evaluated > 0
    assert 0 < report.share_reused < 1
    assert report.published
    again = library.index(contexts=True)
    assert (again.contexts, again.published) == ({}, False)

    written = [passage for passage in library.search("tide day high water", top=20) if passage.context_by == "model"]
    assert all(passage.context.startswith("This chunk") for passage in written)
    assert len(list(Store(library.folder).chunks())) == report.chunks


def test_an_edit_writes_only_the_contexts_it_touches(documents: Path) -> None:
    library = Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context_minutes=9)
    library.index([documents], contexts=True)
    before = contexts(library)
    (documents / "boat.txt").write_text("The zeppelin leaves at noon.")
    report = library.index(contexts=True)
    assert sum(report.contexts.values()) == 1, "that of its chunk"
    assert len(contexts(library)) == len(before) + 1


def test_copies_of_a_document_share_their_contexts(documents: Path) -> None:
    (documents / "copy.md").write_text((documents / "ireland.md").read_text())
    with Library(".local-rag", parts=EMBEDS_QUICKLY, profile="tiny", context_minutes=9) as opened:
        report = opened.index([documents], contexts=True)
        assert sum(report.contexts.values()) == report.chunks - 1
        found = opened.search("Parents get 26 weeks at half pay", top=2, rerank=False)
    assert {Path(passage.path).name for passage in found} == {"ireland.md", "copy.md"}
    assert found[0].context == found[1].context


def test_a_first_generation_is_published_before_contexts(documents: Path) -> None:
    for number in range(25):
        (documents / f"{number}.md").write_text(f"# Page {number}\n\nText of page {number}.\n")
    library = Library("lib", parts=QUICK, profile="tiny", context_minutes=9)
    published = []

    def stop(progress: Progress) -> None:
        if progress.stage == "contextualize":
            published.append(Generations(library.folder).live())
            raise Interrupted

    with pytest.raises(Interrupted):
        library.index([documents], contexts=True, progress=stop)
    assert published[0] is not None
    assert published[0].manifest["generated_contexts"] == 0
    assert first_path(library, "boat harbour") == "boat.txt"


def test_an_index_is_published_again_as_contexts_come_in(documents: Path) -> None:
    for number in range(25):
        (documents / f"{number}.md").write_text(f"# Page {number}\n\nText of page {number}.\n")
    library = Library("lib", parts=QUICK, profile="tiny", context_minutes=9, publish_seconds=1e-9)
    seen = set()
    library.index(
        [documents], contexts=True, progress=lambda _progress: seen.add(Generations(library.folder).live_name())
    )
    assert len(seen) > 3


def test_a_killed_publish_leaves_the_old_generation_whole(library: Library, documents: Path) -> None:
    library.index([documents])
    old = Generations(library.folder).live_name()
    (library.folder / "generations" / "000002.tmp" / "keywords").mkdir(parents=True)
    assert first_path(library, "boat harbour") == "boat.txt"
    (documents / "new.md").write_text("Kites are flown on Sundays.")
    library.index()
    assert Generations(library.folder).live_name() != old
    assert first_path(library, "kites sundays") == "new.md"
    assert not list((library.folder / "generations").glob("*.tmp"))


def test_a_damaged_generation_is_named(library: Library, documents: Path) -> None:
    library.index([documents])
    generation = Generations(library.folder).live()
    assert generation
    (generation.folder / "manifest.json").write_text("{")
    with pytest.raises(LibraryError, match="damaged"):
        library.search("boat")


def test_a_library_of_a_newer_version_is_refused(library: Library, documents: Path) -> None:
    library.index([documents])
    with sqlite3.connect(library.folder / "library.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(LibraryError, match="version 99"):
        library.index()


def test_the_library_is_private(library: Library, documents: Path) -> None:
    library.index([documents])
    assert library.folder.stat().st_mode & 0o077 == 0


def test_vectors_are_stored_once_a_text(library: Library, documents: Path) -> None:
    library.index([documents])
    before = library.status().cached["cached_vectors"]
    copy = documents / "copy"
    copy.mkdir()
    (copy / "boat.txt").write_text((documents / "boat.txt").read_text())
    report = library.index([documents])
    assert report.added == 1
    assert library.status().cached["cached_vectors"] == before


def test_a_new_index_needs_no_new_models(documents: Path) -> None:
    loaded = list[str]()

    def load(model: InstalledModel) -> FakeEmbedder:
        loaded.append(model.name)
        return FakeEmbedder(model)

    def indexed() -> None:
        with Library(".local-rag", parts=EMBEDS_QUICKLY, profile="tiny", context="headings") as writer:
            assert writer.index([documents]).published

    indexed()
    with Library(".local-rag", parts=replace(EMBEDS_QUICKLY, load_embedder=load)) as library:
        before = {passage.path for passage in library.search("boat", rerank=False)}
        (documents / "boats.md").write_text("# Boats\n\nEvery boat is blue.\n")
        indexed()
        assert {passage.path for passage in library.search("boat", rerank=False)} - before
    assert len(loaded) == 1


def test_the_first_run_can_be_asked_before_it_has_read_everything(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(600):
        (folder / f"{number:03}.txt").write_text(f"Boat number {number} carries mail.")
    library, said = Library("lib", parts=QUICK, profile="tiny", publish_seconds=1e-9, context="headings"), list[str]()

    def ask(progress: Progress) -> None:
        if progress.stage == "publish" and progress.done and not said:
            said.append(run("search", "boat mail", "--library", "lib").stderr)

    library.index([folder], progress=ask)
    assert re.search(r"The first `local-rag index` has not ended: \d+ of about 600 documents can be searched", said[0])
    assert "has not ended" not in run("search", "boat mail", "--library", "lib").stderr


def test_a_large_document_gets_its_vectors_after_all_others_are_live(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a-log.txt").write_text("".join(f"Boat number {number} left the harbour.\n" for number in range(2500)))
    for number in range(40):
        (folder / f"{number}.txt").write_text(f"Ferry {number} carries mail.")
    library = Library(
        tmp_path / "lib", parts=QUICK, profile="tiny", publish_seconds=1e-9, chunk_tokens=16, context="headings"
    )
    embedding = list[tuple[Progress, int]]()

    def look(progress: Progress) -> None:
        if progress.stage == "embed" and 0 < progress.done < progress.total:
            live = Generations(library.folder).live()
            embedding.append((progress, live.manifest["documents"] if live else 0))

    library.index([folder], progress=look)
    assert {live for _, live in embedding} == {40}
    held = library.retrieval.manifest()
    assert (held["documents"], held.get("expected")) == (41, None)
    assert {one.total for one, _ in embedding} == {held["chunks"] - 40 + 1}, "and the vector of the whole log"


def test_only_the_first_run_writes_sentences_unless_it_is_told_to(documents: Path) -> None:
    library = Library("lib", parts=EMBEDS_QUICKLY, profile="tiny")
    first = library.index([documents])
    assert first.writing_seconds <= first.seconds / 2 + 1
    written = sum(first.contexts.values())
    (documents / "new.txt").write_text("The boat carries mail.")
    again = library.index()
    assert (again.writing_seconds, sum(again.contexts.values())) == (0.0, 0)
    rest = library.index(contexts=True)
    assert (rest.unwritten, sum(rest.contexts.values()) + written) == (0, rest.chunks)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("no-such", "does not exist; name a file or folder that does"),
        ("./offcie", "offcie does not exist; did you mean 'office'?"),
        ("https://example.org/a/b", "https://example.org/a/b is a web address; save its pages with `local-rag scrape"),
        (None, "has no documents yet; name a folder"),
    ],
)
def test_a_mistyped_first_command_leaves_no_library_behind(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, path: str | None, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "office").mkdir()
    done = run("index", *([path] if path else []))
    assert (done.exit_code, error in done.stderr) == (1, True)
    assert not (tmp_path / ".local-rag").exists()
