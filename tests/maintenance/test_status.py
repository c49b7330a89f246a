"""`status`, `remove` and `clean`, what a change costs, and which questions are refused."""

import json
import os
import re
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.index.generations import Generations
from local_rag.index.segment import finish, write_manifest
from local_rag.indexing.distinction import APART
from local_rag.indexing.embedding import index_rows
from local_rag.indexing.indexer import IndexReport
from local_rag.indexing.situating_prompts import PROMPT
from local_rag.keys import key_of
from local_rag.model_records import Role
from local_rag.models.registry import resolve
from local_rag.progress_records import Progress
from local_rag.store.counts import count_rows
from local_rag.store.database import Store
from local_rag.store.published import note_publish
from local_rag.store.vector_rows import mark_none_embedded
from local_rag.text.tokens import document_tokens
from tests.conftest import Run
from tests.fakes import QUICK, FakeEmbedder
from tests.support.indexes import write_as_counts


@pytest.fixture
def folder(documents: Path) -> Path:
    """The three documents, one of them with many chunks, indexed into `lib` with generated contexts."""
    (documents / "long.md").write_text(
        "# Tides\n\n" + "".join(f"## Day {n}\n\nHigh water is at {n}:00 in the harbour.\n\n" for n in range(8))
    )
    make().index([documents], contexts=True)
    return documents


def make(**settings: Any) -> Library:
    shaped: dict[str, Any] = {"chunk_tokens": 32, "context_minutes": 9} | settings
    return Library("lib", parts=QUICK, profile="tiny", **shaped)


def plain(folder: str = "lib", **settings: Any) -> Library:
    return Library(folder, parts=QUICK, **settings)


@pytest.fixture
def lib(run: Run) -> Run:
    """Run a command on the library."""
    return lambda *arguments: run(*arguments, "--library", "lib", parts=QUICK)


def stale(library: Library) -> dict[str, str]:
    return {one.reason: one.command for one in library.status().stale}


def test_pages_that_hold_no_text_are_told(folder: Path, lib: Run) -> None:
    from fpdf import FPDF

    scan = FPDF()
    for text in ("The boat leaves at seven.", ""):
        scan.add_page()
        scan.set_font("helvetica", size=12)
        scan.cell(text=text or " ")
    scan.output(str(folder / "scan.pdf"))
    told = "scan.pdf: 1 of 2 pages waits for OCR, the extra `ocr`"
    assert told in lib("index").stdout
    assert told not in lib("index").stdout
    assert told in lib("status").stdout
    [note] = json.loads(lib("status", "--json").stdout)["notes"]
    assert note == {"path": str(folder / "scan.pdf"), "note": "1 of 2 pages waits for OCR, the extra `ocr`"}


# What a change costs: the table in docs/library-folder.md, line by line.


def cost(library: Library, **changed: object) -> tuple[int, int, IndexReport]:
    """Index again; return how many sentences were written and vectors made."""

    def count() -> tuple[int, int]:
        store = Store(library.folder)
        query = "SELECT count(*) FROM contexts WHERE kind IN ('model', 'dropped')"
        return store.connection.execute(query).fetchone()[0], count_rows(store)["cached_vectors"]

    before = count()
    report = library.index(contexts=True, **changed)  # type: ignore[arg-type]
    contexts, vectors = (one - other for one, other in zip(count(), before, strict=True))
    assert report.contexts.get("by_model", 0) + report.contexts.get("dropped", 0) == contexts
    return contexts, vectors, report


def test_no_change_costs_nothing(folder: Path) -> None:
    contexts, vectors, report = cost(make())
    assert (contexts, vectors, report.unchanged, report.published) == (0, 0, 4, False)


def test_a_changed_file_costs_its_own_windows(folder: Path) -> None:
    (folder / "boat.txt").write_text("The zeppelin leaves at noon.")
    contexts, vectors, report = cost(make())
    assert (contexts, report.changed, report.unchanged) == (1, 1, 3), "that of its chunk"
    assert vectors <= 3, "of the chunk, with its sentence and without, and of what stands for the document"


