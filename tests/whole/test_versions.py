"""Versions of a document form a family; look-alikes do not. The newest answers, and older ones are marked or named."""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from local_rag.answer_records import Answer, Written
from local_rag.asking import AskOptions, Filters
from local_rag.library import Library, Parts
from local_rag.retrieval.asked_versions import AskedVersions
from local_rag.retrieval.question import Question
from local_rag.retrieval.version_families import Versions
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


REWRITTEN = {
    "expenses-2023.md": """# Volunteer expenses

## Who can claim

Any volunteer who has been with us for three months or more and has signed the agreement. People on a placement claim
from their college.

## Travel

Bus and train: the actual fare, standard class, with a ticket. Taxis are not paid.

## How to claim

Fill in the blue form and hand it in to the office. Claims must reach the office within 60 days of the date of the
expense.
""",
    "expenses-2025.md": """# Volunteer expenses

## Who can claim

Any volunteer who has completed six months of service and has signed the agreement, which is longer than before: the
board wanted it to end with the time of settling in.

## Travel

Bus and train: the actual fare, standard class. A photo will do. Taxis are paid only if the last bus has gone, up to 18
pounds.

## How to claim

Use the form on the intranet. Claims must be sent within 90 days of the date of the expense; later ones are paid only to
those who were ill.
""",
    "board-2025-03-12.md": """# Minutes of the board

Present: Ada, Bob and Cy. Apologies: none.

## Roof

The board agreed to spend 4,000 on the roof before the winter.

## Any other business

None. The meeting closed at nine.
""",
    "board-2025-06-18.md": """# Minutes of the board

Present: Ada and Di. Apologies: Cy.

## Lift

The lift will be put off to October, as the maker told Bob.

## Any other business

None. The meeting closed at nine.
""",
}


def test_a_policy_written_anew_replaces_the_one_of_an_earlier_year_and_minutes_replace_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    place = indexed(tmp_path, REWRITTEN, run, monkeypatch)
    assert families(run) == [["expenses-2025.md", "expenses-2023.md"]]
    with Library(place, parts=replying("Claims must be sent within 90 days.")) as library:
        answer = library.ask("Within how many days must claims reach the office?", passages=2)
    assert "expenses-2023.md" not in {Path(one.path).name for one in answer.read}
    assert answer.quotes[0].text.startswith("Claims must be sent within 90 days")


RULES = {
    "house-rules-2022.md": """# House rules

## 4. Guests

Guests may stay for six weeks without notice, and a room may be let at any time if the manager is told the name.

## 5. Balconies

Charcoal is not allowed. Gas barbecues are allowed on balconies from the second floor upwards, unless the fire brigade
has warned of dry weather. Flower boxes hang on the inside of the railing. Satellite dishes need consent.
""",
    "house-rules-2025.md": """# House rules

## 4. Subletting

A member may sublet the flat after three years, for nine months at most, and asks the board six weeks ahead.

## 6. Balconies

Charcoal is not allowed. Gas barbecues are no longer allowed either; electric grills are, outside quiet hours. Flower
boxes hang on the inside of the railing. Satellite dishes need consent.
""",
}


def test_a_section_that_was_written_anew_answers_in_place_of_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    place = indexed(tmp_path, RULES, run, monkeypatch)
    with Library(place, parts=replying("Gas barbecues are no longer allowed.")) as library:
        answer = library.ask("Are gas barbecues on balconies allowed on the 4th floor?")
    assert [one.passage.path.rpartition("/")[2] for one in answer.citations] == ["house-rules-2025.md"]
    assert not any("upwards" in one.text for one in answer.read)


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
        seen = library.seen_by(limits)
        found = seen.search("daily allowance for meals")
        assert [(Path(one.path).name, one.newest) for one in found] == [("travel-policy-2022.md", "")]
        assert seen.search("daily allowance for meals", filters=Filters(as_of=date(2026, 1, 1)))


def test_a_document_without_versions_is_asked_as_of_any_day_unless_it_says_a_later_one(folder: Path) -> None:
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        filters = Filters(within=("oslo",), as_of=date(2000, 1, 1))
        assert library.search("the door", filters=filters)


