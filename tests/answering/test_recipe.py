"""The key of cached answers changes with each constant between a question and its answer."""

import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from local_rag.answering import answerer, attribution, gate, prompt, selection
from local_rag.answering.recipe import answer_recipe, answering_modules, constants
from local_rag.retrieval import follow_ups, search

MODULES = {module.__name__: module for module in answering_modules()}


def with_constant(module: ModuleType, name: str, value: Any) -> ModuleType:
    """Return a copy of a module with another value of a constant."""
    changed = ModuleType(module.__name__)
    vars(changed).update(vars(module) | {name: value})
    return changed


@pytest.mark.parametrize("module", MODULES)
def test_each_constant_changes_the_recipe(module: str) -> None:
    for name, value in vars(MODULES[module]).items():
        if name in constants(MODULES[module]):
            changed, same = (with_constant(MODULES[module], name, one) for one in ("another value", value))
            assert answer_recipe([*(MODULES | {module: changed}).values()]) != answer_recipe(), name
            assert answer_recipe([*(MODULES | {module: same}).values()]) == answer_recipe(), name


def test_prompts_limits_and_thresholds_are_constants_of_these_modules() -> None:
    assert constants(prompt).keys() >= {"_SYSTEM", "REQUEST", "PROPOSAL", "PART", "MAX_ANSWER_TOKENS"}
    assert constants(selection).keys() >= {"SHOWN_TOKENS", "_PASSAGES"}
    assert constants(attribution).keys() >= {"MOST_UNITS", "_WORTH"}
    assert constants(answerer).keys() >= {"MOST_SENTENCES", "NOT_SURE"}
    assert constants(follow_ups).keys() >= {"FOLLOW_UPS"}
    assert {prompt, selection, attribution, answerer, gate, follow_ups, search} <= set(answering_modules())


def test_the_recipe_is_the_same_in_every_process() -> None:
    code = "from local_rag.answering.recipe import answer_recipe; print(answer_recipe())"
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    printed = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert printed.stdout.strip() == answer_recipe()
