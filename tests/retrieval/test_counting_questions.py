"""Which questions ask something of all documents: 40 questions in three phrasings each, and many for a fact."""

import json
from pathlib import Path

import pytest

from local_rag.retrieval.counting_questions import Phrase, any_question, find_question, phrases_of
from local_rag.text.tokens import keyword_tokens

ROOT = Path(__file__).parents[2]


def written() -> list[tuple[str, str, str, str, str]]:
    """Return (kind, rule, what, subject, question) of each phrasing."""
    text = (ROOT / "tests/data/find_questions.txt").read_text(encoding="utf-8")
    found = []
    for block in text.partition("\n")[2].strip().split("\n\n"):
        kind, rule, what_and_subject = block.partition("\n")[0].split(" ", 2)
        what, _, subject = what_and_subject.partition(" ")
        found += [(kind, rule, what, subject, question) for question in block.splitlines()[1:]]
    return found


def test_the_set_has_forty_questions_in_three_phrasings() -> None:
    assert len(written()) == len(set(written())) == 120


@pytest.mark.parametrize(("kind", "rule", "what", "subject", "question"), written())
def test_a_question_about_all_documents_is_recognised(
    kind: str, rule: str, what: str, subject: str, question: str
) -> None:
    asked = find_question(question)

    assert asked is not None
    assert (asked.kind, asked.rule, asked.by_document) == (kind, rule, what == "documents")
    if rule == "meaning":
        assert asked.subject.lower() == subject.removeprefix("the ").lower()
    else:
        quoted = [f'"{one.text}"' if one.exact else one.text for one in asked.phrases]
        # "deadlines" asks for the same word as "deadline".
        assert [keyword_tokens(one) for one in quoted] == [keyword_tokens(one) for one in subject.split(" | ")]
        assert [one.exact for one in asked.phrases] == ['"' in one for one in subject.split(" | ")]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("welche Dokumente erw\u00e4hnen Tomas Reyl", "documents"),
        ("Welche Dateien enthalten den Namen Tomas Reyl?", "documents"),
        ("In welchen Dokumenten wird Tomas Reyl erw\u00e4hnt?", "documents"),
        ("In welchen Dokumenten steht Tomas Reyl?", "documents"),
        ("Wie viele Dokumente nennen Tomas Reyl?", "count"),
        ("Quels documents mentionnent Tomas Reyl ?", "documents"),
        ("Combien de documents citent Tomas Reyl ?", "count"),
    ],
)
def test_documents_that_mention_a_name_are_found_by_it_in_german_and_french(question: str, kind: str) -> None:
    for asked in (find_question(question), any_question(question)):
        assert asked is not None
        assert (asked.kind, asked.rule, asked.phrases) == (kind, "words", (Phrase("Tomas Reyl"),))


@pytest.mark.parametrize(
    "question",
    [
        "Welche Dokumente erw\u00e4hnen Tomas Reyl nicht?",
        "Welche Dokumente nennen Reyl und Voss?",
        "Welche Hunde nennen wir?",
    ],
)
def test_other_german_wordings_are_not_guessed(question: str) -> None:
    assert find_question(question) is None


def facts() -> list[str]:
    """Return the questions of corpus/, which all ask for a fact or for one document."""
    files = ("questions.jsonl", "look-alikes/questions.jsonl", "whole-documents/questions.jsonl")
    return [
        json.loads(line)["question"]
        for name in files
        for line in (ROOT / "corpus" / name).read_text(encoding="utf-8").splitlines()
    ]


def test_no_question_of_the_corpus_is_taken_for_one_about_all_documents() -> None:
    assert [question for question in facts() if find_question(question)] == []


@pytest.mark.parametrize(
    "question",
    [
        "How many days of leave do I get?",
        "How many people work on the island?",
        "How many pages does the report have?",
        "How many documents must I hand in for a visa?",
        "How many contracts were signed in 2023?",
        "Which document describes the tide gauge?",
        "Which policy names the safety officer?",
        "What is mentioned in the report about the crane?",
        "What does the contract say about the deadline?",
        "Which policies name the safety officer, and who is it?",
        "How many reports mention the crane and why was it stopped?",
        "How often is the crane inspected?",
        "How many times must I press the button?",
        "Which books must I read?",
        "Which documents are required for a visa?",
        "List the steps to change a lamp.",
        "List all members of the board.",
        "list of all presidents of the united states",
        "Name the three largest islands.",
        "What notes did the keeper leave?",
        "how many episodes are there in season two",
        "Where is the safety officer mentioned?",
        "Summarise the incident reports.",
        "",
        "?",
    ],
)
def test_on_doubt_a_question_is_asked_as_usual(question: str) -> None:
    assert find_question(question) is None