def saying(amount: int) -> Parts:
    """Return parts with a model that says this amount."""
    engine = FakeGenerator(lambda _prompt: f"The daily allowance for meals is {amount} kroner in all countries.")
    return replace(EMBEDS_QUICKLY, open_engine=generating(engine))


@pytest.mark.parametrize(
    ("question", "quoted", "remark"),
    [
        (
            "What is the daily allowance for meals?",
            740,
            "Earlier: \u201c...520...\u201d (2022-05-01, travel-policy-2022.md)",
        ),
        (
            "What was the allowance for meals in 2022?",
            520,
            "Later: \u201c...740...\u201d (2025-03-01, travel-policy-2025.md)",
        ),
    ],
)
def test_ask_answers_from_the_version_asked_for_and_adds_what_another_one_says(
    folder: Path, question: str, quoted: int, remark: str
) -> None:
    written = list[Written]()
    with Library(folder / ".local-rag", parts=saying(quoted)) as library:
        answer = library.ask(question, on_text=written.append)
    body, _, line = answer.text.partition("\n\n")
    other = 740 + 520 - quoted
    said = "The daily allowance for meals is {} kroner in all countries."
    assert body == f"{said.format(quoted)} [1]"
    assert line == f"{remark.replace(f'...{other}...', said.format(other))} [{answer.versions[0].citation}]"
    named = Path(answer.versions[0].path)
    assert {Path(one.path).name for one in answer.read if "travel-policy" in one.path}.isdisjoint({named.name})
    assert {one.number: one.passage.path for one in answer.citations}[answer.versions[0].citation] == str(named)
    assert written[-1].text == answer.text


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


NOTICE = """# Service agreement

## Term

Either party may terminate it with {months} months written notice to the end of a quarter.

## Payment

The fee is due within thirty days of the invoice, and late payments bear interest.
"""
PRICES = """# Price list {year}

| Product | Price per month (EUR) | Users |
|---|---|---|
| Planner Basic | 5 | 3 |
| Planner Plus | {plus} | 20 |
| Planner Max | {most} | 100 |

## Discounts

| Group | Discount |
|---|---|
| Charities | 25 % |
| Schools | {schools} % |
"""


def indexed(folder: Path, texts: Mapping[str, str], run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    index_texts(folder, texts, run)
    return folder / ".local-rag"


def replying(text: str) -> Parts:
    return replace(EMBEDS_QUICKLY, open_engine=generating(FakeGenerator(lambda _prompt: text)))


def test_numbers_in_words_of_two_versions_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    texts = {
        "agreement v1 (2023).md": NOTICE.format(months="three"),
        "agreement v2 (2025).md": NOTICE.format(months="six"),
    }
    said = "Either party may terminate it with six months written notice to the end of a quarter."
    with Library(indexed(tmp_path, texts, run, monkeypatch), parts=replying(said)) as library:
        answer = library.ask("With what notice may the service agreement be terminated?")
    body, _, remark = answer.text.partition("\n\n")
    assert body == f"{said} [1]"
    assert remark.startswith(f"Earlier: \u201c{said.replace('six', 'three')}\u201d (2023, agreement v1 (2023).md)")


@pytest.mark.parametrize(
    ("question", "said", "remark"),
    [
        ("Which discount should charities get?", "Charities get 25 %.", ""),
        ("Which discount should schools get?", "Schools get 15 %.", "Group: Schools; Discount: 10 %"),
        (
            "Why should Planner Plus cost what it does in 2025?",
            "Planner Plus costs 12 EUR per month.",
            "Product: Planner Plus; Price per month (EUR): 10",
        ),
        ("How many users does Planner Plus allow?", "Planner Plus allows 20 users.", ""),
    ],
)
def test_of_a_table_only_the_row_that_answers_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, question: str, said: str, remark: str
) -> None:
    texts = {
        "Price list 2024.md": PRICES.format(year=2024, plus=10, most=80, schools=10),
        "Price list 2025.md": PRICES.format(year=2025, plus=12, most=90, schools=15),
    }
    with Library(indexed(tmp_path, texts, run, monkeypatch), parts=replying(said)) as library:
        answer = library.ask(question)
    assert answer.text.startswith(said)
    assert {Path(one.path).name for one in answer.read} == {"Price list 2025.md"}
    assert [one.text for one in answer.versions] == ([remark] if remark else [])


