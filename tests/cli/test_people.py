"""`local-rag people`: tokens are shown once, names are unique, and no copy of a library holds its people."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from local_rag.answer_records import Answer
from local_rag.keys import token_hash
from local_rag.store.history import History
from local_rag.store.people_file import PEOPLE_FILE, list_people, read_people
from local_rag.store.published import copy_library
from tests.conftest import Run


def test_adding_prints_nothing_but_the_token_of_which_the_hash_is_kept(folder: Path, run: Run) -> None:
    added = run("people", "add", "Anna", "--in", "policies/**", "--tag", "staff", "--library", str(folder))
    token = added.stdout.strip()
    assert added.stdout == f"{token}\n"
    assert len(token) > 40
    (anna,) = read_people(folder).values()
    assert read_people(folder).keys() == {token_hash(token)}
    assert (anna.name, anna.role, anna.limits.within, anna.limits.tags) == (
        "Anna",
        "reader",
        ("policies/**",),
        ("staff",),
    )
    ben = json.loads(run("people", "add", "ben", "--role", "owner", "--json", "--library", str(folder)).stdout)
    assert ben["name"] == "ben"
    assert token_hash(ben["token"]) in read_people(folder)
    listed = json.loads(run("people", "list", "--json", "--library", str(folder)).stdout)
    assert listed == [
        {"name": "Anna", "role": "reader", "in": ["policies/**"], "tags": ["staff"]},
        {"name": "ben", "role": "owner", "in": [], "tags": []},
    ]
    shown = run("people", "--library", str(folder)).stdout
    assert "reader  Anna  in policies/**, tag staff" in shown
    assert "owner   ben  everything" in shown
    assert token not in shown


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["add", ""], 2),
        (["add", " Anna"], 2),
        (["add", "x" * 61], 2),
        (["add", "a\nb"], 2),
        (["add", "Anna", "--role", "king"], 2),
        (["add", "Anna", "--in", " "], 2),
        (["add", "Anna", "--tag", ""], 2),
        (["remove", "Nobody"], 1),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_a_sentence(folder: Path, run: Run, arguments: list[str], code: int) -> None:
    refused = run("people", *arguments, "--library", str(folder))
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert list_people(folder) == []


def test_a_name_is_given_once_however_it_is_written(folder: Path, run: Run) -> None:
    run("people", "add", "Anna", "--library", str(folder))
    again = run("people", "add", "ANNA", "--library", str(folder))
    assert again.exit_code == 1
    assert "people remove" in again.stderr
    assert len(list_people(folder)) == 1


def test_a_folder_without_a_library_gets_no_people(tmp_path: Path, run: Run) -> None:
    assert run("people", "add", "Anna", "--library", str(tmp_path)).exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_removing_somebody_deletes_the_conversations_of_nobody_else(folder: Path, run: Run) -> None:
    run("people", "add", "Anna", "--library", str(folder))
    (anna,) = list_people(folder)
    with closing(History(folder)) as history:
        for person in (anna.id, ""):
            history.of(person).add(None, Answer("When?", "At seven.", "answered"), epoch=history.epoch(), opens=True)
    run("people", "add", "Ben", "--library", str(folder))
    removed = run("people", "remove", "anna", "--library", str(folder))
    assert removed.stdout == "Removed Anna and 1 conversations.\n"
    told = json.loads(run("people", "remove", "ben", "--json", "--library", str(folder)).stdout)
    assert told == {"name": "Ben", "conversations": 0}
    assert list_people(folder) == []
    with closing(History(folder)) as history:
        assert history.counts().conversations == 1
        assert len(history.conversations()) == 1


def test_no_copy_of_a_library_holds_its_people(folder: Path, run: Run, tmp_path: Path) -> None:
    run("people", "add", "Anna", "--library", str(folder))
    assert (folder / PEOPLE_FILE).exists()
    copy_library(folder, tmp_path / "copy")
    assert (tmp_path / "copy" / "library.sqlite3").exists()
    assert not [path for path in (tmp_path / "copy").rglob("*") if "people" in path.name]


def test_serve_does_without_a_token_only_where_there_are_no_people(folder: Path, run: Run) -> None:
    run("people", "add", "Anna", "--library", str(folder))
    refused = run("serve", "--no-token", "--library", str(folder))
    assert refused.exit_code == 2
    assert "people" in refused.stderr
