"""`--context auto` over a whole library: which sentences a model writes, when, and what becomes of them."""

import json
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag.asking import Filters
from local_rag.display import passage_as_lines
from local_rag.document_records import Chunk
from local_rag.errors import LibraryError
from local_rag.index.generations import Generations
from local_rag.index.segment import write_manifest
from local_rag.indexing.indexer import IndexReport
from local_rag.indexing.sentence_writer import SENTENCE_SECONDS, SentenceWriter
from local_rag.indexing.situating_prompts import plan_contexts
from local_rag.indexing.workers import LocalWorkers
from local_rag.library import Library
from local_rag.model_records import PLAIN_CONTEXT_FORM, ContextForm, InstalledModel
from local_rag.models.registry import resolve
from local_rag.progress_records import Progress
from local_rag.store.database import Store
from local_rag.store.published import note_publish
from local_rag.web.changes.change_process import Order, carry_out
from tests.conftest import Run
from tests.fakes import QUICK, FakeEmbedder, FakeGenerator, ReadsHere, generating, quick_vocabulary
from tests.indexing.test_compare import OTHER, SITES, write
from tests.indexing.test_work import EMBEDDER

pytestmark = pytest.mark.slow


ZEPPELIN = " tells where a zeppelin keeper leaves what opens the engine room upstairs."


def about(prompt: str) -> str:
    """Say something about the last heading that the model was shown."""
    heading = re.findall(r"## (\w+)", prompt.rpartition("<chunk>")[2]) or ["animals"]
    return f" tells what a reader has to know about the {heading[-1].lower()} on this page."


@pytest.fixture
def forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "forms"
    folder.mkdir()
    for number, values in enumerate(SITES):
        write(folder, f"scan-{number}.md", values)
    (folder / "bread.md").write_text(OTHER)
    return folder


def library(reply: Callable[[str], str] = about, **settings: Any) -> tuple[Library, FakeGenerator]:
    generator = FakeGenerator(reply)
    parts = replace(
        QUICK, make_workers=ReadsHere, open_engine=generating(generator), open_vocabulary=quick_vocabulary,
        load_embedder=FakeEmbedder,
    )  # fmt: skip
    shaped: dict[str, Any] = {"profile": "tiny", "context": "auto", "chunk_tokens": 32, "context_minutes": 9}
    return Library("lib", parts=parts, **shaped | settings), generator


def index(*paths: Path, reply: Callable[[str], str] = about, **settings: Any) -> tuple[IndexReport, FakeGenerator]:
    opened, generator = library(reply, **settings)
    with opened:
        return opened.index(paths, contexts=None if "context_minutes" in settings else True), generator


def said() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    with library()[0] as opened, opened.documents.reading() as store:
        for one in store.chunks():
            found.setdefault(Path(one.path).name, []).append((one.terms, one.sentence))
    return found


def test_a_model_writes_for_every_chunk_and_code_says_what_distinguishes_look_alikes(forms: Path) -> None:
    report, generator = index(forms)
    found = said()
    assert [terms for terms, _ in found["bread.md"]] == [""]
    assert found["bread.md"][0][1]
    for name in ("scan-0.md", "scan-1.md"):
        assert all(terms for terms, _ in found[name])
    written = sum(bool(sentence) for some in found.values() for _, sentence in some)
    assert report.contexts["by_terms"] == report.chunks - 1
    assert report.contexts["by_model"] == written > 0
    assert written + report.contexts.get("dropped", 0) == len(generator.prompts) == report.chunks
    assert report.unwritten == 0


def test_status_says_how_long_the_missing_sentences_will_take(forms: Path) -> None:
    index(forms / "bread.md")
    with library()[0] as opened:
        assert opened.status().writing_seconds == 0
        opened.index([forms], contexts=False)
        status = opened.status()
        unwritten = status.contexts["unwritten"]
        assert unwritten > 0
        assert status.writing_seconds == pytest.approx(unwritten * sentence_seconds(opened))
        assert opened.seen_by(Filters(within=("bread.md",))).status().writing_seconds is None


def sentence_seconds(opened: Library) -> float:
    with opened.documents.reading() as store:
        return float(store.remembered(SENTENCE_SECONDS))


def test_documents_in_the_greatest_need_come_first(forms: Path) -> None:
    _, generator = index(forms)
    of_bread = ["Knead flour" in prompt for prompt in generator.prompts]
    assert of_bread == [*[False] * (len(of_bread) - 1), True], "it can be confused with no other, and its name is first"


