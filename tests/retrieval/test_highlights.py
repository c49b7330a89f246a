"""The sentence of a passage that a reader and the words of the question place first together."""

import pytest

from local_rag.models.reader import PassageReading, reranked_text
from local_rag.retrieval.highlights import marks
from local_rag.retrieval.searcher import best_sentence
from tests.fakes import FakeReader, FakeReading, passage

TEXT = "## Boats at seven\n\nThe mail is late. The\nferry leaves at seven. Bread is rye.\n"


def best(question: str, prefer: str, text: str = TEXT, *, path: str = "a.md") -> str:
    found = passage(text, title="Times", path=path)
    (reading,) = FakeReader(lambda _question, part: float(prefer in part)).score(question, [reranked_text(found)])
    start, end = best_sentence(question, found, reading)
    return found.text[start:end]


def test_the_reader_and_the_words_of_the_question_choose_together() -> None:
    assert best("When does the ferry leave?", "seven") == "The\nferry leaves at seven."
    assert best("What is the bread?", "rye") == "Bread is rye."
    assert best("Wann?", "rye") == "Bread is rye.", "no word in common"


def test_a_heading_is_never_chosen() -> None:
    assert best("Boats at seven", "seven") == "The\nferry leaves at seven."
    assert best("Boats", "Boats", "## Boats\n") == ""


def test_a_line_of_code_is_not_joined_to_the_next() -> None:
    assert best("find the sail", "sail", "rope = 1\nsail = 2\nmast = 3\n", path="a.py") == "sail = 2"


def test_a_cross_encoder_chooses_none_and_words_alone_do() -> None:
    found = passage(TEXT)
    assert best_sentence("When does the ferry leave?", found, PassageReading(1.0)) == (0, 0)
    (marked, *_) = marks("Mail is late. The ferry leaves.", "When does the ferry leave?", [(0, 0)])
    assert (marked.start, marked.end, marked.kind) == (14, 31, "best")


@pytest.mark.parametrize("end", [0, 30])
def test_what_was_not_read_is_not_chosen(end: int) -> None:
    class Cut(FakeReading):
        def sentence(self, start: int, end_of: int) -> float | None:
            return super().sentence(start, end_of) if start < end else None

    found = passage("Mail is late. Bread is rye. The ferry leaves at seven.")
    start, last = best_sentence("ferry", found, Cut(lambda text: float("rye" in text), found.text))
    assert found.text[start:last] == ("Bread is rye." if end else "")
