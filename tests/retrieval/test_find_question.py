"""What is looked for in all documents, by the plan of a question, by flags, and by a text as it stands."""

import json
from pathlib import Path

import pytest

from local_rag.plan_records import Plan
from local_rag.retrieval.find_question import (
    FindQuestion,
    Phrase,
    any_question,
    exact_question,
    find_question,
    phrases_of,
)
from local_rag.understanding.question_reader import read_plan

ROOT = Path(__file__).parents[2]
WORDS = Plan()  # of a text that asks nothing of all documents


def facts() -> list[str]:
    """Return the questions of corpus/, which all ask for a fact or for one document."""
    files = ("questions.jsonl", "look-alikes/questions.jsonl", "whole-documents/questions.jsonl")
    return [
        json.loads(line)["question"]
        for name in files
        for line in (ROOT / "corpus" / name).read_text(encoding="utf-8").splitlines()
    ]


def test_hardly_a_question_of_the_corpus_is_taken_for_one_about_all_documents() -> None:
    taken = [question for question in facts() if read_plan(question).kind == "documents"]
    assert len(taken) <= 0.03 * len(facts()), taken


def test_a_plan_says_what_is_looked_for() -> None:
    plan = Plan("documents", operation="count", subject="crane and hoist", match="words", sort="reports", negated=True)
    asked = find_question(plan, "How many reports do not mention the crane and hoist?")
    phrases = (Phrase("crane"), Phrase("hoist"))
    assert asked == FindQuestion("count", "words", "crane and hoist", phrases, negated=True, sort="reports")


def test_what_is_quoted_in_a_question_is_looked_for_word_for_word() -> None:
    plan = Plan("documents", operation="list", subject="net 30 days", match="about")
    asked = find_question(plan, "Which invoices contain \u201cnet 30 days\u201d?")
    assert asked is not None
    assert (asked.rule, asked.phrases) == ("words", (Phrase("net 30 days", exact=True),))
    unquoted = find_question(plan, "Which invoices are about net 30 days?")
    assert unquoted is not None
    assert (unquoted.rule, unquoted.phrases) == ("meaning", ())


def test_places_are_listed_where_occurrences_are_asked_for() -> None:
    asked = find_question(Plan("documents", operation="occurrences", subject="crane", match="words"), "crane?")
    assert asked is not None
    assert (asked.kind, asked.by_document) == ("list", False)


def test_without_a_subject_documents_are_asked_for_by_their_names_alone() -> None:
    plan = Plan("documents", operation="list", sort="leases", limits=("from 2023",))
    assert find_question(plan, "List the leases from 2023") == FindQuestion(
        "documents", "names", sort="leases", limits=("from 2023",)
    )
    assert find_question(Plan("documents", operation="count"), "How many?") is None
    assert find_question(Plan("documents", sort="leases", negated=True), "No leases?") is None


def test_flags_say_exactly_what_is_looked_for() -> None:
    found = exact_question("safety officer", count=True, negated=True, sort="policies")
    phrases = (Phrase("safety officer"),)
    assert found == FindQuestion("count", "words", "safety officer", phrases, negated=True, sort="policies")
    assert exact_question("fire drills", about=True).rule == "meaning"
    assert exact_question("the", count=True).phrases == (Phrase("the"),)


def test_all_phrases_are_meant_unless_there_is_an_or() -> None:
    assert phrases_of("the crane and the hoist") == ((Phrase("crane"), Phrase("hoist")), True)
    assert phrases_of("crane, hoist or winch") == ((Phrase("crane"), Phrase("hoist"), Phrase("winch")), False)
    assert phrases_of("“tide gauge” or 'lamp'") == (
        (Phrase("tide gauge", exact=True), Phrase("lamp", exact=True)),
        False,
    )
    assert phrases_of("4,000 kroner") == ((Phrase("4,000 kroner"),), True)
    assert phrases_of("the keeper's book") == ((Phrase("keeper's book"),), True)


def test_find_takes_any_text() -> None:
    assert any_question("crane", WORDS) == FindQuestion("documents", "words", "crane", (Phrase("crane"),))
    assert any_question('Who wrote of the "tide gauge"?', WORDS).phrases == (Phrase("tide gauge", exact=True),)
    asked = Plan("documents", operation="count", subject="crane", match="about")
    assert any_question("How many reports are about the crane?", asked).rule == "meaning"


@pytest.mark.parametrize(
    ("query", "text", "operator"),
    [
        ("weir -lamp", "weir", "`-lamp`"),
        ('weir -"old lamp"', "weir", '`-"old lamp"`'),
        ("weir NOT lamp", "weir", "`NOT lamp`"),
        ("sluice*", "sluice", "`sluice*`"),
        ("*sluice", "sluice", "`*sluice`"),
        ("title:weir", "weir", "`title:weir`"),
        ("weir type:pdf", "weir", "`type:pdf`"),
        ("weir~2", "weir", "`weir~2`"),
        ("weir NEAR/3 dam", "weir dam", "`NEAR/3`"),
        ("+weir", "weir", "`+weir`"),
    ],
)
def test_an_operator_that_does_not_exist_is_said(query: str, text: str, operator: str) -> None:
    asked = any_question(query, WORDS)
    assert asked.phrases == (Phrase(text),)
    (note,) = asked.notes
    assert note.startswith(f"There is no operator as in {operator}: ")


@pytest.mark.parametrize(
    "query", ["-40 degrees", "C*", "10*3", "foo:bar", "a - b", "weir AND dam", '"sluice* -lamp"', "e-mail", "+40"]
)
def test_what_is_no_operator_is_looked_for(query: str) -> None:
    assert any_question(query, WORDS).notes == ()


@pytest.mark.parametrize(
    "query",
    [
        '"red buoy"',
        "\u201ered buoy\u201c",
        "\u201cred buoy\u201d",
        "\u00abred buoy\u00bb",
        "\u00bbred buoy\u00ab",
        "\u300cred buoy\u300d",
    ],
)
def test_the_quotation_marks_of_any_language_quote(query: str) -> None:
    assert any_question(query, WORDS).phrases == (Phrase("red buoy", exact=True),)


def test_a_word_that_says_little_is_looked_for_as_it_is() -> None:
    assert any_question("the", WORDS).phrases == (Phrase("the"),)


def test_a_question_that_loses_its_subject_lists_no_documents_by_their_names_alone() -> None:
    found = any_question("Which policies name the safety officer?", Plan("passages"))
    assert found.rule != "names"


@pytest.mark.parametrize("text", ["reports of the crane and hoist", "नमस्ते", "கப்பல்/ a"])
def test_a_text_that_is_one_quotation_is_looked_for_as_it_stands(text: str) -> None:
    read = Plan("documents", subject="crane", match="about", sort="reports")
    assert any_question(f'"{text}"', read).phrases == (Phrase(text, exact=True),)
    assert any_question(f'"{text}"', read).sort == ""


def test_a_word_that_a_plan_takes_whole_is_looked_for() -> None:
    assert any_question("crane", Plan("documents", subject="crane", match="about")).phrases == (Phrase("crane"),)