def test_a_trained_model_is_asked_in_its_own_words_and_with_its_adapter(tmp_path: Path) -> None:
    generator, opened = FakeGenerator(lambda _prompt: "A page about boats and mail."), list[Any]()

    @contextmanager
    def open_engine(path: Path, **how: Any) -> Iterator[FakeGenerator]:
        opened.append((path, how["adapter"]))
        yield generator

    model = InstalledModel(
        name="writer", role="context", path=tmp_path / "base.gguf", identity="w", context_length=2048,
        adapter=tmp_path / "adapter.gguf", context_form=ContextForm("Situate it."),
    )  # fmt: skip
    chunks = [Chunk(0, 0, 9, "It sails."), Chunk(1, 9, 18, "It sinks.")]
    jobs = plan_contexts(
        "Boats", "It sails.It sinks.", chunks, vocabulary=generator.model, plan="p", form=model.context_form
    )
    written = list(LocalWorkers(EMBEDDER, model, open_engine=open_engine).write_contexts(jobs, 2, print))
    assert [one.text for one in written] == ["A page about boats and mail."] * 2
    assert opened == [(model.path, model.adapter)]
    assert all(prompt.partition("</document>\n\n")[2].startswith("Situate it.") for prompt in generator.prompts)
    assert not any(PLAIN_CONTEXT_FORM.opening in prompt for prompt in generator.prompts)


def test_the_index_is_published_before_the_first_sentence_is_written(forms: Path) -> None:
    seen = list[Progress]()
    found = list[int]()

    def reply(prompt: str) -> str:
        if not found:
            with library()[0] as other:
                found.append(len(other.search("planned visits Lindum House", rerank=False)))
        return about(prompt)

    opened, _ = library(reply)
    with opened:
        opened.index([forms], contexts=True, progress=seen.append)
    assert found[0] > 0
    stages = [step.stage for step in seen]
    assert stages[-1] == "publish"
    assert stages.index("publish") < stages.index("contextualize") < len(stages) - 1


def test_what_a_sentence_says_can_be_found(forms: Path) -> None:
    index(forms, reply=lambda _prompt: ZEPPELIN)
    with library()[0] as opened:
        (first, *_) = opened.search("zeppelin", rerank=False)
        assert (first.context_by, first.context) == ("model", f"This chunk{ZEPPELIN}")
        assert first.terms
        status = opened.status()
    assert status.contexts["by_model"] + status.contexts["dropped"] == status.chunks
    assert not status.stale


def test_a_sentence_is_shown_beside_the_text_and_never_as_part_of_it(forms: Path) -> None:
    index(forms, reply=lambda _prompt: ZEPPELIN)
    with library()[0] as opened:
        (first, *_) = opened.search("zeppelin", rerank=False)
    assert "zeppelin" not in first.text
    shown, explained = passage_as_lines(first), passage_as_lines(first, explain=True)
    assert not any("zeppelin" in line for line in shown)
    assert any(line.startswith("context by the model: ") and "zeppelin" in line for line in explained)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "Yes.",
        " tells which visits Mortimer makes to the lifts every year.",
        " is this chunk, and this is the chunk that it is.",
    ],
)
def test_a_bad_sentence_is_dropped_and_counted_and_not_asked_for_again(forms: Path, bad: str) -> None:
    report, _ = index(forms, reply=lambda _prompt: bad)
    assert report.contexts == {"by_terms": report.chunks - 1, "dropped": report.chunks}
    again, generator = index()
    assert (again.contexts, again.published, generator.prompts) == ({}, False, [])


def test_a_sentence_ends_before_the_clause_that_its_document_does_not_support(forms: Path) -> None:
    index(forms, reply=lambda _prompt: " lists how often somebody comes to check the lifts, as Mortimer & Sons ask.")
    written = {sentence for some in said().values() for _, sentence in some}
    assert {sentence.partition(" lists ")[2] for sentence in written} == {
        "how often somebody comes to check the lifts."
    }


@pytest.mark.parametrize("wrong", ["Which visits does Mortimer make to the lifts?", "Yes, it is."])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_right_sentence_is_kept_beside_a_wrong_one(forms: Path, wrong: str, is_first: bool) -> None:
    right = " asks how often somebody comes to check the lifts"
    text = f"{right}\n{wrong}" if is_first else f" tells what Mortimer does.\nIt{right}"
    index(forms, reply=lambda _prompt: text)
    subject = "This chunk" if is_first else "It"
    assert {sentence for some in said().values() for _, sentence in some} == {f"{subject}{right}"}


def test_the_language_of_code_may_be_named(forms: Path) -> None:
    (forms / "letters.py").write_text("def send(letter):\n    return post(letter, stamp=True)\n")
    index(forms / "letters.py", reply=lambda _prompt: " shows how Python puts a stamp on the envelope.")
    assert said()["letters.py"][0][1] == "This chunk shows how Python puts a stamp on the envelope."
    index(forms / "bread.md", reply=lambda _prompt: " shows how Python puts a stamp on the envelope.")
    assert {sentence for _, sentence in said()["bread.md"]} == {""}


