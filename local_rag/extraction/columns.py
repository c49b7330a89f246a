"""The columns of a table that is extracted: what each is called, what it asks of a document, and its type."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from local_rag.asking import MAX_QUESTION
from local_rag.display import one_line
from local_rag.errors import QuestionError, nearest
from local_rag.keys import key_of
from local_rag.text.words import fold

Type = Literal["text", "name", "number", "amount", "percentage", "date", "duration", "yes/no", "one of", "list"]

MOST_COLUMNS = 100
_LONGEST_NAME, _MOST_CHOICES, _LONGEST_CHOICE = 100, 50, 200
_NAMES_OF_TYPES: Mapping[Type, str] = {
    "text": "text||string",
    "name": "name|person|organisation|organization|company",
    "number": "number|integer|count",
    "amount": "amount|amount with currency|money|currency",
    "percentage": "percentage|percent|%",
    "date": "date",
    "duration": "duration|period",
    "yes/no": "yes/no|yes or no|yesno|boolean|bool",
    "list": "list",
}
_TYPES: Mapping[str, Type] = {name: kind for kind, names in _NAMES_OF_TYPES.items() for name in names.split("|")}
# How a model is asked for values of some types; for others, in a few words.
TYPE_REQUESTS: Mapping[Type, str] = {
    "yes/no": "Answer the question with yes or no",
    "one of": "Answer the question with one of: {choices}",
}
_ONE_OF = re.compile(r"(?:one of(?: a list)?|choice|enum)\s*[:(\[]?\s*(.*)", re.IGNORECASE | re.DOTALL)
# The end of a column that is written as text.
_TYPED = re.compile(r"\(([^()]{0,12000})\)\s*\Z")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its question, its type, and the `choices` of the type "one of"."""

    name: str
    question: str
    type: Type = "text"
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return a key of what is asked: the name may change without anything being asked again."""
        return key_of("column", self.question, self.type, self.choices)


def parse_columns(given: Iterable["Column | Mapping[str, object] | str"]) -> tuple[Column, ...]:
    """Return columns that are given as such, as fields (name, question, type) or as text; raise QuestionError.

    Raise it too if there are none or too many, or two with one name.
    """
    columns = tuple(one if isinstance(one, Column) else _column(one) for one in islice(given, MOST_COLUMNS + 1))
    if not columns:
        raise QuestionError("There are no columns; give each a name, a question and a type.")
    if len(columns) > MOST_COLUMNS:
        raise QuestionError(f"There are too many columns; a table has at most {MOST_COLUMNS}, so divide it.")
    names = [fold(column.name) for column in columns]
    if twice := next((column.name for column in columns if names.count(fold(column.name)) > 1), None):
        raise QuestionError(f"Two columns are named {twice!r}; give each a name of its own.")
    return columns


def column_of_text(text: str) -> Column:
    """Return a column written `Name: Question? (type)`; the name and the type may be missing."""
    text = " ".join(text.split())
    typed = _TYPED.search(text)
    if typed is None:
        return _checked(*_named(text), "text", ())
    asked, known = text[: typed.start()].strip(), _type_of(typed[1])
    if known:
        return _checked(*_named(asked), *known)
    if asked.endswith("?"):  # what follows a question is no part of it
        raise _no_type(asked, typed[1])
    return _checked(*_named(text), "text", ())


def _named(text: str) -> tuple[str, str]:
    name, colon, question = text.partition(":")
    return (name.strip(), question.strip()) if colon and len(name) <= _LONGEST_NAME else ("", text)


def _column(given: Mapping[str, object] | str) -> Column:
    if isinstance(given, str):
        return column_of_text(given)
    fields = {str(name).strip().casefold(): value for name, value in given.items()}
    if unknown := [name for name in fields if name not in {"name", "question", "type", "choices"}]:
        hint = nearest(unknown[0], ["name", "question", "type"]) or "a column has a name, a question and a type."
        raise QuestionError(f"A column has no {unknown[0]!r}; {hint}")
    name, question, kind = (_text(fields.get(field)) for field in ("name", "question", "type"))
    choices = fields.get("choices") or ()
    if isinstance(choices, Sequence) and not isinstance(choices, str) and choices:
        kind = f"one of: {'|'.join(map(str, choices))}"
    found = _type_of(kind)
    if found is None:
        raise _no_type(name or question, kind)
    return _checked(name, question, *found)


def _no_type(column: str, kind: str) -> QuestionError:
    hint = nearest(kind, _TYPES) or f"there are {', '.join(dict.fromkeys(_TYPES.values()))}, one of: A | B."
    return QuestionError(f"The column {one_line(column)[:40]!r} has the type {one_line(kind)[:40]!r}; {hint}")


def _text(value: object) -> str:
    return " ".join(str(value).split()) if value is not None else ""


def _type_of(text: str) -> tuple[Type, tuple[str, ...]] | None:
    """Return the type that a text names, with its choices; None for another text."""
    wanted = " ".join(text.split()).casefold()
    if wanted in _TYPES:
        return _TYPES[wanted], ()
    match = _ONE_OF.fullmatch(text.strip())
    if not match:
        return None
    listed = match[1].strip().removesuffix(")").removesuffix("]")
    # The first of the separators that occurs: a choice may hold a comma where a bar separates them.
    mark = next((mark for mark in ("|", "\n", ";", ",", "/") if mark in listed), "|")
    return "one of", tuple(dict.fromkeys(part for one in listed.split(mark) if (part := _text(one))))


def _checked(name: str, question: str, kind: Type, choices: tuple[str, ...]) -> Column:
    name = name or question[:_LONGEST_NAME].rstrip("?").strip()
    shown = one_line(name)[:40]
    if not question:
        raise QuestionError(f"The column {shown!r} has no question; write what to ask of each document.")
    if len(question) > MAX_QUESTION or len(name) > _LONGEST_NAME:
        raise QuestionError(
            f"The column {shown!r} is too long; a name has at most {_LONGEST_NAME} characters, and a question "
            f"{MAX_QUESTION:,}."
        )
    if kind == "one of" and not 1 < len(choices) <= _MOST_CHOICES:
        raise QuestionError(
            f"The column {shown!r} is one of {len(choices)} values; write two to {_MOST_CHOICES}, as in "
            "`one of: passed | failed`."
        )
    if any(len(one) > _LONGEST_CHOICE for one in choices):
        raise QuestionError(f"A value of the column {shown!r} has more than {_LONGEST_CHOICE} characters.")
    return Column(one_line(name), one_line(question), kind, tuple(map(one_line, choices)))
