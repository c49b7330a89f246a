"""Records as JSON and back; what another version has written is refused."""

import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from local_rag.answer_records import Answer, Citation, SentenceSupport, TableAnswer, TableValue
from local_rag.asking import AskOptions, Filters, Turn
from local_rag.model_records import Calibration
from local_rag.passage_records import Hit
from local_rag.serialization import from_plain, to_line
from local_rag.serving.requests import AskRequest
from tests.fakes import passage

FOUND = passage(hits=(Hit("dense", 1, 0.5),), also_in=("b.md:1",), headings=("Leave",), sha256="5ec1e7")
ANSWER = Answer(
    "q", "t", "quoted", citations=(Citation(1, FOUND),), read=(FOUND,), support=(SentenceSupport("s", True, (), (1,)),)
)


@pytest.mark.parametrize(
    "record",
    [
        ANSWER,
        TableAnswer(None, "EUR", "s", (TableValue("a", 1.5),), ("A", "B"), rows=(("x", 1), (2.5, None)), count=2),
        AskRequest(question="q", options=AskOptions(filters=Filters(since=date(2024, 1, 2))), earlier=(Turn("a"),)),
        Calibration("recipe", 1, {"odds": 0.5}, 0.5, 0.25),
    ],
)
def test_a_record_comes_back_equal(record: object) -> None:
    assert from_plain(type(record), json.loads(to_line(record))) == record


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.pop("text"),
        lambda fields: fields.update(mood="sure"),
        lambda fields: fields.update(text=7),
        lambda fields: fields.update(outcome="guessed"),
        lambda fields: fields.update(tokens="7"),
        lambda fields: fields.update(tokens=True),
        lambda fields: fields.update(read="no passages"),
        lambda fields: fields.update(probability="high"),
        lambda fields: fields["read"][0].update(mood="sure"),
        lambda fields: fields["read"][0].update(page="one"),
        lambda fields: fields["read"].append(None),
    ],
)
def test_what_another_version_has_written_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    fields = json.loads(to_line(ANSWER))
    change(fields)
    with pytest.raises(ValueError):  # noqa: PT011  any of them
        from_plain(Answer, fields)
