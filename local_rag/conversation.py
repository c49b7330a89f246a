"""A conversation: each question is searched and answered together with the earlier ones on the same subject."""

from collections.abc import Callable, Sequence
from typing import Protocol

from local_rag.answer_records import Answer, Written
from local_rag.asking import DEFAULT_OPTIONS, AskOptions, KeptConversation, KeptTurn, Turn
from local_rag.display import Name
from local_rag.passage_records import Passage
from local_rag.store.history import History
from local_rag.understanding.question_reader import read_plan
from local_rag.understanding.replies import reply_to_small_talk

FORGOTTEN = "This conversation has been forgotten, so your question begins a new one."
NOT_KEPT = "This conversation was forgotten while the answer was written, so the answer is not kept."


class Ask(Protocol):
    """Answer a question like `Library.ask`."""

    def __call__(
        self, question: str, options: AskOptions, /, *, earlier: tuple[Turn, ...], on_text: Callable[[Written], None]
    ) -> Answer:
        """Return the answer."""


class Conversation:
    """A conversation with a library, created by `Library.chat()`; `options` apply to the questions that follow.

    The library's history stores it from the first question on. `turns` holds the earlier questions on the same subject.
    `notice` says what became of the conversation at the last question, if someone has forgotten it.
    """

    def __init__(self, ask: Ask, history: History) -> None:
        self._ask, self._history = ask, history
        self._id: str | None = None
        self.notice = ""
        self.options: AskOptions = DEFAULT_OPTIONS
        self.turns: list[Turn] = []
        self.last: Answer | None = None

    def ask(self, question: str, *, on_text: Callable[[Written], None] = lambda _text: None) -> Answer:
        """Ask a question like `Library.ask`; a greeting is answered without a search and not kept.

        A question that repeats the previous one replaces its turn.
        """
        plan = read_plan(question, self.options.kind)
        if plan.kind == "chat":
            reply = reply_to_small_talk(plan)
            on_text(Written(reply))
            return Answer(question, reply, "answered", plan=plan)
        self.notice = ""
        if self._id is not None and not self._history.holds(self._id):
            self._begin_anew(FORGOTTEN)
        epoch = self._history.epoch()
        again = bool(self.turns) and self.turns[-1].question == question
        earlier = self.turns[:-1] if again else self.turns
        answer = self._ask(question, self.options, earlier=tuple(earlier), on_text=on_text)
        kept = self._history.add(
            self._id, answer, epoch=epoch, opens=not earlier, again=again, filters=self.options.filters
        )
        if kept is None:
            self._begin_anew(NOT_KEPT)
        else:
            self._id, self.turns = kept, [*earlier, Turn(question, answer.text)]
        self.last = answer
        return answer

    def _begin_anew(self, notice: str) -> None:
        self._id, self.last, self.turns, self.notice = None, None, [], notice

    def new_subject(self) -> None:
        """Start a new subject: the next question is not a follow-up."""
        self.turns = []

    @property
    def id(self) -> str | None:
        """Return the id of the stored conversation, None before its first question."""
        return self._id

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Return the passages read for the last answer."""
        return self.last.read if self.last else ()

    def kept(self) -> list[KeptConversation]:
        """Return the stored conversations of the library, latest first."""
        return self._history.conversations()

    def questions(self) -> list[str]:
        """Return all questions of the stored conversations."""
        return self._history.questions()

    def switch(self, conversation: str) -> None:
        """Continue another conversation; raise MissingError if none has this id."""
        kept = self._history.turns(conversation)
        opening = max(index for index, turn in enumerate(kept) if turn.opens or not index)
        self._id, self.last = conversation, None
        self.turns = [Turn(turn.question, turn.answer.text) for turn in kept[opening:]]

    def forget(self, conversation: str | None = None) -> None:
        """Delete a conversation completely, or with None this one."""
        forgotten = self._id if conversation is None else conversation
        if forgotten is None:
            return
        self._history.forget(forgotten)
        if forgotten == self._id:
            self._id, self.last, self.turns = None, None, []

    def as_markdown(self) -> str:
        """Return the whole conversation with the passages it cites."""
        return conversation_as_markdown(self._history.turns(self._id) if self._id is not None else [])

    def close(self) -> None:
        """Close the history."""
        self._history.close()


def conversation_as_markdown(turns: Sequence[KeptTurn], name: Name = str) -> str:
    """Write questions as headings with the answers and the quoted citations below them, with `name` for places.

    Nothing in a document or an answer can act as HTML.
    """
    blocks = []
    for turn in turns:
        blocks.append(f"## {_escaped(' '.join(turn.question.split()))}")
        blocks.append(_escaped(turn.answer.text))
        for one in turn.answer.citations:
            url = one.passage.provenance.url
            location = _escaped(" ".join(f"{name(one.passage.location)}{f', {url}' if url else ''}".split()))
            quoted = [f"> {line}" for line in _escaped(one.passage.text).strip().splitlines()]
            blocks.append("\n".join([f"> [{one.number}] {location}", ">", *quoted]))
    return "\n\n".join(["# Conversation", *blocks]) + "\n"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