def test_a_row_of_another_thing_is_no_line_of_an_older_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    texts = {
        "Price list 2024.md": PRICES.format(year=2024, plus=10, most=80, schools=10).replace(
            "| Planner Max | 80 | 100 |\n", ""
        ),
        "Price list 2025.md": PRICES.format(year=2025, plus=12, most=90, schools=15),
    }
    with Library(indexed(tmp_path, texts, run, monkeypatch), parts=replying("Planner Max costs 90 EUR.")) as library:
        answer = library.ask("Which product should cost 90 EUR per month?")
    assert answer.text.startswith("Planner Max")
    assert "Planner Basic" not in answer.text
    assert answer.versions == ()


def test_a_long_line_of_another_version_is_cut_around_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    long = "When a journey, which every head of a station signs beforehand, takes place by train or by night ferry and "
    line = f"{long * 3} the allowance per day is {{}} kroner, which the office pays {long * 2} all year."
    texts = {f"rules-{year}.md": f"# Rules\n\n{line.format(amount)}\n" for year, amount in ((2022, 520), (2025, 740))}
    with Library(indexed(tmp_path, texts, run, monkeypatch), parts=replying("The allowance is 740 kroner.")) as library:
        (said,) = library.ask("What is the allowance per day by the rules?").versions
    assert "allowance per day is 520 kroner" in said.text
    assert len(said.text) <= 160
    assert said.text[0] == said.text[-1] == "\u2026"


def test_what_only_an_older_version_has_is_answered_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    rule = "Umbrellas of the cooperative are lent at the counter against a deposit."
    texts = {
        **FACTS,
        "policies/travel-policy-2022.md": f"{FACTS['policies/travel-policy-2022.md']}\n## Umbrellas\n\n{rule}\n",
    }
    with Library(indexed(tmp_path, texts, run, monkeypatch), parts=replying(rule)) as library:
        answer = library.ask("Where are umbrellas lent against a deposit?")
    assert Path(answer.citations[0].passage.path).name == "travel-policy-2022.md"
    assert Path(answer.citations[0].passage.newest).name == "travel-policy-2025.md"


def test_the_newest_version_stands_for_an_older_one_that_alone_was_found(folder: Path) -> None:
    question = "What is the daily allowance for meals?"
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library, library.documents.reading() as store:
        older = [one for one in library.search(question) if one.path.endswith("2022.md")]
        asked = AskedVersions(Question(question), Versions(store), Filters())
        newer = asked.only(older, len(older))
        assert older
        assert {Path(one.path).name for one in newer} == {"travel-policy-2025.md"}
        assert "740 kroner" in newer[0].text
        assert newer[0].score == older[0].score
        assert (
            AskedVersions(Question(question), Versions(store), Filters(as_of=date(2023, 1, 1))).only(older, 9) == older
        )


@pytest.mark.parametrize(
    ("question", "first"),
    [("daily allowance for meals", "travel-policy-2025.md"), ("allowance for meals 2022", "travel-policy-2022.md")],
)
def test_search_ranks_the_version_asked_for_before_the_others(folder: Path, question: str, first: str) -> None:
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        found = library.search(question, filters=Filters(within=("policies",)))
        assert library.search(question, filters=Filters(within=("policies",)), top=1) == found[:1]
    assert Path(found[0].path).name == first
    assert len({one.path for one in found}) == 2
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_of_versions_that_state_no_date_the_oldest_was_valid_before_their_files(folder: Path) -> None:
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        for day, left in ((date(2000, 1, 1), "manual_v1.md"), (date(2100, 1, 1), "manual_v2.md")):
            filters = Filters(within=("manual*",), as_of=day)
            assert {Path(one.path).name for one in library.search("the green button", filters=filters)} == {left}


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
