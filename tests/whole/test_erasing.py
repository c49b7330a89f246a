"""What is removed, erased or forgotten is in no file of the library: the bytes of all files are read."""

import itertools
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from local_rag.answer_records import Answer, Citation
from local_rag.asking import AskOptions, Filters
from local_rag.document_records import Document
from local_rag.errors import LibraryError
from local_rag.extraction.columns import parse_columns
from local_rag.extraction.saved_tables import SavedTables
from local_rag.index.generations import Generations
from local_rag.library import Library
from local_rag.maintenance.removal import find_documents
from local_rag.passage_records import Passage
from local_rag.store.asked_questions import AskedQuestions, Asker, same_question
from local_rag.store.database import Store, library_lock
from local_rag.store.erasing import begin_erasing, erasing
from local_rag.store.history import History
from local_rag.store.people_file import add_person, list_people
from local_rag.tables.answer import answer_from_rows, as_answer
from scripts.benchmarks.sheets import open_tables
from tests.support import served
from tests.support.served import client
from tests.tables.test_answer import PlannerOfFields

JSON = {"accept": "application/json"}
TEXT = "Quartzword glows in the dark cellar."
NAME = "divorcefile"
QUESTION = "Where does quartzword glow?"


def held(folder: Path, *words: str) -> list[str]:
    """Return which files hold one of these words, in any case, in their bytes or their names."""
    wanted = [word.lower().encode() for word in words]
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and any(word in str(path.relative_to(folder)).lower().encode() + path.read_bytes().lower() for word in wanted)
    ]


@pytest.fixture
def secret(documents: Path, folder: Path) -> Path:
    """A document in the library that was quoted, cached, and made part of an evaluation question."""
    path = documents / f"{NAME}.txt"
    path.write_text(f"{TEXT}\n")
    served.index(documents, folder)
    ask(folder)
    return path


def ask(folder: Path) -> None:
    with client(folder, served.parts(lambda _prompt: "Quartzword glows in the cellar.")) as opened:
        answer = opened.post("/ask", data={"question": QUESTION}, headers=JSON).json()
        assert any(NAME in place for passage in answer["read"] for place in (passage["path"], *passage["also_in"]))
        found = opened.get("/inspect", params={"q": "quartzword"}).text
        chunk = found.partition('name="chunk" value="')[2].partition('"')[0]
        opened.post("/inspect/question", data={"question": QUESTION, "chunk": chunk})
    assert set(held(folder, "quartzword")) >= {"history.sqlite3", "library.sqlite3", "questions/questions.jsonl"}


def opened(folder: Path) -> Library:
    return Library(folder, parts=served.parts(), profile="tiny", context="headings")


def change(documents: Path, folder: Path, secret: Path, how: str) -> Path:
    """Let something happen to a document before it is erased; return the path by which it is known now."""
    if how == "renamed":
        return secret_moved(secret, secret.with_name("note.txt"), lambda: served.index(documents, folder))
    if how == "edited and renamed":
        secret.write_text("Something else entirely.\n")
        served.index(documents, folder)
        return secret_moved(secret, secret.with_name("note.txt"), lambda: served.index(documents, folder))
    if how == "folder moved":
        target = documents.with_name("moved")
        shutil.move(documents, target)
        with opened(folder) as library:
            library.upkeep.move_root(documents, target)
        return target / secret.name
    if how == "removed":
        with opened(folder) as library:
            library.remove([secret])
    if how == "removed and cleaned":
        with opened(folder) as library:
            library.remove([secret])
            library.upkeep.clean()
    if how == "deleted":
        secret.unlink()
        served.index(documents, folder)
    return secret


def secret_moved(secret: Path, target: Path, index: Callable[[], None]) -> Path:
    secret.rename(target)
    index()
    return target


