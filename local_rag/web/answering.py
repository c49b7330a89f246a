"""The work that the owner of a library does for a face: search, and ask with the answers of before."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from local_rag.asking.prompt import CHECK, CHECK_WHETHER, REQUEST
from local_rag.asking.search import Trace
from local_rag.errors import QuestionError
from local_rag.keys import key_of
from local_rag.library import Library
from local_rag.models.choice import chosen, find, threshold_of
from local_rag.records import EVERYTHING, Answer, Filters, Passage
from local_rag.store.answer_cache import AnswerCache
from local_rag.store.asked import AskedQuestions
from local_rag.store.connect import remembered_settings
from local_rag.web.owner import Job
from local_rag.wire import from_plain, to_line

MAX_QUESTION = 4000  # characters
MAX_TOP = 1000

_ANSWERS_VERSION = 1  # of the code between the question and its answer


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how, as in `Library.ask` and `Library.search`; `remembered` keeps it where that is on."""

    text: str
    top: int | None = None
    passages: int | None = None
    rerank: bool = True
    filters: Filters = EVERYTHING
    every: bool = False
    min_score: float | None = None
    diverse: bool = False
    strict: bool = False
    expand: bool = False
    anyway: bool = False
    remembered: bool = False

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise QuestionError("The question is empty.")
        if len(self.text) > MAX_QUESTION:
            raise QuestionError(f"The question is longer than {MAX_QUESTION:,} characters; ask in fewer words.")


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer; `again` says that it is one given before."""

    answer: Answer
    again: bool = field(default=False, compare=False)


def searching(question: Question) -> Callable[[Library, Job], Trace]:
    """Return the work of a search."""

    def work(library: Library, _job: Job) -> Trace:
        usual = library.settings.all_candidates if question.every else library.settings.passages
        return library.trace(
            question.text,
            top=min(question.top or usual, MAX_TOP),
            rerank=question.rerank,
            filters=question.filters,
            every=question.every,
            min_score=question.min_score,
        )

    return work


def answering(question: Question) -> Callable[[Library, Job], Answered]:
    """Return the work of an answer, which tells `passages` once they are found and each `token` as it is written."""

    def work(library: Library, job: Job) -> Answered:
        cache = AnswerCache(library.folder) if library.settings.answer_cache else None
        made_with = index_key(library)
        key = _answer_key(library, question, made_with)
        if cache and (kept := _kept(cache, key)):
            job.tell("passages", kept.answer.passages)
            job.tell("token", kept.answer.text)
            _remember(library, question, kept)
            return kept

        def on_passages(passages: Sequence[Passage]) -> None:
            job.tell("passages", passages)
            job.check()

        answer = library.ask(
            question.text,
            passages=question.passages,
            rerank=question.rerank,
            filters=question.filters,
            diverse=question.diverse,
            strict=question.strict,
            expand=question.expand,
            anyway=question.anyway,
            on_passages=on_passages,
            on_text=lambda text: job.tell("token", text),
            stop=job.stopped.is_set,
        )
        answered = Answered(answer)
        # Another process may have published in the meantime: the answer then belongs to the newer index.
        if cache and index_key(library) == made_with:
            cache.put(key, made_with, to_line(answered).decode())
        _remember(library, question, answered)
        return answered

    return work


def _remember(library: Library, question: Question, answered: Answered) -> None:
    if question.remembered and library.settings.history:
        AskedQuestions(library.folder).add(question.text, to_line(answered).decode())


def index_key(library: Library) -> str:
    """Name the content of the live index."""
    return key_of(json.dumps(dict(library.manifest()), sort_keys=True, default=str))


def _answer_key(library: Library, question: Question, made_with: str) -> str:
    """Name all that an answer depends on: index, settings, models, prompts and question."""
    models = [find(library.settings, role).identity for role in chosen(library.settings)]
    settings = library.settings.model_dump(mode="json")
    asked = to_line(replace(question, remembered=False)).decode()
    threshold = threshold_of(find(library.settings, "answer"), remembered_settings(library.folder))
    return key_of(_ANSWERS_VERSION, made_with, settings, models, threshold, CHECK, CHECK_WHETHER, REQUEST, asked)


def _kept(cache: AnswerCache, key: str) -> Answered | None:
    """Read a kept answer; one that another version has written is none."""
    kept = read_answered(cache.get(key))
    return replace(kept, again=True) if kept else None


def read_answered(text: str | None) -> Answered | None:
    """Read an answer that was kept as JSON; None where there is none, or one that another version has written."""
    try:
        fields = json.loads(text or "null")
        return from_plain(Answered, fields) if fields else None
    except (ValueError, TypeError, AttributeError):
        return None
