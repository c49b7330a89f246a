"""Answer a question with an open library: from the cache if it holds the answer, and within a conversation or not.

Conversations last as long as the server where none may be kept.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import date
from typing import TypeAlias

from local_rag.answer_records import Answer, Written
from local_rag.answering.code_key import answer_recipe
from local_rag.asking import AskOptions, KeptOfQuestions, Turn
from local_rag.conversation import FORGOTTEN, Conversation
from local_rag.errors import LibraryError, MissingError
from local_rag.index.protocol import content_key
from local_rag.keys import key_of
from local_rag.library import Library
from local_rag.models.choice import calibration_of, chosen, find
from local_rag.passage_records import Passage
from local_rag.serialization import to_line
from local_rag.serving.job import Job, PassagesFound
from local_rag.serving.requests import AskRequest, ServedAnswer
from local_rag.store.connect import remembered_settings
from local_rag.store.history import History
from local_rag.text.languages import ENGLISH, language_of
from local_rag.text.relative_times import asked_times
from local_rag.view import View

OpenHistory: TypeAlias = AbstractContextManager[History]


class Conversations:
    """Open the history of a library, or one in memory that lasts as long as this object."""

    def __init__(self, library: Callable[[], Library]) -> None:
        self._library = library
        self._in_memory = History(library().folder, kept=False)
        self._stamp = ""  # of the index whose documents the history in memory may quote

    @contextmanager
    def __call__(self, person: str = "") -> Iterator[History]:
        """Yield the history as the person with this id may see it."""
        library, kept = self._library(), None
        if library.settings.retention.conversations:
            with suppress(LibraryError):  # a damaged history must not keep the library from answering
                kept = History(library.folder)
        if kept and kept.kept:
            with closing(kept):
                yield kept.of(person)
            return
        if kept:
            kept.close()
        stamp = library.upkeep.live_stamp()
        if stamp != self._stamp:
            self._forget_what_is_gone(library, stamp)
        yield self._in_memory.of(person)
        if stamp != (now := library.upkeep.live_stamp()):
            self._forget_what_is_gone(library, now)

    def _forget_what_is_gone(self, library: Library, stamp: str) -> None:
        """Forget what quotes documents that were removed, perhaps by another process, since the last question."""
        library.history.forget_missing(self._in_memory)
        self._stamp = stamp

    def in_file(self) -> KeptOfQuestions:
        """Return what the history file holds, also if nothing is written to it any more."""
        with suppress(LibraryError):
            return self._library().history.kept()
        return KeptOfQuestions()

    def forget(self, person: str = "") -> None:
        """Delete the conversations of a person, or of all with all that is kept, in memory and in the file."""
        if person:
            self._in_memory.of(person).forget_person()
        else:
            self._in_memory.forget_all()
        self._library().history.forget(person)


def answer(
    library: View, job: Job[ServedAnswer], request: AskRequest, open_history: Callable[[], OpenHistory], *, cached: bool
) -> ServedAnswer:
    """Answer a question and tell the job the passages once they are found and the text as it is written.

    With `cached` the answer is cached in the history, if the setting allows it.
    """
    with open_history() as history:
        cache = _Cache(history, request.conversation) if cached and library.settings.answer_cache else None
        ask = _CachedAsk(library, job, cache)

        if not request.in_history:
            given = ask(request.question, request.options, earlier=request.earlier, on_text=job.tell)
            return ServedAnswer(given, ask.again, changed=tuple(library.documents.changed(given)))
        conversation = Conversation(ask, history)
        notice = ""
        if request.conversation is not None:
            try:
                conversation.switch(request.conversation)
            except MissingError:
                notice = FORGOTTEN
        if request.new_subject:
            conversation.new_subject()
        conversation.options = request.options
        try:
            given = conversation.ask(request.question, on_text=job.tell)
        except LibraryError:
            if ask.answer is None:
                raise
            given = ask.answer  # the history could not keep it; the caller gets it all the same
        changed = tuple(library.documents.changed(given))
        return ServedAnswer(given, ask.again, conversation.id, conversation.notice or notice, changed)


class _Cache:
    """The cached answers of a history, as they were when a question was asked in a conversation."""

    def __init__(self, history: History, conversation: str | None) -> None:
        self._history, self._epoch = history, history.epoch()
        self._conversation = conversation if conversation and history.holds(conversation) else None

    def get(self, key: str) -> Answer | None:
        """Return the answer cached under a key."""
        with suppress(LibraryError):
            return self._history.answer(key)
        return None

    def put(self, key: str, made_with: str, answer: Answer) -> None:
        """Cache an answer, unless the conversation or a document was forgotten meanwhile."""
        with suppress(LibraryError):
            self._history.put_answer(key, made_with, answer, epoch=self._epoch, conversation=self._conversation)


class _CachedAsk:
    """Ask a library, or return its answer from the cache; `again` says which it was."""

    def __init__(self, library: View, job: Job[ServedAnswer], cache: _Cache | None) -> None:
        self._library, self._job, self._cache = library, job, cache
        self.answer: Answer | None = None
        self.again = False

    def __call__(
        self, question: str, options: AskOptions, /, *, earlier: tuple[Turn, ...], on_text: Callable[[Written], None]
    ) -> Answer:
        """Answer a question that follows the earlier turns."""
        library, job, made_with, key = self._library, self._job, "", ""
        if self._cache:
            made_with = content_key(library.retrieval.manifest())
            key = _answer_key(library, question, options, earlier, made_with)
            if kept := self._cache.get(key):
                job.tell(PassagesFound(kept.passages))
                on_text(Written(kept.text))
                library.feedback.record_again(question, kept, follows=bool(earlier))
                self.answer, self.again = kept, True
                return kept

        def on_passages(passages: Sequence[Passage]) -> None:
            job.tell(PassagesFound(passages))
            job.check()

        self.answer = library.ask(
            question,
            options,
            earlier=earlier,
            on_passages=on_passages,
            on_reading=job.tell,
            on_text=on_text,
            progress=job.tell,
            stop=job.ended,
        )
        # If another process has published in the meantime, the answer belongs to the newer index.
        complete = self.answer.found is None or self.answer.found.complete
        if self._cache and complete and content_key(library.retrieval.manifest()) == made_with:
            self._cache.put(key, made_with, self.answer)
        return self.answer


def _answer_key(library: View, question: str, options: AskOptions, earlier: Sequence[Turn], made_with: str) -> str:
    """Return a key of all that an answer depends on: code, prompts, index, settings, models and question."""
    models = [find(library.settings, role).identity for role in chosen(library.settings)]
    settings = library.settings.model_dump(mode="json")
    calibration = calibration_of(find(library.settings, "answer"), remembered_settings(library.folder))
    today = date.today()
    counts_from_today = any(asked_times(one, today) for one in (question, *(turn.question for turn in earlier)))
    # What another language says of times is known only once it is translated.
    day = today.isoformat() if counts_from_today or language_of(question) != ENGLISH else ""
    asked = to_line([question, options, list(earlier), day]).decode()
    shown = str(library.retrieval.facts_version())  # with its passages an answer keeps their paths
    return key_of(answer_recipe(), made_with, shown, settings, models, to_line(calibration).decode(), asked)
