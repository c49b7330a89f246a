"""Answer a question: find passages, choose what of them the model is shown, and answer, quote or refuse."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Protocol

from local_rag.answering.answerer import Answerer, Draft
from local_rag.answering.question_parts import split_clauses
from local_rag.answering.selection import (
    FIRST_TOKENS,
    MORE_TOKENS,
    SHOWN_TOKENS,
    Source,
    select_sources,
    take_turns,
    whole_sources,
)
from local_rag.asking import DEFAULT_OPTIONS, AskOptions, Turn
from local_rag.display import found_headline, times
from local_rag.llama.generator import never
from local_rag.models.reader import Reader
from local_rag.records import Answer, Citation, Correction, Found, Passage, Written, heading_path
from local_rag.retrieval.searcher import Trace

_SIMILAR = 0.7  # cosine of the word counts of two passages
_WORD = re.compile(r"\w+")


class Search(Protocol):
    """Search for a question or a part of it.

    `share` is the number of searches that share the cost of one.
    """

    def __call__(self, question: str, share: int, /) -> Trace:
        """Return the result of the search."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The passages found for a question and for each of its parts, and the turn before it if it is a follow-up.

    `question` is the question as it was searched, with the `corrections` of words that stand in no document.
    """

    lists: Sequence[Sequence[Passage]]
    before: Turn | None = None
    question: str = ""
    corrections: tuple[Correction, ...] = ()


class AnswerPipeline:
    """Answer questions with a search and a model, which is opened only when it is needed.

    `earlier` are the turns that a question may follow. `count_tokens` counts those of the answer model, without its
    weights. Without a `reader`, words and the order of passages choose what is shown. All that the model generates ends
    with StoppedError once `stop` returns true.
    """

    def __init__(
        self,
        search: Search,
        open_answerer: Callable[[], Answerer],
        count_tokens: Callable[[str], int],
        options: AskOptions = DEFAULT_OPTIONS,
        *,
        earlier: Sequence[Turn] = (),
        reader: Reader | None = None,
        stop: Callable[[], bool] = never,
    ) -> None:
        self._search, self._open_answerer, self._options, self._earlier = search, open_answerer, options, earlier
        self._count_tokens, self._reader, self._stop = count_tokens, reader, stop

    @contextmanager
    def _answerer(self) -> Iterator[Answerer]:
        """Open the model, which can be stopped meanwhile."""
        answerer = self._open_answerer()
        with answerer.generator.stopping(self._stop):
            yield answerer

    def find(self, question: str) -> Candidates:
        """Search for a question and each of its parts."""
        parts = split_clauses(question)
        share = 1 + len(parts)
        first = self._search(question, share)
        lists = [first.passages, *(self._search(part, share).passages for part in parts)]
        before = self._earlier[-1] if self._earlier and first.follows else None
        return Candidates(lists, before, first.question or question, first.corrections)

    def select(self, question: str, found: Candidates, tokens: int = 0) -> list[Source]:
        """Choose what of the passages the model is shown: their best parts, or as many whole as the options say.

        Their best parts are as many `tokens`, or those that its form begins with.
        """
        tokens = tokens or self._steps(question)[0]
        asked = f"{found.before.question} {question}" if found.before else question
        if self._options.passages is not None:
            return whole_sources(asked, found.lists, reader=self._reader)
        return select_sources(asked, found.lists, count_tokens=self._count_tokens, reader=self._reader, tokens=tokens)

    def select_most(self, question: str, found: Candidates) -> list[Source]:
        """Choose the most that the model is shown: all of it, or what it reads last where nothing before answers."""
        return self.select(question, found, self._steps(question)[-1])

    def _steps(self, question: str) -> tuple[int, ...]:
        """Return the numbers of tokens that the model is shown, one after the other until it is sure of an answer."""
        if not self._open_answerer().form.refusal:
            return (SHOWN_TOKENS,)
        # Of a compound question little would hold the answer to one part only.
        return MORE_TOKENS[-1:] if split_clauses(question) else (FIRST_TOKENS, *MORE_TOKENS)

    def read_ahead(self, question: str) -> None:
        """Let the model read what it would be shown for a question."""
        found = self.find(question)
        sources = self.select(found.question, found)
        with self._answerer() as answerer:
            answerer.read_ahead(found.question, sources)

    def draft(self, question: str, found: Candidates) -> Draft | None:
        """Read and write as for an answer, and decide nothing; None where nothing was found."""
        with self._answerer() as answerer:
            sources, more = self.select(question, found), self._more(question, found)
            return answerer.draft(question, sources, more=more, before=found.before)

    def _more(self, question: str, found: Candidates) -> list[Callable[[], list[Source]]]:
        """Return what selects more sources, where those before do not answer."""
        steps = () if self._options.passages else self._steps(question)[1:]
        return [partial(self.select, question, found, tokens) for tokens in steps]

    def _answer(self, question: str, found: Candidates, show: Callable[[str], None]) -> Answer:
        """Answer, with the model only where that can be of use or is wished for."""
        sources, before = self.select(question, found), found.before
        if not self._options.anyway and (
            answer := self._open_answerer().answer_unread(question, sources, before=before)
        ):
            return answer
        with self._answerer() as answerer:
            return answerer.answer(
                question,
                sources,
                more=self._more(question, found),
                before=before,
                strict=self._options.strict,
                anyway=self._options.anyway,
                show=show,
            )

    def ask(
        self,
        question: str,
        *,
        show: Callable[[str], None],
        on_passages: Callable[[Sequence[Passage]], None],
    ) -> Answer:
        """Answer a question; see `Library.ask`. `show` is called with the text that stands, whenever it changes."""
        started = perf_counter()
        found = self.find(question)
        passages = take_turns(found.lists)
        on_passages(passages)
        answer = self._answer(found.question, found, show)
        return replace(
            answer,
            question=question,
            corrections=found.corrections,
            written=self._count_tokens(answer.text),
            passages=tuple(passages),
            look_alikes=look_alikes(question, answer.citations, answer.read),
            seconds=perf_counter() - started,
        )


def answer_of(found: Found, seconds: float) -> Answer:
    """Return the number and the list as an answer that cites the best line of each document."""
    lines = [f"{found_headline(found)}{':' if found.places else '.'}"]
    for number, place in enumerate(found.places, start=1):
        often = times(place.occurrences)
        said = f"{place.passage.title}{f' ({often})' if often else ''}"
        lines.append(f"- {said}: \u201c{' '.join(place.passage.text.split())}\u201d [{number}]")
    passages = tuple(place.passage for place in found.places)
    return Answer(
        found.question,
        "\n".join([*lines, *found.notes]),
        "answered",
        citations=tuple(Citation(number, passage) for number, passage in enumerate(passages, start=1)),
        passages=passages,
        seconds=seconds,
        found=found,
    )


class Telling:
    """Tell what was added to a text since it was last told; if something was taken back, tell it anew."""

    def __init__(self, tell: Callable[[Written], None]) -> None:
        self._tell, self._told = tell, ""

    def __call__(self, text: str) -> None:
        """Tell the text that stands now."""
        if text == self._told:
            return
        goes_on = text.startswith(self._told)
        self._tell(Written(text[len(self._told) :] if goes_on else text, replaces=not goes_on))
        self._told = text


def look_alikes(question: str, citations: Sequence[Citation], read: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return passages that are similar to a cited one, from documents that the answer does not cite.

    A passage is left out if the question names the document it means, with a word that occurs in the heading of the
    cited passage but not in that of the other.
    """
    cited = [citation.passage for citation in citations]
    asked, documents = _words(question).keys(), {passage.path for passage in cited}
    found = []
    for passage in read:
        alike = [one for one in cited if passage.path not in documents and likeness(one.text, passage.text) >= _SIMILAR]
        if alike and not any(asked & (_names(one) - _names(passage)) for one in alike):
            found.append(passage)
    return tuple(found)


def likeness(one: str, other: str) -> float:
    """Return the cosine of the word counts of two texts."""
    words, others = _words(one), _words(other)
    shared = sum(count * others[word] for word, count in words.items())
    length = math.sqrt(sum(count**2 for count in words.values()) * sum(count**2 for count in others.values()))
    return shared / length if length else 0.0


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _names(passage: Passage) -> set[str]:
    """Return the words of a passage's title, headings and file name."""
    return set(_words(f"{heading_path(passage.title, passage.headings)} {passage.path.rpartition('/')[2]}"))
