"""No pattern of the package takes more than linear time, whatever the text.

Every pattern is found, those of the modules by their values and those in calls by the source, so a new one cannot be
forgotten. Texts are made from what a pattern repeats, and it is applied as the package applies it. What counts is how
the time of the thread grows with the text, which does not depend on how busy a machine is.
"""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local_rag.retrieval.find_question import Phrase
from local_rag.retrieval.occurrences import occurrences, pattern_of
from local_rag.text import facts, words
from tests.support.patterns import UNBOUNDED, used_patterns
from tests.support.pumps import Pump, pumps

SHORT, MIDDLE, LONG = 1000, 4000, 16_000  # characters
EXPONENTIAL, SLOW, QUICK = 0.3, 1.0, 0.004  # seconds of the thread
GROWTH = 8  # times for a text four times as long; 4 is linear, 16 quadratic
# What the source does not tell: a pattern in a list, for instance, that is only used at the beginning of lines.
MATCHES = {"match": UNBOUNDED}
LINES = (MATCHES, "matched where a line begins, and reads no further than this line")
KNOWN: dict[str, tuple[dict[str, int], str]] = {
    "reading.split_tables._ITEM": LINES,
    "text.facts._START": ({"scan": facts._START_CHARACTERS}, "looks at the few characters before a fact"),
    "text.facts._DAYS_BEFORE": ({"scan": facts._NEAR}, "looks at the few characters before a date"),
    "machine.printed_mounts": ({}, "what this machine prints of its disks"),
    "reading.converters.format_code._TOKEN": (
        {"scan": 200},
        "number_format shows a number plainly if its code is longer",
    ),
}
USED, MADE = used_patterns()
# Made of what they are given, whose words are escaped; a test below applies those that a question or a text shapes.
BUILT = {
    *("bundle.archive._wrong", "bundle.verify._system_library", "machine._of_processor"),
    *(
        "cluster.engines.qdrant_indexes.QdrantIndexes._remove_all_but",
        "cluster.engines.qdrant_indexes.QdrantIndexes.place",
    ),
    *(
        "evaluation.answer_figures._position",
        "indexing.situating_prompts.repair_context",
        "llama.external.TextVocabulary.__init__",
    ),
    *("reading.converters.rich_text.convert_rtf", "reading.converters.sheets._delimiter", "reading.ignore._matcher"),
    *("reading.provenance._names", "reading.converters.office._prepare", "retrieval.occurrences._bounded"),
    *("retrieval.spelling._Visible._side_by_side", "text.facts._has_code", "text.words._cluster"),
    *("text.words._own_letters", "text.words._word"),
}


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


def seconds_of(pattern: re.Pattern[Any], way: str, text: str, most: float) -> float:
    """Return how long a pattern takes for a text, `most` if it takes longer."""
    given = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    began = time.thread_time()
    try:
        with within(most):
            if way == "scan":
                for _ in pattern.finditer(given):
                    pass
            else:
                getattr(pattern, way)(given)
    except TooLateError:
        return most
    return time.thread_time() - began


def fault(pattern: re.Pattern[Any], way: str, most: int = UNBOUNDED, tried: list[Pump] | None = None) -> str:
    """Return what is wrong with a pattern that sees up to `most` characters, and the text; empty if nothing is."""
    tried = pumps(pattern) if tried is None else tried
    short = min(SHORT, most)
    timed = list[tuple[float, int]]()
    for number, pump in enumerate(tried):
        taken = seconds_of(pattern, way, pump.text(short), EXPONENTIAL)
        if taken >= EXPONENTIAL:
            return f"exponential: {pump}"
        timed.append((taken, number))
    slowest = [tried[number] for _, number in sorted(timed, reverse=True)[:2]]
    if most < LONG:  # short enough for any growth but the exponential one, if it is quick
        late = [pump for pump in slowest if least_of(pattern, way, pump.text(most)) > QUICK * 5]
        return f"slow in {most} characters: {late[0]}" if late else ""
    for pump in slowest:
        if grows(pattern, way, pump):
            return f"more than linear: {pump}"
    return ""


def grows(pattern: re.Pattern[Any], way: str, pump: Pump) -> bool:
    """Return whether the time for a text grows faster than the text; longer texts must confirm it."""
    for times in (1, 4):
        long = least_of(pattern, way, pump.text(times * LONG))
        if long >= SLOW:
            return True
        if long <= QUICK or long <= GROWTH * least_of(pattern, way, pump.text(times * MIDDLE)):
            return False
    return True


def least_of(pattern: re.Pattern[Any], way: str, text: str) -> float:
    """Return the least of some times, since another process may slow one down."""
    least = seconds_of(pattern, way, text, SLOW)
    if QUICK < least < SLOW / 3:
        least = min(least, *(seconds_of(pattern, way, text, SLOW) for _ in range(2)))
    return least


def test_the_pumps_find_what_takes_too_long() -> None:
    """Of each kind one: nested repeats, alternatives alike, a scan that begins anew, a repeat before an end."""
    bad = [r"(?:\s*-\s*)+x", r"(?:a|ab?)+c", r"\s+x", r"\[[^\]]*\]", r"[^\S\n]*\n\s*(?!x)", r"\w*\Z", r"(?:\w+,?)*!"]
    assert [pattern for pattern in bad if not fault(re.compile(pattern), "scan")] == []
    good = [r"(?<!\s)\s++x", r"\[[^\[\]]*+\]", r"(?<![\s-])(?:\s*+-)++x"]
    assert [pattern for pattern in good if fault(re.compile(pattern), "scan")] == []


def test_patterns_that_are_made_of_what_is_given_are_known() -> None:
    assert MADE <= BUILT


def test_patterns_that_are_made_with_the_first_text_take_linear_time() -> None:
    assert [fault(made(), "scan") for made in (words._word, words._cluster)] == ["", ""]


@pytest.mark.parametrize(
    "phrase",
    ["- " * 12 + "zebra", "a " * 200 + "b", "-a-" * 60, "a - " * 60, "* ", "\u00e9-" * 50, "walked " * 60],
    ids=len,
)
def test_no_phrase_holds_a_thread_over_any_text(phrase: str) -> None:
    patterns = [pattern_of(Phrase(phrase, exact=True)), pattern_of(Phrase(phrase))]
    for pump in ["-", "a ", "- ", "-a-", "walk ", "a\n", "\n", " \n", "the-", "e\u0301 ", "* "]:
        with within(3):
            occurrences(pump * (20_000 // len(pump)) + "zebra", patterns)


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f71\u0f72", "\u0301", "\uff9e\u0323", "a\u0301\u0323"])
def test_any_number_of_marks_is_normalized_in_linear_time(marks: str) -> None:
    with within(5):
        assert words.normalize("NFKC", "a" + marks * 60_000)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_pattern_takes_linear_time(part: int) -> None:
    assert len(USED) > 300
    faults = {
        (used.where, way, used.pattern.pattern): found
        for used in USED[part::4]
        for way, most in KNOWN.get(used.where, (used.ways, ""))[0].items()
        if (found := fault(used.pattern, way, most))
    }
    assert faults == {}
