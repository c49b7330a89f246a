"""Times that a question counts from the day on which it is asked."""

from datetime import date

import pytest

from local_rag.text.relative_times import AskedTime, asked_times, in_full, with_times

SUNDAY = date(2026, 11, 29)


@pytest.mark.parametrize(
    ("question", "full"),
    [
        ("How many calls were there last month?", "How many calls were there in October 2026?"),
        ("Last month, who called?", "In October 2026, who called?"),
        ("Calls of last year and of this year", "Calls of 2025 and of 2026"),
        ("Who called yesterday?", "Who called on Saturday, 28 November 2026?"),
        ("today's fee, not tomorrow\u2019s", "Sunday, 29 November 2026's fee, not Monday, 30 November 2026\u2019s"),
        ("What happens next week?", "What happens in the week of 30 November 2026?"),
        ("Calls since last week", "Calls since the week of 16 November 2026"),
        ("Income in the last quarter", "Income in the third quarter of 2026"),
        ("What ends next quarter?", "What ends in the first quarter of 2027?"),
        ("Calls in the past 30 days", "Calls since 30 October 2026"),
        ("Calls over the last three months", "Calls since 29 August 2026"),
        ("What is due in the next two weeks?", "What is due from 29 November 2026 to 13 December 2026?"),
        ("Who came two weeks ago?", "Who came in the week of 9 November 2026?"),
        ("Who came 3 days ago?", "Who came on Thursday, 26 November 2026?"),
        ("Who came a year ago?", "Who came in 2025?"),
        ("Who came last Friday and last Sunday?", "Who came on Friday, 27 November 2026 and Sunday, 22 November 2026?"),
        ("Who comes this Sunday or next Sunday?", "Who comes on Sunday, 29 November 2026 or Sunday, 6 December 2026?"),
        ("The current month's fee", "November 2026's fee"),
    ],
)
def test_a_time_is_written_in_full(question: str, full: str) -> None:
    times = asked_times(question, SUNDAY)
    assert in_full(question, times).removeprefix("The ") == full
    assert [question[one.start : one.end].endswith(one.said) for one in times] == [True] * len(times)


@pytest.mark.parametrize(
    "question",
    [
        "What was the last quarter of 2024?",
        "What was the last month in which it ran?",
        "Who won in the last year of the war?",
        "What is the next day called?",
        "What does the letter say about \u201cnext week\u201d?",
        "Who was there this morning?",
        "What came last?",
        "the last-minute change",
    ],
)
def test_what_is_counted_from_something_else_stays(question: str) -> None:
    assert asked_times(question, SUNDAY) == ()


def test_the_words_of_a_question_stay_before_the_time_in_full() -> None:
    question = "What is last month's fee, and today's?"
    shown = "What is last month's (October 2026) fee, and today's (Sunday, 29 November 2026)?"
    assert with_times(question, asked_times(question, SUNDAY)) == shown


def time_of(words: str) -> AskedTime:
    [found] = asked_times(words, SUNDAY)
    return found


@pytest.mark.parametrize(
    ("words", "text", "named"),
    [
        ("last month", "Minutes of 14 October 2026", True),
        ("last month", "Minutes of 14 October", True),
        ("last month", "The October meeting", True),
        ("last month", "2026-10-31", True),
        ("last month", "Minutes of 12 August 2026", False),
        ("last month", "The budget of 2026", False),
        ("last month", "What was sold last month", False),
        ("last year", "It ends on 31 March.", False),
        ("last year", "The budget of 2025", True),
        ("last year", "The budget of 2026, order 20251", False),
        ("next week", "Closed on Tuesday", True),
        ("next week", "Closed on 8 December 2026", False),
        ("tomorrow", "Closed on Tuesday", False),
        ("tomorrow", "Open on Monday", True),
        ("tomorrow", "31 February 2026", False),
    ],
)
def test_a_text_names_a_time(words: str, text: str, named: bool) -> None:
    assert time_of(words).is_named(text) is named


def test_a_day_or_a_part_of_one_is_of_a_time() -> None:
    month = time_of("last month")
    assert [month.is_of(one) for one in ("2026-10-01", "2026-10", "2026")] == [True] * 3
    assert [month.is_of(one) for one in ("2026-11-01", "2026-09", "2025", "", "x")] == [False] * 5
    assert month.is_said("What was sold Last Month")
    assert not month.is_now
    assert all(time_of(one).is_now for one in ("today", "this week", "this year", "the last 3 days"))
    assert asked_times("a month before 31 March: one month ago", date(2026, 3, 31))[0].full == "February 2026"
    assert time_of("the last three months").first == date(2026, 8, 29)
