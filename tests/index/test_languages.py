"""The language of documents and questions decides how their words are stemmed."""

import json
from pathlib import Path

import pytest

from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings
from local_rag.text.languages import ENGLISH, FUNCTION_WORDS, language_of
from local_rag.text.tokens import document_tokens, keyword_tokens, question_terms

CORPUS = Path(__file__).parents[2] / "corpus"
NAMES = {"de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese", "pl": "polish"}
NAMES |= {"ru": "russian", "zh": "chinese"}
GERMAN = (
    "Die Boote der Genossenschaft fahren um sieben aus dem Hafen und kommen um neun zurück.",
    "Die Bäckereien backen das Brot mit Roggen, und zwar jeden Morgen vor der Abfahrt.",
)
ENGLISH_TEXTS = ("The lighthouse of Gråskjær is staffed all year.", "Bread is baked with rye, at noon, by the keepers.")


def questions(folder: str) -> list[dict[str, str]]:
    text = (CORPUS / folder / "questions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_question_tells_its_language() -> None:
    asked = questions("languages")
    assert len(asked) == 60
    assert {one["language"] for one in asked} == set(NAMES)
    wrong = [one["question"] for one in asked if language_of(one["question"]) != NAMES[one["language"]]]
    assert wrong == ["Jaki numer ma bateria mareografu ciśnieniowego?"]  # one function word is too few


@pytest.mark.parametrize("folder", ["", "look-alikes", "whole-documents"])
def test_no_english_question_is_taken_for_another_language(folder: str) -> None:
    assert {language_of(one["question"]) for one in questions(folder)} == {ENGLISH}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", ENGLISH),
        ("E04 DC-9 4471", ENGLISH),
        ("Las Palmas harbour", ENGLISH),
        ("いつ船が出ますか", "japanese"),
        ("배는 언제 떠납니까", "korean"),
        ("Πότε φεύγει το πλοίο;", "greek"),
        ("ተግባራዊ", "unknown"),
    ],
)
def test_script_and_function_words_tell_the_language(text: str, language: str) -> None:
    assert language_of(text) == language


def test_every_language_has_words_of_its_own() -> None:
    assert len(FUNCTION_WORDS) == 16
    assert all(len(words) > 20 for words in FUNCTION_WORDS.values())


def test_a_document_is_stemmed_in_its_language() -> None:
    tokens = document_tokens(GERMAN)
    assert "boot" in tokens[0]
    assert "die" not in tokens[0]
    assert document_tokens(ENGLISH_TEXTS) == [keyword_tokens(text) for text in ENGLISH_TEXTS]


def test_other_forms_of_a_german_word_are_found_and_names_in_english_documents(tmp_path: Path) -> None:
    tokens = [*document_tokens(GERMAN), *document_tokens(ENGLISH_TEXTS)]
    Postings.build(tokens, [0, 0, 1, 1]).write(tmp_path / "k")
    index = KeywordIndex([(Postings.open(tmp_path / "k"), None)])

    def best(question: str) -> int:
        return index.search(question_terms(question), 1)[0][0]

    assert best("Wann ist die Abfahrt des Bootes?") in {0, 1}
    assert best("Wo ist die Bäckerei?") == 1
    assert best("Wer ist auf Gråskjær, und wann?") == 2
    assert best("When are keepers baking?") == 3


@pytest.mark.parametrize("word", ["Dienstanweisung", "Schließfach", "schliessfach", "SCHLIESSFACH", "Ersatzschlüssel"])
def test_a_word_of_a_german_document_is_found_from_a_question_in_any_language(word: str) -> None:
    german = ["Die Dienstanweisung gilt für das Schließfach und den Ersatzschlüssel, und sie ist nicht von mir."]
    tokens = [*document_tokens(["Working time is not in this document"]), *document_tokens(german)]
    index = KeywordIndex([(Postings.build(tokens, [0, 1]), None)])
    for question in (
        f"What is the working time in the {word}?",
        f"Was ist das für eine {word}?",
        f"¿Qué es {word}?",
    ):
        found = [row for row, _ in index.search(question_terms(question), 2)]
        assert 1 in found, question
    assert index.search(question_terms(f"What is the {word}?"), 2)[0][0] == 1


def test_a_word_that_is_its_own_stem_counts_once() -> None:
    (tokens,) = document_tokens(["Das ist der Anker, und die Dienstanweisung ist nicht von mir."])
    assert tokens.count("anker") == 1
    assert tokens.count("dienstanweis") == tokens.count("dienstanweisung") == 1


def test_an_english_question_has_the_terms_that_it_always_had() -> None:
    for one in questions(""):
        assert question_terms(one["question"]) == keyword_tokens(one["question"])
