"""Marks: what people say of answers, what a library has made of that, and how to take it back."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from local_rag.asking import AskedQuestion, Mark, ReadPlace
from local_rag.errors import LibraryError
from local_rag.feedback.gate import REFIT_AFTER, Decided, Gate, decide, judge, moved, plain_gate, refit
from local_rag.keys import key_of
from local_rag.model_records import AnswerForm, Calibration
from local_rag.passage_records import Passage
from local_rag.serialization import from_plain, to_line
from local_rag.store.asked_questions import AskedQuestions


@dataclass(frozen=True, slots=True)
class GateBase:
    """The gate of a library without its marks; `recipe` is a key of the model, its prompt and its reader."""

    calibration: Calibration | None
    form: AnswerForm
    recipe: str

    @property
    def known(self) -> Calibration:
        """Return the calibration, or what stands for it where none is known."""
        return self.calibration or plain_gate(self.form, self.recipe)

    @property
    def name(self) -> str:
        """Return a key of the calibration."""
        return key_of("gate", to_line(self.known).decode())


@dataclass(frozen=True, slots=True)
class Marked:
    """A question with its new mark, None if it was taken back; `gate` says what became of the gate, if anything did.

    `until_refit` is how many more marks the gate waits for.
    """

    question: str
    mark: Mark | None
    until_refit: int
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class MarksEffect:
    """What the marks of a library come to.

    `counted` of the `right` and `wrong` marks are of answers that the present model has written; the others move no
    gate. `shipped` and `now` count what the shipped gate and the present one decide of these, and `held_out` what
    thresholds decide that were chosen without the mark that they decide of, None before the first refit. Answers are
    given from `answer_from` on, as shipped from `shipped_from` on.
    """

    right: int
    wrong: int
    counted: int
    until_refit: int
    shipped_from: float
    answer_from: float
    shipped: Decided
    now: Decided
    held_out: Decided | None
    gate: str | None


class Marks:
    """The marks of those who may see the same of a library, and the gate that is made of them."""

    def __init__(self, asked: AskedQuestions, base: Callable[[], GateBase]) -> None:
        self._asked, self._base = asked, base

    def mark(self, asked: AskedQuestion, mark: Mark | None) -> Marked:
        """Mark a question that was asked, or take its mark back, and fit the gate if there are enough new marks."""
        gate = self._gate()
        self._asked.mark(asked, mark)
        told = None
        if gate and asked.id in gate.made_of:
            told = self._without(gate, asked.id)
        elif self._new(gate) >= REFIT_AFTER:
            told = self._refit(gate).sentence
        return Marked(asked.question, mark, max(0, REFIT_AFTER - self._new(self._gate())), told)

    def _without(self, gate: Gate, gone: int) -> str:
        """Make the gate anew without a mark that was taken back or changed."""
        if gate.is_shipped:
            left = tuple(one for one in gate.made_of if one != gone)
            return self._keep(replace(gate, made_of=left)).sentence
        if self._new(None) >= REFIT_AFTER:
            return self._refit(None).sentence
        return "Too few marks are left, so answers are given as shipped."

    def ship(self) -> Gate:
        """Go back to the shipped gate, until there are enough new marks."""
        base = self._base()
        judged = judge(self._asked.marked(base.recipe), base.known, base.form)
        usual = base.known.answer_from
        decided = decide([one for _, one in judged], usual)
        made_of = tuple(one.id for one, _ in judged)
        return self._keep(Gate(base.name, usual, usual, usual, made_of, decided, decided, is_shipped=True))

    def effect(self) -> MarksEffect:
        """Return what the marks come to."""
        base, gate, marked = self._base(), self._gate(), self._asked.marked()
        judged = [one for _, one in judge(self._asked.marked(base.recipe), base.known, base.form)]
        now = gate.answer_from if gate else base.known.answer_from
        right = sum(one.mark == "right" for one in marked)
        return MarksEffect(
            right=right,
            wrong=len(marked) - right,
            counted=len(judged),
            until_refit=max(0, REFIT_AFTER - self._new(gate)),
            shipped_from=base.known.answer_from,
            answer_from=now,
            shipped=decide(judged, base.known.answer_from),
            now=decide(judged, now),
            held_out=gate.after if gate and not gate.is_shipped else None,
            gate=gate.sentence if gate else None,
        )

    def gated(self, base: GateBase) -> Calibration | None:
        """Return the calibration with which answers are given; a gate that went with a mark is made anew."""
        gate = self._gate(base)
        with suppress(LibraryError):  # a history that cannot be read or written keeps nobody from answering
            if gate is None and self._new(None) >= REFIT_AFTER:
                gate = self._refit(None)
        if gate is None or gate.answer_from == gate.base_from:
            return base.calibration
        return moved(base.known, gate.answer_from)

    def take_notice(self) -> str:
        """Return what became of the gate since it was last told, and from now on nothing of it."""
        gate = self._gate()
        if gate is None or gate.is_told:
            return ""
        self._keep(replace(gate, is_told=True))
        return gate.sentence

    def _gate(self, base: GateBase | None = None) -> Gate | None:
        base = base or self._base()
        kept = self._asked.gate(base.recipe)
        gate: Gate | None = from_plain(Gate, json.loads(kept)) if kept else None
        return gate if gate and gate.base == base.name else None

    def _new(self, gate: Gate | None) -> int:
        """Return how many marks a gate has not seen."""
        base, known = self._base(), set(gate.made_of if gate else ())
        judged = judge(self._asked.marked(base.recipe), base.known, base.form)
        return sum(one.id not in known for one, _ in judged)

    def _refit(self, gate: Gate | None) -> Gate:
        base = self._base()
        now = gate.answer_from if gate else base.known.answer_from
        return self._keep(refit(self._asked.marked(base.recipe), base.known, base.form, name=base.name, now=now))

    def _keep(self, gate: Gate) -> Gate:
        self._asked.put_gate(self._base().recipe, to_line(gate).decode())
        return gate


def lifted(passages: Sequence[Passage], marked: Sequence[tuple[ReadPlace, Mark]], top: int) -> list[Passage]:
    """Return `top` passages, those first that answered the same question rightly, wherever they were found.

    Of the first `top`, those that answered it wrongly stay and come last.
    """
    marks = {one.chunk_id: {mark for place, mark in marked if _is_at(one, place)} for one in passages}
    right = [one for one in passages if "right" in marks[one.chunk_id]]
    wrong = [one for one in passages[:top] if marks[one.chunk_id] == {"wrong"}]
    others = [one for one in passages if not marks[one.chunk_id]]
    return [*[*right, *others][: top - len(wrong)], *wrong]


def _is_at(passage: Passage, place: ReadPlace) -> bool:
    same = (passage.path, passage.sha256) == (place.path, place.sha256)
    overlaps = passage.start < place.end and place.start < passage.end
    return same and (overlaps or (passage.start, passage.end) == (place.start, place.end))
