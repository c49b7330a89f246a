"""What each tool takes."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from local_rag.asking import MAX_QUESTION, Filters

MAX_CHECKED = 20_000  # characters of a text that is checked


Pattern = Annotated[str, Field(max_length=500)]


def _from_json(given: object) -> object:
    """Return the list that a client has sent as the text of JSON."""
    if isinstance(given, str) and given.strip().startswith("["):
        with suppress(ValueError):
            return json.loads(given)
    return given


Several = Annotated[Annotated[list[Pattern], Field(max_length=20)] | Pattern, BeforeValidator(_from_json)]

Within = Annotated[
    Several,
    Field(
        default_factory=list,
        alias="in",
        description="Only documents below these folders, or that these patterns match, such as 'policies/**'.",
    ),
]

Types = Annotated[
    Several, Field(default_factory=list, alias="type", description="Only files of these types, such as 'pdf'.")
]

Name = Annotated[str, Field(min_length=1, max_length=1000)]

Day = Annotated[str, Field(max_length=10)]


class Arguments(BaseModel):
    """What a tool takes, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, given: Any) -> Any:
        """Take what a client sends as null for left away."""
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given


def several(given: Sequence[str] | str) -> Sequence[str]:
    """Return values, of which a client may send one alone."""
    return [given] if isinstance(given, str) else given


class FilteredArguments(Arguments):
    """What all tools take that look for something: which documents to look at."""

    within: Within
    types: Types
    since: Day | None = Field(default=None, description="Only documents of that day or later, such as 2024-05-01.")
    before: Day | None = Field(default=None, description="Only documents of before that day.")
    tags: Several = Field(default_factory=list, alias="tag", description="Only documents with all of these tags.")

    def filters(self) -> Filters:
        """Return the filters that are asked for."""
        return Filters.parse(
            within=several(self.within),
            types=several(self.types),
            since=self.since,
            before=self.before,
            tags=several(self.tags),
        )


class SearchArguments(FilteredArguments):
    """What `search` takes."""

    query: str = Field(min_length=1, max_length=MAX_QUESTION, description="A question, or words to look for.")
    limit: int = Field(default=8, ge=1, le=20, description="The most passages to return.")


class FindArguments(FilteredArguments):
    """What `find` takes."""

    question: str = Field(
        min_length=1,
        max_length=MAX_QUESTION,
        description="What to count or list, such as 'How many reports mention the crane?' or 'Which policies are about "
        "travel?'; quoted words are looked for exactly.",
    )


class FetchArguments(Arguments):
    """What `fetch` takes."""

    id: str = Field(max_length=40, description="The id of a passage or of a document, as the other tools give it.")
    offset: int = Field(default=0, ge=0, description="Where to go on: `next` of the call before, with the same id.")
    around: int = Field(
        default=0, ge=0, le=20, description="Of a passage: how many before it and behind it to return as well."
    )


class ListArguments(Arguments):
    """What `list_documents` takes."""

    within: Within
    cursor: str | None = Field(default=None, max_length=8000, description="`next` of the page before.")


class DiffArguments(Arguments):
    """What `diff` takes."""

    before: Name = Field(description="The path, file name or title of a document.")
    after: Name | None = Field(
        default=None, description="The other document; without it, the two newest versions of the first are compared."
    )


class BriefArguments(Arguments):
    """What `brief` takes."""

    documents: list[Name] = Field(
        default_factory=list, max_length=20, description="Paths, folders, file names or titles; none for all documents."
    )
    lines: int = Field(default=10, ge=1, le=100, description="How many lines carry the documents.")
    within: Within


class GapsArguments(Arguments):
    """What `gaps` takes."""

    start: int = Field(default=0, ge=0, le=1000, description="`next` of the call before.")


class VerifyArguments(FilteredArguments):
    """What `verify` takes."""

    text: str = Field(
        min_length=1,
        max_length=MAX_CHECKED,
        description="A draft whose statements to check. It may quote documents, and name them in brackets, such as "
        "(travel-policy.md, p. 3).",
    )
    start: int = Field(default=0, ge=0, description="`next` of the call before, with the same text.")


class AskArguments(FilteredArguments):
    """What `ask` takes."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION, description="A question of the documents.")


class ExtractArguments(Arguments):
    """What `extract` takes."""

    columns: list[Annotated[str, Field(max_length=MAX_QUESTION)]] = Field(
        min_length=1,
        max_length=20,
        description="What to ask of each document, as in 'Notice period: How long is the notice period? (duration)'. "
        "Types: text, name, number, amount, percentage, date, duration, yes/no, one of: A | B, list.",
    )
    within: Within
    types: Types
    newest: bool = Field(default=False, description="Only the newest version of each document.")
    start: int = Field(default=0, ge=0, description="`next` of the call before, with the same columns.")
