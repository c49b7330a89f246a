"""How the choices of the model become programs, and that the shipped model makes sensible ones."""

import numpy as np
import pytest

from local_rag.errors import ModelError
from local_rag.tables.encoding import Encoded
from local_rag.tables.mentions import Mention
from local_rag.tables.planner import ROLES, SIZES, TrainedPlanner, best
from local_rag.tables.program import FILLED, OPERATIONS, RELATIONS

ENCODED = Encoded((0,) * 6, (0,) * 6, columns=(1, 2, 3), mentions=(4, 5))
MENTIONED = [Mention(0, "value", "Kessler", 0, 7, ("Kessler",)), Mention(1, "number", "3", 8, 9, number=3)]


def logits() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(sum(SIZES.values())), np.zeros((6, len(ROLES) + len(FILLED) + len(RELATIONS)))


def whole_at(name: str, choice: int) -> int:
    before = list(SIZES)[: list(SIZES).index(name)]
    return sum(SIZES[one] for one in before) + choice


def test_the_best_choices_make_the_best_program() -> None:
    whole, tokens = logits()
    whole[whole_at("operation", list(OPERATIONS).index("sum"))] = 9
    tokens[3, ROLES.index("measure")] = 9
    tokens[1, ROLES.index("group")] = 9
    tokens[4, len(ROLES) + len(FILLED) + RELATIONS.index("is")] = 9
    tokens[5, len(ROLES) + len(FILLED) + RELATIONS.index("more")] = 9
    tokens[2:4, len(ROLES)] = 9
    program, total = best(whole, tokens, ENCODED, ["text", "number"], MENTIONED).programs[0]
    assert (program.operation, program.measure, program.group) == ("sum", 1, -1)
    assert program.relations == ("is", "more")
    assert total < 0


def test_a_text_is_never_measured_and_a_value_never_more_than_another() -> None:
    whole, tokens = logits()
    whole[whole_at("operation", list(OPERATIONS).index("sum"))] = 9
    tokens[2, ROLES.index("measure")] = 99  # a column of texts
    tokens[4, len(ROLES) + len(FILLED) + RELATIONS.index("more")] = 99
    for program, _ in best(whole, tokens, ENCODED, ["text", "number"], MENTIONED).programs:
        assert program.measure != 0 or "measure" not in OPERATIONS[program.operation]
        assert program.relations[0] in {"", "is", "is not"}


def test_other_programs_follow_from_the_least_sure_choices() -> None:
    whole, tokens = logits()
    whole[whole_at("operation", 0)] = 9
    whole[whole_at("pair", 0)] = 9
    tokens[1, ROLES.index("group")] = 9
    tokens[2:4, len(ROLES)] = 9  # certain: nothing is empty, grouped or compared
    tokens[4, len(ROLES) + len(FILLED) + RELATIONS.index("is")] = 9
    tokens[5, len(ROLES) + len(FILLED)] = 0.5
    planned = best(whole, tokens, ENCODED, ["text", "number"], MENTIONED)
    assert planned.programs[0][0].relations == ("is", "")
    assert planned.programs[1][0].relations[1] != ""
    totals = [total for _, total in planned.programs]
    assert totals == sorted(totals, reverse=True)


def test_a_missing_model_is_named(tmp_path: object) -> None:
    from pathlib import Path

    with pytest.raises(ModelError, match="planner of rows is missing"):
        TrainedPlanner(Path(str(tmp_path)))