def test_every_run_writes_what_it_added_and_says_how_much(forms: Path) -> None:
    first, _ = index(forms / "bread.md", context_minutes=9)
    assert (first.written, first.unwritten) == (first.chunks, 0)
    later, generator = index(forms, context_minutes=9)
    assert later.written == len(generator.prompts) == later.chunks - first.chunks > 0
    assert later.written == later.contexts.get("by_model", 0) + later.contexts.get("dropped", 0)
    assert later.written_per_second == pytest.approx(later.written / later.writing_seconds, rel=0.01)
    assert later.unwritten == 0
    again, generator = index(context_minutes=9)
    assert (again.written, again.written_per_second, again.published, generator.prompts) == (0, 0, False, [])


def test_uploads_and_added_texts_do_not_wait_for_a_model(forms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_CONTEXT_MINUTES", "9")
    monkeypatch.setenv("LOCAL_RAG_PROFILE", "tiny")
    told = list[str]()
    order = Order(library="lib", do="index", paths=(str(forms),))
    carry_out(order, lambda _event, **fields: told.append(fields["stage"]), QUICK, sealed=False)
    assert "publish" in told
    assert "contextualize" not in told
    opened, generator = library()
    with opened:
        added = opened.add("Bread rises overnight.", name="note")
        assert (added.written, added.unwritten, generator.prompts) == (0, added.chunks, [])
        assert opened.upkeep.count_unwritten() == added.chunks


def test_the_progress_of_writing_goes_on_over_several_publishes(forms: Path) -> None:
    seen = list[Progress]()
    opened, _ = library(publish_seconds=1e-9)
    with opened:
        report = opened.index([forms], progress=seen.append)
    steps = [(step.done, step.total) for step in seen if step.stage == "contextualize"]
    assert steps == sorted(steps)
    assert {total for _, total in steps} == {report.chunks}
    assert steps[-1] == (report.chunks, report.chunks)


def test_the_time_ends_the_writing_and_the_next_run_goes_on(forms: Path) -> None:
    one, _ = index(forms, context_minutes=1e-9)
    assert "by_model" not in one.contexts
    assert one.unwritten == one.chunks
    with library()[0] as opened:
        status = opened.status()
        assert status.contexts["unwritten"] == one.unwritten
        assert not status.stale, "a sentence that is not written makes nothing stale"
    two, _ = index()
    assert two.contexts["by_model"] + two.contexts.get("dropped", 0) == one.unwritten
    assert (two.unwritten, two.published) == (0, True)


def test_a_model_that_is_slower_than_the_time_is_stopped(forms: Path) -> None:
    def slow(prompt: str) -> str:
        time.sleep(0.2)
        return about(prompt)

    report, generator = index(forms, reply=slow, context_minutes=0.3 / 60)
    assert len(generator.prompts) <= 3
    assert report.unwritten >= report.chunks - 3


def test_words_find_what_a_sentence_says_and_what_code_says(forms: Path) -> None:
    index(forms, reply=lambda _prompt: ZEPPELIN)
    with library()[0] as opened:
        assert opened.retrieval.search_keywords("zeppelin", top=9)
        assert opened.retrieval.search_keywords("Lindum", top=9)


def test_frequent_publishes_do_not_end_the_writing(forms: Path) -> None:
    report, _ = index(forms, publish_seconds=1e-9)
    assert report.contexts["by_model"] + report.contexts.get("dropped", 0) == report.chunks
    assert report.unwritten == 0


def test_no_minutes_and_headings_write_nothing(forms: Path) -> None:
    report, generator = index(forms, context_minutes=0)
    assert (report.contexts, generator.prompts) == ({"by_terms": report.chunks - 1}, [])
    report, generator = index(context="headings")
    assert generator.prompts == []
    assert report.model_to_pull == ""


def test_without_its_model_auto_does_the_rest_and_says_so(
    run: Run, forms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = (
        "--context",
        "auto",
        "--chunk-tokens",
        "32",
        "--profile",
        "tiny",
        "--context-model",
        "llama-3.2-3b-instruct",
    )
    done = run("index", "forms", "--library", "lib", *wanted)
    assert done.exit_code == 0, done.output
    assert "the model llama-3.2-3b-instruct is not pulled" not in done.output, "no time was set"
    monkeypatch.setenv("LOCAL_RAG_CONTEXT_MINUTES", "3")
    done = run("index", "forms", "--library", "lib", *wanted)
    assert done.exit_code == 0, done.output
    assert done.output.count("the model llama-3.2-3b-instruct is not pulled") == 1
    done = run("index", "forms", "--library", "lib", "--json", *wanted)
    assert json.loads(done.stdout)["model_to_pull"] == "llama-3.2-3b-instruct"
    assert json.loads(run("status", "--library", "lib", "--json").stdout)["contexts"]["by_terms"] > 0


def test_an_unknown_model_is_still_an_error(run: Run, forms: Path) -> None:
    done = run("index", "forms", "--library", "lib", "--profile", "tiny", "--context-model", "no-such.gguf")
    assert done.exit_code == 1
    assert "no-such.gguf" in done.stderr


def test_a_moved_file_keeps_its_sentences_without_a_model(forms: Path) -> None:
    index(forms)
    before = said()["scan-0.md"]
    (forms / "scan-0.md").rename(forms / "moved.md")
    report, generator = index()
    assert said()["moved.md"] == before
    assert generator.prompts == []
    assert report.moved == 1


def test_sentences_of_two_models_are_never_mixed(forms: Path, tmp_path: Path) -> None:
    index(forms)
    other = tmp_path / "other.gguf"
    other.write_bytes(resolve("smollm2-135m-instruct", "context").path.read_bytes() + bytes(1))
    report, _ = index(context_model=str(other), context_minutes=1e-9)
    assert not any(sentence for some in said().values() for _, sentence in some)
    assert report.unwritten == report.chunks


def test_both_forms_are_kept_and_changing_back_loads_no_model(forms: Path) -> None:
    index(forms, context_minutes=0)
    generator, loaded = FakeGenerator(about), list[Path]()

    @contextmanager
    def open_engine(path: Path, **_how: Any) -> Iterator[FakeGenerator]:
        loaded.append(path)
        yield generator

    def write(store: Store, request: str) -> list[str]:
        model = InstalledModel(
            name="writer", role="context", path=Path("writer.gguf"), identity="w", context_length=2048,
            context_form=ContextForm(request, "This chunk"),
        )  # fmt: skip
        workers = LocalWorkers(EMBEDDER, model, open_engine=open_engine)
        writer = SentenceWriter(store, workers, model, quick_vocabulary, lambda _progress: None)
        writer.prepare([])
        assert writer.missing() > 0
        writer.write(math.inf, math.inf)
        assert writer.missing() == 0
        return [row.sentence for row in store.chunks()]

    with closing(Store(Path("lib"), write=True)) as store:
        asked = write(store, "Ask.")
        count = len(generator.prompts)
        write(store, "Situate it.")
        assert [prompt.partition("</document>\n\n")[2][:3] for prompt in generator.prompts] == [
            *["Ask"] * count,
            *["Sit"] * count,
        ]
        assert write(store, "Ask.") == asked
    assert (len(generator.prompts), len(loaded)) == (2 * count, 2)


def test_the_form_is_remembered(forms: Path, run: Run) -> None:
    run("index", "forms", "--library", "lib", "--profile", "tiny", "--context-form", "sentences", parts=QUICK)
    with Library("lib", parts=QUICK) as opened:
        assert opened.settings.context_form == "sentences"


def test_copies_of_a_document_share_their_sentences(forms: Path) -> None:
    (forms / "copy.md").write_text((forms / "scan-0.md").read_text())
    report, generator = index(forms)
    assert len(generator.prompts) == report.contexts["by_model"] + report.contexts.get("dropped", 0)
    assert len(set(generator.prompts)) == len(generator.prompts)
    found = said()
    assert found["copy.md"] == found["scan-0.md"]


def test_headings_neither_show_nor_index_the_sentences_of_an_earlier_run(forms: Path) -> None:
    index(forms, reply=lambda _prompt: ZEPPELIN)
    index(context="headings")
    with library(context="headings")[0] as opened:
        found = opened.search("zeppelin planned visits", rerank=False)
        assert {one.context_by for one in found} == {None}
        assert not opened.retrieval.search_keywords("zeppelin", top=9)
        assert opened.status().contexts["by_model"] == 0


def test_a_library_made_with_another_mode_says_so_and_index_mends_it(forms: Path) -> None:
    former = "headings"
    index(forms, context_minutes=0)
    with library()[0] as opened:
        live = Generations(opened.folder).live()
        assert live
        made = {**live.manifest["fingerprint"], "context": former}
        manifest = {**live.manifest, "fingerprint": made, "content": former}
        with closing(Store(opened.folder, write=True)) as store:
            note_publish(store, Generations(opened.folder), manifest)
        write_manifest(live.folder, manifest)
    with Library("lib", parts=QUICK) as opened:
        assert opened.settings.context == "auto"
        with pytest.raises(LibraryError, match=rf"the contexts \({former} then, auto now\).*`local-rag index`"):
            opened.search("planned visits", rerank=False)
        opened.index()
        assert opened.search("planned visits", rerank=False)
