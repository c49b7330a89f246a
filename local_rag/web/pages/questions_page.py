"""The page that answers all questions of a file: it is sent, watched, stopped, taken up again and downloaded."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from local_rag.asking import AskOptions
from local_rag.errors import BusyError, QuestionError
from local_rag.records import Answer
from local_rag.serving.answer_files import answers_in_form
from local_rag.serving.open_history import KeptList
from local_rag.serving.question_files import questions_in
from local_rag.serving.question_lists import QuestionLists, RunView
from local_rag.web.changes.uploads import file_name
from local_rag.web.filtering import as_fields, filters_of
from local_rag.web.site import (
    caller_of,
    history_of,
    json_response,
    library_of,
    site_of,
    wants_json,
)
from local_rag.web.views.answer_view import AnswerView, view_answer

MOST_QUESTIONS, _MOST_LISTS, _SHOWN = 1000, 50, 200
_READING_SECONDS = 5.0  # for the place of a file that takes its time
_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".jsonl": "application/x-ndjson",
}


@dataclass(frozen=True, slots=True)
class ListView:
    """A list of questions, how its answering goes, and what is left of it."""

    kept: KeptList
    run: RunView
    left: int


def questions(request: Request) -> Response:
    """Show the form, and the lists of this person."""
    with history_of(request) as history:
        lists = [_view(request, one) for one in history.question_lists()]
    if wants_json(request):
        return json_response([_as_dict(one) for one in lists])
    shown: dict[str, Any] = {"lists": lists, "filters": as_fields(filters_of({})), "most": MOST_QUESTIONS}
    return site_of(request).page(request, "questions.html", **shown)


async def begin(request: Request) -> Response:
    """Take a file of questions, and begin to answer them."""
    site = site_of(request)
    # What is sent is smaller than what would be written to a temporary file.
    async with request.form(max_files=1, max_fields=20) as fields:
        sent = fields.get("file")
        if not isinstance(sent, UploadFile) or not sent.filename:
            raise QuestionError("No file was sent; choose one in the field `file`.")
        name, data = file_name(sent.filename), await sent.read()
        filters = filters_of({key: value for key, value in fields.items() if isinstance(value, str)})
    reading: Reading = request.app.state.reading_questions

    def read() -> list[str]:
        with reading.alone():
            return questions_in(name, data)

    async with reading.turn:
        asked = await site.aside(read)
    if len(asked) > MOST_QUESTIONS:
        raise QuestionError(f"{name} has more than {MOST_QUESTIONS:,} questions; divide it into several files.")

    def start() -> str:
        with history_of(request) as history:
            if len(history.question_lists()) >= _MOST_LISTS:
                raise BusyError("There are too many files of questions; forget one first.")
            identifier = history.begin_list(name, asked, AskOptions(filters=filters))
        _lists(request).start(identifier, caller_of(request))
        return identifier

    identifier = await site.aside(start)
    if wants_json(request):
        return json_response({"id": identifier, "questions": len(asked)})
    return RedirectResponse(f"/questions/{identifier}", 303)


def question_list(request: Request) -> Response:
    """Show a list with its answers."""
    with history_of(request) as history:
        view = _view(request, history.question_list(_named(request)))
        answers = history.answers(view.kept.id)
    if wants_json(request):
        return json_response(_as_dict(view))
    rows: list[tuple[str, AnswerView]] = [(one.question, view_answer(one)) for one in answers[-_SHOWN:]]
    filters = {name: text for name, text in as_fields(view.kept.options.filters).items() if text}
    return site_of(request).page(request, "question_list.html", view=view, rows=rows, filters=filters)


def progress(request: Request) -> Response:
    """Return the part of the page that shows how far a list is; a header says whether it is being answered."""
    with history_of(request) as history:
        view = _view(request, history.question_list(_named(request)))
    html = site_of(request).fragment("question_progress.html", view=view)
    return HTMLResponse(html, headers={"x-local-rag-running": "yes" if view.run.running else "no"})


def go_on(request: Request) -> Response:
    """Answer what is unanswered."""
    with history_of(request) as history:
        identifier = history.question_list(_named(request)).id
    _lists(request).start(identifier, caller_of(request))
    return RedirectResponse(f"/questions/{identifier}", 303)


def stop(request: Request) -> Response:
    """Stop answering; answers are kept."""
    with history_of(request) as history:
        identifier = history.question_list(_named(request)).id
    _lists(request).stop(identifier)
    return RedirectResponse(f"/questions/{identifier}", 303)


def forget(request: Request) -> Response:
    """Delete a list and its answers."""
    with history_of(request) as history:
        identifier = history.question_list(_named(request)).id
        _lists(request).stop(identifier)
        history.forget(identifier)
    return RedirectResponse("/questions", 303)


def download(request: Request) -> Response:
    """Return the answers of a list as a file."""
    suffix = f".{request.path_params['form']}"
    if suffix not in _TYPES:
        raise QuestionError("Answers are written as csv, xlsx or jsonl.")
    with history_of(request) as history:
        answers: list[Answer] = history.answers(history.question_list(_named(request)).id)
    content = answers_in_form(suffix, answers, library_of(request).place_names())
    headers = {"content-disposition": f'attachment; filename="answers{suffix}"'}
    return Response(content, media_type=_TYPES[suffix], headers=headers)


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
    Route("/questions/{list}/go", go_on, methods=["POST"]),
    Route("/questions/{list}/stop", stop, methods=["POST"]),
    Route("/questions/{list}/forget", forget, methods=["POST"]),
    Route("/questions/{list}/answers.{form}", download),
)


def _lists(request: Request) -> QuestionLists:
    lists: QuestionLists = request.app.state.question_lists
    return lists


def _named(request: Request) -> str:
    return str(request.path_params["list"])


def _view(request: Request, kept: KeptList) -> ListView:
    left = len(kept.questions) - len(kept.answered)
    return ListView(kept, _lists(request).view(kept.id, left), left)


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
