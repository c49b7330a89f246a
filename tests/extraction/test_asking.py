"""A document is asked what it says, and asked once more where the first answer is doubtful."""

from collections.abc import Generator, Iterable
from dataclasses import replace

import pytest

from local_rag.extraction.asking import DocumentAsker, ReadDocument
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import column_of_text
from local_rag.llama.generator import Request, Token
from local_rag.models.reader import Reader
from tests.fakes import TRAINED, FakeGenerator, FakeReader, passage


class Nothing:
    """A memory that keeps nothing."""

    def get(self, _key: str) -> None:
        return None

    def put(self, _key: str, _said: str) -> None:
        pass


class HesitantGenerator(FakeGenerator):
    """A model that finds it as likely as not that it is told what it says."""

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        return (replace(token, odds=0.0) for token in super().stream(requests))


def asked(question: str, text: str, generator: FakeGenerator, reader: Reader | None = None) -> Cell:
    document = ReadDocument("Leave", text, [passage(text)])
    columns = [column_of_text(question)]
    [[(_, cell)]] = DocumentAsker(generator, TRAINED, reader).ask(document, columns, lambda _question: (), Nothing())
    return cell


@pytest.mark.parametrize(("logit", "state"), [(-2.0, "stated"), (-6.0, "unsure")])
def test_what_one_of_two_answers_refuses_is_sure_only_if_the_reader_finds_it(logit: float, state: str) -> None:
    def reply(prompt: str) -> str:
        is_asked_first = prompt.index("Sources:") < prompt.index("Question:")
        return TRAINED.refusal if is_asked_first else "HR Specialist"

    reader = FakeReader(lambda _question, _text: logit)
    text = "Send an email with the form to the HR Specialist. Leave is asked for in writing."
    cell = asked("To which email address can questions be sent?", text, HesitantGenerator(reply), reader)
    assert (cell.state, cell.text) == (state, "HR Specialist")
