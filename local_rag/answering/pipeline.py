"""Ask: find passages, select what to read of them, and answer from that or say that they do not hold the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Protocol

from local_rag.answering.answerer import Answerer, Reading
from local_rag.answering.excerpts import LINES, LINES_OF_SEVERAL, excerpts
from local_rag.answering.expand import OWN_WEIGHT, fuse_passages, rephrase
from local_rag.answering.look_alikes import look_alikes
from local_rag.answering.prompt import whole_texts
from local_rag.answering.question_parts import HOW_TO, asks_for_several, split_question
from local_rag.answering.rewrite import require_rewriter, rewrite
from local_rag.answering.source_selection import select, take_turns
from local_rag.models.reranker import Reranker
from local_rag.records import Answer, Passage, Turn
from local_rag.retrieval.search import Trace
from local_rag.retrieval.whole_documents import asks_for_documents

_SEVERAL = 1.5  # times as much is read for a question that asks for several things
_WIDER = 4  # times as far below the best may score what only lines are read of


class Search(Protocol):
    """Search for a question or a part of it, and with how many others to share what one search may cost.

    `alone` it is searched without any weight of the questions before it.
    """

    def __call__(self, question: str, share: int, /, *, alone: bool = False) -> Trace:
        """Return what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a question is to be answered.

    `near` as in records.InstalledModel. The model reads as much as it can with `whole`, and as much as it reads in some
    seconds without.
    `reranker`, `strict` as in Answerer.conclude, `diverse` as in select. With `expand` the question is searched in
    other words too, and the lists are fused with the constant `rrf_k`. A follow-up to the turns in `rewrite` is
    searched also as the model writes it anew.
    """

    near: float = 0.0
    whole: bool = False
    reranker: Reranker | None = None
    diverse: bool = False
    strict: bool = False
    expand: bool = False
    rewrite: Sequence[Turn] = ()
    rrf_k: int = 10


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for a question and for each of its parts, and the turn that it follows, if any."""

    lists: Sequence[Sequence[Passage]]
    before: Turn | None = None


class Asker:
    """Answer questions by a search and a model that is opened once something was found.

    `before` is the turn that a question may follow.
    """

    def __init__(
        self, search: Search, open_answerer: Callable[[], Answerer], way: Way, before: Turn | None = None
    ) -> None:
        self._search, self._open_answerer, self._way, self._before = search, open_answerer, way, before

    def require_rewriter(self) -> None:
        """Raise ModelError where the model that answers is too small to write questions anew."""
        require_rewriter(self._open_answerer().generator.model)

    def find(self, question: str) -> Found:
        """Search for a question and each of its parts."""
        way, parts = self._way, split_question(question)
        others = rephrase(question, self._open_answerer().generator) if way.expand else []
        share = 1 + len(others) + bool(way.rewrite) + len(parts)
        first = self._search(question, share)
        lists = [first.passages, *(self._search(other, share).passages for other in others)]
        weights = [OWN_WEIGHT, *(1.0 for _ in others)]
        if way.rewrite and first.follows:
            anew = rewrite(question, way.rewrite, self._open_answerer().generator)
            if anew:
                lists.append(self._search(anew, share, alone=True).passages)
                weights.append(OWN_WEIGHT)
        found = [fuse_passages(lists, weights, k=way.rrf_k)] if len(lists) > 1 else lists
        found += [self._search(part, share).passages for part in parts]
        return Found(found, self._before if first.follows else None)

    def read(self, question: str, found: Found) -> Reading:
        """Read the likely lines of the likely sources; for steps, which are many lines, all of the likeliest sources.

        More of what was found, read where these do not hold the answer, was measured on 7 questions of corpus/: it
        raises the odds of those that nothing answers as well, and no further answer was right.
        """
        answerer, way = self._open_answerer(), self._way
        several = asks_for_several(question) or asks_for_documents(question)
        budget = None if way.whole else answerer.usual_tokens
        tokens = budget and int(budget * (_SEVERAL if several else 1))
        near, read = way.near, whole_texts
        if way.reranker and not way.whole and not HOW_TO.match(question):
            asked = f"{found.before.question} {question}" if found.before else question
            lines = LINES_OF_SEVERAL if several else LINES
            near, read = _WIDER * near, partial(excerpts, asked, reranker=way.reranker, lines=lines, of_each=several)
        sources = select(found.lists, near=near, several=several, diverse=way.diverse)
        return answerer.read(question, sources, prompt_tokens=tokens, excerpts=read, before=found.before)

    def ask(
        self,
        question: str,
        *,
        anyway: bool,
        stop: Callable[[], bool],
        on_text: Callable[[str], None],
        on_passages: Callable[[Sequence[Passage]], None],
    ) -> Answer:
        """Answer a question; see `Library.ask`."""
        started, way = perf_counter(), self._way
        found = self.find(question)
        passages = take_turns(found.lists)
        on_passages(passages)
        answerer = self._open_answerer()
        answerer.generator.stop = stop
        reading = self.read(question, found)
        answer = answerer.conclude(reading, anyway=anyway, reranker=way.reranker, strict=way.strict, on_text=on_text)
        return replace(
            answer,
            passages=tuple(passages),
            look_alikes=look_alikes(question, answer.citations, answer.read),
            seconds=perf_counter() - started,
        )
