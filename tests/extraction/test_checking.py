"""What a model says is given with a place that is about the question, or marked as unsure."""

import pytest

from local_rag.answering.selection import ranked_units
from local_rag.extraction.checking import DocumentReading
from local_rag.extraction.columns import column_of_text
from tests.fakes import FakeReader, passage

LEAVE = (
    "Leave is asked for in writing. The form for leave goes to the office. All leave is recorded by the office. "
    "Some leave is paid. Medical documentation is required."
)


def reading(question: str, logit: float) -> DocumentReading:
    passages = [passage(LEAVE)]
    units, _ = ranked_units(question, passages, FakeReader(lambda _question, _text: logit))
    return DocumentReading(column_of_text(question), passages, units, LEAVE)


@pytest.mark.parametrize(
    ("question", "logit", "state"),
    [
        ("Is medical documentation required? (yes/no)", -9.0, "stated"),
        ("Must it be documented? (yes/no)", -9.0, "stated"),
        ("Are dogs allowed on leave? (yes/no)", -3.0, "unsure"),
        ("Are dogs allowed? (yes/no)", -9.0, "unsure"),
        ("May I stay at home on leave? (yes/no)", 2.0, "stated"),
    ],
)
def test_yes_is_sure_where_its_quotation_has_a_rare_word_of_the_question_or_the_reader_is_sure(
    question: str, logit: float, state: str
) -> None:
    read = reading(question, logit)
    found = read.find("yes")
    assert found is not None
    assert read.is_about(found.unit)
    assert read.cell(found, 0.9).state == state
