"""Ask a document all questions of a table: its text is read once, and each question follows it.

A model that was trained to refuse says with its first token whether the document answers. Code then finds the place
that says the answer. Where the two do not agree, or the place is not the one that fits the question best, the question
is asked once more by itself, of the few sentences that fit it best, as `ask` does.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from local_rag.answering.prompt import closing_prompt, opening_prompt, quote, sources_prompt
from local_rag.answering.selection import Source, ranked_units, select_sources, sources_around
from local_rag.answering.units import headings_of
from local_rag.extraction.cells import NOT_STATED, Cell
from local_rag.extraction.checking import DocumentReading, Found, noted
from local_rag.extraction.columns import TYPE_REQUESTS, Column
from local_rag.extraction.values import TYPED
from local_rag.keys import key_of
from local_rag.llama.generator import Generator, Request, never
from local_rag.model_records import AnswerForm, probability_of
from local_rag.models.reader import Reader
from local_rag.passage_records import Passage

VERSION = 7  # of the code below and in checking.py: raise it when the same document is read or checked otherwise
_SHARED_TOKENS = 1800  # of a document that is read at once, or of the passages of a longer one
_OWN_TOKENS = 300  # of the sentences that are shown when a question is asked by itself
_FOREIGN_TOKENS = 900  # of those of a document in another language than the question
_ANSWER_TOKENS, _LIST_TOKENS = 40, 80
_QUESTION_TOKENS = 400  # that a question may have beside the document
_BEGINNING = "Answer the question in one or two short sentences"  # of the requests that models are trained with
_SHORT = "Answer the question in a few words"
_REFUSAL = "Unanswerable"
_OR_REFUSE = f', or reply "{_REFUSAL}." if the sources do not say.'  # for a model that was not trained to refuse
_SURE = 1.0  # log odds of an answer that needs no second one, where all else fits
_HOPELESS = -4.0  # log odds below which a refusal is believed
_BEHIND = 1.0  # by which a question fits a place less than another one that has the same value from it
_BIAS, _WEIGHT = 0.8, 0.43


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as the library holds it."""

    title: str
    text: str
    passages: Sequence[Passage]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a model says: its text, empty if it refuses, and the log odds that it does not refuse."""

    text: str
    odds: float


Search = Callable[[str], Sequence[Passage]]
"""Finds the passages of one document that fit a question best."""


class Memory(Protocol):
    """Keeps what a model said from the moment it said it, until the cells that come of it are stored."""

    def get(self, key: str) -> str | None:
        """Return what was kept under a key."""

    def put(self, key: str, said: str) -> None:
        """Keep what was said."""


def asked_key(column: Column, models: Sequence[str], title: str, split: str) -> str:
    """Return the key of all that a cell depends on beside the content of its document."""
    return key_of("cell", VERSION, column.key, *models, title, split)


class DocumentAsker:
    """Ask one document after the other with the same models."""

    def __init__(self, generator: Generator, form: AnswerForm, reader: Reader | None) -> None:
        self._generator, self._form, self._reader = generator, form, reader
        self._refusal = generator.model.tokenize(form.refusal)[0] if form.refusal else None

    def ask(
        self,
        document: ReadDocument,
        columns: Sequence[Column],
        search: Search,
        memory: Memory,
        stop: Callable[[], bool] = never,
    ) -> Iterator[list[tuple[Column, Cell]]]:
        """Yield the cells of the columns, those of one shared reading together.

        What `memory` has is not asked again. Once `stop` returns true, raise StoppedError; `memory` has what was said.
        """
        if not document.passages:
            yield [(column, NOT_STATED) for column in columns]
            return
        for group, passages in self._readings(document, columns, search):
            prefix = self._prefix(document.title, passages)
            asked = [
                Request(str(number), prefix, self._question(column), _room(column), refusal=self._refusal)
                for number, column in enumerate(group)
            ]
            first = self._answers(asked, memory, stop)
            readings = {number: self._read(column, passages, document.text) for number, column in enumerate(group)}
            found = {number: _about(readings[number], one) for number, one in first.items()}
            doubtful = [
                number for number, one in first.items() if self._is_doubtful(one, found[number], readings[number])
            ]
            again = [self._own_request(number, readings[number]) for number in doubtful]
            second = self._answers([request for request in again if request], memory, stop)
            decisions = [
                _decide(readings[number], first[number], found[number], second.get(number))
                for number in range(len(group))
            ]
            yield [(column, _cell(one)) for column, one in zip(group, _without_rivals(decisions), strict=True)]

    def _readings(
        self, document: ReadDocument, columns: Sequence[Column], search: Search
    ) -> Iterator[tuple[Sequence[Column], Sequence[Passage]]]:
        """Yield columns with the passages that are read for them: the whole document if it fits."""
        room = min(_SHARED_TOKENS, self._generator.context_tokens // 2)
        lengths = {one.chunk_id: self._count(one.text) for one in document.passages}
        if sum(lengths.values()) <= room:
            yield columns, document.passages
            return
        group, shared = list[Column](), dict[int, Passage]()
        for column in columns:
            found = {one.chunk_id: one for one in search(column.question)}
            for passage in document.passages[:1]:  # where it is said what the document is
                found.setdefault(passage.chunk_id, passage)
            together = shared | found
            lengths |= {key: self._count(one.text) for key, one in found.items() if key not in lengths}
            if group and sum(lengths[one] for one in together) > room:
                yield group, _in_order(shared.values())
                group, together = [], found
            group, shared = [*group, column], together
        yield group, _in_order(shared.values())

    def _count(self, text: str) -> int:
        return len(self._generator.model.tokenize(text))

    def _prefix(self, title: str, passages: Sequence[Passage]) -> list[int]:
        """Return the prompt up to the question, in tokens: all passages in reading order."""
        model, room = self._generator.model, self._generator.context_tokens - _QUESTION_TOKENS - _LIST_TOKENS
        texts, path = list[str](), ""
        for passage in passages:
            headings = headings_of(passage)
            head = f"Source: {headings}\n" if headings != path else ""
            texts.append(f"{head}{quote(passage.text)}\n\n")
            path = headings
        return [*opening_prompt(model), *model.tokenize(f"Sources:\n\n{''.join(texts)}")][:room]

    def _question(self, column: Column) -> list[int]:
        model = self._generator.model
        return [*model.tokenize(f"Question: {column.question}\n"), *closing_prompt(self._request(column), model)]

    def _request(self, column: Column) -> str:
        """Return what is requested of the model: an answer of a few words, or a refusal."""
        wish = TYPE_REQUESTS.get(column.type, _SHORT).format(choices=", ".join(column.choices))
        trained = self._form.refusal and self._form.request.startswith(_BEGINNING)
        return f"{wish}{self._form.request.removeprefix(_BEGINNING) if trained else _OR_REFUSE}"

    def _answers(self, requests: Sequence[Request], memory: Memory, stop: Callable[[], bool]) -> dict[int, _Answer]:
        """Return what the model says to each request, by its number; what it says is kept at once."""
        model, found = self._generator.model, dict[int, _Answer]()
        tokens, odds = dict[str, list[int]](), dict[str, float]()
        keys = {one.key: key_of(list(one.prefix), list(one.suffix), one.max_tokens) for one in requests}
        kept = {one.key: said for one in requests if (said := memory.get(keys[one.key])) is not None}
        found |= {int(key): _Answer(*json.loads(said)) for key, said in kept.items()}
        with self._generator.stopping(stop):
            for event in self._generator.stream(one for one in requests if one.key not in kept):
                if event.token is not None:
                    tokens.setdefault(event.key, []).append(event.token)
                    odds.setdefault(event.key, event.odds)
                    continue
                text = model.detokenize(tokens.get(event.key, [])).strip()
                refuses = text.startswith((self._form.refusal or _REFUSAL).rstrip("."))
                answer = found[int(event.key)] = _Answer("" if refuses else text, odds.get(event.key, math.nan))
                memory.put(keys[event.key], json.dumps([answer.text, answer.odds], ensure_ascii=False))
        return found

    def _read(self, column: Column, passages: Sequence[Passage], text: str) -> DocumentReading:
        units, _ = ranked_units(column.question, passages, self._reader)
        return DocumentReading(column, passages, units, text)

    def _is_doubtful(self, answer: _Answer, found: Found | None, reading: DocumentReading) -> bool:
        """Return whether a question is to be asked once more."""
        if not self._form.refusal:
            return False
        if not answer.text:
            return answer.odds > _HOPELESS
        if found is None or not found.fits or answer.odds < _SURE:
            return True
        if reading.is_foreign and reading.column.type not in TYPED:  # no reader tells whether this is asked for
            return True
        return bool(reading.others(found))

    def _own_request(self, number: int, reading: DocumentReading) -> Request | None:
        """Return the request to answer a question from the sentences that fit it best; None without any."""
        model, column = self._generator.model, reading.column
        sources = self._own_sources(reading)
        if not sources:
            return None
        room = self._generator.context_tokens - _LIST_TOKENS - _QUESTION_TOKENS
        prefix, _ = sources_prompt(column.question, sources, model=model, room=room)
        suffix = closing_prompt(self._request(column), model)
        return Request(str(number), prefix, suffix, _room(column), refusal=self._refusal)

    def _own_sources(self, reading: DocumentReading) -> list[Source]:
        """Return the sentences that fit a question best.

        Which of them fit a question in another language no reader tells. There, they are all that have a value of the
        column's type; for other types they are many.
        """
        column, passages = reading.column, reading.passages
        if reading.is_foreign and column.type in TYPED:
            return sources_around(passages, [unit for unit in reading.units if reading.values_in(unit)])
        return select_sources(
            column.question,
            [passages],
            count_tokens=self._count,
            reader=self._reader,
            tokens=_FOREIGN_TOKENS if reading.is_foreign else _OWN_TOKENS,
        )


@dataclass(frozen=True, slots=True)
class _Decision:
    """What counts for a column: what was found, None for nothing; `odds` are those of the model that there is any."""

    reading: DocumentReading
    found: Found | None
    odds: float
    sure: bool = True

    @property
    def likely(self) -> float | None:
        """Return the probability that the document states it, None where the engine does not tell."""
        if math.isnan(self.odds):
            return None
        return probability_of(_BIAS + _WEIGHT * self.odds)

    @property
    def strength(self) -> float:
        """Return how well the place fits the question, beside other questions: by the reader and the model."""
        odds = 0.0 if math.isnan(self.odds) else self.odds
        logit = self.found.unit.logit if self.found and not self.reading.is_foreign else None
        return odds + (logit or 0.0)


def _decide(reading: DocumentReading, first: _Answer, found: Found | None, second: _Answer | None) -> _Decision:
    """Decide what counts of what was said, once or twice."""
    odds = first.odds if second is None or math.isnan(second.odds) else (first.odds + second.odds) / 2
    again = _about(reading, second) if second else None
    kept, sure = _choose(reading, first, found, second, again)
    if reading.is_foreign and second and second.text and (again is None or not sure):
        kept = None  # no reader tells which of two answers, or whether one in other words, is right
    if second and odds < 0 and not (first.text and second.text):
        kept = None
    if kept and kept.value is None and not reading.answers(kept.unit):
        kept = None  # what is no value of the type is only quoted where it answers
    return _Decision(reading, kept, odds, sure)


def _without_rivals(decisions: Sequence[_Decision]) -> list[_Decision]:
    """Return decisions of which no two have the same value in the same place, unless it fits both questions well.

    A model that finds nothing for one question likes to give the answer to a similar one.
    """
    best = dict[tuple[object, ...], float]()
    for one in decisions:
        if place := _place_of(one):
            best[place] = max(one.strength, best.get(place, one.strength))
    kept = list[_Decision]()
    for one in decisions:
        place = _place_of(one)
        behind = best[place] - one.strength if place else 0.0
        kept.append(replace(one, found=None) if behind >= _BEHIND else one)
    return kept


def _place_of(one: _Decision) -> tuple[object, ...] | None:
    """Return which value in which place was found; None for nothing, or for yes and no, which stand in no place."""
    if one.found is None or one.found.value is None or one.reading.column.type in {"yes/no", "one of"}:
        return None
    unit, value = one.found.unit, one.found.value
    return unit.passage, unit.start, value.start, value.end


def _cell(one: _Decision) -> Cell:
    """Return the cell of a decision."""
    if one.found is None:
        return replace(NOT_STATED, probability=None if one.likely is None else 1 - one.likely)
    note = noted(one.reading.others(one.found))
    return one.reading.cell(
        one.found, one.likely, sure=one.sure, note=note or ("" if one.sure else "asked twice, the model differs")
    )


def _about(reading: DocumentReading, answer: _Answer) -> Found | None:
    """Return where the document says an answer, in a place that is about the question."""
    found = reading.find(answer.text) if answer.text else None
    return found if found and reading.is_about(found.unit) else None


def _choose(
    reading: DocumentReading, first: _Answer, found: Found | None, second: _Answer | None, again: Found | None
) -> tuple[Found | None, bool]:
    """Return which of two findings counts, None for neither, and whether they agree."""
    if second is None:
        return found, True
    if not first.text or not second.text:  # one of them refuses: only what fits counts, and the reader must find it too
        one = found or again
        return (one, reading.may_answer(one.unit)) if one and one.fits else (None, True)
    if found is None or (again and again.fits and not found.fits):
        return again, True
    if again is None or not again.value or not found.value or again.value.readings & found.value.readings:
        return found, True
    # Two answers: that of the sentence which the reader puts first.
    return min(found, again, key=lambda one: one.unit.rank), False


def _room(column: Column) -> int:
    return _LIST_TOKENS if column.type == "list" else _ANSWER_TOKENS


def _in_order(passages: Iterable[Passage]) -> list[Passage]:
    return sorted(passages, key=lambda passage: passage.start)
