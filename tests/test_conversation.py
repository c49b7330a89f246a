"""A conversation: greetings, subjects, what is kept, and how it is written out."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_rag.answer_records import (
    Answer,
    Citation,
    Found,
    FoundPlace,
    TableAnswer,
    TableSource,
    VersionValue,
    Written,
)
from local_rag.asking import AskOptions, Filters
from local_rag.conversation import FORGOTTEN, NOT_KEPT, Conversation
from local_rag.document_records import Provenance
from local_rag.errors import LibraryError, MissingError
from local_rag.passage_records import Passage
from local_rag.store.history import History
from local_rag.store.history_file import HISTORY_FILE
from tests.fakes import passage

SAID = Provenance(url="https://example.org/a")
SOURCE = passage(
    "26 weeks\n<b>in</b> Norway.",
    path="/docs/a.md",
    title="Leave",
    line=3,
    provenance=SAID,
    also_in=("/docs/copy.md:7",),
    sha256="5ec1e7",
)


class FakeAsk:
    """Answer all questions alike and remember how they were asked."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self, question: str, options: AskOptions, /, **how: Any) -> Answer:
        self.calls.append({"question": question, "options": options, **how})
        self.meanwhile()
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
    written = list[Written]()
    answer = conversation.ask(text, on_text=written.append)
    assert written == [Written(answer.text)]
    assert answer.answered
    assert not ask.calls
    assert conversation.turns == []
    assert conversation.kept() == []


def test_each_question_is_asked_with_those_before_it_on_its_subject(conversation: Conversation, ask: FakeAsk) -> None:
    conversation.options = AskOptions(filters=Filters(types=("md",)), rerank=False)
    for question in ("Who is one?", "Who is two?"):
        conversation.ask(question)
    assert earlier(ask) == ["Who is one?"]
    assert ask.calls[-1]["earlier"][0].answer == "Answer to Who is one?"
    assert ask.calls[-1]["options"] == conversation.options
    conversation.new_subject()
    conversation.ask("Who is three?")
    assert earlier(ask) == []
    conversation.ask("Who is four?")
    assert earlier(ask) == ["Who is three?"]


def test_conversations_are_kept_and_gone_on_with(conversation: Conversation, ask: FakeAsk, tmp_path: Path) -> None:
    for question in ("Who is one?", "Who is two?"):
        conversation.ask(question)
    conversation.new_subject()
    conversation.ask("Who is three?")
    with closing(Conversation(ask, History(tmp_path))) as other:
        other.ask("Who is four?")
        assert [(kept.title, kept.turns) for kept in other.kept()] == [("Who is four?", 1), ("Who is one?", 3)]
        assert other.questions() == ["Who is one?", "Who is two?", "Who is three?", "Who is four?"]
        assert conversation.id is not None
        other.switch(conversation.id)
        other.ask("Who is five?")
        assert earlier(ask) == ["Who is three?"], "the subject with which it ended"
        with pytest.raises(MissingError, match="no conversation 99"):
            other.switch("99")
        other.forget()
        assert [kept.title for kept in other.kept()] == ["Who is four?"]
        assert (other.id, other.turns, other.last) == (None, [], None)
        other.forget()
        other.forget(other.kept()[0].id)
        assert other.kept() == []
        assert "Who is four?" not in (tmp_path / HISTORY_FILE).read_bytes().decode(errors="replace")


def test_it_is_written_out_with_the_passages_it_cites(conversation: Conversation) -> None:
    assert conversation.as_markdown() == "# Conversation\n"
    conversation.ask("<i>one</i>\n# two?")
    assert conversation.as_markdown() == (
        "# Conversation\n\n## &lt;i>one&lt;/i> # two?\n\nAnswer to &lt;i>one&lt;/i>\n# two?\n\n"
        "> [1] /docs/a.md:3, https://example.org/a\n>\n> 26 weeks\n> &lt;b>in&lt;/b> Norway.\n"
    )