def test_documents_of_a_sort_are_asked_for_by_their_name() -> None:
    sorts = {
        "How many incident reports mention the crane?": "incident reports",
        "How many documents mention the crane?": "",
        "How many of our files mention the crane?": "",
        "Which policies name the safety officer?": "policies",
        "List every deadline in the contracts.": "contracts",
        "List every legal document that mentions the crane.": "legal",
        "How many PDFs mention the crane?": "pdfs",
    }
    assert {question: asked.sort for question in sorts if (asked := find_question(question))} == sorts


def test_a_question_for_documents_without_a_word_is_negated() -> None:
    asked = find_question("How many contracts do not mention liability?")
    assert asked is not None
    assert asked.negated
    assert (found := find_question("How many contracts mention liability?")) is not None
    assert not found.negated


def test_all_phrases_are_meant_unless_there_is_an_or() -> None:
    assert phrases_of("the crane and the hoist") == ((Phrase("crane"), Phrase("hoist")), True)
    assert phrases_of("crane, hoist or winch") == ((Phrase("crane"), Phrase("hoist"), Phrase("winch")), False)
    assert phrases_of("“tide gauge” or 'lamp'") == (
        (Phrase("tide gauge", exact=True), Phrase("lamp", exact=True)),
        False,
    )
    assert phrases_of("4,000 kroner") == ((Phrase("4,000 kroner"),), True)
    assert phrases_of("the keeper's book") == ((Phrase("keeper's book"),), True)


def test_a_statement_after_a_verb_of_words_is_asked_for_its_meaning() -> None:
    asked = find_question("Which reports mention that the crane was stopped?")
    assert asked is not None
    assert asked.rule == "meaning"


def test_find_takes_any_question() -> None:
    assert (words := any_question("crane")).rule == "words"
    assert words.phrases == (Phrase("crane"),)
    assert any_question('Who wrote of the "tide gauge"?').phrases == (Phrase("tide gauge", exact=True),)
    assert any_question("Who repairs the light?").rule == "meaning"
    assert any_question("How many people were hurt?").kind == "count"


@pytest.mark.parametrize(
    "question",
    ["how many " * 55, "list all " + "a " * 240, "which documents mention " + "," * 200 + "?", "count the " * 50],
)
def test_a_long_question_is_examined_without_trying_every_way_to_read_it(question: str) -> None:
    assert find_question(question) is None


@pytest.mark.parametrize(
    ("question", "kind", "sort", "folder"),
    [
        ("List all contracts", "list", "contracts", ""),
        ("list every contract", "list", "contract", ""),
        ("How many invoices do we have?", "count", "invoices", ""),
        ("How many manuals are there?", "count", "manuals", ""),
        ("Which reports are in the folder Harbour 2024?", "documents", "reports", "Harbour 2024"),
        ("What is in the folder Drawings?", "documents", "", "Drawings"),
        ("Show me all documents in the folder 'Old things'", "list", "", "Old things"),
    ],
)
def test_documents_are_asked_for_by_their_names(question: str, kind: str, sort: str, folder: str) -> None:
    asked = any_question(question)
    assert (asked.rule, asked.kind, asked.sort, asked.folder, asked.is_sort) == ("names", kind, sort, folder, True)
    assert find_question(question) is None  # `ask` answers from what documents say


def test_another_noun_may_be_the_name_of_a_folder() -> None:
    asked = any_question("List all leases")
    assert (asked.rule, asked.sort, asked.is_sort) == ("names", "leases", False)


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
    asked = any_question(query)
    assert asked.phrases == (Phrase(text),)
    (note,) = asked.notes
    assert note.startswith(f"There is no operator as in {operator}: ")


@pytest.mark.parametrize(
    "query", ["-40 degrees", "C*", "10*3", "foo:bar", "a - b", "weir AND dam", '"sluice* -lamp"', "e-mail", "+40"]
)
def test_what_is_no_operator_is_looked_for(query: str) -> None:
    assert any_question(query).notes == ()


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
    assert any_question(query).phrases == (Phrase("red buoy", exact=True),)


def test_a_word_that_says_little_is_looked_for_as_it_is() -> None:
    assert any_question("the").phrases == (Phrase("the"),)