@pytest.mark.parametrize(
    "how",
    ["as it was", "renamed", "edited and renamed", "folder moved", "removed", "removed and cleaned", "deleted"],
)
def test_erase_leaves_neither_text_nor_name_in_any_file(documents: Path, folder: Path, secret: Path, how: str) -> None:
    path = change(documents, folder, secret, how)
    with opened(folder) as library:
        library.remove([path], erase=True)
    assert held(folder, "quartzword", "cellar", NAME, "note.txt") == []
    assert held(folder, "twelve people"), "the other documents are still there"
    with opened(folder) as library:
        assert library.search("boat", top=3)
        assert not any("Quartz" in passage.text for passage in library.search("quartzword glow", top=50))


@pytest.mark.parametrize("how", ["removed", "deleted"])
def test_clean_leaves_no_text_of_what_was_removed(documents: Path, folder: Path, secret: Path, how: str) -> None:
    change(documents, folder, secret, how)
    with opened(folder) as library:
        shown = library.upkeep.clean(dry_run=True)
        assert shown.turns == 1
        assert library.upkeep.clean().turns == 1
    # The question is the user's own, which only `remove --erase` deletes.
    assert held(folder, "cellar") == []
    assert held(folder, "quartzword") == ["questions/questions.jsonl"]


def test_an_erased_file_is_not_indexed_again_until_it_is_named(documents: Path, folder: Path, secret: Path) -> None:
    with opened(folder) as library:
        library.remove([secret], erase=True)
    served.index(documents, folder)
    assert held(folder, "quartzword", NAME) == []
    shutil.move(documents, documents.with_name("moved"))
    with opened(folder) as library:
        library.upkeep.move_root(documents, documents.with_name("moved"))
        library.index()
        assert held(folder, "quartzword", NAME) == []
        library.remove([documents.with_name("moved") / secret.name], erase=True)  # once more does no harm
        library.index([documents.with_name("moved") / secret.name])
    assert "library.sqlite3" in held(folder, "quartzword")


def test_of_two_documents_of_one_content_only_one_is_erased(documents: Path, folder: Path, secret: Path) -> None:
    (documents / "copy.txt").write_text(secret.read_text())
    served.index(documents, folder)
    ask(folder)
    with opened(folder) as library:
        library.remove([secret], erase=True)
        assert any("copy.txt" in passage.path for passage in library.search("quartzword glow", top=3))
    assert held(folder, NAME) == []


def test_a_path_that_nothing_knows_is_refused(documents: Path, folder: Path, secret: Path) -> None:
    with opened(folder) as library, pytest.raises(LibraryError, match="holds nothing at or below"):
        library.remove([documents / "other.txt"], erase=True)


STEPS = (
    "publish", "purge_superseded", "drop", "forget_documents", "forget_questions", "expunge", "prune", "delete_files",
    "forget_names", "compact", "end_erasing",
)  # fmt: skip
_ERASE = """
import os, sys
from local_rag.library import Library
from tests.support import served

def kill(frame, event, _argument):
    if event == "call" and frame.f_code.co_name == sys.argv[3] and "local_rag" in frame.f_code.co_filename:
        os.kill(os.getpid(), 9)

with Library(sys.argv[1], parts=served.parts(), profile="tiny", context="headings") as library:
    sys.setprofile(kill)
    library.remove([sys.argv[2]], erase=True)
"""


