"""The answering of questions from what somebody sees: its models and steps, which keep nothing of what is asked."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any

from local_rag.answer_records import Found, Shown
from local_rag.answering.answerer import Answerer
from local_rag.answering.pace import pace_of
from local_rag.answering.pipeline import AnswerPipeline
from local_rag.answering.prompt import source_text
from local_rag.answering.selection import shown_of
from local_rag.asking import DEFAULT_OPTIONS, AskOptions, Turn
from local_rag.errors import StoppedError
from local_rag.holdings.access import Access
from local_rag.holdings.code_answers import CodeAnswers
from local_rag.holdings.documents import Documents
from local_rag.holdings.held_tables import Tables
from local_rag.holdings.judging import UNMARKED, Feedback, Marking
from local_rag.holdings.retrieval import Retrieval
from local_rag.llama.generator import never
from local_rag.models.choice import find
from local_rag.models.reader import Reader
from local_rag.progress_records import OnProgress, ignore
from local_rag.retrieval.find_question import FindQuestion
from local_rag.retrieval.question import Question, read_question
from local_rag.retrieval.version_families import Versions
from local_rag.store.storage_errors import storage_errors


class Answering:
    """What answers questions; its models serve one thread at a time."""

    def __init__(
        self, access: Access, documents: Documents, tables: Tables, feedback: Feedback, retrieval: Retrieval
    ) -> None:
        self._access, self._documents, self._tables = access, documents, tables
        self._feedback, self._retrieval = feedback, retrieval

    def answerer(self) -> Answerer:
        """Return what answers, with the answer model, which is loaded when it is needed, and the present gate."""
        shared, base = self._access.shared, self._feedback.gate_base()
        if shared.answerer is None:
            embedder, model = find(self._access.settings, "embed"), find(self._access.settings, "answer")
            shared.answerer = Answerer(
                shared.answer_model.open,
                form=base.form,
                close_from=embedder.close_from,
                translates=model.translates,
                pace=pace_of(model),
            )
        shared.answerer.calibration = self._feedback.calibration()
        return shared.answerer

    def pipeline(
        self,
        options: AskOptions = DEFAULT_OPTIONS,
        earlier: Sequence[Turn] = (),
        *,
        marking: Marking = UNMARKED,
        progress: OnProgress = ignore,
        stop: Callable[[], bool] = never,
    ) -> AnswerPipeline:
        """Return a pipeline that answers questions step by step, for one thread, until `stop` returns true.

        `marking` puts the passages that it finds for a question in order by the marks of the same question.
        """
        how = dict[str, Any](
            top=options.passages or self._access.settings.passages,
            rerank=options.rerank,
            filters=options.filters,
            of_asked_versions=True,
        )

        def open_reader() -> Reader | None:
            with storage_errors(self._access.folder):
                return self._access.open_searcher().searcher.reader if options.rerank else None

        def find_all(question: Question, asked: FindQuestion) -> Found | None:
            if asked.rule == "meaning" and not self._retrieval.knows_relevance:
                return None
            most = self._access.settings.find_passages
            return self._retrieval.find(question, asked, options.filters, most=most, progress=progress, stop=stop)

        @contextmanager
        def open_versions() -> Iterator[Versions]:
            with self._access.reading() as store:
                yield self._access.versions(store)

        by_code = CodeAnswers(self._access, self._documents, self._tables, options.filters, find_all)
        return AnswerPipeline(
            partial(marking, self._retrieval.ranked, **how),
            cache(self.answerer),
            self._access.shared.answer_model.count_tokens,
            options,
            search_part=partial(self._retrieval.ranked, **how),
            earlier=earlier,
            open_reader=open_reader,
            by_code=by_code if self._access.has_store else None,
            open_versions=open_versions if self._access.has_store else None,
            share_known=lambda question: self._retrieval.share_known(question, options.filters),
            stop=stop,
        )

    def read_ahead(self, question: str, options: AskOptions = DEFAULT_OPTIONS, *, stop: Callable[[], bool]) -> None:
        """Let the model read what it would be shown for a question, until `stop`, so that the answer begins sooner."""
        with self._access.shared.one_at_a_time, suppress(StoppedError):
            self.pipeline(options, stop=stop).read_ahead(read_question(question))

    def shown(self, question: str, *, earlier: Sequence[Turn] = ()) -> tuple[list[Shown], int]:
        """Return the most that the model would be shown for a question, and how many tokens; it is not loaded."""
        with self._access.shared.one_at_a_time:
            pipeline, count_tokens = self.pipeline(earlier=earlier), self._access.shared.answer_model.count_tokens
            sources = pipeline.select_most(pipeline.find(read_question(question)))
            return shown_of(sources), sum(count_tokens(source_text(source)) for source in sources)

    def load(self) -> None:
        """Load the model that answers before the first question."""
        with self._access.shared.one_at_a_time:
            self._access.shared.answer_model.open()
