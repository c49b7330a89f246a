"""scripts/measure/eval_answers.py: what counts as a right answer, and which document holds it."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "measure" / "eval_answers.py"))


@pytest.mark.parametrize(
    ("text", "must_include", "right"),
    [
        ("It costs 1,950 kroner [1].", ["1950", "krone"], True),
        ("It costs 11,950 kroner.", ["1,950"], False),
        ("It costs 22 kroner.", [["22", "twenty-two"], "kroner"], True),
        ("Twenty-two kroner.", [["22", "twenty-two"], "kroner"], True),
        ("Twenty-three kroner.", [["22", "twenty-two"], "kroner"], False),
        ("Twenty-two crowns.", [["22", "twenty-two"], "kroner"], False),
        ("That one.", [], True),
    ],
)
def test_an_answer_is_right_that_holds_every_string_or_an_alternative(
    text: str, must_include: list[str | list[str]], right: bool
) -> None:
    assert SCRIPT["is_right"](text, must_include) is right


@pytest.mark.parametrize(
    ("golden", "document"),
    [
        (["a/b.md:12", "c.md:3"], "a/b.md"),
        (["a/b.md:12-14"], "a/b.md"),
        (["a/b.pdf"], "a/b.pdf"),
        (["../a/b.md"], "a/b.md"),
        ([], None),
    ],
)
def test_the_golden_document_is_named_without_lines(golden: list[str], document: str | None) -> None:
    assert SCRIPT["golden_document"]({"golden": golden}) == document
