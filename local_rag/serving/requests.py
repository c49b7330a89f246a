"""The work that the owner of a library does for a face: search, and ask with the answers of before."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from local_rag.answering.conversation import Conversation
from local_rag.answering.prompt import CHECK, CHECK_WHETHER, REQUEST
from local_rag.errors import LibraryError, QuestionError
from local_rag.keys import key_of
from local_rag.library import Library
from local_rag.models.choice import chosen, find, threshold_of
from local_rag.records import DEFAULT_OPTIONS, Answer, AskOptions, Passage, Turn
from local_rag.retrieval.search import Trace
from local_rag.serialization import from_plain, to_line
from local_rag.serving.worker import Job
from local_rag.store.connect import remembered_settings
from local_rag.store.history import AnswerCache, History

MAX_QUESTION = 4000  # characters
MAX_TOP = 1000

_ANSWERS_VERSION = 2  # of the code between the question and its answer


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how, as in `Library.ask` and `Library.search`.

    `conversation` is the one that it goes on with, None where it begins one; with `new_subject` it stands alone in it.
    `earlier` are the turns before it where the conversation is kept elsewhere.
    """

    text: str
    top: int | None = None
    options: AskOptions = DEFAULT_OPTIONS
    every: bool = False
    min_score: float | None = None
    earlier: tuple[Turn, ...] = ()
    conversation: int | None = None
    new_subject: bool = False

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise QuestionError("The question is empty.")
        if len(self.text) > MAX_QUESTION:
            raise QuestionError(f"The question is longer than {MAX_QUESTION:,} characters; ask in fewer words.")


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer; `again` says that it is one given before, `conversation` where it is kept."""

    answer: Answer
    again: bool = field(default=False, compare=False)
    conversation: int | None = field(default=None, compare=False)


def searching(question: Question) -> Callable[[Library, Job], Trace]:
    """Return the work of a search."""

    def work(library: Library, _job: Job) -> Trace:
        usual = library.settings.all_candidates if question.every else library.settings.passages
        return library.trace(
            question.text,
            top=min(question.top or usual, MAX_TOP),
            rerank=question.options.rerank,
            filters=question.options.filters,
            every=question.every,
            min_score=question.min_score,
        )

    return work


def answering(
    question: Question, open_history: Callable[[], AbstractContextManager[History]] | None = None
) -> Callable[[Library, Job], Answered]:
    """Return the work of an answer, which tells `passages` once they are found and each `token` as it is written.

    With a history the question is one of a conversation, which is kept there.
    """

    def work(library: Library, job: Job) -> Answered:
        asking = _Asking(library, job, question)

        def on_text(text: str) -> None:
            job.tell("token", text)

        if open_history is None:
            answer = asking(question.text, question.options, earlier=question.earlier, on_text=on_text)
            return Answered(answer, asking.again)
        with open_history() as history:
            conversation = Conversation(asking, history)
            if question.conversation is not None:
                conversation.switch(question.conversation)
            if question.new_subject:
                conversation.new_subject()
            conversation.options = question.options
            try:
                answer = conversation.ask(question.text, on_text=on_text)
            except LibraryError:
                if asking.answer is None:
                    raise
                answer = asking.answer  # which could not be kept: that is no reason not to give it
            return Answered(answer, asking.again, conversation.id)

    return work


class _Asking:
    """Ask a library as a question says, or give the answer of before; `again` says which it was."""

    def __init__(self, library: Library, job: Job, question: Question) -> None:
        self._library, self._job, self._question = library, job, question
        self._cache = AnswerCache(library.folder) if library.settings.answer_cache else None
        self.answer: Answer | None = None
        self.again = False

    def __call__(
        self,
        text: str,
        options: AskOptions,
        /,
        *,
        earlier: tuple[Turn, ...] = (),
        on_text: Callable[[str], None],
    ) -> Answer:
        """Answer in the light of the earlier turns."""
        library, job, question = self._library, self._job, self._question
        made_with = index_key(library)
        key = _answer_key(library, question, earlier, made_with)
        if self._cache and (kept := _read(self._cache.get(key))):
            job.tell("passages", kept.passages)
            on_text(kept.text)
            self.answer, self.again = kept, True
            return kept

        def on_passages(passages: Sequence[Passage]) -> None:
            job.tell("passages", passages)
            job.check()

        self.answer = library.ask(
            text,
            options,
            earlier=earlier,
            on_passages=on_passages,
            on_text=on_text,
            stop=job.stopped.is_set,
        )
        # Another process may have published in the meantime: the answer then belongs to the newer index.
        if self._cache and index_key(library) == made_with:
            self._cache.put(key, made_with, to_line(self.answer).decode())
        return self.answer


def index_key(library: Library) -> str:
    """Name the content of the live index."""
    return key_of(json.dumps(dict(library.manifest()), sort_keys=True, default=str))


def _answer_key(library: Library, question: Question, earlier: tuple[Turn, ...], made_with: str) -> str:
    """Name all that an answer depends on: index, settings, models, prompts, question and those before it."""
    models = [find(library.settings, role).identity for role in chosen(library.settings)]
    settings = library.settings.model_dump(mode="json")
    asked = to_line([replace(question, conversation=None, new_subject=False), earlier]).decode()
    threshold = threshold_of(find(library.settings, "answer"), remembered_settings(library.folder))
    return key_of(_ANSWERS_VERSION, made_with, settings, models, threshold, CHECK, CHECK_WHETHER, REQUEST, asked)


def _read(text: str | None) -> Answer | None:
    """Read a kept answer; one that another version has written is none."""
    try:
        fields = json.loads(text or "null")
        return from_plain(Answer, fields) if fields else None
    except (ValueError, TypeError, AttributeError):
        return None