def test_a_renamed_file_costs_nothing(folder: Path) -> None:
    (folder / "long.md").rename(folder / "tides.md")
    contexts, vectors, report = cost(make())
    assert (contexts, vectors, report.moved) == (0, 0, 1)


def test_contexts_switched_off_and_on_again_cost_vectors_once(folder: Path) -> None:
    contexts, vectors, _ = cost(make(context="headings"))
    assert contexts == 0
    assert vectors == 0, "those without contexts were made when documents were compared, before any was written"
    assert cost(make(context="auto"))[:2] == (0, 0)
    assert cost(make(context="headings"))[:2] == (0, 0)


def test_another_context_model_costs_contexts_and_vectors_once(folder: Path, tmp_path: Path) -> None:
    chunks = make().status().chunks
    contexts, vectors, report = cost(make(context_model=twin("context", tmp_path)))
    assert (contexts, report.unchanged) == (chunks, 4)
    assert vectors > 0


def test_another_prompt_costs_contexts(folder: Path) -> None:
    chunks = make().status().chunks
    made_with_another_prompt()
    assert any("the prompt for contexts" in reason for reason in stale(make()))
    contexts, _, report = cost(make())
    assert (contexts, report.unchanged) == (chunks, 4)
    assert stale(make()) == {}


def test_another_embedder_with_the_same_tokenizer_costs_vectors(folder: Path, tmp_path: Path) -> None:
    contexts, vectors, report = cost(make(embed_model=twin("embed", tmp_path)))
    assert (contexts, report.unchanged) == (0, 4)
    assert vectors >= report.chunks


def test_other_chunks_cost_chunks_contexts_and_vectors(folder: Path) -> None:
    contexts, vectors, report = cost(make(chunk_tokens=24))
    assert report.changed == 4
    assert contexts > 0
    assert vectors > 0
    assert cost(make(chunk_tokens=32))[:2] == (0, 0), "going back costs nothing"


def twin(role: Role, tmp_path: Path) -> str:
    """Return the path of a model that is another one by its identity, with the same tokenizer."""
    source = resolve({"embed": "all-minilm-l6-v2", "context": "smollm2-135m-instruct"}[role], role).path
    other = tmp_path / f"other-{role}{source.suffix}"
    other.symlink_to(source)
    if source.is_dir():
        other.unlink()
        shutil.copytree(source, other, copy_function=os.symlink)
    return str(other)


def made_with_another_prompt() -> None:
    """Make the library look as one whose contexts were asked for in other words."""
    with closing(Store(Path("lib"))) as store:
        store.connection.execute("UPDATE documents SET context_plan = 'other', sentence_plan = 'other'")
        store.connection.execute("UPDATE contexts SET key = 'other' || key")
        store.connection.execute("UPDATE chunks SET context_key = 'other' || context_key")
    made_with("prompt", "other")


def made_with(name: str, value: object) -> None:
    live = Generations(Path("lib")).live()
    assert live
    fingerprint = {**live.manifest["fingerprint"], name: value}
    manifest = {**live.manifest, "fingerprint": fingerprint, "content": f"with {name} {value}"}
    with closing(Store(Path("lib"), write=True)) as store:
        note_publish(store, Generations(Path("lib")), manifest)
    write_manifest(live.folder, manifest)


# Which questions are refused.


def test_another_embedder_is_named(folder: Path, tmp_path: Path) -> None:
    other = make(embed_model=twin("embed", tmp_path))
    with pytest.raises(LibraryError, match=r"embedder \(all-minilm-l6-v2 then, .*other-embed now\).*`local-rag index`"):
        other.search("boat")


def test_another_chunker_or_context_given_with_the_question_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plain().search("boat")
    monkeypatch.setenv("LOCAL_RAG_CHUNKER", "fixed")
    with pytest.raises(LibraryError, match=r"the chunker \(auto then, fixed now\).*`local-rag index`"):
        plain().search("boat")
    plain().index(contexts=True)
    assert plain().search("boat")
    with pytest.raises(LibraryError, match=r"the contexts \(auto then, none now\)"):
        plain(context="none").search("boat")


