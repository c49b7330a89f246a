"""No text takes longer than its length explains."""

import time

import pytest

from local_rag.answering.answer_checks import gives_number
from local_rag.text.facts import Source, missing_facts
from local_rag.text.question_names import question_names
from local_rag.text.sentences import split_sentences

_PUMPS = [
    *(
        "-",
        "- ",
        "1",
        "1,",
        "1 ",
        "1.",
        "1-",
        "12 - ",
        "1/2 ",
        "1'234 ",
        "a-",
        "a.",
        "A.",
        "Aa ",
        "A",
        "a",
        "an",
        "ian",
    ),
    *("](", "](((", "www.", ". ", ".", "e.g. ", "? ", "[1]", ". [1] ", "one ", "twenty-", "hundred and ", "half a "),
    *("(12) 3-", "5 days or ", "1 May ", "1.1.2024 ", "12:30 ", "EUR ", "EUR 5 ", "kEUR ", "(", "days: 5 ", "minus "),
    *("ST-1 ", "1a", "a1-", "when ", "who ", "/", "x:", "A&", "O'", "\ufb01", "\u00bd", "%", "|", "\n", " "),
]
_CHARACTERS, _SHORT, _TIMES = 16_000, 2_000, 30  # of linear time 8 times as long; quadratic takes 64 times


@pytest.mark.slow
@pytest.mark.parametrize("pump", _PUMPS)
def test_time_grows_with_the_length(pump: str) -> None:
    for read in (Source, split_sentences, lambda text: missing_facts("", text, [])):
        short, long = (_seconds(read, pump * (size // len(pump)) + "!5x") for size in (_SHORT, _CHARACTERS))
        assert long < max(0.2, _TIMES * short), (read, short, long)


def _seconds(read: object, text: str) -> float:
    begun = time.process_time()
    read(text)  # type: ignore[operator]
    return time.process_time() - begun


@pytest.mark.parametrize("pump", _PUMPS)
def test_a_question_is_read_at_once(pump: str) -> None:
    question, begun = (pump * 200_000)[:200_000], time.process_time()
    gives_number(["It has 5 months."], question)
    question_names(question)
    assert time.process_time() - begun < 5, "the square of the length would take minutes"
