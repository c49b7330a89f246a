"""A conversation as a page shows it: its questions, their answers and what was read for them, from what was kept."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_rag.library import Library
from local_rag.store.history import History, KeptTurn
from local_rag.web.evidence import AnswerView, Card, kept_cards, lead_on, view_answer


@dataclass(frozen=True, slots=True)
class TurnView:
    """A question, with what was answered and the passages that were read for it."""

    kept: KeptTurn
    view: AnswerView
    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation by its number, 0 for one that has yet to begin, and what was asked in it before."""

    id: int = 0
    turns: Sequence[TurnView] = ()
    last: TurnView | None = None


def view_turn(kept: KeptTurn, library: Library | None = None, *, alone: bool = False) -> TurnView:
    """Show a question of a conversation; `alone` it is the one whose cards stand on the page by their plain names.

    With a library the passages lead to its documents, as far as they are still there.
    """
    anchor = "source" if alone else f"turn-{kept.id}-source"
    made = kept_cards(kept.answer, anchor)
    view = view_answer(kept.answer, anchor=anchor, found=kept.found)
    return TurnView(kept, view, lead_on(library, made) if library else made)


def view_thread(history: History, library: Library, conversation: int, *, apart: str | None = None) -> Thread:
    """Show a conversation with its last question apart; of other words than `apart`, it stands among the others."""
    turns = history.turns(conversation)
    last = turns.pop() if apart in (None, turns[-1].question) else None
    return Thread(
        conversation,
        [view_turn(kept, library) for kept in turns],
        view_turn(last, library, alone=True) if last else None,
    )
