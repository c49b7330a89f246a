"""A conversation as the page shows it: its turns in reading order, each with its evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from local_rag.asking import EVERYTHING, Filters, KeptTurn
from local_rag.display import Name, one_line
from local_rag.serving.requests import AskRequest, ServedAnswer
from local_rag.view import View
from local_rag.web.forms import as_pairs
from local_rag.web.views.answer_view import Card, cards, view_answer


@dataclass(frozen=True, slots=True)
class TurnView:
    """A question with its answer and evidence.

    `number` counts the turns of the conversation, and is 0 for one that is not kept. `scope` says of what it was asked
    if that was a part of the library, and `fields` are those of a form that asks so again. `opens` begins a subject.
    """

    number: int
    question: str
    asked: str
    scope: str
    fields: Sequence[tuple[str, str]]
    opens: bool
    view: Mapping[str, Any]
    cards: Sequence[Card]

    @property
    def anchor(self) -> str:
        """Return the id of its element."""
        return anchor_of(self.number)


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation and its turns; the id of one that has not begun is empty. The next question goes to `filters`."""

    id: str = ""
    turns: Sequence[TurnView] = ()
    filters: Filters = EVERYTHING


def anchor_of(number: int) -> str:
    """Return the id of the element of a turn."""
    return f"turn-{number}"


def view_kept(kept: KeptTurn, number: int, name: Name, library: View | None = None) -> TurnView:
    """Return a turn of the history; with a library, passages lead to the documents that it still holds."""
    anchor = f"{anchor_of(number)}-source"
    return TurnView(
        number,
        kept.question,
        kept.asked,
        say_scope(kept.filters),
        as_pairs(kept.filters),
        kept.opens and number > 1,
        view_answer(kept.answer, anchor=anchor, found=kept.found, library=library, name=name),
        cards(library, kept.answer.question, kept.answer.read, answer=kept.answer, anchor=anchor, name=name),
    )


def view_new(asked: AskRequest, served: ServedAnswer, number: int, library: View, name: Name) -> TurnView:
    """Return a turn that was just answered, with all passages that were found for it."""
    anchor, filters = f"{anchor_of(number)}-source", asked.options.filters
    return TurnView(
        number if served.conversation else 0,
        asked.question,
        "",
        say_scope(filters),
        as_pairs(filters),
        asked.new_subject and number > 1,
        view_answer(
            served.answer,
            again=served.again,
            anchor=anchor,
            notice=served.notice,
            changed=served.changed,
            library=library,
            name=name,
        ),
        cards(library, asked.question, served.answer.passages, answer=served.answer, anchor=anchor, name=name),
    )


def view_thread(turns: Sequence[KeptTurn], library: View, name: Name, conversation: str, *, start: int = 0) -> Thread:
    """Return a conversation without its first `start` turns."""
    shown = [view_kept(kept, number, name, library) for number, kept in enumerate(turns, start=1) if number > start]
    return Thread(conversation, shown, turns[-1].filters if turns else EVERYTHING)


_MOST_NAMED = 3
_LONGEST = 120  # characters of a name


def say_scope(filters: Filters) -> str:
    """Return in a few words which documents pass the filters; empty if all do."""
    parts = [_names(filters.within)] if filters.within else []
    parts += [_names([one.removeprefix(".").upper() for one in filters.types])] if filters.types else []
    parts += [say_dates(filters.since, filters.before)] if filters.since or filters.before else []
    parts += [f"tagged {_names(filters.tags)}"] if filters.tags else []
    parts += [f"versions valid on {filters.as_of}"] if filters.as_of else []
    return "; ".join(parts)


def say_dates(since: date | None, before: date | None) -> str:
    """Return a span of days in words: a year as its number."""
    if since and before and (since.month, since.day, before) == (1, 1, date(min(since.year + 1, 9999), 1, 1)):
        return str(since.year)
    return " ".join([f"since {since}"] * bool(since) + [f"before {before}"] * bool(before))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name)[:_LONGEST] for name in names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown
