"""Fit the least probability of an answer that is given to marks; without the model, from what it said when it answered.

Only this threshold moves: the probabilities of some dozens of answers say little about the weights of the signals. It
is taken where right answers outnumber wrong ones most. What that gains is measured on marks that took no part in
choosing it, and without a gain nothing changes.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from local_rag.answering.probability import Signals, probability
from local_rag.asking import AskedQuestion
from local_rag.display import counted
from local_rag.model_records import AnswerForm, Calibration

REFIT_AFTER = 20  # new marks
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Decided:
    """How often an answer was given rightly and wrongly, and how often it was quoted or refused instead."""

    right: int = 0
    wrong: int = 0
    quoted: int = 0

    @property
    def gain(self) -> int:
        """Return how many more right answers than wrong ones were given."""
        return self.right - self.wrong


@dataclass(frozen=True, slots=True)
class Gate:
    """What marks have made of a gate: answers are given from `answer_from` on, where the `base` says `base_from`.

    `made_of` are the ids of the asked questions whose marks were used. `before` and `after` count what the gate before
    and this one decide of them, each mark by a threshold that was chosen without it. `is_shipped` says that the user
    went back to the base, and `is_told` that the user has read the sentence.
    """

    base: str
    base_from: float
    answer_from: float
    before_from: float
    made_of: tuple[int, ...]
    before: Decided
    after: Decided
    is_shipped: bool = False
    is_told: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether the marks have moved the gate the last time."""
        return self.answer_from != self.before_from

    @property
    def sentence(self) -> str:
        """Return what happened, in one sentence."""
        marks = counted(len(self.made_of), "mark")
        if self.is_shipped:
            usual = f"at a probability of {self.answer_from:.2f} or more"
            return f"Answers are given as shipped, {usual}, whatever the {marks} so far say."
        if not self.is_changed:
            return (
                f"After {marks}, answers are still given at a probability of {self.answer_from:.2f} or more: another "
                "threshold gains nothing on marks that it was not chosen by."
            )
        wrong, right = self.before.wrong - self.after.wrong, self.before.right - self.after.right
        gains = [_fewer(wrong, "wrong"), _fewer(right, "right")]
        return (
            f"After {marks}, answers are given at a probability of {self.answer_from:.2f} or more, before at "
            f"{self.before_from:.2f}: {', '.join(filter(None, gains))} of these. "
            "`local-rag eval marks --shipped` takes this back."
        )


def _fewer(fewer: int, what: str) -> str:
    return f"{abs(fewer)} {'fewer' if fewer > 0 else 'more'} {what}" if fewer else ""


def plain_gate(form: AnswerForm, recipe: str) -> Calibration:
    """Return the gate of a model without a calibration: its own refusal or its own Yes decides."""
    signal, sure_refusal = ("answerable", 3.0) if form.refusal else ("right", math.inf)
    return Calibration(recipe, 0.0, {signal: 1.0}, 0.5, 1 / (1 + math.exp(min(sure_refusal, 700.0))))


def moved(base: Calibration, answer_from: float) -> Calibration:
    """Return a calibration with another least probability of an answer that is given."""
    return replace(base, answer_from=answer_from, quote_from=min(base.quote_from, answer_from))


Judged = tuple[float, bool]
"""How probable an answer was, and whether it is wanted: it was right, or it was wrong to quote or refuse instead."""


def judge(asked: Sequence[AskedQuestion], base: Calibration, form: AnswerForm) -> list[tuple[AskedQuestion, Judged]]:
    """Return the marked questions of which a gate decides, each with how probable its answer is by the base."""
    found = list[tuple[AskedQuestion, Judged]]()
    for one in asked:
        odds = math.nan if one.log_odds is None else one.log_odds
        answerable, right = (odds, math.nan) if form.refusal else (math.nan, odds)
        likely = probability(Signals(right, one.reader_log_odds, answerable), base)
        # Where the answer was probable enough and still not given, something else has kept it back.
        kept_back = one.outcome != "answered" and (one.probability or 0.0) >= (one.threshold or 1.0)
        if likely is not None and not kept_back and one.mark:
            found.append((one, (likely, (one.outcome == "answered") == (one.mark == "right"))))
    return found


def decide(judged: Sequence[Judged], answer_from: float) -> Decided:
    """Count what a threshold decides."""
    given = [wanted for likely, wanted in judged if likely >= answer_from]
    return Decided(sum(given), len(given) - sum(given), len(judged) - len(given))


def best_threshold(judged: Sequence[Judged], usual: float) -> float:
    """Return the threshold with the greatest gain: of several the one nearest to the usual one."""
    ordered = sorted({likely for likely, _ in judged})
    between = [(low + high) / 2 for low, high in itertools.pairwise(ordered)]
    ends = [ordered[0] / 2, (1 + ordered[-1]) / 2] if ordered else []
    candidates = [usual, *between, *ends]
    return max(candidates, key=lambda one: (decide(judged, one).gain, -abs(one - usual)))


def held_out(judged: Sequence[Judged], usual: float) -> Decided:
    """Count what thresholds decide of marks that they were not chosen by: each fifth by the other four."""
    folds = list[Decided]()
    for fold in range(_FOLDS):
        others = [one for number, one in enumerate(judged) if number % _FOLDS != fold]
        folds.append(decide(judged[fold::_FOLDS], best_threshold(others, usual)))
    return Decided(*(sum(getattr(one, name) for one in folds) for name in Decided.__slots__))


def refit(asked: Sequence[AskedQuestion], base: Calibration, form: AnswerForm, *, name: str, now: float) -> Gate:
    """Return the gate that marks make of a base with this `name`, where answers are given from `now` on."""
    found = judge(asked, base, form)
    judged = [one for _, one in found]
    before, after, chosen = decide(judged, now), held_out(judged, now), best_threshold(judged, now)
    if after.gain <= before.gain:
        chosen, after = now, before
    made_of = tuple(one.id for one, _ in found)
    return Gate(name, base.answer_from, chosen if chosen == now else round(chosen, 4), now, made_of, before, after)
