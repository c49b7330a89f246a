"""A document is asked what it says, and asked once more where the first answer is doubtful."""

from collections.abc import Generator, Iterable
from dataclasses import replace

import pytest

from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import column_of_text
from local_rag.extraction.document_asker import DocumentAsker, ReadDocument
from local_rag.llama.generator import Request, Token
from local_rag.models.reader import Reader
from tests.fakes import TRAINED, FakeGenerator, FakeReader, passage

GERMAN = (
    "Beide Seiten treffen sich zweimal im Jahr und sprechen dabei über die Qualität der Arbeit. "
    "Der Zugang zu den Räumen wird nur nach der Anmeldung am Tor des Geländes gewährt. "
    "Die Fotos aller Bereiche werden von der Leitung in einem Archiv aufbewahrt. "
    "Neue Mitarbeiter werden zuerst von erfahrenen Kollegen geschult und begleitet. "
    "Änderungen sind nur gültig, wenn sie von beiden Seiten schriftlich vereinbart werden. "
    "Jede Partei kann den Vertrag mit einer Frist von drei Monaten beenden. "
    "Die Leistungen erbringt Quayside Foods AG."
)


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


@pytest.mark.parametrize(
    ("question", "right", "is_all_shown"),
    [
        ("How long is the notice period? (duration)", "drei Monaten", False),
        ("Who is the supplier? (name)", "Quayside Foods AG", True),
    ],
)
def test_what_is_in_another_language_is_asked_again_of_all_that_may_be_the_answer(
    question: str, right: str, is_all_shown: bool
) -> None:
    def reply(prompt: str) -> str:
        is_asked_first = prompt.index("Sources:") < prompt.index("Question:")
        return right if not is_asked_first and right in prompt else TRAINED.refusal

    generator = HesitantGenerator(reply)
    cell = asked(question, GERMAN, generator, FakeReader(lambda _question, _text: 0.0))
    assert (cell.state, right in cell.quotation) == ("stated", True)
    assert ("Qualität" in generator.prompts[1]) == is_all_shown
