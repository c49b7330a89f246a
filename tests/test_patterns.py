"""No pattern that sees text from outside takes more than linear time, whatever the text.

Every pattern of the package is found: those of the modules by their values, those in calls by the source. Texts made of
what a pattern repeats are matched in the ways in which the package uses it.
"""

import re
import signal
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from local_rag.index.normal_form import normalize
from local_rag.retrieval.occurrences import occurrences, pattern_of
from local_rag.retrieval.question_kinds import _RULES, Phrase
from local_rag.verification.sentences import split_sentences
from local_rag.verification.sources import Source
from tests.support.patterns import Pumps, Used, used_patterns

LONG, SHORT = 200_000, 3000  # characters
SECONDS, EXPONENTIAL = 1.5, 0.3  # of the processor; a quadratic pattern takes minutes for a long text
# The most characters that a pattern sees, where its caller cuts the text, or where the text is of this machine.
BOUNDED = {
    "answering.units._HEADING": 0,  # with `match` alone, as the following ones
    "answering.units._ROW": 0,
    "answering.units._STEP": 0,
    "answering.units._ITEM": 0,
    "verification.facts._START": 9,
    "verification.sentences._LAST_WORD": 60,
    "verification.sources._DAYS_BEFORE": 30,
}
# Made from what they are given, with what that is; others are a fault of who wrote them. Words are escaped.
BUILT = frozenset(
    """
    bundle.archive bundle.verify cluster.engines.qdrant_indexes evaluation.judge index.keyword_index
    indexing.contextualize llama.external machine reading.converters.rich_text reading.converters.sheets reading.ignore
    reading.provenance retrieval.occurrences retrieval.question_kinds retrieval.spelling verification.dates
    verification.sources
    """.split()  # noqa: SIM905
)
USED, MADE = used_patterns()


