"""How probable it is that an answer is right: fitted to signals, for one prompt only."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.probability import Signals, fit, probability, prompt_recipe, valid
from local_rag.model_records import PLAIN_FORM, Calibration
from local_rag.models.registry import load_registry, resolve
from tests.fakes import TRAINED

NAMES = ("right", "answers")
_NUMBERS = st.floats(-20, 20)
_SIGNALS = st.builds(Signals, right=_NUMBERS, answers=_NUMBERS)


def calibration(bias: float, weights: Mapping[str, float]) -> Calibration:
    return Calibration(prompt_recipe(), bias, weights, 0.5, 0.1)


def likely(signals: Signals, bias: float, weights: Mapping[str, float]) -> float:
    found = probability(signals, calibration(bias, weights))
    assert found is not None
    return found


def test_the_calibrations_of_the_registry_belong_to_this_prompt_and_to_the_trained_reader() -> None:
    # When this fails, the prompt has changed: fit anew with `python -m scripts.training.fit_calibration`.
    reranker = resolve("minilm-l6-reader", "rerank").identity
    shipped = [one for one in load_registry().models.values() if one.calibration]
    assert shipped
    for one in shipped:
        assert valid(one.calibration, reranker, one.form), one.name


def test_separable_signals_are_separated() -> None:
    signals = [Signals(float(number), -0.5) for number in range(-10, 10)]
    right = [one.right >= 0 for one in signals]
    bias, weights = fit(signals, right, NAMES)
    assert [likely(one, bias, weights) >= 0.5 for one in signals] == right
    assert weights["right"] > 0
    assert weights["answers"] == pytest.approx(0.0, abs=1e-3), "it is the same for all"


def test_only_the_named_signals_are_fitted() -> None:
    signals = [Signals(1.0, 0.0), Signals(-1.0, -1.0)]
    assert fit(signals, [True, False], ["answers"])[1].keys() == {"answers"}


def test_without_any_relation_the_share_of_right_answers_is_the_probability() -> None:
    signals = [Signals(1.0, -1.0)] * 4
    bias, weights = fit(signals, [True, False, False, False], NAMES)
    assert likely(signals[0], bias, weights) == pytest.approx(0.25, abs=0.01)


def test_where_a_signal_is_missing_there_is_no_probability() -> None:
    without, answering = Signals(1.0), Signals(1.0, answers=2.0)
    assert probability(without, calibration(0.0, {"right": 1.0, "answers": 1.0})) is None
    assert probability(without, None) is None
    assert likely(answering, 0.0, {"right": 1.0, "answers": 1.0}) > likely(without, 0.0, {"right": 1.0})


@given(_SIGNALS, _NUMBERS, st.floats(0, 5), st.floats(0, 20))
def test_a_greater_signal_with_a_positive_weight_is_never_less_probable(
    signals: Signals, bias: float, weight: float, more: float
) -> None:
    weights = {"right": weight, "answers": 1.0}
    low, high = (likely(one, bias, weights) for one in (signals, replace(signals, right=signals.right + more)))
    assert 0 < low <= high < 1


@given(st.lists(st.tuples(_SIGNALS, st.booleans()), min_size=1, max_size=20))
def test_any_answers_can_be_fitted(rows: list[tuple[Signals, bool]]) -> None:
    bias, weights = fit([one for one, _ in rows], [right for _, right in rows], NAMES)
    assert all(0 < likely(signals, bias, weights) < 1 for signals, _ in rows)


def test_a_calibration_for_another_prompt_or_reader_is_not_used() -> None:
    fitted = calibration(0.0, {"right": 1.0})
    assert valid(fitted, "", PLAIN_FORM) is fitted
    assert valid(fitted, "", TRAINED) is None
    assert valid(fitted, "another reader", PLAIN_FORM) is None
    assert valid(replace(fitted, recipe="another prompt"), "", PLAIN_FORM) is None
    assert valid(None, "", PLAIN_FORM) is None