@pytest.mark.parametrize(
    ("step", "finish"), [("publish", "clean"), *zip(STEPS, itertools.cycle(("remove", "index", "clean")), strict=False)]
)
def test_an_erasure_that_was_killed_is_finished_by_the_next_command(
    folder: Path, secret: Path, step: str, finish: str
) -> None:
    killed = subprocess.run([sys.executable, "-c", _ERASE, folder, secret, step], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    with closing(Store(folder)) as store:
        assert erasing(store)
    with opened(folder) as library:
        assert any("not fully erased" in stale.reason for stale in library.status().stale)
        if finish == "remove":
            library.remove([secret], erase=True)
        elif finish == "index":
            library.index()
        else:
            library.upkeep.clean()
    assert held(folder, "quartzword", "cellar", NAME) == []
    with closing(Store(folder)) as store:
        assert not erasing(store)


def test_an_erasure_that_a_reader_keeps_from_ending_says_so_and_is_finished(folder: Path, secret: Path) -> None:
    with closing(sqlite3.connect(folder / "library.sqlite3", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM chunks").fetchone()
        with opened(folder) as library, pytest.raises(LibraryError, match="Another program is reading"):
            library.remove([secret], erase=True)
    with opened(folder) as library:
        library.upkeep.clean()
    assert held(folder, "quartzword", "cellar", NAME) == []


def test_an_erased_document_is_named_by_no_file_of_questions_and_no_limits(folder: Path, secret: Path) -> None:
    about = Passage(
        1, str(secret), "", TEXT, "", "", (), None, 1, 1, 0.0, sha256=sha256(secret.read_bytes()).hexdigest()
    )
    said = Answer(QUESTION, TEXT, "answered", read=(about,), citations=(Citation(1, about),))
    with closing(History(folder)) as history:
        mixed = history.begin_list("mixed.csv", [QUESTION, "When does the boat leave?"], AskOptions())
        named = history.begin_list("named.csv", ["Who?"], AskOptions(filters=Filters(within=(f"**/{secret.name}",))))
        only = history.begin_list(f"all of {NAME}.csv", [QUESTION], AskOptions())
        for one in (mixed, only):
            history.add(one, said, epoch=history.epoch(), opens=True)
    add_person(folder, "Anna", "reader", within=[str(secret), "harbour/**"])
    add_person(folder, "Ben", "reader", within=[secret.name])
    with opened(folder) as library:
        library.remove([secret], erase=True)
        limits = {one.name: one.limits.within for one in list_people(folder)}
        assert limits == {"Anna": ("harbour/**",), "Ben": ("/",)}
        assert library.seen_by(Filters(within=("/",))).documents.contents().documents == {}, (
            "who had no other sees nothing"
        )
    with closing(History(folder)) as history:
        assert [(one.id, one.questions) for one in history.question_lists()] == [
            (mixed, ("When does the boat leave?",))
        ], f"{named} and {only} are gone"
    assert held(folder, "quartzword", NAME) == []


@pytest.mark.parametrize("name", ["Price list 2024.csv", "odd.csv"])
def test_what_rows_said_goes_with_each_document_that_its_notes_name(tmp_path: Path, name: str) -> None:
    files, library, folder = tmp_path / "files", tmp_path / "library", tmp_path / "history"
    for one in (files, library, folder):
        one.mkdir()
    for year in range(2018, 2026):  # more than are read closely
        text = f"Product,Price (EUR),Users\nPlanner Basic,5,3\nPlanner Plus,{year - 2000},20\nPlanner Max,90,100\n"
        (files / f"Price list {year}.csv").write_text(text)
    (files / "odd.csv").write_text("Name,Load\na,1\nb,2\n")
    asked, planner = "How much is Planner Plus?", PlannerOfFields({"operation": "list", "shown": "Price (EUR)"})
    with closing(open_tables(files, library)) as tables, closing(Store(library)) as store:
        found = answer_from_rows(asked, tables, planner=planner)
        assert found is not None
        notes = (*found.table.notes, "The table odd (odd.csv) is left out, because it cannot be held: it is damaged.")
        answer = as_answer(asked, replace(found, table=replace(found.table, notes=notes)), store)
    assert any(name in note for note in notes)
    assert str(files / name) not in {*found.considered, *(one.path for one in found.table.sources)}
    with closing(History(folder)) as history:
        history.add(None, answer, epoch=history.epoch(), opens=True)
        AskedQuestions(folder, Asker()).add(answer, words=same_question(asked), recipe="", epoch=history.epoch())
        assert "history.sqlite3" in held(folder, "Planner Plus")
        history.forget_documents(lambda _sha256, path: path == str(files / name), erased=lambda _pattern: False)
    assert held(folder, "Planner Plus", name) == []


@pytest.mark.parametrize("name", ["quartznote.txt", "quartznote [2].txt"])
def test_what_names_a_document_by_an_earlier_path_goes_with_it(
    documents: Path, folder: Path, secret: Path, name: str
) -> None:
    with closing(History(folder)) as history:
        options = AskOptions(filters=Filters(within=(str(secret),)))
        history.begin_list("questions of quartzword.csv", ["When does the boat leave?"], options)
        others = AskOptions(filters=Filters(within=(str(documents / "boat.txt"),)))
        tables = SavedTables(folder, "")
        tables.add("Quartzword", parse_columns(["Glow: Where does it glow?"]), options.filters, newest=False)
        kept = history.begin_list("others.csv", ["When does the boat leave?"], others)
    path = secret_moved(secret, secret.with_name("middle.txt"), lambda: served.index(documents, folder))
    path = secret_moved(path, secret.with_name(name), lambda: served.index(documents, folder))
    with opened(folder) as library:
        library.remove([path], erase=True)
    with closing(History(folder)) as history:
        assert [(one.id, one.options) for one in history.question_lists()] == [(kept, others)]
    assert held(folder, "quartzword", NAME, "middle.txt", "quartznote") == []


def test_what_names_a_document_of_a_moved_folder_goes_with_it(documents: Path, folder: Path) -> None:
    (documents / NAME).mkdir()
    for place in (documents / NAME, documents):
        (place / "note.txt").write_text(f"{place.name} says: {TEXT}\n")
    served.index(documents / NAME, folder)
    served.index(documents, folder)
    filters = Filters(within=(str(documents / NAME / "note.txt"),))
    with closing(History(folder)) as history:
        history.begin_list("questions.csv", ["When does the boat leave?"], AskOptions(filters=filters))
    SavedTables(folder, "").add("Glow", parse_columns(["Glow: Where does it glow?"]), filters, newest=False)
    add_person(folder, "Anna", "reader", within=filters.within)
    target = documents.with_name("plain")
    (documents / NAME).rename(target)
    with opened(folder) as library:
        library.upkeep.move_root(documents / NAME, target)
        library.remove([target], erase=True)
    assert [one.limits.within for one in list_people(folder)] == [("/",)]
    assert held(folder, NAME) == []


def test_limits_that_name_a_document_by_a_former_path_are_erased_with_it(
    documents: Path, folder: Path, secret: Path
) -> None:
    add_person(folder, "Anna", "reader", within=[str(secret), "harbour/**"])
    add_person(folder, "Ben", "reader", within=[f"documents/{secret.name}"])
    add_person(folder, "Cleo", "reader", within=["boat.txt"])
    path = secret_moved(secret, secret.with_name("middle.txt"), lambda: served.index(documents, folder))
    path = secret_moved(path, secret.with_name("note.txt"), lambda: served.index(documents, folder))
    target = documents.with_name("moved")
    shutil.move(documents, target)
    with opened(folder) as library:
        library.upkeep.move_root(documents, target)
        assert f"{secret}" in {pattern for one in list_people(folder) for pattern in one.limits.within}, "none follow"
        library.remove([target / path.name], erase=True)
    limits = {one.name: one.limits.within for one in list_people(folder)}
    assert limits == {"Anna": ("harbour/**",), "Ben": ("/",), "Cleo": ("boat.txt",)}
    assert held(folder, NAME, "middle.txt", "note.txt") == []


def test_limits_that_name_a_folder_by_its_former_name_are_erased_with_it(documents: Path, folder: Path) -> None:
    (documents / NAME).mkdir()
    for name in ("one.txt", "two.txt"):
        (documents / NAME / name).write_text(f"{name} says: {TEXT}\n")
    served.index(documents, folder)
    add_person(folder, "Anna", "reader", within=[f"{NAME}/**"])
    add_person(folder, "Ben", "reader", within=["boat.txt"])
    (documents / NAME).rename(documents / "plain")
    served.index(documents, folder)
    with opened(folder) as library:
        library.remove([documents / "plain" / "one.txt"], erase=True)
        assert held(folder, NAME) == ["library.sqlite3", "people.sqlite3"], "the other document was there, too"
        library.remove([documents / "plain"], erase=True)
    assert {one.name: one.limits.within for one in list_people(folder)} == {"Anna": ("/",), "Ben": ("boat.txt",)}
    assert held(folder, NAME) == []


def test_limits_that_name_another_document_at_a_former_path_stay(documents: Path, folder: Path, secret: Path) -> None:
    add_person(folder, "Anna", "reader", within=[str(secret)])
    path = secret_moved(secret, secret.with_name("note.txt"), lambda: served.index(documents, folder))
    secret.write_text("The ferry has a crew of four.\n")
    served.index(documents, folder)
    with opened(folder) as library:
        library.remove([path], erase=True)
    assert [one.limits.within for one in list_people(folder)] == [(str(secret),)]


def test_an_erasure_is_stored_when_it_is_ordered_and_begun_by_who_writes_next(folder: Path, secret: Path) -> None:
    with opened(folder) as library:
        with library_lock(folder):  # another process indexes
            library.upkeep.order_erasing([secret])
        assert library.upkeep.erases_later()
        assert any("erased" in one.reason for one in library.status().stale)
    with opened(folder) as library:
        library.index()
        assert not library.upkeep.erases_later()
        library.upkeep.erase_ordered()
    assert held(folder, "quartzword", NAME) == []


def test_all_that_is_ordered_is_erased_at_once(documents: Path, folder: Path, secret: Path) -> None:
    (documents / "second.txt").write_text("Obsidian is black.\n")
    served.index(documents, folder)
    with opened(folder) as library:
        library.upkeep.order_erasing([secret, documents / "second.txt", documents / "never.txt"])
        before = Generations(folder).live_name()
        library.upkeep.erase_ordered()
        assert number_of(Generations(folder).live_name()) == number_of(before) + 1, "it is published once"
        assert not library.upkeep.erases_later()
    assert held(folder, "quartzword", NAME, "obsidian", "second.txt", "never.txt") == []


def number_of(generation: str) -> int:
    return int("".join(filter(str.isdigit, generation)))


def test_what_the_store_knows_of_many_paths_goes_at_once(tmp_path: Path) -> None:
    folder, statements = tmp_path / "library", list[str]()
    folder.mkdir()
    with closing(Store(folder, create=True)) as store:
        known = [(f"/notes/{number}",) for number in range(1200)]
        below, beside = "/notes/7/mount", "/notes/1200"
        store.connection.executemany("INSERT INTO excluded VALUES (?)", [*known, (below,), (beside,)])
        store.connection.execute("INSERT INTO mounts VALUES (?, 1)", (below,))
        store.connection.set_trace_callback(statements.append)
        begin_erasing(store, (), [Path(path) for (path,) in known], (), ())
        store.connection.set_trace_callback(None)
        assert store.excluded() == [Path(beside)]
        assert store.column("SELECT path FROM mounts") == []
    for table in ("excluded", "skipped", "mounts"):
        assert sum(one.startswith(f"DELETE FROM {table} ") for one in statements) == 1


def test_many_paths_among_many_documents_are_found_in_time_that_grows_with_both_alone(tmp_path: Path) -> None:
    def calls(count: int) -> int:
        folder, seen = tmp_path / str(count), list[str]()
        folder.mkdir()
        paths = [folder / f"{number}.txt" for number in range(count)]
        with closing(Store(folder, create=True)) as store:
            for path in paths:
                about = Document(path, path.stem, TEXT, "text")
                store.put_document(about, (), size=0, modified_ns=0, sha256=path.stem, split_key="")
            sys.setprofile(lambda _frame, event, _argument: seen.append(event) if event == "call" else None)
            try:
                removal = find_documents(store, paths, erase=True)
            finally:
                sys.setprofile(None)
        assert {one.path for one in removal.documents} == set(map(str, paths))
        return len(seen)

    assert calls(120) < 3 * calls(60)
