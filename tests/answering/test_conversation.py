"""A conversation: greetings, subjects, what is kept, and how it is written out."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_rag.answering.conversation import Conversation, reply_to_greeting
from local_rag.errors import LibraryError
from local_rag.records import Answer, AskOptions, Citation, Filters, Passage, Provenance
from local_rag.store.history import HISTORY_FILE, History, HistoryFile

SAID = Provenance(url="https://example.org/a")
SOURCE = Passage(1, "/docs/a.md", "Leave", "26 weeks\n<b>in</b> Norway.", "", "", (), None, 3, 4, 1.0, provenance=SAID)


class FakeAsk:
    """Answer all questions alike and remember how they were asked."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(self, question: str, options: AskOptions, /, **how: Any) -> Answer:
        self.calls.append({"question": question, "options": options, **how})
        text = f"Answer to {question}"
        return Answer(question, text, "answered", citations=(Citation(1, SOURCE),), passages=(SOURCE,), read=(SOURCE,))


@pytest.fixture
def ask() -> FakeAsk:
    return FakeAsk()


@pytest.fixture
def conversation(ask: FakeAsk, tmp_path: Path) -> Iterator[Conversation]:
    with closing(Conversation(ask, History(tmp_path))) as conversation:
        yield conversation


def earlier(ask: FakeAsk) -> list[str]:
    return [turn.question for turn in ask.calls[-1]["earlier"]]


@pytest.mark.parametrize("text", ["hi", "Hello!", "  Good morning. ", "Thanks a lot!!", "Bye", "OK, thanks"])
def test_greetings_are_answered_without_searching(text: str, conversation: Conversation, ask: FakeAsk) -> None:
    written: list[str] = []
    answer = conversation.ask(text, on_text=written.append)
    assert answer.text == "".join(written)
    assert answer.answered
    assert not ask.calls
    assert conversation.turns == []
    assert conversation.kept() == []


@pytest.mark.parametrize(
    "text", ["hi, how long is leave?", "What is hello?", "thanks to whom?", "hello " * 10_000, "?"]
)
def test_what_is_more_than_a_greeting_is_asked(text: str) -> None:
    assert reply_to_greeting(text) is None


def test_each_question_is_asked_with_those_before_it_on_its_subject(conversation: Conversation, ask: FakeAsk) -> None:
    conversation.options = AskOptions(filters=Filters(types=("md",)), rerank=False)
    for question in ("one?", "two?"):
        conversation.ask(question)
    assert earlier(ask) == ["one?"]
    assert ask.calls[-1]["earlier"][0].answer == "Answer to one?"
    assert ask.calls[-1]["options"] == conversation.options
    conversation.new_subject()
    conversation.ask("three?")
    assert earlier(ask) == []
    conversation.ask("four?")
    assert earlier(ask) == ["three?"]


def test_conversations_are_kept_and_gone_on_with(conversation: Conversation, ask: FakeAsk, tmp_path: Path) -> None:
    for question in ("one?", "two?"):
        conversation.ask(question)
    conversation.new_subject()
    conversation.ask("three?")
    with closing(Conversation(ask, History(tmp_path))) as other:
        other.ask("four?")
        assert [(kept.title, kept.turns) for kept in other.kept()] == [("four?", 1), ("one?", 3)]
        assert other.questions() == ["one?", "two?", "three?", "four?"]
        assert conversation.id is not None
        other.switch(conversation.id)
        other.ask("five?")
        assert earlier(ask) == ["three?"], "the subject with which it ended"
        with pytest.raises(LibraryError, match="no conversation 99"):
            other.switch(99)
        other.forget()
        assert [kept.title for kept in other.kept()] == ["four?"]
        assert (other.id, other.turns, other.last) == (None, [], None)
        other.forget()
        other.forget(other.kept()[0].id)
        assert other.kept() == []
        assert "four?" not in (tmp_path / HISTORY_FILE).read_bytes().decode(errors="replace")


def test_it_is_written_out_with_the_passages_it_cites(conversation: Conversation) -> None:
    assert conversation.as_markdown() == "# Conversation\n"
    conversation.ask("<i>one</i>\n# two?")
    assert conversation.as_markdown() == (
        "# Conversation\n\n## &lt;i>one&lt;/i> # two?\n\nAnswer to &lt;i>one&lt;/i>\n# two?\n\n"
        "> [1] /docs/a.md:3, https://example.org/a\n>\n> 26 weeks\n> &lt;b>in&lt;/b> Norway.\n"
    )


def test_what_is_erased_from_the_library_is_in_no_conversation(conversation: Conversation, tmp_path: Path) -> None:
    conversation.ask("A secret?")
    HistoryFile(tmp_path).erase(["/docs/other.md"])
    assert len(conversation.kept()) == 1
    HistoryFile(tmp_path).erase(["/docs/a.md"])
    assert conversation.kept() == []
    assert b"secret" not in (tmp_path / HISTORY_FILE).read_bytes()
    HistoryFile(tmp_path / "without").erase(["/docs/a.md"])


def test_where_nothing_may_be_written_it_lasts_as_long_as_it_is_open(ask: FakeAsk, tmp_path: Path) -> None:
    with closing(Conversation(ask, History(tmp_path / "missing"))) as conversation:
        conversation.ask("one?")
        assert len(conversation.kept()) == 1
        assert "> [1]" in conversation.as_markdown()
    assert not (tmp_path / "missing").exists()
