"""What the pages show of an answer and of passages, in records with every field that a template needs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from local_rag.display import display_path, one_line
from local_rag.indexing.changes import FileState
from local_rag.library import Library
from local_rag.models.choice import chosen
from local_rag.records import BY_MODEL, Answer, Passage, heading_path
from local_rag.retrieval.marking import Piece, mark
from local_rag.web.markup import show_answer

STAGES = ("dense", "keyword", "fused", "rerank")
# What a page says of a document whose file is in this state.
STATES: dict[FileState, str] = {
    "same": "",
    "changed": "changed since it was indexed",
    "missing": "file moved or deleted",
}
_MOST_LOG_ODDS, _WHOLE = 15.0, 10  # larger odds are shown in whole numbers
_TERMS = {"rerank": "reranked"}


@dataclass(frozen=True, slots=True)
class Card:
    """A passage as evidence.

    The answer cites it by `number`, which is 0 if the model did not read it; `anchor` is its element's id.
    """

    passage: Passage
    anchor: str
    number: int
    cited: bool
    place: str
    headings: str
    pieces: tuple[Piece, ...]
    ranks: tuple[tuple[str, int, float], ...]
    writer: str = ""
    change: str = ""
    document: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer as it is shown."""

    text: Markup
    answered: bool
    anyway: bool
    again: bool
    read: int
    found: int
    log_odds: float | None
    odds: str
    tokens: int | None = None
    threshold: float | None = None
    needed: str = ""
    elsewhere: tuple[Markup, ...] = ()
    about: str = ""
    look_alikes: tuple[str, ...] = ()


def view_answer(answer: Answer, *, again: bool = False, anchor: str = "source", found: int = 0) -> AnswerView:
    """Gather what the page shows of an answer; new fields of `Answer` reach the page only here.

    Citations lead to the cards whose ids begin with `anchor`.
    """
    notes, elsewhere = _notes(answer)
    sources = range(1, len(answer.read) + 1) if answer.answered else ()
    below = answer.log_odds is not None and answer.threshold is not None and answer.log_odds < answer.threshold
    return AnswerView(
        text=show_answer(answer.text, sources, anchor=anchor, notes=notes),
        answered=answer.answered,
        anyway=answer.answered and below,
        again=again,
        read=len(answer.read),
        found=max(len(answer.passages), len(answer.read), found),
        log_odds=answer.log_odds,
        odds=odds_in_words(answer.log_odds),
        tokens=answer.tokens or None,
        threshold=answer.threshold,
        needed=odds_in_words(answer.threshold),
        elsewhere=elsewhere,
        about=one_line(answer.citations[0].passage.title) if answer.citations else "",
        look_alikes=tuple(one_line(f"{one.title}, {display_path(one.location)}") for one in answer.look_alikes),
    )


def _notes(answer: Answer) -> tuple[list[tuple[int, Markup]], tuple[Markup, ...]]:
    """Return what the sources of each sentence lack, by the offset of its end; and notes on sentences left out."""
    notes, elsewhere, end = list[tuple[int, Markup]](), list[Markup](), 0
    for one in answer.support if answer.answered else ():
        remarks = []
        if not one.supported:
            words = Markup(", ").join(Markup("&ldquo;{}&rdquo;").format(one_line(word)) for word in one.missing)
            remarks.append(Markup("Not in what it cites: {}.").format(words))
        if one.removed:
            remarks.append(Markup("Cited {}, which is not a source; removed.").format(_numbers(one.removed)))
        start = answer.text.find(one.sentence, end)
        if start >= 0:
            end = start + len(one.sentence)
        note = Markup(" ").join(remarks)
        if note and start >= 0:
            notes.append((end, note))
        elif note:
            elsewhere.append(Markup("Left out: {} {}").format(one.sentence, note))
    if answer.removed_citations and not any(one.removed for one in answer.support):
        elsewhere.append(Markup("Cited {}, which is not a source; removed.").format(_numbers(answer.removed_citations)))
    return notes, tuple(elsewhere)


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(f"[{number}]" for number in dict.fromkeys(numbers))


def odds_in_words(log_odds: float | None) -> str:
    """Return odds as people say them: 3 to 1, even, 1 to 20."""
    if log_odds is None or not math.isfinite(log_odds):
        return ""
    times = math.exp(min(abs(log_odds), _MOST_LOG_ODDS))
    shown = f"{times:,.0f}" if times >= _WHOLE else f"{times:.1f}".removesuffix(".0")
    if shown == "1":
        return "even"
    return f"{shown} to 1" if log_odds > 0 else f"1 to {shown}"


def cards(library: Library, question: str, passages: Sequence[Passage], *, answer: Answer | None = None) -> list[Card]:
    """Make a card of each passage: first those that the answer read, by their numbers."""
    return link_cards(library, _cards(question, passages, answer))


def link_cards(library: Library, made: Sequence[Card]) -> list[Card]:
    """Add to cards what the library knows: their document, whether its file has changed, who wrote the context."""
    writer = Path(chosen(library.settings).get("context", "")).name
    return [
        replace(
            card,
            writer=writer if card.passage.context_kind in BY_MODEL else "",
            change=STATES[location.state],
            document=location.document,
        )
        for card, location in zip(made, library.locate([card.passage for card in made]), strict=True)
    ]


def kept_cards(answer: Answer, anchor: str) -> list[Card]:
    """Make a card of each passage that a kept answer read, without the library."""
    return _cards(answer.question, answer.read, answer, anchor)


def _cards(question: str, passages: Sequence[Passage], answer: Answer | None, anchor: str = "source") -> list[Card]:
    read = list(answer.read) if answer else []
    known = {passage.chunk_id for passage in read}
    ordered = [*read, *(passage for passage in passages if passage.chunk_id not in known)]
    cited = {citation.number for citation in answer.citations} if answer else set()
    said = answer.text if answer and answer.answered else ""
    made = []
    for position, passage in enumerate(ordered, start=1):
        number = position if position <= len(read) else 0
        made.append(
            Card(
                passage=passage,
                anchor=f"{anchor}-{number}" if number else f"found-{position}",
                number=number,
                cited=number in cited,
                place=one_line(display_path(passage.location)),
                headings=one_line(heading_path(passage.title, passage.headings)),
                pieces=mark(passage.text, question, said if number in cited else ""),
                ranks=tuple((_TERMS.get(hit.list_name, hit.list_name), hit.rank, hit.score) for hit in passage.hits),
            )
        )
    return made
