"""The page that answers all questions of a file: it is sent, watched, stopped, taken up again and downloaded.

The answers are rows of a table: sorted, by outcome, each with its quotations.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.datastructures import UploadFile
from starlette.responses import Response
from starlette.routing import Route

from local_rag.answer_records import Answer
from local_rag.answering.remarks import place_of, remarks
from local_rag.asking import AskOptions, KeptCorrection, KeptList
from local_rag.catalogue.contents import Location
from local_rag.display import Name, found_headline
from local_rag.errors import BusyError, QuestionError
from local_rag.passage_records import Passage
from local_rag.serving.answer_files import answers_in_form
from local_rag.serving.background_runs import RunView
from local_rag.serving.http import json_response
from local_rag.serving.table_files import questions_in
from local_rag.view import View
from local_rag.web.changes.additions import file_name
from local_rag.web.forms import filters_of, query_fields, text_field
from local_rag.web.pages.document_page import offset
from local_rag.web.pages.sources_page import view_scope
from local_rag.web.site import TABLE_TYPES, PageRequest, attachment
from local_rag.web.views.answer_html import show_answer
from local_rag.web.views.document_html import show_quote
from local_rag.web.views.document_view import address_of
from local_rag.web.views.thread_view import say_scope

RowOutcome = Literal["answered", "quoted", "refused", "left", "corrected"]
OUTCOMES: Mapping[RowOutcome, str] = {
    "answered": "Answered",
    "quoted": "Quoted",
    "refused": "Not answered",
    "left": "Left",
    "corrected": "Corrected by hand",
}
ROWS = 100  # on a page
_MOST_LISTED = 5  # places of a list

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
) -> dict[str, Any]:
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
    located = iter(library.documents.locate([quotation[0] for *_, quoted in shown for quotation in quoted]))
    name = library.documents.place_names()
    rows = tuple(
        _view_row(
            name,
            number,
            answer,
            what,
            corrections.get(answer.question),
            [_view_quotation(name, *one, location) for one, location in zip(quoted, located, strict=False)],
        )
        for number, answer, what, quoted in shown
    )
    counts = Counter(what for _, _, what in every)
    of_each = {one: counts[one] for one in OUTCOMES}
    return {"rows": rows, "found": len(fitting), "counts": of_each, "start": start}


def _view_row(
    name: Name,
    number: int,
    answer: Answer,
    outcome: RowOutcome,
    correction: KeptCorrection | None,
    quotes: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the answer to the question with this number; a correction is what a person has written in its place."""
    said = found_headline(answer.found) if answer.found else answer.text
    sources = [one.citation for one in answer.quotes] if answer.answered and not answer.found else ()
    return {
        "number": number,
        "question": answer.question,
        "outcome": outcome,
        "text": show_answer(said, sources, anchor=f"row-{number}-source")
        if answer.answered
        else Markup("<p>{}</p>").format(Markup("<br>").join(said.splitlines())),
        "plain": said,
        "quotes": quotes,
        "remarks": remarks(answer, name),
        "probability": answer.probability,
        "correction": correction,
    }


def _quoted(answer: Answer) -> list[tuple[Passage, str, tuple[int, int], int]]:
    """Return each quotation: its passage, text, span in that and number; the first places of a list have no number."""
    if answer.found:
        return [(one.passage, one.passage.text, (0, 0), 0) for one in answer.found.places[:_MOST_LISTED]]
    cited = {one.number: one.passage for one in answer.citations}
    return [(cited[one.citation], one.text, (one.start, one.end), one.citation) for one in answer.quotes]


def _view_quotation(
    name: Name, passage: Passage, text: str, words: tuple[int, int], number: int, location: Location
) -> dict[str, Any]:
    """Return a quotation, the place it is from, and the address that leads there, empty if the document has gone."""
    address = address_of(location.document, passage, words) if location.document is not None else ""
    place = place_of(passage, name, words[0])
    return {"text": show_quote(passage, text, words[0]), "place": place, "number": number, "address": address}


