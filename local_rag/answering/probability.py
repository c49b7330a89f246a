"""Estimate how probable it is that an answer is right, from the signals of the model that wrote it.

The estimate is a logistic regression. It belongs to one model and one prompt, so it is stored with the identity of the
model and with `prompt_recipe`, and with another prompt it is not used.
"""

import functools
import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from local_rag.answering.code_key import constants
from local_rag.keys import key_of
from local_rag.model_records import PLAIN_FORM, AnswerForm, Calibration, probability_of

_SHAPE_THE_PROMPT = (
    "blocks", "row_texts", "units", "selection", "prompt", "attribution", "reading", "drafting", "answerer",
)  # fmt: skip
_VERSION = 3  # increase it when code that shapes the prompt or a signal changes without any constant changing
_PENALTY, _STEPS = 1.0, 50


@dataclass(frozen=True, slots=True)
class Signals:
    """What speaks for an answer.

    `answers` is the reader's logit that the passage that the answer stands on answers the question, None without a
    reader. `right` are the log odds of the model's Yes that the answer is right according to the sources, not a number
    if it was not asked or the engine does not tell them.

    The reader's logits of the units that the answer stands on, the probabilities of the answer's tokens, the share of
    its words in these units, the numbers and names that they lack, and its agreement with an answer from more text were
    measured, too: beside these signals they say nothing. `answerable` are the log odds of a model that was trained to
    refuse that its answer begins with another token, not a number for other models.
    """

    right: float = math.nan
    answers: float | None = None
    answerable: float = math.nan

    @property
    def odds(self) -> float | None:
        """Return the model's own log odds, None if it was not asked."""
        known = [one for one in (self.answerable, self.right) if not math.isnan(one)]
        return known[0] if known else None


@functools.cache
def prompt_recipe(reranker: str = "", form: AnswerForm = PLAIN_FORM) -> str:
    """Return a key of all that shapes what a model of this form reads and what is asked of it.

    `reranker` is the identity of the reader, empty without one.
    """
    modules = [importlib.import_module(f"{__package__}.{name}") for name in _SHAPE_THE_PROMPT]
    shape = {module.__name__: constants(module) for module in modules}
    return key_of("prompt", _VERSION, reranker, asdict(form), shape)


def valid(calibration: Calibration | None, reranker: str, form: AnswerForm) -> Calibration | None:
    """Return a calibration if it was made with this prompt and this reader."""
    return calibration if calibration and calibration.recipe == prompt_recipe(reranker, form) else None


def log_odds(signals: Signals, calibration: Calibration) -> float:
    """Return the log odds that an answer is right; not a number if one of the signals is missing."""
    known: Mapping[str, float | None] = asdict(signals)
    values = ((weight, known[name]) for name, weight in calibration.weights.items())
    return calibration.bias + sum(math.nan if value is None else weight * value for weight, value in values)


def probability(signals: Signals, calibration: Calibration | None) -> float | None:
    """Return the probability that an answer is right; None without a calibration for its signals."""
    odds = log_odds(signals, calibration) if calibration else math.nan
    return None if math.isnan(odds) else probability_of(odds)


def fit(signals: Sequence[Signals], right: Sequence[bool], names: Sequence[str]) -> tuple[float, dict[str, float]]:
    """Return the bias and the weights of the named signals: a logistic regression with an L2 penalty."""
    rows = np.array([[getattr(one, name) for name in names] for one in signals], dtype=float)
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    design = np.column_stack([np.ones(len(rows)), (rows - mean) / spread])
    penalty = _PENALTY * np.diag([0.0, *(1.0 for _ in names)])
    weights, wanted = np.zeros(design.shape[1]), np.array(right, dtype=float)
    for _ in range(_STEPS):  # Newton's method
        expected = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (wanted - expected) - penalty @ weights
        curve = (design.T * (expected * (1 - expected))) @ design + penalty + 1e-6 * np.eye(len(weights))
        weights += np.linalg.solve(curve, slope)
    plain = weights[1:] / spread
    return float(weights[0] - plain @ mean), dict(zip(names, map(float, plain), strict=True))
