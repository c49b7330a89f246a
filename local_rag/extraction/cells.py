"""What a table holds for a document and a column: a value with its quotation, or that it is not stated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from local_rag.extraction.values import Normal

State = Literal["stated", "unsure", "not stated"]
Author = Literal["model", "person"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    `value` is in the normal form of the column's type, `text` as it is shown. `quotation` is what the document says
    about it, `start` and `end` its place in the document's text, `heading` the nearest heading above it. What is
    `unsure` has a `note` that says why: its quotation does not fit the type, or the document also says something else.
    `probability` is that of the value, None where it is not known. `by` is a person for a value that was corrected.
    """

    state: State
    value: Normal | None = None
    text: str = ""
    quotation: str = ""
    start: int = 0
    end: int = 0
    page: int | None = None
    line: int | None = None
    probability: float | None = None
    note: str = ""
    by: Author = "model"
    heading: str = ""

    @property
    def is_filled(self) -> bool:
        """Return whether there is a value, a sure one or not."""
        return self.state != "not stated"


NOT_STATED = Cell("not stated")


def cell_from(plain: Mapping[str, Any]) -> Cell:
    """Return a cell from its JSON form; raise ValueError for that of another version."""
    value = plain.get("value")
    try:
        return Cell(**{**plain, "value": tuple(value) if isinstance(value, list) else value})
    except TypeError as error:
        raise ValueError(error) from None
