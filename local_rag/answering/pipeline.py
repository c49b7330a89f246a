"""Answer a question: find passages, choose what of them the model is shown, and answer, quote or refuse."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

from local_rag.answer_records import Answer, BeingRead, Citation, Correction, Found, Written
from local_rag.answering.answerer import Answerer, Draft
from local_rag.answering.compose import compose_overlooked
from local_rag.answering.overlooked import is_dated, overlooked
from local_rag.answering.selection import (
    FIRST_TOKENS,
    MORE_TOKENS,
    SHOWN_TOKENS,
    Source,
    rank_passages,
    select_sources,
    take_turns,
    whole_sources,
)
from local_rag.answering.translations import translated
from local_rag.answering.version_remarks import name_versions
from local_rag.asking import DEFAULT_OPTIONS, AskOptions, Turn
from local_rag.display import found_headline, times
from local_rag.document_records import heading_path
from local_rag.errors import StoppedError
from local_rag.llama.generator import never
from local_rag.models.reader import Reader
from local_rag.passage_records import Passage
from local_rag.retrieval.document_names import name_documents
from local_rag.retrieval.question import Question, asked_on, for_code, read_question
from local_rag.retrieval.searcher import Trace
from local_rag.retrieval.version_families import Versions
from local_rag.text.languages import ENGLISH
from local_rag.text.relative_times import asked_times, in_full

LEFT = "Code alone does not answer this question."
ByCode: TypeAlias = Callable[[Question, Sequence[str]], Answer | None]

_FEWEST = 60  # tokens of sources that can hold an answer
_SIMILAR = 0.7  # cosine of the word counts of two passages
_DATED = 5  # of the best passages, one with a date in the time that is asked for
_KNOWN = 0.6  # the share of a question's words that documents in its language have
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The passages found for a question and for each of its parts, and the turn before it if it is a follow-up.

    `question` is the question as it was searched, with the `corrections` of words that stand in no document.
    """

    question: Question
    lists: Sequence[Sequence[Passage]]
    before: Turn | None = None
    corrections: tuple[Correction, ...] = ()

    @property
    def asked(self) -> str:
        """Return the question, with the one that it follows."""
        return f"{self.before.question} {self.question.text}" if self.before else self.question.text