def test_another_prompt_is_named(folder: Path) -> None:
    made_with("prompt", "other")
    with pytest.raises(LibraryError, match=r"the prompt for contexts.*`local-rag index`"):
        plain().search("boat")
    made_with("prompt", key_of(APART, PROMPT))
    assert plain().search("boat")


def test_an_index_of_another_version_is_searched_and_built_again(folder: Path) -> None:
    made_with("keyword_tokens", 2)
    assert plain().search("boat")
    reason = "changed: how this version of local-rag builds its indexes"
    assert stale(make()) == {reason: "local-rag index"}
    contexts, vectors, report = cost(make())
    assert (contexts, vectors, report.published) == (0, 0, True)
    assert stale(make()) == {}
    assert plain().search("boat")


def test_an_index_whose_postings_are_counts_is_searched_and_built_again(folder: Path) -> None:
    before = plain().search("boat harbour", top=3)
    write_counts()
    assert plain().search("boat harbour", top=3) == before
    contexts, vectors, report = cost(make())
    assert (contexts, vectors, report.published) == (0, 0, True)
    live = Generations(Path("lib")).live()
    assert live
    assert not any((segment.folder / "keywords" / "own_counts.npy").exists() for segment, _ in live.segments())
    assert plain().search("boat harbour", top=3) == before


def write_counts() -> None:
    """Make the library look as one whose postings an earlier version has written."""
    live = Generations(Path("lib")).live()
    assert live
    with closing(Store(Path("lib"))) as store:
        for segment, _ in live.segments():
            rows = index_rows(store, live.manifest["fingerprint"]["context"], segment.documents.tolist())
            texts = [tokens for document in rows for tokens in document_tokens(document.texts)]
            postings = segment.postings
            shutil.rmtree(segment.folder / "keywords")
            (segment.folder / "keywords").mkdir()
            write_as_counts(segment.folder / "keywords", postings, texts)
            documents = np.load(segment.folder / "documents.npy")
            documents[:, 1] += 1  # versions of another plan
            np.save(segment.folder / "documents.npy", documents)
            (segment.folder / "manifest.json").unlink()
            finish(segment.folder, {})
        mark_none_embedded(store)
    made_with("keyword_tokens", "earlier")


def test_questions_go_on_while_an_index_with_other_settings_is_made(folder: Path) -> None:
    before = plain().search("boat harbour", top=3)

    def search_meanwhile(progress: object) -> None:
        assert plain().settings.chunk_tokens == 24, "remembered before the index is there"
        assert Generations(Path("lib")).live_name() != before_name or plain().search("boat harbour", top=3) == before

    before_name = Generations(Path("lib")).live_name()
    make(chunk_tokens=24).index(contexts=True, progress=search_meanwhile)
    assert Generations(Path("lib")).live_name() != before_name


# Status.


def test_status_of_a_library_that_is_up_to_date(folder: Path, lib: Run) -> None:
    status = make().status()
    chunks = len(list(Store(Path("lib")).chunks()))
    assert (status.documents, status.chunks, status.vectors) == (4, chunks, chunks)
    assert status.contexts["missing"] == 0
    assert status.contexts["by_model"] + status.contexts["dropped"] == chunks
    assert status.models["embed"] == "all-minilm-l6-v2"
    assert status.fingerprint["embedder_name"] == "all-minilm-l6-v2"
    assert status.live_generation in status.generations
    assert status.disk["library"] >= status.disk["store"] + status.disk["generations"] > 0
    assert status.stale == ()
    result = lib("status")
    assert result.exit_code == 0
    assert f"Documents: 4, {chunks} chunks" in result.stdout
    assert "Up to date." in result.stdout


def test_status_names_new_changed_and_gone_files(folder: Path, lib: Run) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    make().index(contexts=True)
    assert stale(make()) == {}, "a file that cannot be read is not new each time"
    (folder / "new.md").write_text("New.")
    (folder / "boat.txt").write_text("Changed.")
    (folder / "ireland.md").unlink()
    os.utime(folder / "long.md")
    assert stale(make()) == {
        "1 file is new": "local-rag index",
        "1 file is changed": "local-rag index",
        "1 file is gone": "local-rag index",
    }
    result = lib("status")
    assert "Stale: 1 file is changed; run `local-rag index`." in result.stdout
    assert "documents/boat.txt" in result.stdout
    report = json.loads(lib("status", "--json").stdout)
    assert [one["examples"] for one in report["stale"] if "new" in one["reason"]] == [[str(folder / "new.md")]]


