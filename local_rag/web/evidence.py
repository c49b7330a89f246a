"""What the page shows of an answer and of passages: every field a template needs, in records made by code."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from local_rag.display import display_path, one_line
from local_rag.errors import LibraryError
from local_rag.indexing.changes import FileState, file_state
from local_rag.library import Library
from local_rag.models.choice import chosen
from local_rag.records import Answer, Passage, heading_path
from local_rag.store.database import Store, StoredDocument
from local_rag.web.marking import Piece, mark
from local_rag.web.markup import show_answer

STAGES = ("dense", "keyword", "fused", "rerank")
_CHANGES: dict[FileState, str] = {
    "same": "",
    "changed": "changed since it was indexed",
    "missing": "not where it was when it was indexed",
}
_MOST_LOG_ODDS, _WHOLE = 15.0, 10  # odds larger than this are said in whole numbers
_TERMS = {"rerank": "reranked"}


@dataclass(frozen=True, slots=True)
class Card:
    """A passage as evidence.

    `number` is that by which the answer cites it, 0 for one that was not read, `anchor` the name of its place.
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
    """Gather what the page says of an answer; here, and nowhere else, new fields of `Answer` are taken over.

    The cards that its citations lead to are named by `anchor`.
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
    """Say, at the end of each sentence that it is true of, what its sources lack; apart what of is no longer there."""
    notes, elsewhere, place = list[tuple[int, Markup]](), list[Markup](), 0
    for one in answer.support if answer.answered else ():
        said = []
        if not one.supported:
            words = Markup(", ").join(Markup("&ldquo;{}&rdquo;").format(one_line(word)) for word in one.missing)
            said.append(Markup("Not in what it cites: {}.").format(words))
        if one.removed:
            said.append(Markup("Cited {}, which is no source; removed.").format(_numbers(one.removed)))
        start = answer.text.find(one.sentence, place)
        if start >= 0:
            place = start + len(one.sentence)
        note = Markup(" ").join(said)
        if note and start >= 0:
            notes.append((place, note))
        elif note:
            elsewhere.append(Markup("Left out: {} {}").format(one.sentence, note))
    if answer.removed_citations and not any(one.removed for one in answer.support):
        elsewhere.append(Markup("Cited {}, which is no source; removed.").format(_numbers(answer.removed_citations)))
    return notes, tuple(elsewhere)


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(f"[{number}]" for number in dict.fromkeys(numbers))


def odds_in_words(log_odds: float | None) -> str:
    """Say odds as people do: 3 to 1, even, 1 to 20."""
    if log_odds is None or not math.isfinite(log_odds):
        return ""
    times = math.exp(min(abs(log_odds), _MOST_LOG_ODDS))
    shown = f"{times:,.0f}" if times >= _WHOLE else f"{times:.1f}".removesuffix(".0")
    if shown == "1":
        return "even"
    return f"{shown} to 1" if log_odds > 0 else f"1 to {shown}"


def cards(library: Library, question: str, passages: Sequence[Passage], *, answer: Answer | None = None) -> list[Card]:
    """Make a card of each passage: those that the answer read first, by their numbers."""
    return lead_on(library, _cards(question, passages, answer))


def lead_on(library: Library, made: Sequence[Card]) -> list[Card]:
    """Add to cards what the library knows: the document they lead to, whether it has changed, who wrote the context."""
    writer = Path(chosen(library.settings).get("context", "")).name
    with library.reading() as store:
        chunks = store.chunks_by_id([card.passage.chunk_id for card in made])
        owners = {one.document_id: store.document(one.document_id) for one in chunks.values()}
    shown = []
    for card in made:
        chunk = chunks.get(card.passage.chunk_id)
        # A passage that was kept may be of an index of before, where another chunk had its number.
        same = chunk and chunk.path == card.passage.path
        owner = owners.get(chunk.document_id) if chunk and same else None
        shown.append(
            replace(
                card,
                writer=writer if card.passage.context_kind in {"llm", "repaired"} else "",
                change=change_of(owner) if owner else "",
                document=owner.id if owner else None,
            )
        )
    return shown


def kept_cards(answer: Answer, anchor: str) -> list[Card]:
    """Make a card of each passage that an answer of before has read, from what was kept of it alone."""
    return _cards(answer.question, answer.read, answer, anchor)


def _cards(question: str, passages: Sequence[Passage], answer: Answer | None, anchor: str = "source") -> list[Card]:
    read = list(answer.read) if answer else []
    known = {passage.chunk_id for passage in read}
    ordered = [*read, *(passage for passage in passages if passage.chunk_id not in known)]
    cited = {citation.number for citation in answer.citations} if answer else set()
    said = answer.text if answer and answer.answered else ""
    made = []
    for place, passage in enumerate(ordered, start=1):
        number = place if place <= len(read) else 0
        made.append(
            Card(
                passage=passage,
                anchor=f"{anchor}-{number}" if number else f"found-{place}",
                number=number,
                cited=number in cited,
                place=one_line(display_path(passage.location)),
                headings=one_line(heading_path(passage.title, passage.headings)),
                pieces=mark(passage.text, question, said if number in cited else ""),
                ranks=tuple((_TERMS.get(hit.list_name, hit.list_name), hit.rank, hit.score) for hit in passage.hits),
            )
        )
    return made


def change_of(document: StoredDocument) -> str:
    """Say whether a document's file is not what was indexed, empty where it is the same."""
    return _CHANGES[file_state(document)]


def find_document(store: Store, document_id: int) -> StoredDocument:
    """Return a document of the library; raise LibraryError where there is none of this number."""
    document = store.document(document_id)
    if document is None:
        raise LibraryError("This document is no longer in the library; search again.")
    return document
