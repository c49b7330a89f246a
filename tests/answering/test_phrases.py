"""The sentences of the program are in the language of the question."""

import pytest

from local_rag.answering.compose import NOT_SURE, REFUSAL
from local_rag.answering.phrases import _TRANSLATIONS, translated


def test_both_sentences_are_known_in_the_same_languages() -> None:
    assert set(_TRANSLATIONS) == {REFUSAL, NOT_SURE}
    assert set(_TRANSLATIONS[REFUSAL]) == set(_TRANSLATIONS[NOT_SURE])
    assert all(len(set(texts.values())) == len(texts) for texts in _TRANSLATIONS.values())


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
