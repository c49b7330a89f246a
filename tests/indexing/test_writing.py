"""`--context auto` over a whole library: which sentences a model writes, when, and what becomes of them."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag.indexing.indexer import IndexReport
from local_rag.library import Library
from local_rag.models.registry import resolve
from local_rag.records import Progress
from tests.conftest import Run
from tests.fakes import QUICK, FakeEmbedder, FakeGenerator, ReadsHere, generating, quick_vocabulary
from tests.indexing.test_compare import OTHER, SITES, write

pytestmark = pytest.mark.slow


def about(prompt: str) -> str:
    """Say something about the last heading that the model was shown."""
    heading = re.findall(r"## (\w+)", prompt.rpartition("<chunk>")[2]) or ["animals"]
    return f"What does a reader learn about the {heading[-1].lower()} on this page?"


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
        return opened.index(paths), generator


def said() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    with library()[0] as opened, opened.reading() as store:
        for one in store.chunks():
            found.setdefault(Path(one.path).name, []).append((one.terms, one.sentence))
    return found


def test_a_model_writes_for_the_chunks_that_can_be_confused_and_for_no_other(forms: Path) -> None:
    report, generator = index(forms)
    found = said()
    assert found["bread.md"] == [("", "")]
    for name in ("scan-0.md", "scan-1.md"):
        assert all(terms for terms, _ in found[name])
    written = sum(bool(sentence) for some in found.values() for _, sentence in some)
    assert report.contexts["by_terms"] == report.chunks - 1
    assert report.contexts["by_model"] == written > 0
    assert written + report.contexts.get("dropped", 0) == len(generator.prompts) == report.chunks - 1
    assert report.unwritten == 0


def test_the_request_names_what_only_this_document_has_and_no_other_document(forms: Path) -> None:
    _, generator = index(forms)
    ours = [prompt for prompt in generator.prompts if "four planned visits" in prompt.rpartition("<chunk>")[2]]
    assert ours
    last = ours[0].rpartition("<document>")[2]
    assert "scan-1" not in last
    assert "Only here: Harrow Court, 2017" in last


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
        opened.index([forms], progress=seen.append)
    assert found[0] > 0
    stages = [step.stage for step in seen]
    assert stages[-1] == "publish"
    assert stages.index("publish") < stages.index("contextualize") < len(stages) - 1


def test_what_a_sentence_says_can_be_found(forms: Path) -> None:
    index(forms, reply=lambda _prompt: "Where does a zeppelin keeper leave what opens the engine room upstairs?")
    with library()[0] as opened:
        (first, *_) = opened.search("zeppelin", rerank=False)
        assert (first.context_by, first.context.split()[3]) == ("model", "zeppelin")
        assert first.terms
        status = opened.status()
    assert status.contexts["by_model"] + status.contexts["dropped"] == status.contexts["by_terms"] == status.chunks - 1
    assert not status.stale


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "Yes.",
        "Which visits does Mortimer make to the lifts every year?",
        "Agreement with this agreement of that agreement.",
    ],
)
def test_a_bad_sentence_is_dropped_and_counted_and_not_asked_for_again(forms: Path, bad: str) -> None:
    report, _ = index(forms, reply=lambda _prompt: bad)
    assert report.contexts == {"by_terms": report.chunks - 1, "dropped": report.chunks - 1}
    again, generator = index()
    assert (again.contexts, again.published, generator.prompts) == ({}, False, [])


def test_the_time_ends_the_writing_and_the_next_run_goes_on(forms: Path) -> None:
    one, _ = index(forms, context_minutes=1e-9)
    assert "by_model" not in one.contexts
    assert one.unwritten == one.chunks - 1
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
    assert report.unwritten >= report.chunks - 1 - 3
    assert report.writing_seconds < 2


def test_words_and_the_reranker_know_nothing_of_the_sentences(forms: Path) -> None:
    index(forms, reply=lambda _prompt: "Where does a zeppelin keeper leave what opens the engine room upstairs?")
    with library()[0] as opened:
        assert not opened.search_keywords("zeppelin", top=9)
        assert opened.search_keywords("Lindum", top=9), "but of what code says"


def test_frequent_publishes_do_not_end_the_writing(forms: Path) -> None:
    report, _ = index(forms, publish_seconds=1e-9)
    assert report.contexts["by_model"] + report.contexts.get("dropped", 0) == report.chunks - 1
    assert report.unwritten == 0


def test_no_minutes_and_terms_write_nothing(forms: Path) -> None:
    report, generator = index(forms, context_minutes=0)
    assert (report.contexts, generator.prompts) == ({"by_terms": report.chunks - 1}, [])
    report, generator = index(context="terms")
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
    assert report.unwritten == report.chunks - 1


def test_copies_of_a_document_share_their_sentences(forms: Path) -> None:
    (forms / "copy.md").write_text((forms / "scan-0.md").read_text())
    report, generator = index(forms)
    assert len(generator.prompts) == report.contexts["by_model"] + report.contexts.get("dropped", 0)
    assert len(set(generator.prompts)) == len(generator.prompts)
    found = said()
    assert found["copy.md"] == found["scan-0.md"]


def test_all_sentences_of_llm_are_replaced_in_auto(forms: Path) -> None:
    index(forms, context="llm", reply=lambda _prompt: " tells a reader what to do with it.")
    assert all(sentence for _, sentence in said()["bread.md"])
    index(context="auto")
    assert said()["bread.md"] == [("", "")]


def test_terms_neither_show_nor_index_the_sentences_of_an_earlier_run(forms: Path) -> None:
    index(forms, reply=lambda _prompt: "Where does a zeppelin keeper leave what opens the engine room upstairs?")
    index(context="terms")
    with library(context="terms")[0] as opened:
        found = opened.search("zeppelin planned visits", rerank=False)
        assert {one.context_by for one in found} <= {"terms", None}
        assert opened.status().contexts["by_model"] == 0
