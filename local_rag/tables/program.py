"""What the planner says of a question and a view: what is computed, of which columns, under which conditions."""

from dataclasses import dataclass

# Each with what it is of: the column that is measured, that is shown, both, or two that are compared.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "count": (),
    "distinct": ("shown",),
    "sum": ("measure",),
    "mean": ("measure",),
    "min": ("measure",),
    "max": ("measure",),
    "list": ("shown",),
    "top": ("measure", "shown"),
    "whether": (),
    "share of rows": ("shown",),
    "share of sum": ("measure", "shown"),
    "difference of rows": ("shown",),
    "difference of sums": ("measure", "shown"),
    "range": ("measure",),
    "difference of columns": ("left", "right"),
}
GROUPED = frozenset({"count", "sum", "mean", "min", "max"})
PARTS = ("", "month", "quarter", "year")
DIRECTIONS = ("", "max", "min")
# What a mention is: no condition, or how the column's value stands to it.
RELATIONS = ("", "is", "is not", "more", "at least", "less", "at most")
FILLED = ("", "empty", "filled")
PAIRS = ("", "more", "is", "is not")
NONE = -1  # in the place of a column's index


@dataclass(frozen=True, slots=True)
class Program:
    """A query as choices from closed lists; columns and mentions by their index in the view and in its mentions.

    `measure` is computed or compared, `shown` asked for, and `group` what is computed one by one. The numbers or dates
    of the column `left` are compared with those of `right` as `pair` says. With `any_of`, one of the conditions is
    enough.
    """

    operation: str
    relations: tuple[str, ...]
    filled: tuple[str, ...]
    measure: int = NONE
    shown: int = NONE
    group: int = NONE
    part: str = ""
    direction: str = ""
    left: int = NONE
    right: int = NONE
    pair: str = ""
    any_of: bool = False
