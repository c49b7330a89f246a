"""The view of a kept conversation: its questions, their answers, and the passages that were read for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_rag.serving.open_history import History, KeptTurn
from local_rag.view import View
from local_rag.web.views.answer_view import AnswerView, Card, kept_cards, link_cards, view_answer


@dataclass(frozen=True, slots=True)
class TurnView:
    """A question with its answer and the passages that were read for it."""

    kept: KeptTurn
    view: AnswerView
    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation and its turns; the id of a conversation that has not begun is empty."""

    id: str = ""
    turns: Sequence[TurnView] = ()
    last: TurnView | None = None


def view_turn(kept: KeptTurn, library: View | None = None, *, alone: bool = False) -> TurnView:
    """Return the view of a turn; the cards of the turn that is shown `alone` have plain ids.

    With a library, passages lead to the documents that it still holds.
    """
    anchor = "source" if alone else f"turn-{kept.id}-source"
    made = kept_cards(kept.answer, anchor)
    view = view_answer(kept.answer, anchor=anchor, found=kept.found)
    return TurnView(kept, view, link_cards(library, made) if library else made)


def view_thread(
    history: History, library: View, conversation: str, *, apart: str | None = None, start: int = 0
) -> Thread:
    """Return the view of a conversation, with its last turn apart from the others.

    If `apart` names another question than the last one, no turn is apart. The first `start` turns are left out.
    """
    turns = history.turns(conversation)
    last = turns.pop() if apart in (None, turns[-1].question) else None
    return Thread(
        conversation,
        [view_turn(kept, library) for kept in turns[start:]],
        view_turn(last, library, alone=True) if last else None,
    )