MOST_QUESTIONS, _MOST_LISTS = 1000, 50
_LONGEST_CORRECTION = 10_000  # characters
_MOST_FIELDS = 350  # of a form with as many sources as may be chosen
_LOOK = ("show", "sort", "down")  # fields of an address that say which answers are seen, and in which order
_READING_SECONDS = 5.0  # for the place of a file that takes its time


@dataclass(frozen=True, slots=True)
class ListView:
    """A list of questions, how its answering goes, and what is left of it."""

    kept: KeptList
    run: RunView
    left: int


def questions(request: PageRequest) -> Response:
    """Show the form, and the lists of this person."""
    with request.history() as history:
        lists = [_view(request, kept) for kept in history.question_lists()]
    if request.wants_json:
        return json_response(list(map(_as_dict, lists)))
    scope = view_scope(filters_of(query_fields(request.query_params.multi_items())), back="/questions")
    return request.page("questions.html", lists=lists, scope=scope, most=MOST_QUESTIONS)


async def begin(request: PageRequest) -> Response:
    """Take a file of questions, and begin to answer them."""
    # What is sent is smaller than what would be written to a temporary file.
    async with request.form(max_files=1, max_fields=_MOST_FIELDS) as fields:
        sent = fields.get("file")
        if not isinstance(sent, UploadFile) or not sent.filename:
            raise QuestionError("No file was sent; choose one in the field `file`.")
        name, data = file_name(sent.filename), await sent.read()
        filters = filters_of(query_fields([(key, one) for key, one in fields.multi_items() if isinstance(one, str)]))
    reading: Reading = request.app.state.reading_questions

    def read() -> list[str]:
        with reading.alone():
            return questions_in(name, data)

    async with reading.turn:
        asked = await request.aside(read)
    if len(asked) > MOST_QUESTIONS:
        raise QuestionError(f"{name} has more than {MOST_QUESTIONS:,} questions; divide it into several files.")

    def start() -> str:
        with request.history() as history:
            if len(history.question_lists()) >= _MOST_LISTS:
                raise BusyError("There are too many files of questions; forget one first.")
            identifier = history.begin_list(name, asked, AskOptions(filters=filters))
        request.site.lists.start(identifier, request.caller)
        return identifier

    identifier = await request.aside(start)
    return request.done(f"/questions/{identifier}", {"id": identifier, "questions": len(asked)})


def question_list(request: PageRequest) -> Response:
    """Show a list with its answers, sorted and filtered as the address says."""
    view = _view(request, _kept(request))
    if request.wants_json:
        return json_response(_as_dict(view))
    asked_of = say_scope(view.kept.options.filters)
    return request.page("question_list.html", view=view, asked_of=asked_of, **_table(request, view.kept))


def progress(request: PageRequest) -> Response:
    """Return the part of the page that shows how far a list is; a header says whether it is being answered."""
    view = _view(request, _kept(request))
    return request.part("question_progress.html", running=view.run.running, view=view)


def rows(request: PageRequest) -> Response:
    """Return the part of the page that shows the answers; a header says whether more are being written."""
    view = _view(request, _kept(request))
    return request.part("question_rows.html", running=view.run.running, view=view, **_table(request, view.kept))


async def correct(request: PageRequest) -> Response:
    """Keep what a person writes in the place of an answer, or with an empty text take it back."""
    fields = await request.fields()
    question, text = text_field(fields, "question"), text_field(fields, "answer").replace("\r\n", "\n").strip()
    if len(text) > _LONGEST_CORRECTION:
        raise QuestionError(f"The answer is longer than {_LONGEST_CORRECTION:,} characters; write a shorter one.")

    def keep() -> Response:
        kept = _kept(request)
        with request.history() as history:
            history.correct(kept.id, question, text, writer=request.person.name)
        number = kept.questions.index(question) + 1
        query = urlencode({name: value for name in _LOOK if (value := text_field(fields, name))})
        page = f"/questions/{kept.id}{'?' if query else ''}{query}#row-{number}"
        return request.done(page, {"corrected": bool(text)})

    return await request.aside(keep)


