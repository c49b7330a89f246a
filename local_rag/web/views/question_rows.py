"""The answers to the questions of a file as rows of a table: sorted, by outcome, each with its quotations."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from markupsafe import Markup

from local_rag.answering.remarks import place_of, remarks
from local_rag.asking import KeptCorrection
from local_rag.catalogue.contents import Location
from local_rag.display import Name, found_headline
from local_rag.records import Answer, Passage
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
    shown = [(*one, _quoted(one[1])) for one in ordered[start : start + ROWS]]
    located = iter(library.locate([quotation[0] for *_, quoted in shown for quotation in quoted]))
    name = library.place_names()
    rows = tuple(
        _view_row(
            name,
            number,
            answer,
            what,
            corrections.get(answer.question),
            tuple(_view_quotation(name, *one, location) for one, location in zip(quoted, located, strict=False)),
        )
        for number, answer, what, quoted in shown
    )
    counts = Counter(what for _, _, what in every)
    return AnswerTable(rows, len(fitting), {one: counts[one] for one in OUTCOMES}, start)


def _view_row(
    name: Name,
    number: int,
    answer: Answer,
    outcome: RowOutcome,
    correction: KeptCorrection | None,
    quotes: tuple[QuotedText, ...],
) -> AnswerRow:
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
        quotes=quotes,
        remarks=tuple(remarks(answer, name)),
        probability=answer.probability,
        correction=correction,
    )


def _quoted(answer: Answer) -> list[tuple[Passage, str, tuple[int, int], int]]:
    """Return each quotation: its passage, text, span in that and number; the first places of a list have no number."""
    if answer.found:
        return [(one.passage, one.passage.text, (0, 0), 0) for one in answer.found.places[:_MOST_LISTED]]
    cited = {one.number: one.passage for one in answer.citations}
    return [(cited[one.citation], one.text, (one.start, one.end), one.citation) for one in answer.quotes]


def _view_quotation(
    name: Name, passage: Passage, text: str, words: tuple[int, int], number: int, location: Location
) -> QuotedText:
    address = address_of(location.document, passage, words) if location.document is not None else ""
    return QuotedText(show_quote(passage, text, words[0]), place_of(passage, name, words[0]), number, address)