def test_status_names_settings_that_differ_and_contexts_to_come(folder: Path) -> None:
    changes = stale(make(chunk_tokens=24, overlap=2))
    assert set(changes) == {
        "changed: the chunk size (32 then, 24 now)",
        "changed: the overlap (default then, 2 now)",
    }
    make(context="headings").index(contexts=True)
    (folder / "new.md").write_text("# New\n\nSomething new.")
    make(context="headings").index(contexts=True)
    reasons = stale(make(context="auto"))
    assert "changed: the contexts (headings then, auto now)" in reasons
    assert "2 contexts have yet to be written" in reasons


def test_status_without_models_or_library(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path / "nothing"))
    reasons = stale(plain(embed_model="bge-small-en-v1.5"))
    assert reasons["the model bge-small-en-v1.5 is not usable"] == "local-rag models pull bge-small-en-v1.5"
    with pytest.raises(LibraryError, match="There is no library"):
        plain("nowhere").status()
    assert not Path("nowhere").exists()


def test_status_is_safe_to_print(folder: Path, lib: Run) -> None:
    (folder / "evil\x1b[31m.md").write_text("Evil.")
    assert "\x1b" not in lib("status").stdout


# Remove.


def test_remove_takes_documents_out_for_good(folder: Path, lib: Run) -> None:
    result = lib("remove", "documents/norway", "documents/boat.txt")
    assert result.exit_code == 0, result.output
    assert "Removed 2 documents" in result.stdout
    store = Store(Path("lib"))
    assert {Path(one.path).name for one in store.documents()} == {"ireland.md", "long.md"}
    assert count_rows(store)["superseded_documents"] == 0, "their text is gone"
    assert all("boat" not in passage.path for passage in make().search("boat harbour", top=50))
    assert make().index([folder], contexts=True).added == 0, "what was removed is passed over"
    assert stale(make()) == {}
    assert make().index([folder / "boat.txt"], contexts=True).added == 1, "until it is named itself"
    assert make().index(contexts=True).added == 0
    assert (folder / "norway" / "leave.md").exists()


