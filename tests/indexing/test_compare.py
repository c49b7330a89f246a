"""What code says of look-alikes in a whole library, and that it stays as it was first said."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag.asking import Filters
from local_rag.indexing.indexer import IndexReport
from local_rag.library import Library
from local_rag.progress_records import Progress
from local_rag.store.people_file import add_person
from tests.fakes import QUICK, FakeGenerator, generating, quick_vocabulary
from tests.fakes import FakeEmbedder as Embedder

FORM = """# Agreement

This agreement is made for the lifts at {site} in {year}.

## Visits

The contractor makes {visits} planned visits every year and tells the client of each of them five days before it.

## Keys

The keys of the machine room are kept {keys}, where they are signed for by whoever takes them out of there.
"""
SITES = (("Harrow Court", 2017, "four", "downstairs"), ("Lindum House", 2018, "six", "upstairs"))
OTHER = "# Bread\n\nKnead flour, water, salt and yeast until the dough is smooth, then let it rise overnight.\n"


def no_engine(*_: object, **__: object) -> Any:
    raise AssertionError("a context model was opened")


def write(folder: Path, name: str, values: tuple[Any, ...]) -> Path:
    path = folder / name
    path.write_text(FORM.format(**dict(zip(("site", "year", "visits", "keys"), values, strict=True))))
    return path


@pytest.fixture
def forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "forms"
    folder.mkdir()
    for number, values in enumerate(SITES):
        write(folder, f"scan-{number}.md", values)
    (folder / "bread.md").write_text(OTHER)
    return folder


def index(*paths: Path, **how: Any) -> tuple[IndexReport, list[Progress]]:
    seen = list[Progress]()
    with Library("lib", parts=replace(QUICK, open_engine=no_engine), profile="tiny", chunk_tokens=32) as library:
        return library.index(paths, progress=seen.append, **how), seen


def rows(query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect("lib/library.sqlite3")) as connection:
        return connection.execute(query).fetchall()


def contexts() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path, text in rows(
        "SELECT path, contexts.text FROM chunks JOIN documents ON documents.id = document_id "
        "JOIN contexts ON contexts.key = context_key WHERE live AND chunks.kind = 'chunk'"
    ):
        found.setdefault(Path(path).name, set()).add(text)
    return found


@pytest.mark.slow
def test_look_alikes_are_told_apart_without_a_model(forms: Path) -> None:
    report, _ = index(forms)
    said = contexts()
    for number, (site, year, *_) in enumerate(SITES):
        (text,) = said[f"scan-{number}.md"]
        assert text.startswith(f"{site}, {year}")
        assert "This agreement is made for the lifts" in text
    assert said["bread.md"] == {""}
    assert report.contexts == {"by_terms": report.chunks - 1}
    with Library("lib", parts=QUICK) as library:
        found = library.search("planned visits Lindum House", rerank=False)
        assert (Path(found[0].path).name, found[0].context_by) == ("scan-1.md", "terms")
        status = library.status()
    none = dict.fromkeys(("by_model", "dropped", "missing"), 0)
    assert status.contexts == {"by_terms": report.chunks - 1, "unwritten": report.chunks} | none
    assert not status.stale
    again, _ = index()
    assert (again.contexts, again.published) == ({}, False)


@pytest.mark.slow
def test_a_new_file_changes_nothing_that_was_said_of_others(forms: Path) -> None:
    index(forms)
    before, said = rows("SELECT rowid, * FROM distinctions ORDER BY rowid"), contexts()
    vectors = rows("SELECT id, vector_key FROM chunks ORDER BY id")
    # It takes from the first one what set it apart.
    write(forms, "scan-2.md", ("Harrow Court", 2017, "nine", "elsewhere"))
    report, seen = index()
    assert rows("SELECT rowid, * FROM distinctions ORDER BY rowid")[: len(before)] == before
    assert contexts().items() >= said.items()
    assert rows("SELECT id, vector_key FROM chunks ORDER BY id")[: len(vectors)] == vectors
    assert [step.total for step in seen if step.stage == "compare"] == [1]
    assert report.added == 1


@pytest.mark.slow
def test_renewing_says_anew_what_sets_documents_apart(forms: Path) -> None:
    first = write(forms, "scan-0.md", SITES[0])
    index(first)
    assert contexts() == {"scan-0.md": {""}}
    index(forms)
    assert contexts()["scan-0.md"] == {""}
    report, seen = index(renew_contexts=True)
    assert next(iter(contexts()["scan-0.md"])).startswith("Harrow Court, 2017")
    assert max(step.done for step in seen if step.stage == "compare") == 3
    assert report.published
    assert not index(renew_contexts=True)[0].published


@pytest.mark.slow
def test_a_moved_file_and_an_edited_one_keep_what_was_said(forms: Path) -> None:
    index(forms)
    (before,) = contexts()["scan-0.md"]
    (forms / "scan-0.md").rename(forms / "moved.md")
    index()
    assert contexts()["moved.md"] == {before}
    path = forms / "moved.md"
    path.write_text(path.read_text().replace("five days", "six days"))
    index()
    assert contexts()["moved.md"] == {before}
    path.write_text(path.read_text().replace("2017", "2020"))
    index()
    assert all("2017" not in text for text in contexts()["moved.md"])


def test_copies_are_not_mistaken_for_each_other(forms: Path) -> None:
    (forms / "scan-1.md").write_text((forms / "scan-0.md").read_text())
    index(forms)
    assert contexts() == {"scan-0.md": {""}, "scan-1.md": {""}, "bread.md": {""}}


@pytest.mark.slow
def test_what_the_model_says_and_what_code_says_are_kept_apart(forms: Path) -> None:
    reply: Callable[[str], str] = lambda _prompt: " is about the visits of a contractor."  # noqa: E731
    parts = replace(
        QUICK, make_workers=type(QUICK)().make_workers, open_engine=generating(FakeGenerator(reply)),
        open_vocabulary=quick_vocabulary, load_embedder=Embedder,
    )  # fmt: skip
    with Library("lib", parts=parts, profile="tiny", context_minutes=9, chunk_tokens=32) as library:
        library.index([forms], contexts=True)
        found = {Path(one.path).name: one for one in library.search("planned visits Harrow Court bread", rerank=False)}
    sentence = "This chunk is about the visits of a contractor."
    assert (found["bread.md"].terms, found["bread.md"].sentence) == ("", sentence)
    assert found["scan-0.md"].terms.startswith("Harrow Court, 2017")
    assert (found["scan-0.md"].context, found["scan-0.md"].context_by) == (sentence, "model")


def test_contexts_written_before_documents_were_compared_stay(forms: Path) -> None:
    index(forms)
    with closing(sqlite3.connect("lib/library.sqlite3")) as connection, connection:
        keys = connection.execute("SELECT id, context_key FROM chunks ORDER BY id").fetchall()
        connection.execute("DELETE FROM distinctions")
    report, seen = index()
    assert report.contexts == {}
    assert not [step for step in seen if step.stage == "compare"]
    assert rows("SELECT id, context_key FROM chunks ORDER BY id") == keys


def test_nobody_is_told_what_was_found_beside_documents_that_are_hidden(forms: Path) -> None:
    """What is rare among forms, and which are alike, depends on the hidden forms, too."""
    limits = Filters(within=("open/**",))
    (forms / "open").mkdir()
    (forms / "hidden").mkdir()
    for number, values in enumerate((*SITES, ("Ansty Row", 2019, "two", "outside"))):
        write(forms / "open", f"form-{number}.md", values)
    for number in range(6):
        write(forms / "hidden", f"form-{number}.md", ("Lindum House", 2018, "six", f"in box {number}"))
    index(forms)

    def said() -> dict[str, str]:
        query = "SELECT path, distinction FROM documents JOIN distinctions USING (content_key) WHERE live ORDER BY path"
        return {Path(path).name: text for path, text in rows(query) if "/open/" in path}

    def shown() -> list[str]:
        with Library("lib", parts=QUICK) as library:
            return [one.terms for one in library.seen_by(limits).search("planned visits", top=9)]

    unaware = said()
    add_person(Path("lib"), "Anna", "reader", within=limits.within)
    add_person(Path("lib"), "Ben", "reader", within=["hidden/**"])
    assert not any(shown()), "it was found before anybody had limits"
    index()
    aware, terms = said(), shown()
    assert any(terms)
    shutil.rmtree(forms / "hidden")
    for form in forms.glob("*.md"):
        form.unlink()
    Path("lib").rename("former")
    index(forms)
    assert aware == said() != unaware
    add_person(Path("lib"), "Anna", "reader", within=limits.within)
    index()
    assert shown() == terms