class AnswerPipeline:
    """Answer questions with a search and a model, which is opened only when it is needed.

    `search` finds the passages of a question, like `Searcher.trace`, and `search_part` those of a part of it; without
    that, `search` finds them, too. `by_code` answers a question that follows others without a model; it returns None
    where it cannot tell.
    `open_versions` opens the versions of documents; without it, none are named. `share_known` returns the share of a
    question's words that the documents have. `earlier` are the turns that a question may follow.
    `count_tokens` counts those of the answer model, without its weights. Without a reader, words and the order of
    passages choose what is shown. What the model cannot read in the `seconds` of the options is not read. All that
    takes long ends with StoppedError once `stop` returns true. "last month" is counted from `today`.
    """

    def __init__(
        self,
        search: Callable[..., Trace],
        open_answerer: Callable[[], Answerer],
        count_tokens: Callable[[str], int],
        options: AskOptions = DEFAULT_OPTIONS,
        *,
        search_part: Callable[..., Trace] | None = None,
        earlier: Sequence[Turn] = (),
        open_reader: Callable[[], Reader | None] = lambda: None,
        by_code: ByCode | None = None,
        open_versions: Callable[[], AbstractContextManager[Versions]] | None = None,
        share_known: Callable[[Question], float] = lambda _question: 1.0,
        stop: Callable[[], bool] = never,
        today: Callable[[], date] = date.today,
    ) -> None:
        self._today = today
        self._search, self._search_part = search, search_part or search
        self._open_answerer, self._options, self._earlier = open_answerer, options, earlier
        self._count_tokens, self._open_reader, self._stop = count_tokens, open_reader, stop
        self._by_code, self._open_versions, self._share_known = by_code, open_versions, share_known
        self._late_at = math.inf
        self._on_reading: Callable[[BeingRead], None] = lambda _reading: None

    @contextmanager
    def _answerer(self) -> Iterator[Answerer]:
        answerer = self._open_answerer()
        with answerer.generator.stopping(self._stop):
            yield answerer

    def _check(self) -> None:
        if self._stop():
            raise StoppedError("The answer was stopped.")

    def find(self, question: Question) -> Candidates:
        """Search for a question and each of its parts, which share the cost of one search.

        A question in another language than that of the documents is searched in English.
        """
        understood = self._understood(question)
        question = asked_on(understood, self._today())
        how = dict[str, Any](share=1 + len(question.parts), earlier=self._before, check=self._check)
        first = self._search(question, **how)
        parts = (self._search_part(read_question(part), **how) for part in question.parts)
        lists = [first.passages, *(one.passages for one in parts)]
        before = self._earlier[-1] if self._earlier and first.follows else None
        best = take_turns(lists)[:_DATED]
        if not any(is_dated(one, one.text, time) for one in best for time in question.times):
            # Where no document has such a date, the model reads "next year" as the documents say it.
            question = replace(understood, times=question.times)
        searched = question
        if first.corrections:
            searched = replace(read_question(first.question, question.typed), times=question.times)
        said = f"{before.question} {searched.text}" if before else searched.text
        return Candidates(searched, name_documents(said, lists), before, first.corrections)

    def _understood(self, question: Question) -> Question:
        """Return a question in English, if it is in another language and the documents have more of its words then."""
        if question.typed or question.language == ENGLISH or (known := self._share_known(question)) >= _KNOWN:
            return question
        with self._answerer() as answerer:
            text = answerer.in_english(question.text)
        translation = read_question(text, question.text, self._options.kind) if text else question
        return translation if self._share_known(translation) > known else question

    def select(self, found: Candidates, tokens: int = 0, read: Sequence[Source] = ()) -> list[Source]:
        """Choose what of the passages the model is shown: their best parts, or as many whole as the options say.

        Their best parts are as many `tokens`, or those that its form begins with, with what it has `read` before.
        """
        tokens, reader = tokens or self._steps(found.question)[0], self._open_reader()
        if self._options.passages is not None:
            return whole_sources(found.asked, found.lists, reader=reader)
        return select_sources(
            found.asked, found.lists, count_tokens=self._count_tokens, reader=reader, tokens=tokens, read=read
        )

    def select_most(self, found: Candidates) -> list[Source]:
        """Choose the most that the model is shown: all of it, or what it reads last where nothing before answers."""
        return self.select(found, self._steps(found.question)[-1])

    def _steps(self, question: Question) -> tuple[int, ...]:
        """Return the numbers of tokens that the model is shown, one after the other until it is sure of an answer."""
        if not self._open_answerer().form.refusal:
            return (SHOWN_TOKENS,)
        # Of a compound question little would hold the answer to one part only.
        return MORE_TOKENS[-1:] if question.parts else (FIRST_TOKENS, *MORE_TOKENS)

    def read_ahead(self, question: Question) -> None:
        """Let the model read what it would be shown for a question."""
        found = self.find(question)
        sources = self.select(found)
        with self._answerer() as answerer:
            answerer.read_ahead(found.question, sources)

    def draft(self, found: Candidates) -> Draft | None:
        """Read and write as for an answer, and decide nothing; None where nothing was found."""
        with self._answerer() as answerer:
            sources = self.select(found)
            return answerer.draft(found.question, sources, more=self._more(found, sources), before=found.before)

    def _more(self, found: Candidates, read: Sequence[Source]) -> Iterator[Callable[[], list[Source]]]:
        """Yield what selects more sources, where those before do not answer and there is time."""
        for tokens in () if self._options.passages else self._steps(found.question)[1:]:
            if self._in_time(tokens) == tokens:
                yield partial(self._select_more, found, tokens, read)

    def _select_more(self, found: Candidates, tokens: int, read: Sequence[Source]) -> list[Source]:
        return self._told(self.select(found, tokens, read))

    def _told(self, sources: list[Source]) -> list[Source]:
        """Tell how many sources the model will read, and how long that takes; return them."""
        pace = self._open_answerer().pace
        seconds = pace.seconds_for(self._length(sources)) if pace.is_known else None
        self._on_reading(BeingRead(len(sources), seconds))
        return sources

    def _length(self, sources: Sequence[Source]) -> int:
        return sum(self._count_tokens(one.text) for one in sources)

    @property
    def _tokens_in_time(self) -> float:
        """Return how many tokens of sources can be read and answered in the time that is left, however many without."""
        if self._late_at == math.inf:
            return math.inf
        answerer = self._open_answerer()
        _ = answerer.generator  # what loading takes is known only then
        return answerer.pace.tokens_in(self._late_at - perf_counter())

    def _in_time(self, tokens: int) -> int:
        """Return how many of the tokens can be read and answered in the time that is left, at least _FEWEST."""
        return int(max(_FEWEST, min(tokens, self._tokens_in_time)))

    def ask(
        self,
        question: Question,
        *,
        show: Callable[[str], None],
        on_passages: Callable[[Sequence[Passage]], None],
        on_reading: Callable[[BeingRead], None] = lambda _reading: None,
    ) -> Answer:
        """Answer a question; see `Library.ask`. `show` is called with the text that stands, whenever it changes."""
        started, typed, self._on_reading = perf_counter(), question, on_reading
        if self._options.seconds is not None:
            self._late_at = started + self._options.seconds
        question = typed if self._options.code_only else self._understood(typed)
        coded, answer = for_code(question, self._today(), self._options.kind), None
        if self._by_code is not None and not self._options.anyway:
            earlier = [in_full(one, asked_times(one, self._today())) for one in self._before]
            answer = self._by_code(coded, earlier)
        self._check()
        if answer:
            on_passages(answer.passages)
        elif self._options.code_only:
            answer = Answer(typed.text, translated(LEFT, typed.text), "left")
        else:
            answer = self._name_versions(self._answer_from_passages(question, show, on_passages))
        corrected = (Correction(typed.text, question.text),) if question.typed else ()
        times = (Correction(one.said, one.full) for one in asked_on(question, self._today()).times)
        corrections, seconds = (*corrected, *times, *answer.corrections), perf_counter() - started
        plan = answer.plan or question.plan
        if answer.table:
            plan = replace(plan, kind="rows", query=plan.query or answer.table.sql)
        elif answer.shown:  # a plan that did not fit the library gave way
            plan = replace(plan, kind="passages")
        return replace(answer, question=typed.text, corrections=corrections, seconds=seconds, plan=plan)

    @property
    def _before(self) -> list[str]:
        return [turn.question for turn in self._earlier]

    def _answer_from_passages(
        self, question: Question, show: Callable[[str], None], on_passages: Callable[[Sequence[Passage]], None]
    ) -> Answer:
        """Search, choose what the model is shown, and let it answer, where that can be of use or is wished for."""
        found, options = self.find(question), self._options
        passages = take_turns(found.lists)
        on_passages(passages)
        asked = found.question, self.select(found, self._in_time(self._steps(found.question)[0]))
        answerer, answer = self._open_answerer(), None
        if (most := self._tokens_in_time) < math.inf and asked[1] and self._length(asked[1]) > most:
            answer = answerer.answer_late(*asked, before=found.before)
        elif not options.anyway:
            answer = answerer.answer_unread(*asked, before=found.before)
        if answer is None:
            self._told(asked[1])
            with self._answerer() as answerer:
                answer = answerer.answer(
                    *asked,
                    more=self._more(found, asked[1]),
                    before=found.before,
                    strict=options.strict,
                    anyway=options.anyway,
                    show=show,
                )
        answer = self._with_overlooked(answer, found)
        return replace(
            answer,
            corrections=found.corrections,
            written=self._count_tokens(answer.text),
            passages=tuple(passages),
            look_alikes=look_alikes(question.text, answer.citations, answer.read),
        )

    def _with_overlooked(self, answer: Answer, found: Candidates) -> Answer:
        """Quote the documents in place of an answer that overlooks a later value, an empty cell or other rows."""
        question = found.question
        if not answer.answered or self._options.anyway or question.parts or self._options.filters.as_of is not None:
            return answer
        ranked = rank_passages(found.asked, found.lists, self._open_reader())  # the readings are kept
        reason, lines = overlooked(ranked, question, answer) or ("", ())
        return compose_overlooked(answer, lines, reason, question) if reason else answer

    def _name_versions(self, answer: Answer) -> Answer:
        """Name what the versions of the quoted documents say, if they say different things."""
        if not answer.quotes or self._options.filters.as_of is not None or self._open_versions is None:
            return answer
        with self._open_versions() as versions:
            return name_versions(answer, versions, self._options.filters)


def answer_of(found: Found) -> Answer:
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
    return set(_words(f"{heading_path(passage.title, passage.headings)} {passage.path.rpartition('/')[2]}"))
