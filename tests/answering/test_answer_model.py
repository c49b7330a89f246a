"""The answer model is loaded while the question is searched."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag.answering.answerer import AnswerModel
from local_rag.errors import ModelError
from local_rag.library import Library
from local_rag.llama.generator import Generator
from local_rag.model_records import InstalledModel
from tests.fakes import FakeEmbedder, FakeGenerator, quick_vocabulary
from tests.support.served import QUESTION, parts, reply

MODEL = InstalledModel(
    name="answers", role="answer", path=Path("answers.gguf"), identity="identity", context_length=8192
)
SECONDS = 20.0


class Opened:
    """An engine that is opened once somebody lets it, and says what became of it."""

    def __init__(self) -> None:
        self.may_open, self.opening, self.closed = threading.Event(), threading.Event(), False

    @contextmanager
    def __call__(self, _path: Path, **_how: Any) -> Iterator[Generator]:
        self.opening.set()
        assert self.may_open.wait(SECONDS)
        yield FakeGenerator(reply, lambda _prompt: True)
        self.closed = True


def model(opened: Any) -> AnswerModel:
    return AnswerModel(lambda: MODEL, open_engine=opened, open_vocabulary=quick_vocabulary)


def test_it_is_loaded_while_the_question_is_searched(folder: Path) -> None:
    opened = Opened()

    class Searching(FakeEmbedder):
        """An embedder that lets the engine open, which must have begun to."""

        def embed_query(self, text: str) -> Any:
            assert opened.opening.wait(SECONDS), "the model is loaded after the search"
            opened.may_open.set()
            return super().embed_query(text)

    with Library(folder, parts=replace(parts(), load_embedder=Searching, open_engine=opened)) as library:
        assert "seven" in library.ask(QUESTION).text
    assert opened.closed


def test_what_it_cannot_load_is_told_where_it_is_needed() -> None:
    def damaged(_path: Path, **_how: Any) -> AbstractContextManager[Generator]:
        raise ModelError("The model is damaged; pull it again.")

    answers = model(damaged)
    answers.begin()
    with pytest.raises(ModelError, match="pull it again"):
        answers.open()
    with pytest.raises(ModelError, match="pull it again"):
        answers.open()


def test_it_is_opened_once_and_freed() -> None:
    opened = Opened()
    answers = model(opened)
    answers.begin()
    answers.begin()
    opened.may_open.set()
    assert answers.open() is answers.open()
    answers.begin()
    answers.close()
    assert opened.closed


def test_closing_waits_for_what_is_being_loaded() -> None:
    opened = Opened()
    answers = model(opened)
    answers.begin()
    assert opened.opening.wait(SECONDS)
    closing = threading.Thread(target=answers.close)
    closing.start()
    opened.may_open.set()
    closing.join(SECONDS)
    assert opened.closed
