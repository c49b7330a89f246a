"""Versions of a document form a family; look-alikes do not. Search marks older ones, and ask names both values."""

import json
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from local_rag.library import Library, Parts
from local_rag.records import Answer, AskOptions, Filters
from local_rag.store.history import History
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeGenerator, generating, passage
from tests.support import served
from tests.support.indexed import index_texts

POLICY = """# Travel policy {year}

In force from {day}.

Journeys are booked by the office of the cooperative, and receipts are handed in within a month of the return.

## Meals

The daily allowance for meals is {amount} kroner in all countries.

## Trains

Second class is the rule. A cabin may be booked on a night ferry. Tickets are paid by the office.
"""
FACTS = {
    "policies/travel-policy-2022.md": POLICY.format(year=2022, day="1 May 2022", amount=520),
    "policies/travel-policy-2025.md": POLICY.format(year=2025, day="1 March 2025", amount=740),
    "oslo/plan.md": "# Plan for Oslo\n\nThe door on the left leads out. Gather at the gate. Count all twice.\n",
    "bergen/plan.md": "# Plan for Bergen\n\nThe door on the left leads out. Gather at the gate. Count all twice.\n",
    "manual_v1.md": "# Manual of the pump\n\nPress the green button for 3 seconds. Then open the valve slowly.\n",
    "manual_v2.md": "# Manual of the pump\n\nPress the green button for 5 seconds. Then open the valve slowly.\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    monkeypatch.chdir(tmp_path)
    index_texts(tmp_path, FACTS, run)
    return tmp_path


def families(run: Run) -> list[list[str]]:
    result = run("documents", "--families", "--json")
    assert result.exit_code == 0, result.output
    return [[Path(one["path"]).name for one in family] for family in json.loads(result.stdout)]


def test_versions_form_families_newest_first_and_look_alikes_do_not(folder: Path, run: Run) -> None:
    assert families(run) == [["manual_v2.md", "manual_v1.md"], ["travel-policy-2025.md", "travel-policy-2022.md"]]
    text = run("documents", "--families").stdout
    assert "2025-03-01  documents/policies/travel-policy-2025.md" in text


def test_a_setting_splits_a_wrong_family(folder: Path, run: Run) -> None:
    (folder / ".local-rag" / "settings.toml").write_text('no_versions = ["policies/**"]\n')
    assert families(run) == [["manual_v2.md", "manual_v1.md"]]


def test_a_family_follows_its_documents(folder: Path, run: Run) -> None:
    (folder / "documents" / "manual_v1.md").unlink()
    (folder / "documents" / "policies" / "travel-policy-2026.md").write_text(
        POLICY.format(year=2026, day="1 June 2026", amount=800)
    )
    assert run("index").exit_code == 0
    assert families(run) == [["travel-policy-2026.md", "travel-policy-2025.md", "travel-policy-2022.md"]]


def test_search_marks_older_versions_and_hides_nothing(folder: Path, run: Run) -> None:
    found = json.loads(run("search", "daily allowance for meals", "--json").stdout)["passages"]
    newest = {Path(one["path"]).name: one["newest_version"] for one in found}
    assert newest["travel-policy-2022.md"] == "documents/policies/travel-policy-2025.md"
    assert newest["travel-policy-2025.md"] is None
    assert "older version; the newest is" in run("search", "daily allowance for meals").stdout


@pytest.mark.parametrize(
    ("day", "left"),
    [
        (date(2024, 1, 1), {"travel-policy-2022.md"}),
        (date(2025, 3, 1), {"travel-policy-2025.md"}),
        (date(2021, 1, 1), set[str]()),
    ],
)
def test_as_of_a_day_only_the_version_valid_then_is_searched(folder: Path, day: date, left: set[str]) -> None:
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        filters = Filters(within=("policies/**",), as_of=day)
        found = library.search("daily allowance for meals", filters=filters)
        assert {Path(one.path).name for one in found} == left
        counted = library.find("How many documents mention the allowance?", filters=filters)
        assert {Path(one.passage.path).name for one in counted.places} == left


def test_a_version_that_a_person_may_not_see_is_neither_named_nor_replaces_another(folder: Path) -> None:
    limits = Filters(within=("policies/travel-policy-2022.md",))
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        found = library.search("daily allowance for meals", filters=Filters(limits=limits))
        assert [(Path(one.path).name, one.newest) for one in found] == [("travel-policy-2022.md", "")]
        later = Filters(limits=limits, as_of=date(2026, 1, 1))
        assert library.search("daily allowance for meals", filters=later)


def test_a_document_without_versions_is_asked_as_of_any_day_unless_it_says_a_later_one(folder: Path) -> None:
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        filters = Filters(within=("oslo",), as_of=date(2000, 1, 1))
        assert library.search("the door", filters=filters)


def saying(amount: int) -> Parts:
    """Return parts with a model that says this amount."""
    engine = FakeGenerator(lambda _prompt: f"The daily allowance for meals is {amount} kroner in all countries.")
    return replace(EMBEDS_QUICKLY, open_engine=generating(engine))


@pytest.mark.parametrize("amount", [740, 520])
def test_ask_names_the_values_of_all_versions_newest_first(folder: Path, amount: int) -> None:
    written = list[str]()
    with Library(folder / ".local-rag", parts=saying(amount)) as library:
        answer = library.ask("What is the daily allowance for meals?", on_text=written.append)
    assert [(one.date, Path(one.path).name) for one in answer.versions] == [
        ("2025-03-01", "travel-policy-2025.md"),
        ("2022-05-01", "travel-policy-2022.md"),
    ]
    assert answer.text.index("740") < answer.text.index("520")
    assert "2025-03-01" in answer.text
    assert "2022-05-01" in answer.text
    cited = {one.number: one.passage.path for one in answer.citations}
    assert [cited[one.citation] for one in answer.versions] == [one.path for one in answer.versions]
    assert written == [answer.text]


def test_ask_as_of_a_day_names_one_value(folder: Path) -> None:
    with Library(folder / ".local-rag", parts=saying(520)) as library:
        options = AskOptions(filters=Filters(as_of=date(2023, 1, 1)))
        answer = library.ask("What is the daily allowance for meals?", options)
    assert answer.versions == ()
    assert "740" not in answer.text


def test_versions_that_agree_are_not_named(folder: Path) -> None:
    engine = FakeGenerator(lambda _prompt: "Second class is the rule.")
    with Library(folder / ".local-rag", parts=replace(EMBEDS_QUICKLY, open_engine=generating(engine))) as library:
        answer = library.ask("Which class is the rule on trains?")
    assert answer.answered
    assert answer.versions == ()


def test_an_answer_that_names_the_newest_version_is_forgotten_with_it(tmp_path: Path) -> None:
    read = passage(path="/docs/old.md", newest="/docs/new.md")
    with closing(History(tmp_path)) as history:
        answer = Answer("q", "text", "answered", read=(read,))
        history.add(None, answer, epoch=history.epoch(), opens=True, again=False)
        assert ("", "/docs/new.md") in history.documents()
        assert history.forget_documents(lambda _hash, path: path == "/docs/new.md") == 1


def test_the_page_marks_older_versions(folder: Path) -> None:
    with served.client(folder / ".local-rag", EMBEDS_QUICKLY, profile="tiny") as client:
        page = client.get("/search", params={"q": "daily allowance for meals"}).text
    assert "older version; the newest is" in page
