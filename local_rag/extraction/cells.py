"""What a table holds for a document and a column: a value with its quotation, of a model or as a person types it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from local_rag.errors import QuestionError
from local_rag.extraction.columns import Column
from local_rag.extraction.values import TYPED, Normal, chosen_among, find_values, items_of, read_yes_no

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
    page_label: str = ""

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


_LONGEST = 2000


def person_cell(column: Column, typed: str, quoted: Cell | None = None) -> Cell:
    """Return the cell of a person, with the quotation of the cell that it replaces; nothing typed is not stated.

    Raise QuestionError for what is no value of the column's type.
    """
    text = " ".join(typed.split())
    if len(text) > _LONGEST:
        raise QuestionError(f"The value has more than {_LONGEST:,} characters; type less.")
    if not text:
        return Cell(NOT_STATED.state, by="person")
    value, shown = _read(column, text)
    place = (quoted.quotation, quoted.start, quoted.end, quoted.page, quoted.line) if quoted else ("", 0, 0, None, None)
    label, heading = (quoted.page_label, quoted.heading) if quoted else ("", "")
    return Cell("stated", value, shown, *place, by="person", page_label=label, heading=heading)


def _read(column: Column, text: str) -> tuple[Normal, str]:
    """Return a value in its normal form, and as it is shown."""
    if column.type in TYPED:
        found = find_values(column.type, text)
        if len(found) != 1:
            raise QuestionError(
                f"{text[:40]!r} is not read as one {column.type}; type for example {_EXAMPLES[column.type]}."
            )
        return found[0].normal, found[0].text
    if column.type == "yes/no":
        said = read_yes_no(text)
        if said is None:
            raise QuestionError(f"{text[:40]!r} is neither yes nor no; type one of them.")
        return said, "yes" if said else "no"
    if column.type == "one of":
        choice = chosen_among(column, text)
        if choice is None:
            raise QuestionError(f"{text[:40]!r} is none of {', '.join(column.choices)}; type one of them.")
        return choice, choice
    if column.type == "list":
        items = tuple(items_of(text))
        return items, "; ".join(items)
    return text, text


_EXAMPLES = {
    "number": "74",
    "amount": "12,500 EUR",
    "percentage": "8.5 %",
    "date": "2027-05-31",
    "duration": "3 months",
}
