"""The sentences of the program are in the language of the question."""

from string import Formatter

import pytest

from local_rag.answering.compose import NOT_SAID, NOT_SURE, REFUSAL
from local_rag.answering.translations import translated, translations


def test_all_sentences_are_known_in_the_same_languages_with_the_same_places_to_fill() -> None:
    assert {REFUSAL, NOT_SURE, NOT_SAID} <= set(translations())
    for sentence, texts in translations().items():
        assert set(texts) == set(translations()[REFUSAL]), sentence
        for text in texts.values():
            assert _filled(text) == _filled(sentence)
            assert text != sentence


def _filled(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Wie lange dauert die Elternzeit?", "Die Dokumente beantworten diese Frage nicht."),
        ("¿Cuánto dura el permiso parental?", "Los documentos no responden a esta pregunta."),
        ("育儿假有多长", "文档没有回答这个问题。"),
        ("How long is parental leave?", REFUSAL),
        ("Πόσο διαρκεί η άδεια;", REFUSAL),
    ],
)
def test_a_refusal_is_in_the_language_of_the_question(question: str, sentence: str) -> None:
    assert translated(REFUSAL, question) == sentence
