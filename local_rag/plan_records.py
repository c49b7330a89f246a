"""The plan of a question: what it asks for, in one record that everything downstream reads instead of its words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

Kind = Literal["passages", "rows", "documents", "changes", "brief", "chat"]
Operation = Literal["count", "list", "occurrences", ""]
Match = Literal["words", "about", ""]
AnswerType = Literal["number", "date", "name", "yes_no", "how", ""]

KINDS: tuple[Kind, ...] = get_args(Kind)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)[:-1]  # without that of a plan that has none
MATCHES: tuple[Match, ...] = get_args(Match)[:-1]
ANSWER_TYPES: tuple[AnswerType, ...] = get_args(AnswerType)
# The names of a plan that is printed as JSON, in their order.
FIELDS = (
    "kind",
    "probability",
    "parts",
    "operation",
    "subject",
    "match",
    "sort",
    "negated",
    "limits",
    "as_of",
    "documents",
    "aspect",
    "length",
    "answer_type",
    "language",
    "query",
)
_KINDS = {"passages": "question about passages", "rows": "question about rows", "chat": "small talk"}
_OPERATIONS = {"count": "number", "list": "list", "occurrences": "all places", "": "list"}
_ANSWERS = {"number": "a number", "date": "a date", "name": "a name", "yes_no": "yes or no", "how": "how it is done"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a question asks for; its texts stand as in the question.

    `kind` says what answers: passages, the rows of tables, all documents together, what changed between documents, a
    summary, or nothing, because it is small talk. `probability` is that of this kind. `parts` are the questions of a
    compound one. Documents are counted or listed that are of a `sort`, have or deal with a `subject`, or do not if
    `negated`, and pass further `limits`. `documents` are those that a change or a summary is asked of, with its
    `aspect` and its `length`. `as_of` says which state of the documents counts. `answer_type` is the kind of answer
    that is asked for, `language` a code such as `en`, and `query` the query of rows, in words.

    `may_ask_rows` and `about_documents` say what is probable enough to be looked at, although the kind is another.
    """

    kind: Kind = "passages"
    probability: float = 1.0
    parts: tuple[str, ...] = ()
    operation: Operation = ""
    subject: str = ""
    match: Match = ""
    sort: str = ""
    negated: bool = False
    limits: tuple[str, ...] = ()
    as_of: str = ""
    documents: tuple[str, ...] = ()
    aspect: str = ""
    length: str = ""
    answer_type: AnswerType = ""
    language: str = "en"
    query: str = ""
    may_ask_rows: bool = False
    about_documents: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the plan under the names of `FIELDS`, ready for JSON."""
        found = {name: getattr(self, name) for name in FIELDS}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    def __str__(self) -> str:
        """Return the plan as one line."""
        return "; ".join(self._said())

    def _said(self) -> Iterator[str]:
        if self.kind == "documents":
            yield self._of_documents()
        elif self.kind == "changes":
            yield f"what changed {'between' if len(self.documents) > 1 else 'in'} {self._named()}"
        elif self.kind == "brief":
            yield f"summary of {self._named()}"
        else:
            yield _KINDS[self.kind]
        yield from (f"part: {part}" for part in self.parts)
        yield from (f"only {limit}" for limit in self.limits)
        said = {"": self.query, "of it: ": self.aspect, "length: ": self.length, "as of: ": self.as_of}
        yield from (f"{name}{value}" for name, value in said.items() if value)
        if self.answer_type and self.kind in {"passages", "rows"}:
            yield f"asks for {_ANSWERS[self.answer_type]}"

    def _of_documents(self) -> str:
        said = f"{_OPERATIONS[self.operation]} of {self.sort or 'documents'}"
        if not self.subject:
            return said
        does = "deal with" if self.match == "about" else "mention"
        joint = "in which they" if self.operation == "occurrences" else "that"
        return f"{said} {joint} {'do not ' * self.negated}{does} \u201c{self.subject}\u201d"

    def _named(self) -> str:
        return " and ".join(f"\u201c{one}\u201d" for one in self.documents) or "all documents"
