"""Answer a question: find passages, select what to read of them, and answer from that or refuse."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Protocol

from local_rag.answering.answerer import Answerer, ReadSources
from local_rag.answering.excerpts import LINES, LINES_OF_SEVERAL, excerpts
from local_rag.answering.expand import OWN_WEIGHT, fuse_passages, rephrase
from local_rag.answering.look_alikes import look_alikes
from local_rag.answering.prompt import whole_texts
from local_rag.answering.question_parts import HOW_TO, asks_for_several, split_question
from local_rag.answering.rewrite import require_rewriter, rewrite
from local_rag.answering.source_selection import select, take_turns
from local_rag.models.reranker import Reranker
from local_rag.records import DEFAULT_OPTIONS, Answer, AskOptions, Passage, Turn
from local_rag.retrieval.search import Trace
from local_rag.retrieval.whole_documents import asks_for_documents

SEVERAL = 1.5  # factor for the tokens to read if a question asks for several things
WIDER = 4  # factor for `near` if only lines of a passage are read


class Search(Protocol):
    """Search for a question or a part of it.

    `share` is the number of searches that share the cost of one. With `alone`, earlier questions have no weight.
    """

    def __call__(self, question: str, share: int, /, *, alone: bool = False) -> Trace:
        """Return the result of the search."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The passages found for a question and for each of its parts, and the turn before it if it is a follow-up."""

    lists: Sequence[Sequence[Passage]]
    before: Turn | None = None


class AnswerPipeline:
    """Answer questions with a search and a model, which is opened only after the search.

    `earlier` are the turns that a question may follow. `near` is the setting of the `reranker` in records.ModelUse;
    both are omitted without a cross-encoder. `rrf_k` is the constant of reciprocal rank fusion.
    """

    def __init__(
        self,
        search: Search,
        open_answerer: Callable[[], Answerer],
        options: AskOptions = DEFAULT_OPTIONS,
        *,
        earlier: Sequence[Turn] = (),
        reranker: Reranker | None = None,
        near: float = 0.0,
        rrf_k: int = 10,
    ) -> None:
        self._search, self._open_answerer, self._options, self._earlier = search, open_answerer, options, earlier
        self._reranker, self._near, self._rrf_k = reranker, near, rrf_k

    def require_rewriter(self) -> None:
        """Raise ModelError if the answer model is too small to rewrite questions."""
        require_rewriter(self._open_answerer().generator.model)

    def find(self, question: str) -> Candidates:
        """Search for a question and each of its parts."""
        options, parts = self._options, split_question(question)
        others = rephrase(question, self._open_answerer().generator) if options.expand else []
        rewritten = options.rewrite and bool(self._earlier)
        share = 1 + len(others) + rewritten + len(parts)
        first = self._search(question, share)
        lists = [first.passages, *(self._search(other, share).passages for other in others)]
        weights = [OWN_WEIGHT, *(1.0 for _ in others)]
        if rewritten and first.follows:
            alone = rewrite(question, self._earlier, self._open_answerer().generator)
            if alone:
                lists.append(self._search(alone, share, alone=True).passages)
                weights.append(OWN_WEIGHT)
        found = [fuse_passages(lists, weights, k=self._rrf_k)] if len(lists) > 1 else lists
        found += [self._search(part, share).passages for part in parts]
        return Candidates(found, self._earlier[-1] if self._earlier and first.follows else None)

    def read(self, question: str, found: Candidates) -> ReadSources:
        """Read the likely lines of the likely sources; for how-to questions, read the likeliest sources whole.

        If the options set `passages`, the model reads that many passages whole.
        """
        answerer, whole = self._open_answerer(), self._options.passages is not None
        several = asks_for_several(question) or asks_for_documents(question)
        budget = None if whole else answerer.usual_tokens
        tokens = budget and int(budget * (SEVERAL if several else 1))
        near, read = 0.0 if whole else self._near, whole_texts
        if self._reranker and not whole and not HOW_TO.match(question):
            asked = f"{found.before.question} {question}" if found.before else question
            lines = LINES_OF_SEVERAL if several else LINES
            near, read = WIDER * near, partial(excerpts, asked, reranker=self._reranker, lines=lines, of_each=several)
        sources = select(found.lists, near=near, several=several, diverse=self._options.diverse)
        return answerer.read(question, sources, prompt_tokens=tokens, excerpts=read, before=found.before)

    def ask(
        self,
        question: str,
        *,
        stop: Callable[[], bool],
        on_text: Callable[[str], None],
        on_passages: Callable[[Sequence[Passage]], None],
    ) -> Answer:
        """Answer a question; see `Library.ask`."""
        started, options = perf_counter(), self._options
        found = self.find(question)
        passages = take_turns(found.lists)
        on_passages(passages)
        answerer = self._open_answerer()
        answerer.generator.stop = stop
        answer = answerer.conclude(
            self.read(question, found),
            anyway=options.anyway,
            reranker=self._reranker,
            strict=options.strict,
            on_text=on_text,
        )
        return replace(
            answer,
            passages=tuple(passages),
            look_alikes=look_alikes(question, answer.citations, answer.read),
            seconds=perf_counter() - started,
        )
