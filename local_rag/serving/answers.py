"""Answer a question with an open library: from the cache if it holds the answer, and within a conversation or not."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from local_rag.answering.conversation import Conversation
from local_rag.answering.recipe import answer_recipe
from local_rag.errors import LibraryError
from local_rag.keys import key_of
from local_rag.library import Library
from local_rag.models.choice import calibration_of, chosen, find
from local_rag.records import Answer, AskOptions, Passage, Turn
from local_rag.serialization import from_plain, to_line
from local_rag.serving.job import Job, PassagesFound, TextWritten
from local_rag.serving.requests import AskRequest, ServedAnswer
from local_rag.store.connect import remembered_settings
from local_rag.store.history import AnswerCache, History

OpenHistory = Callable[[], AbstractContextManager[History]]


def answer(
    library: Library, job: Job[ServedAnswer], request: AskRequest, open_history: OpenHistory, *, cached: bool
) -> ServedAnswer:
    """Answer a question and tell the job the passages once they are found and the text as it is written.

    With `cached` the answer cache is used, if the setting allows it.
    """
    ask = _CachedAsk(library, job, cached=cached and library.settings.answer_cache)

    def on_text(text: str) -> None:
        job.tell(TextWritten(text))

    if not request.in_history:
        found = ask(request.question, request.options, earlier=request.earlier, on_text=on_text)
        return ServedAnswer(found, ask.again)
    with open_history() as history:
        conversation = Conversation(ask, history)
        if request.conversation is not None:
            conversation.switch(request.conversation)
        if request.new_subject:
            conversation.new_subject()
        conversation.options = request.options
        try:
            found = conversation.ask(request.question, on_text=on_text)
        except LibraryError:
            if ask.answer is None:
                raise
            found = ask.answer  # the history could not keep it; the caller gets it all the same
        return ServedAnswer(found, ask.again, conversation.id)


class _CachedAsk:
    """Ask a library, or return its answer from the cache; `again` says which it was."""

    def __init__(self, library: Library, job: Job[ServedAnswer], *, cached: bool) -> None:
        self._library, self._job = library, job
        self._cache = AnswerCache(library.folder) if cached else None
        self.answer: Answer | None = None
        self.again = False

    def __call__(
        self, question: str, options: AskOptions, /, *, earlier: tuple[Turn, ...], on_text: Callable[[str], None]
    ) -> Answer:
        """Answer a question that follows the earlier turns."""
        library, job, made_with, key = self._library, self._job, "", ""
        if self._cache:
            made_with = _index_key(library)
            key = _answer_key(library, question, options, earlier, made_with)
            if kept := _read(self._cache.get(key)):
                job.tell(PassagesFound(kept.passages))
                on_text(kept.text)
                self.answer, self.again = kept, True
                return kept

        def on_passages(passages: Sequence[Passage]) -> None:
            job.tell(PassagesFound(passages))
            job.check()

        self.answer = library.ask(
            question, options, earlier=earlier, on_passages=on_passages, on_text=on_text, stop=job.stopped.is_set
        )
        # If another process has published in the meantime, the answer belongs to the newer index.
        if self._cache and _index_key(library) == made_with:
            self._cache.put(key, made_with, to_line(self.answer).decode())
        return self.answer


def _index_key(library: Library) -> str:
    """Return a key of the content of the live index."""
    return key_of(json.dumps(dict(library.manifest()), sort_keys=True, default=str))


def _answer_key(library: Library, question: str, options: AskOptions, earlier: Sequence[Turn], made_with: str) -> str:
    """Return a key of all that an answer depends on: code, prompts, index, settings, models and question."""
    models = [find(library.settings, role).identity for role in chosen(library.settings)]
    settings = library.settings.model_dump(mode="json")
    calibration = calibration_of(find(library.settings, "answer"), remembered_settings(library.folder))
    asked = to_line([question, options, list(earlier)]).decode()
    return key_of(answer_recipe(), made_with, settings, models, to_line(calibration).decode(), asked)


def _read(text: str | None) -> Answer | None:
    """Read a cached answer; return None for one that another version wrote."""
    try:
        fields = json.loads(text or "null")
        return from_plain(Answer, fields) if fields else None
    except (ValueError, TypeError, AttributeError):
        return None