def test_a_forgotten_conversation_is_begun_anew_and_its_answer_is_not_kept(
    conversation: Conversation, ask: FakeAsk, tmp_path: Path
) -> None:
    conversation.ask("Who is one?")
    first = conversation.id
    with closing(History(tmp_path)) as other:
        other.forget_all()
        conversation.ask("Who is two?")
        assert (conversation.notice, earlier(ask)) == (FORGOTTEN, [])
        assert conversation.id not in (None, first)
        second = conversation.id
        ask.meanwhile = other.forget_all
        conversation.ask("Who is three?")
        assert (conversation.notice, conversation.kept()) == (NOT_KEPT, [])
        ask.meanwhile = lambda: None
        conversation.ask("Who is four?")
        assert (conversation.notice, earlier(ask)) == ("", [])
        assert [one.title for one in other.conversations()] == ["Who is four?"]
        ask.meanwhile = lambda: other.forget(str(conversation.id))
        conversation.ask("Who is five?")
        assert other.conversations() == []
    assert second is not None
    assert not any(word in (tmp_path / HISTORY_FILE).read_bytes() for word in (b"Who is three?", b"Who is five?"))


def test_what_quotes_a_document_is_forgotten_with_it(conversation: Conversation, tmp_path: Path) -> None:
    conversation.ask("What is the secret?")
    with closing(History(tmp_path)) as history:
        assert history.documents() == [("", "/docs/copy.md"), ("5ec1e7", "/docs/a.md")]
        history.move_documents({"/docs/a.md": "/docs/b.md"})
        assert history.forget_documents(lambda _hash, path: path == "/docs/a.md") == 0
        assert len(conversation.kept()) == 1
        assert history.count_quoting(lambda _hash, path: path == "/docs/b.md") == 1
        assert history.forget_documents(lambda _hash, path: path == "/docs/b.md") == 1
    assert conversation.kept() == []
    assert b"secret" not in (tmp_path / HISTORY_FILE).read_bytes()


def test_an_answer_about_a_document_that_is_erased_meanwhile_is_not_kept(
    conversation: Conversation, ask: FakeAsk, tmp_path: Path
) -> None:
    with closing(History(tmp_path)) as other:
        ask.meanwhile = lambda: other.forget_documents(lambda _hash, _path: False, erased=lambda _pattern: False)
        conversation.ask("What is the secret?")
        assert conversation.notice == NOT_KEPT
    assert b"secret" not in (tmp_path / HISTORY_FILE).read_bytes()


def test_ids_are_not_used_twice_and_the_file_is_the_owners_alone(conversation: Conversation, tmp_path: Path) -> None:
    known = set()
    for _ in range(3):
        conversation.ask("Who is one?")
        known.add(conversation.id)
        conversation.forget()
    assert len(known) == 3
    assert all(re.fullmatch("[0-9a-f]{16}", str(one)) for one in known)
    assert (tmp_path / HISTORY_FILE).stat().st_mode & 0o777 == 0o600


def test_a_file_of_another_version_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / HISTORY_FILE)) as older:
        older.execute("CREATE TABLE conversations (id INTEGER PRIMARY KEY)")
    with pytest.raises(LibraryError, match="another version of local-rag; delete it"):
        History(tmp_path)


def test_where_nothing_may_be_written_it_lasts_as_long_as_it_is_open(ask: FakeAsk, tmp_path: Path) -> None:
    with closing(Conversation(ask, History(tmp_path / "missing"))) as conversation:
        conversation.ask("Who is one?")
        assert len(conversation.kept()) == 1
        assert "> [1]" in conversation.as_markdown()
    assert not (tmp_path / "missing").exists()


def at(path: str) -> Callable[[str, str], bool]:
    return lambda _hash, one: one == path


def test_what_names_a_document_without_citing_it_is_forgotten_with_it(tmp_path: Path) -> None:
    source = TableSource("/docs/t.csv", "T", "t")
    passage = Passage(0, "/docs/listed.md", "", "secret", "", "", (), None, None, None, 0.0)
    answers = {
        "/docs/refused.csv": Answer("One?", "No column is secret.", "refused", named=("/docs/refused.csv",)),
        "/docs/t.csv": Answer("Two?", "7", "answered", table=TableAnswer(7, "", "secret", sources=(source,))),
        "/docs/v1.md": Answer("Three?", "8", "answered", versions=(VersionValue("", "/docs/v1.md", "secret", 1),)),
        "/docs/listed.md": Answer(
            "Four?", "1", "answered", found=Found("Four?", "list", "secret", 1, (FoundPlace(passage, 1),))
        ),
    }
    with closing(History(tmp_path)) as history:
        for answer in answers.values():
            history.add(None, answer, epoch=history.epoch(), opens=True)
        for left, path in enumerate(reversed(answers)):
            assert history.forget_documents(at(path), erased=lambda _one: False) == 1
            assert len(history.conversations()) == 3 - left
    assert b"secret" not in (tmp_path / HISTORY_FILE).read_bytes()
