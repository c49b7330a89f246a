"""Small talk is answered by the program, and no question ever is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.text.small_talk import reply_to_small_talk


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("Hello!", "Hello."),
        ("  Good morning. ", "Hello."),
        ("Thanks a lot!!", "You are welcome."),
        ("Bye", "Goodbye."),
        ("What can you do?", "I answer questions from the documents"),
        ("Hi, what can you do?", "I answer questions"),
        ("Hi there! Thanks!", "You are welcome."),
        ("Was kannst du?", "Ich beantworte Fragen"),
        ("Vielen Dank", "Gern geschehen."),
        ("Que peux-tu faire ?", "Je réponds"),
        ("¿Qué puedes hacer?", "Respondo"),
        ("Cosa puoi fare?", "Rispondo"),
    ],
)
def test_small_talk_is_answered_in_its_language(text: str, begins: str) -> None:
    assert str(reply_to_small_talk(text)).startswith(begins)


@pytest.mark.parametrize(
    "text",
    [
        "hi, how long is leave?",
        "What is hello?",
        "thanks to whom?",
        "What can you do about phishing?",
        "What can you do with a company card?",
        "Who are you allowed to call at night?",
        "How does this work?",
        "Hello world program in the manual?",
        "Who can help me with a lost laptop?",
        "hello " * 10_000,
        "?",
        "",
    ],
)
def test_a_question_is_no_small_talk(text: str) -> None:
    assert reply_to_small_talk(text) is None


@given(st.text(max_size=60), st.sampled_from(["invoice", "leave", "Rechnung", "2024"]))
def test_what_names_a_subject_is_always_asked(text: str, subject: str) -> None:
    assert reply_to_small_talk(f"{text} {subject}") is None
    assert reply_to_small_talk(f"{subject} {text}") is None