def go_on(request: PageRequest) -> Response:
    """Answer what is unanswered."""
    identifier = _kept(request).id
    request.site.lists.start(identifier, request.caller)
    return request.done(f"/questions/{identifier}")


def stop(request: PageRequest) -> Response:
    """Stop answering; answers are kept."""
    identifier = _kept(request).id
    request.site.lists.stop(identifier)
    return request.done(f"/questions/{identifier}")


def forget(request: PageRequest) -> Response:
    """Delete a list and its answers."""
    identifier = _kept(request).id
    request.site.lists.stop(identifier)
    with request.history() as history:
        history.forget(identifier)
    return request.done("/questions")


def download(request: PageRequest) -> Response:
    """Return the answers of a list as a file."""
    suffix = f".{request.path_params['form']}"
    if suffix not in TABLE_TYPES:
        raise QuestionError("Answers are written as csv, xlsx or jsonl.")
    with request.history() as history:
        kept = _kept(request)
        answers, corrections = history.answers(kept.id), history.corrections(kept.id)
    content = answers_in_form(suffix, answers, request.library.documents.place_names(), corrections)
    return attachment(content, f"answers{suffix}", TABLE_TYPES[suffix])


class Reading:
    """Let one file of questions be read at a time, also where nobody waits for the one before any more."""

    def __init__(self) -> None:
        self.turn, self._at_work = asyncio.Semaphore(1), threading.Lock()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the place of the one that is read; raise BusyError if another one keeps it."""
        if not self._at_work.acquire(timeout=_READING_SECONDS):
            raise BusyError("Another file of questions is still being read; send this one again in a minute.")
        try:
            yield
        finally:
            self._at_work.release()


ROUTES = (
    Route("/questions", questions),
    Route("/questions", begin, methods=["POST"]),
    Route("/questions/{list}", question_list),
    Route("/questions/{list}/progress", progress),
    Route("/questions/{list}/rows", rows),
    Route("/questions/{list}/correct", correct, methods=["POST"]),
    Route("/questions/{list}/go", go_on, methods=["POST"]),
    Route("/questions/{list}/stop", stop, methods=["POST"]),
    Route("/questions/{list}/forget", forget, methods=["POST"]),
    Route("/questions/{list}/answers.{form}", download),
)


def _kept(request: PageRequest) -> KeptList:
    """Return the list that the address names; raise MissingError if this person has none of this id."""
    with request.history() as history:
        return history.question_list(str(request.path_params["list"]))


def _table(request: PageRequest, kept: KeptList) -> dict[str, Any]:
    """Return what the table of answers shows, and the addresses that lead to others."""
    query, start = request.query_params, offset(request, "from")
    wanted = {name: query.get(name, "") for name in _LOOK}
    with request.history() as history:
        answers, corrections = history.answers(kept.id), history.corrections(kept.id)
    table = view_rows(
        kept.questions,
        answers,
        corrections,
        request.library,
        outcome=wanted["show"],
        order=wanted["sort"],
        down=bool(wanted["down"]),
        start=start,
    )

    def address(page: str = "", **changed: object) -> str:
        fields = {name: value for name, value in (wanted | changed).items() if value}
        return f"/questions/{kept.id}{page}{'?' if fields else ''}{urlencode(fields)}"

    return {"table": table, "wanted": wanted, "address": address, "outcomes": OUTCOMES, "per_page": ROWS}


def _view(request: PageRequest, kept: KeptList) -> ListView:
    left = len(kept.questions) - len(kept.answered)
    return ListView(kept, request.site.lists.view(kept.id, left), left)


def _as_dict(view: ListView) -> dict[str, Any]:
    return {
        "id": view.kept.id,
        "name": view.kept.name,
        "started": view.kept.started,
        "questions": len(view.kept.questions),
        "answered": len(view.kept.answered),
        "running": view.run.running,
        "seconds_left": view.run.left,
        "message": view.run.message,
        "failed": dict(view.run.failed),
    }
