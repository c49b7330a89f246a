"""A conversation: each question is searched and answered in the light of those before it on the same subject."""

import re
from collections.abc import Callable
from typing import Protocol

from local_rag.records import DEFAULT_OPTIONS, Answer, AskOptions, Citation, Passage, Turn
from local_rag.store.history import History, KeptConversation, KeptTurn

_GREETING = "Hello. Ask something that the documents may answer."
_THANKS = "You are welcome."
_FAREWELL = "Goodbye."
_REPLIES = {
    **dict.fromkeys(("hi", "hello", "hey", "hi there", "hello there", "good morning", "good afternoon"), _GREETING),
    **dict.fromkeys(("good evening", "good day", "greetings", "how are you"), _GREETING),
    **dict.fromkeys(("thanks", "thank you", "thank you very much", "many thanks", "thanks a lot", "thx"), _THANKS),
    **dict.fromkeys(("ok", "okay", "great", "ok thanks", "okay thanks", "great thanks", "ok thank you"), _THANKS),
    **dict.fromkeys(("bye", "goodbye", "good bye", "good night", "see you", "bye bye"), _FAREWELL),
}


def reply_to_greeting(text: str) -> str | None:
    """Return the fixed reply to a greeting or thanks, for which nothing is searched; None to anything else."""
    words = " ".join(re.findall(r"\w+", text.lower())) if len(text) < max(map(len, _REPLIES)) * 2 else ""
    return _REPLIES.get(words)


def _ignore(_text: str) -> None: ...


class Ask(Protocol):
    """Answer a question, as `Library.ask` does."""

    def __call__(
        self, question: str, options: AskOptions, /, *, earlier: tuple[Turn, ...], on_text: Callable[[str], None]
    ) -> Answer:
        """Return the answer."""


class Conversation:
    """A conversation with a library, made by `Library.chat()`; `options` hold for whatever is asked from then on.

    It is kept in the library's history from its first question on. What was asked before on the same subject stands in
    `turns`.
    """

    def __init__(self, ask: Ask, history: History) -> None:
        self._ask, self._history = ask, history
        self._id: int | None = None
        self.options: AskOptions = DEFAULT_OPTIONS
        self.turns: list[Turn] = []
        self.last: Answer | None = None

    def ask(self, question: str, *, on_text: Callable[[str], None] = _ignore) -> Answer:
        """Ask a question as `Library.ask` does; a greeting is answered without searching.

        What is to be answered `anyway` takes the place of the question before where that was the same, and refused.
        """
        if reply := reply_to_greeting(question):
            on_text(reply)
            return Answer(question, reply, answered=True, citations=(), passages=())
        again = bool(self.options.anyway and self.turns and self.turns[-1].question == question)
        earlier = self.turns[:-1] if again else self.turns
        answer = self._ask(question, self.options, earlier=tuple(earlier), on_text=on_text)
        self.turns, self.last = [*earlier, Turn(question, answer.text)], answer
        if self._id is None:
            self._id = self._history.begin()
        self._history.add(self._id, answer, opens=not earlier, again=again)
        return answer

    def new_subject(self) -> None:
        """Let the next question stand alone."""
        self.turns = []

    @property
    def id(self) -> int | None:
        """Return the number under which the conversation is kept, None before its first question."""
        return self._id

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Return what the last answer cites."""
        return self.last.citations if self.last else ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Return what was read for the last answer."""
        return self.last.read if self.last else ()

    def kept(self) -> list[KeptConversation]:
        """Return the conversations of the library that are kept, the latest first."""
        return self._history.conversations()

    def questions(self) -> list[str]:
        """Return whatever was asked in any conversation that is kept."""
        return self._history.questions()

    def switch(self, conversation: int) -> None:
        """Go on with another conversation, where it ended; raise LibraryError where none has this number."""
        kept = self._history.turns(conversation)
        opening = max(place for place, turn in enumerate(kept) if turn.opens or not place)
        self._id, self.last = conversation, None
        self.turns = [Turn(turn.question, turn.answer.text) for turn in kept[opening:]]

    def forget(self, conversation: int | None = None) -> None:
        """Delete a conversation, or with None this one, of which nothing is left then."""
        if conversation is None and self._id is None:
            return
        self._history.forget(self._id if conversation is None else conversation)  # type: ignore[arg-type]
        if conversation in (None, self._id):
            self._id, self.last, self.turns = None, None, []

    def as_markdown(self) -> str:
        """Return the whole conversation with the passages it cites."""
        return conversation_as_markdown(self._history.turns(self._id) if self._id is not None else [])

    def close(self) -> None:
        """Close the history."""
        self._history.close()


def conversation_as_markdown(turns: list[KeptTurn]) -> str:
    """Write questions as headings, answers below them, and quoted below those what they cite.

    Nothing in a document or an answer can pass for markup of the page.
    """
    blocks = []
    for turn in turns:
        blocks.append(f"## {_plain(' '.join(turn.question.split()))}")
        blocks.append(_plain(turn.answer.text))
        for one in turn.answer.citations:
            url = one.passage.provenance.url
            place = _plain(" ".join(f"{one.passage.location}{f', {url}' if url else ''}".split()))
            quoted = [f"> {line}" for line in _plain(one.passage.text).strip().splitlines()]
            blocks.append("\n".join([f"> [{one.number}] {place}", ">", *quoted]))
    return "\n\n".join(["# Conversation", *blocks]) + "\n"


def _plain(text: str) -> str:
    """Keep a text from being HTML where the page is shown."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
