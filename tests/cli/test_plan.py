"""`local-rag plan` says what questions ask for, and the query of those that rows of a library answer."""

import json
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.plan_records import FIELDS
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY

NDAS = "Which NDAs mention Acme?"


def test_each_question_gives_a_line(run: Run) -> None:
    printed = run("plan", NDAS, "When does the boat leave?").stdout.splitlines()
    assert printed[0] == "list of NDAs that mention \u201cAcme\u201d"
    assert printed[1].startswith("question about passages")


def test_questions_of_a_file_give_objects(run: Run, tmp_path: Path) -> None:
    (tmp_path / "asked.txt").write_text(f"{NDAS}\nWhat can you do?\n", encoding="utf-8")
    first, second = map(json.loads, run("plan", "--questions", tmp_path / "asked.txt", "--json").stdout.splitlines())
    assert tuple(first) == tuple(second) == FIELDS
    assert (first["kind"], first["subject"], first["sort"]) == ("documents", "Acme", "NDAs")
    assert 0 < first["probability"] <= 1
    assert second["kind"] == "chat"


@pytest.mark.parametrize("arguments", [(), ("Who?", "--questions", "asked.txt"), ("",)])
def test_one_kind_of_questions_must_be_given(
    run: Run, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("asked.txt").write_text("Who?\n", encoding="utf-8")
    assert run("plan", *arguments).exit_code == 2


def test_a_library_says_what_it_understands(tmp_path: Path) -> None:
    with Library(tmp_path / "none", parts=EMBEDS_QUICKLY) as library:
        assert library.plan(NDAS).subject == "Acme"


def test_what_rows_answer_has_its_query(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bills.csv").write_text("Supplier,Amount\nAcme,10.5\nBolt,7\nAcme,4\n", encoding="utf-8")
    with Library(tmp_path / "library", parts=EMBEDS_QUICKLY) as library:
        library.index([tmp_path / "bills.csv"])
        plan = library.plan("total amount per supplier")
        assert (plan.kind, "sum(" in plan.query, "GROUP BY" in plan.query) == ("rows", True, True)
        assert library.tables.query(plan.query).rows == [("Acme", 14.5), ("Bolt", 7)]
        assert library.plan(NDAS).query == ""
    printed = run("plan", "--library", tmp_path / "library", "--json", "total amount per supplier", NDAS).stdout
    assert [json.loads(line)["query"] for line in printed.splitlines()] == [plan.query, ""]


def test_a_library_that_is_named_must_be_there(run: Run, tmp_path: Path) -> None:
    refused = run("plan", "--library", tmp_path / "mistyped", NDAS)
    assert refused.exit_code == 1
    assert "There is no library in" in refused.stderr
