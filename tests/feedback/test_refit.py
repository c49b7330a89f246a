"""A gate that is fitted to marks: only where that gains on marks that took no part, and never beyond them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.asking import AskedQuestion, Mark
from local_rag.feedback.gate import Decided, best_threshold, decide, held_out, judge, plain_gate, refit
from local_rag.model_records import PLAIN_FORM, Calibration
from tests.fakes import TRAINED

BASE = Calibration("recipe", 0.0, {"answerable": 1.0}, 0.5, 0.2)
_JUDGED = st.lists(st.tuples(st.floats(0.01, 0.99), st.booleans()), min_size=1, max_size=60)


def asked(number: int, log_odds: float, mark: Mark, outcome: str = "answered") -> AskedQuestion:
    one = AskedQuestion(number, f"Question {number}?", f"question {number}", "", "answered", log_odds)
    return replace(one, outcome=outcome, mark=mark, probability=0.1, threshold=0.5)  # type: ignore[arg-type]


def test_wrong_answers_that_were_less_sure_raise_the_gate() -> None:
    marks = [
        asked(n, 0.2 + n % 4 / 10, "wrong") if n % 3 == 0 else asked(n, 2.0 + n % 5 / 10, "right") for n in range(34)
    ]
    gate = refit(marks, BASE, TRAINED, name="base", now=0.5)
    assert gate.before == Decided(22, 12, 0)
    assert gate.after == Decided(22, 0, 12)
    assert 0.62 < gate.answer_from < 0.88
    assert gate.sentence.startswith("After 34 marks, answers are given at a probability of 0.")
    assert "12 fewer wrong of these" in gate.sentence


def test_refusals_of_what_the_documents_say_lower_the_gate() -> None:
    marks = [asked(n, -0.6 if n % 2 else -2.5, "wrong" if n % 2 else "right", "refused") for n in range(24)]
    gate = refit(marks, BASE, TRAINED, name="base", now=0.5)
    assert 0.08 < gate.answer_from < 0.35
    assert "12 more right of these" in gate.sentence


def test_without_a_gain_nothing_changes_and_that_is_said() -> None:
    marks = [asked(n, 1.0 + n / 10, "right" if n % 5 else "wrong") for n in range(25)]
    gate = refit(marks, BASE, TRAINED, name="base", now=0.5)
    assert (gate.answer_from, gate.is_changed) == (0.5, False)
    assert gate.sentence.startswith("After 25 marks, answers are still given at a probability of 0.50 or more")


def test_what_the_gate_did_not_decide_does_not_move_it() -> None:
    sure = replace(asked(1, 2.0, "wrong", "quoted"), probability=0.9)  # its sentences were struck
    by_code = replace(asked(2, 0.0, "right"), log_odds=None)
    assert judge([sure, by_code], BASE, TRAINED) == []
    ((_, judged),) = judge([asked(3, 0.0, "right")], BASE, TRAINED)
    assert judged[0] == pytest.approx(0.5)
    assert judged[1]


def test_a_model_without_a_calibration_has_a_gate_of_its_own_yes() -> None:
    for form in (PLAIN_FORM, TRAINED):
        base = plain_gate(form, "recipe")
        judged = judge([asked(1, 0.1, "right"), asked(2, -0.1, "right")], base, form)
        assert decide([one for _, one in judged], base.answer_from) == Decided(1, 0, 1)


@given(_JUDGED)
def test_the_best_threshold_is_as_good_as_the_usual_one_and_as_any_other(judged: list[tuple[float, bool]]) -> None:
    chosen = best_threshold(judged, 0.5)
    for other in (0.5, *(likely for likely, _ in judged)):
        assert decide(judged, chosen).gain >= decide(judged, other).gain


@given(_JUDGED)
def test_every_mark_is_counted_once(judged: list[tuple[float, bool]]) -> None:
    for decided in (decide(judged, 0.5), held_out(judged, 0.5)):
        assert decided.right + decided.wrong + decided.quoted == len(judged)
