"""The answers to the questions of a file as rows of a table: sorted, by outcome, each with its quotations."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from markupsafe import Markup

from local_rag.answering.remarks import place_of, remarks
from local_rag.asking import KeptCorrection
from local_rag.display import found_headline
from local_rag.records import Answer
from local_rag.view import View
from local_rag.web.views.answer_html import show_answer
from local_rag.web.views.document_html import show_quote
from local_rag.web.views.document_view import address_of

RowOutcome = Literal["answered", "quoted", "refused", "corrected"]
OUTCOMES: Mapping[RowOutcome, str] = {
    "answered": "Answered",
    "quoted": "Quoted",
    "refused": "Not answered",
    "corrected": "Corrected by hand",
}
ROWS = 100  # on a page
_MOST_LISTED = 5  # places of a list


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A quotation, the place it is from, and the address that leads there, empty if the document has gone."""

    text: Markup
    place: str
    number: int
    address: str = ""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """The answer to the question with this `number`; `correction` is what a person has written in its place."""

    number: int
    question: str
    outcome: RowOutcome
    text: Markup
    plain: str
    quotes: tuple[QuotedText, ...]
    remarks: tuple[str, ...]
    probability: float | None
    correction: KeptCorrection | None


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Some of the `found` rows that have the outcome that is asked for, and how many there are of each."""

    rows: tuple[AnswerRow, ...]
    found: int
    counts: Mapping[RowOutcome, int]
    start: int


_ORDERS: Mapping[str, Callable[[tuple[int, Answer, RowOutcome]], Any]] = {
    "number": lambda one: one[0],
    "question": lambda one: (one[1].question.casefold(), one[0]),
    "outcome": lambda one: (get_args(RowOutcome).index(one[2]), one[0]),
    "sure": lambda one: (-1 if one[1].probability is None else one[1].probability, -one[0]),
}


def view_rows(
    asked: Sequence[str],
    answers: Sequence[Answer],
    corrections: Mapping[str, KeptCorrection],
    library: View,
    *,
    outcome: str = "",
    order: str = "",
    down: bool = False,
    start: int = 0,
) -> AnswerTable:
    """Return the rows of one outcome, or of all, in an order: `number`, `question`, `outcome`, or how `sure` it is."""
    numbers = {question: number for number, question in enumerate(asked, start=1)}
    every: list[tuple[int, Answer, RowOutcome]] = [
        (numbers[one.question], one, "corrected" if one.question in corrections else one.outcome)
        for one in answers
        if one.question in numbers
    ]
    fitting = [one for one in every if outcome not in OUTCOMES or one[2] == outcome]
    ordered = sorted(fitting, key=_ORDERS.get(order, _ORDERS["number"]), reverse=down)
    shown = [
        _view_row(number, answer, what, corrections.get(answer.question))
        for number, answer, what in ordered[start : start + ROWS]
    ]
    counts = Counter(what for _, _, what in every)
    linked = _link(shown, {answer.question: answer for _, answer, _ in ordered}, library)
    return AnswerTable(linked, len(fitting), {one: counts[one] for one in OUTCOMES}, start)


def _view_row(number: int, answer: Answer, outcome: RowOutcome, correction: KeptCorrection | None) -> AnswerRow:
    cited = {one.number: one.passage for one in answer.citations}
    quotes = [
        QuotedText(show_quote(cited[one.citation], one.text, one.start), place_of(cited[one.citation], start=one.start),
                   one.citation)
        for one in answer.quotes
    ]  # fmt: skip
    if answer.found:
        places = answer.found.places[:_MOST_LISTED]
        quotes = [QuotedText(show_quote(one.passage, one.passage.text, 0), place_of(one.passage), 0) for one in places]
    said = found_headline(answer.found) if answer.found else answer.text
    sources = [one.citation for one in answer.quotes] if answer.answered and not answer.found else ()
    return AnswerRow(
        number=number,
        question=answer.question,
        outcome=outcome,
        text=show_answer(said, sources, anchor=f"row-{number}-source")
        if answer.answered
        else Markup("<p>{}</p>").format(Markup("<br>").join(said.splitlines())),
        plain=said,
        quotes=tuple(quotes),
        remarks=tuple(remarks(answer)),
        probability=answer.probability,
        correction=correction,
    )


def _link(rows: Sequence[AnswerRow], answers: Mapping[str, Answer], library: View) -> tuple[AnswerRow, ...]:
    """Add to quotations the address that leads to their words."""
    spans = [_spans(answers[row.question]) for row in rows]
    located = iter(library.locate([passage for some in spans for passage, _ in some]))
    linked = []
    for row, some in zip(rows, spans, strict=True):
        quotes = []
        for quote, (passage, words), place in zip(row.quotes, some, located, strict=False):
            address = address_of(place.document, passage, words) if place.document is not None else ""
            quotes.append(replace(quote, address=address))
        linked.append(replace(row, quotes=tuple(quotes)))
    return tuple(linked)


def _spans(answer: Answer) -> list[tuple[Any, tuple[int, int]]]:
    """Return the passage of each quotation with the words that are quoted."""
    if answer.found:
        return [(one.passage, (0, 0)) for one in answer.found.places[:_MOST_LISTED]]
    cited = {one.number: one.passage for one in answer.citations}
    return [(cited[one.citation], (one.start, one.end)) for one in answer.quotes]