def test_remove_forgets_a_root(folder: Path, lib: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kites.md").write_text("Kites are flown on Sundays.")
    make().index([other], contexts=True)
    report = json.loads(lib("remove", str(other), "--json").stdout)
    assert report["documents"] == [str(other / "kites.md")]
    assert report["forgotten_folders"] == [str(other)]
    assert report["excluded"] == []
    assert make().index(contexts=True).added == 0
    assert make().index([other], contexts=True).added == 1


def test_remove_in_a_dry_run_changes_nothing(folder: Path, lib: Run) -> None:
    result = lib("remove", "documents", "--dry-run")
    assert "Would remove 4 documents" in result.stdout
    assert make().status().documents == 4
    assert stale(make()) == {}


def test_remove_says_when_nothing_matches(folder: Path, lib: Run) -> None:
    result = lib("remove", "nowhere.md")
    assert result.exit_code == 1
    assert re.search(r"holds nothing at or below .*nowhere\.md;", result.stderr)
    assert lib("remove").exit_code == 2
    assert not Path("void").exists()
    with pytest.raises(LibraryError, match="There is no library"):
        plain("void").remove(["x"])


def test_removed_everything_leaves_an_empty_index(folder: Path) -> None:
    make().remove([folder])
    assert make().search("boat") == []
    with pytest.raises(LibraryError, match="name a folder"):
        make().index(contexts=True)


# Clean.


def test_clean_deletes_only_what_nothing_needs(folder: Path, lib: Run) -> None:
    make().remove([folder / "boat.txt"])
    Path("lib/generations/000099.tmp").mkdir()
    Path("lib/.CURRENT.123.tmp").write_text("000099")
    before, found = make().status(), make().search("high water harbour", top=50)
    would = json.loads(lib("clean", "--dry-run", "--json").stdout)
    assert make().status() == before, "a dry run changes nothing"
    result = json.loads(lib("clean", "--json").stdout)
    assert {**result, "bytes": 0, "dry_run": 0} == {**would, "bytes": 0, "dry_run": 0}
    assert result["bytes"] > 0
    assert would["bytes"] > 0
    assert len(result["generations"]) == 1
    assert sorted(result["leftovers"]) == [".CURRENT.123.tmp", "000099.tmp"]
    assert result["contexts"] == 1, "that of its chunk"
    assert result["vectors"] >= 1
    after = make().status()
    assert list(after.generations) == [after.live_generation]
    assert (after.chunks, after.vectors) == (before.chunks, before.vectors)
    assert make().search("high water harbour", top=50) == found
    assert cost(make())[:2] == (0, 0), "nothing that is needed was deleted"
    assert "nothing" in lib("clean").stdout


def test_clean_keeps_the_caches_of_a_stopped_run(folder: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.stage == "contextualize":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(chunk_tokens=24).index(contexts=True, progress=stop)
    written = sum(make().status().cached.values())
    cleaning = make().upkeep.clean()
    assert cleaning.contexts == 0
    assert sum(make().status().cached.values()) <= written
    assert cost(make())[0] == 0, "going back to the chunks of before costs no context"


def test_clean_refuses_a_damaged_index(folder: Path, lib: Run) -> None:
    generation = Generations(Path("lib")).live()
    assert generation
    (generation.folder / "manifest.json").write_text("{")
    result = lib("clean")
    assert result.exit_code == 1
    assert "local-rag repair" in result.stderr


def test_an_idle_library_can_be_cleaned_while_it_is_read(folder: Path) -> None:
    with make() as reader:
        before = reader.search("boat harbour", top=50)
        make().upkeep.clean()
        assert reader.search("boat harbour", top=50) == before


def test_remove_needs_no_model_and_plans_nothing(folder: Path, lib: Run) -> None:
    (folder / "new.md").write_text("# New\n\nA new one.\n")
    (folder / "boat.txt").write_text("The boat leaves at nine.\n")

    def stop(progress: Progress) -> None:
        if progress.stage == "publish":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make().index(contexts=True, progress=stop)
    loaded = FakeEmbedder.loaded
    with make(embed_model="/nowhere/model", context="none") as library:
        removal = library.remove([folder / "boat.txt", folder / "norway"])
    assert {Path(one.path).name for one in removal.documents} == {"boat.txt", "leave.md"}
    assert FakeEmbedder.loaded == loaded
    with make() as library:
        found = {Path(passage.path).name for passage in library.search("the boat leave harbour", top=50)}
        assert found == {"ireland.md", "long.md"}, "neither version of the changed one, and nothing unpublished"
    assert make().index(contexts=True).published, "the rest of what was stopped"
    assert stale(make()) == {}


def test_after_a_removal_the_index_is_what_index_would_make(folder: Path) -> None:
    make().remove([folder / "boat.txt"])
    with make() as library:
        manifest = library.retrieval.manifest()
        assert (manifest["documents"], manifest["chunks"]) == (3, library.status().chunks)
    assert not make().index(contexts=True).published


def test_a_setting_that_another_process_has_changed_stays_changed(folder: Path) -> None:
    watching = make()
    watching.index(contexts=True)
    make(chunk_tokens=48, context="none").index(contexts=True)
    (folder / "new.md").write_text("# New\n\nA new one.\n")
    report = watching.index(contexts=True)
    assert (report.added, report.changed) == (1, 0)
    settings = plain().settings
    assert (settings.chunk_tokens, settings.context) == (48, "none")


def test_a_flag_that_the_environment_would_overrule_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_CHUNK_TOKENS", "64")
    library = make(chunk_tokens=32)
    for _ in range(2):
        library.index(contexts=True)
        assert library.settings.chunk_tokens == 32