class TooLateError(Exception):
    pass


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooLateError after so many seconds of the processor: `re` looks for signals while it backtracks."""

    def late(*_: Any) -> None:
        raise TooLateError

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds_of(used: Used, text: str, most: float) -> float:
    """Return how long a pattern takes for a text, `most` if it takes longer."""
    pattern, given = (
        used.pattern,
        text.encode("latin-1", "replace") if isinstance(used.pattern.pattern, bytes) else text,
    )
    began = time.process_time()
    try:
        with within(most):
            if used.scans:
                for _ in pattern.finditer(given):
                    pass
            if "match" in used.methods:
                pattern.match(given)
            if "fullmatch" in used.methods:
                pattern.fullmatch(given)
    except TooLateError:
        return most
    return time.process_time() - began


def worst(used: Used, long: int = LONG) -> tuple[float, object]:
    """Return the longest time of a pattern for a text of `long` characters, and what the text was made of."""
    pumps, found = Pumps(used.pattern), list[tuple[float, Any]]()
    texts = [partial(_text, *words) for words in pumps.words()] + [partial(_halves, *words) for words in pumps.halves()]
    for text in texts:
        taken = seconds_of(used, text(min(SHORT, long)), EXPONENTIAL)
        if taken >= EXPONENTIAL:
            return 1000.0, text.args
        found.append((taken, text))
    found.sort(key=lambda one: -one[0])
    return max((seconds_of(used, text(long), SECONDS), text.args) for _, text in found[:2])


def _text(before: str, pump: str, end: str, length: int) -> str:
    return before + pump * (length // len(pump)) + end


def _halves(first: str, second: str, length: int) -> str:
    return first * (length // 2 // len(first)) + second * (length // 2 // len(second))


def test_the_pumps_find_what_takes_too_long() -> None:
    """Of each kind one: nested repeats, alternatives alike, a scan that begins anew, a repeat before an end."""
    bad = [r"(?:\s*-\s*)+x", r"(?:a|ab?)+c", r"\s+x", r"\[[^\]]*\]", r"[^\S\n]*\n\s*(?!x)", r"\w*\Z", r"(?:\w+,?)*!"]
    for pattern in bad:
        assert worst(Used(re.compile(pattern), "here", frozenset({"finditer"})))[0] >= SECONDS, pattern
    good = [r"(?<!\s)\s++x", r"\[[^\[\]]*+\]", r"(?:\s*+-)++x"]
    for pattern in good:
        assert worst(Used(re.compile(pattern), "here", frozenset({"finditer"})))[0] < SECONDS, pattern


def _name(used: Used) -> str:
    return used.where.removeprefix("local_rag.")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_pattern_takes_linear_time(part: int) -> None:
    outside = [used for used in USED if not _name(used).startswith(("bundle.", "machine"))]  # what this machine says
    assert len(outside) > 300
    late = dict[str, object]()
    for used in outside[part::8]:
        most = BOUNDED.get(_name(used), LONG)
        if most and (found := worst(used, most))[0] >= SECONDS:
            late[_name(used)] = used.pattern.pattern, found
    assert late == {}


def test_patterns_that_are_made_of_what_is_given_are_known() -> None:
    assert {place.partition(":")[0] for place in MADE} <= BUILT


@pytest.mark.slow
def test_patterns_for_questions_are_quick_for_all_that_is_examined_of_one() -> None:
    for _, _, patterns in _RULES:
        for pattern in patterns:
            used = Used(re.compile(pattern, re.IGNORECASE), "question_kinds", frozenset({"fullmatch"}))
            taken, made = worst(used, 500)
            assert taken < 0.2, (pattern, made)


@pytest.mark.parametrize(
    "phrase",
    [
        "- " * 12 + "zebra",
        "a " * 200 + "b",
        "-a-" * 60,
        "a - " * 60,
        "* ",
        "the " * 100,
        "\u00e9-" * 50,
        "walked " * 60,
    ],
)
@pytest.mark.parametrize("pump", ["-", "a ", "- ", "-a-", "walk ", "a\n", "\n", " \n", "the-", "e\u0301 ", "* "])
def test_no_phrase_holds_a_thread_over_any_text(phrase: str, pump: str) -> None:
    text = pump * (50_000 // len(pump)) + "zebra"
    with within(5):
        occurrences(text, [pattern_of(Phrase(phrase, exact=True)), pattern_of(Phrase(phrase))])


def test_signs_in_a_phrase_stand_for_what_may_stand_between_words() -> None:
    (found,) = occurrences("The pump - red - is old.", [pattern_of(Phrase("pump - red"))])
    assert (found.start, found.end) == (4, 14)
    # A match at the edge of a piece is found, and once.
    text = "x" * 7995 + " red pump " + "y" * 9000
    assert len(occurrences(text, [pattern_of(Phrase("red pump"))])) == 1


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f71\u0f72", "\u0301", "\uff9e\u0323", "a\u0301\u0323"])
def test_any_number_of_marks_is_normalized_in_linear_time(marks: str) -> None:
    with within(5):
        assert normalize("NFKC", "a" + marks * 60_000)
    assert normalize("NFKD", "\u00e9") == "e\u0301"
    assert normalize("NFC", "a" + "\u0323\u0301" * 5) == unicodedata.normalize("NFC", "a" + "\u0323\u0301" * 5)


@pytest.mark.parametrize(
    "row",
    [
        "- ",
        "A. ",
        "12 - ",
        "1,",
        "| ",
        "1. ",
        "$1 ",
        "and ",
        "12 jan ",
        "1/2 ",
        "a-",
        "\u0301\u0323",
        "... ",
        "[1] ",
        "=",
        " \n",
    ],
)
def test_facts_and_sentences_of_rows_of_signs_are_read_in_linear_time(row: str) -> None:
    text = "Weights: 12 " + row * (20_000 // len(row)) + "total 15 kg"
    with within(10):
        Source(text)
        split_sentences(text)
