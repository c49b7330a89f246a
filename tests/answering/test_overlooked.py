"""Answers that overlook another value in a document that may be later, or rows like those that they are from."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from local_rag.answer_records import Answer
from local_rag.answering.answerer import Answerer
from local_rag.answering.compose import DIFFERS, NO_VALUE, NOT_SURE, OF_ALL_ROWS, OTHER_ROW, OTHER_TIME
from local_rag.answering.pipeline import AnswerPipeline
from local_rag.asking import DEFAULT_OPTIONS, AskOptions
from local_rag.document_records import Provenance
from local_rag.passage_records import Passage
from local_rag.retrieval.question import read_question
from local_rag.retrieval.searcher import Trace
from tests.fakes import FakeGenerator, FakeReader, passage

RULES = replace(
    passage("Partners pay GBP 15 a day abroad.", key=1, path="rules.md"), provenance=Provenance(date="2024-03-01")
)
MINUTES = replace(
    passage("Partners on tours abroad pay GBP 20 a day.", key=2, path="minutes.txt"),
    provenance=Provenance(date="2024-10-08"),
)


def ask(
    question: str,
    said: str,
    *found: Passage,
    rate: Callable[[str], float],
    options: AskOptions = DEFAULT_OPTIONS,
) -> Answer:
    """Ask a model that says the same of any passages; the reader rates their lines."""
    reader, answerer = FakeReader(lambda _question, text: rate(text)), Answerer(lambda: FakeGenerator(lambda _: said))
    pipeline = AnswerPipeline(
        lambda *_args, **_how: Trace(list(found), {}, {}),
        lambda: answerer,
        len,
        options,
        open_reader=lambda: reader,
        today=lambda: date(2026, 11, 29),
    )
    return pipeline.ask(read_question(question), show=lambda _: None, on_passages=lambda _: None)


def answered(*found: Passage, options: AskOptions = DEFAULT_OPTIONS, doubted: str = "") -> Answer:
    """Answer from the first passage; the reader takes no line with a `doubted` word for an answer."""

    def rate(text: str) -> float:
        return -5.0 if doubted and doubted in text else 2.0 - 0.1 * ("20" in text)

    question = "How much does a partner pay a day on a tour abroad?"
    assert read_question(question).plan.answer_type == "number"
    return ask(question, "Partners pay GBP 15 a day abroad.", *found, rate=rate, options=options)


def test_where_another_document_says_otherwise_both_are_quoted() -> None:
    answer = answered(RULES, MINUTES)
    assert (answer.outcome, answer.reason) == ("quoted", DIFFERS)
    first, second = answer.text.splitlines()[1:]
    assert answer.text.startswith(NOT_SURE)
    assert "GBP 15" in first
    assert "GBP 20" in second
    for quote, citation in zip(answer.quotes, answer.citations, strict=True):
        assert answer.read[quote.citation - 1] == citation.passage
        assert quote.text in citation.passage.text
    assert len(answer.shown) == len(answer.read)


@pytest.mark.parametrize(
    "other",
    [
        replace(MINUTES, provenance=Provenance(date="2023-01-01")),  # an older one
        replace(MINUTES, provenance=Provenance()),  # perhaps older
        replace(MINUTES, text="Partners on tours abroad pay GBP 15 a day, not 20."),
        replace(MINUTES, text="Partners on tours abroad pay as before."),
        replace(MINUTES, text="20 partners may come on tours abroad."),  # of something else
        replace(MINUTES, path="rules.md"),
        replace(MINUTES, path="rates.xlsx"),  # its date is that of an export
    ],
)
def test_what_says_the_same_or_is_not_later_leaves_the_answer(other: Passage) -> None:
    assert answered(RULES, other).outcome == "answered"


def test_a_line_that_does_not_answer_and_a_wish_for_an_answer_leave_it() -> None:
    assert answered(RULES, MINUTES, doubted="tours").outcome == "answered"
    assert answered(RULES, MINUTES, options=AskOptions(anyway=True)).outcome == "answered"


TABLE = "| Name | From | Result |\n|---|---|---|\n| Oscar | Ludlow | waiting list |\n| Ida | Cardiff | taken |\n"


@pytest.mark.parametrize(
    ("more", "question", "outcome"),
    [
        ("| Anna | Ludlow | waiting list |\n", "Who is on the waiting list?", "quoted"),
        ("| Anna | Bath | waiting list |\n", "Who from Ludlow is on the waiting list?", "answered"),
        ("| Anna | Ludlow | taken |\n", "Who is on the waiting list?", "answered"),
        ("| Anna | Ludlow | waiting list |\n", "Who is he?", "answered"),
    ],
)
def test_an_answer_from_one_of_several_such_rows_is_quoted_with_the_others(
    more: str, question: str, outcome: str
) -> None:
    found = passage(TABLE + more, key=1, path="applicants.md")
    said = "Oscar from Ludlow is on the waiting list."
    answer = ask(question, said, found, rate=lambda text: float("Oscar" in text))
    assert (answer.outcome, answer.reason) == (outcome, OF_ALL_ROWS if outcome == "quoted" else "")
    assert ("Anna" in answer.text) == (outcome == "quoted")


def test_an_answer_that_names_all_such_rows_is_given() -> None:
    names = ["Oscar", "Anna", "Ida"]
    rows = "".join(f"| {name} | Ludlow | waiting list |\n" for name in names)
    found = passage(f"| Name | From | Result |\n|---|---|---|\n{rows}", key=1, path="applicants.md")
    said = "Oscar, Anna and Ida are on the waiting list."
    assert ask("Who is on the waiting list?", said, found, rate=lambda _text: 1.0).outcome == "answered"


RATES = (
    "| To | Quarter pallet | Half pallet |\n|---|---|---|\n| Wales | 40 | 60 |\n| Scotland | | 77 |\n"
    "| Concert hall | 10 | 20 |\n| School concert hall | 5 | 8 |\n"
)


@pytest.mark.parametrize(
    ("question", "said", "reason"),
    [
        ("What does a quarter pallet to Scotland cost?", "A pallet to Scotland costs 77.", NO_VALUE),
        ("What does a half pallet to Scotland cost?", "A pallet to Scotland costs 77.", ""),
        ("What does a half pallet to the school concert hall cost?", "To the concert hall it costs 20.", OTHER_ROW),
        ("What does a half pallet to the concert hall cost?", "To the concert hall it costs 20.", ""),
    ],
)
def test_an_answer_from_a_row_without_the_value_or_from_the_wrong_row_is_quoted(
    question: str, said: str, reason: str
) -> None:
    number = said.removesuffix(".").split()[-1]
    rates = passage(RATES, key=1, path="rates.md")
    answer = ask(question, said, rates, rate=lambda text: float(number in text))
    assert (answer.outcome, answer.reason) == ("quoted" if reason else "answered", reason)


@pytest.mark.parametrize(
    ("when", "document", "outcome"),
    [
        ("last month", MINUTES, "quoted"),
        ("last month", replace(MINUTES, provenance=Provenance()), "quoted"),
        ("last month", replace(MINUTES, provenance=Provenance(date="2026-10-08")), "answered"),
        ("last month", replace(MINUTES, path="minutes-2026-10.txt"), "answered"),
        ("last month", replace(MINUTES, title="Rates of October"), "answered"),
        ("last month", replace(MINUTES, text="Partners on tours abroad paid GBP 20 a day last month."), "answered"),
        ("this year", MINUTES, "answered"),
        ("in October 2026", MINUTES, "answered"),
    ],
)
def test_an_answer_from_another_time_than_is_asked_for_is_quoted(when: str, document: Passage, outcome: str) -> None:
    answer = ask(
        f"How much did partners pay a day {when}?", "Partners pay GBP 20 a day.", document, rate=lambda _text: 2.0
    )
    assert (answer.outcome, answer.reason) == (outcome, OTHER_TIME if outcome == "quoted" else "")
    searched = {"last month": ["October 2026"], "this year": ["2026"]}.get(when, [])
    assert [one.searched for one in answer.corrections] == searched
    assert answer.question.endswith(f"{when}?")
