"""Answer the questions of a file, one after another; what is answered already is not asked again."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from local_rag.answer_records import Answer
from local_rag.asking import AskOptions
from local_rag.cli.options import open_library
from local_rag.cli.progress import IndexProgress
from local_rag.display import counted, display_path, one_line, printable_json
from local_rag.errors import LocalRagError, QuestionError
from local_rag.progress_records import Progress
from local_rag.serialization import from_plain
from local_rag.serving.answer_files import COLUMNS, AnswerFile, cells, csv_line, json_line
from local_rag.serving.socket_client import ask_server
from local_rag.serving.table_files import read_questions

if TYPE_CHECKING:
    from local_rag.library import Library


class PrintedAnswers:
    """Answers on standard output, as CSV or JSON lines."""

    def __init__(self, *, as_json: bool) -> None:
        self.outcomes, self._as_json = dict[str, str](), as_json
        if not as_json:
            click.echo(csv_line(COLUMNS), nl=False)

    def add(self, answer: Answer) -> None:
        """Print an answer."""
        self.outcomes[answer.question] = answer.outcome
        click.echo(json_line(answer) if self._as_json else csv_line(cells(answer)), nl=False)

    def close(self) -> None:
        """Do nothing: all is printed."""


def ask_questions(
    path: Path, output: Path | None, library: Path, options: AskOptions, *, as_json: bool, settings: Mapping[str, Any]
) -> None:
    """Answer the questions of a file into `output`, or print the answers.

    A running server of the library answers, if there is one. The exit code is 1 if a question could not be answered.
    """
    questions = read_questions(path)
    answers: AnswerFile | PrintedAnswers = AnswerFile(output) if output else PrintedAnswers(as_json=as_json)
    waiting = [question for question in questions if question not in answers.outcomes]
    if answered := len(questions) - len(waiting):
        click.echo(f"{answered} of {len(questions)} questions are answered already.", err=True)
    failed = dict[str, str]()
    try:
        _answer_all(waiting, answers, failed, library, options, settings)
    except (KeyboardInterrupt, LocalRagError):
        if output and answers.outcomes:
            done = sum(question in answers.outcomes for question in questions)
            where = one_line(display_path(output))
            said = f"{done} of {len(questions)} questions are answered in {where}; run the command again to go on."
            click.echo(said, err=True)
        raise
    for question, problem in failed.items():
        click.echo(f"{one_line(problem)} ({question})", err=True)
    if output:
        _report(questions, answers.outcomes, output, as_json=as_json)
    if failed:
        raise click.exceptions.Exit(1)


def _answer_all(
    waiting: Sequence[str],
    answers: AnswerFile | PrintedAnswers,
    failed: dict[str, str],
    library: Path,
    options: AskOptions,
    settings: Mapping[str, Any],
) -> None:
    """Answer the questions in their order; what cannot be answered is kept in `failed` with the reason."""
    with ExitStack() as stack:
        stack.callback(answers.close)
        # The answers on a terminal show the progress themselves, and a bar would be written into their lines.
        is_seen = isinstance(answers, PrintedAnswers) and sys.stdout.isatty()
        progress = (lambda _step: None) if is_seen else stack.enter_context(IndexProgress())
        ask = _asker(library, options, settings, stack)
        for number, question in enumerate(waiting):
            progress(Progress("answer", number, len(waiting)))
            try:
                answers.add(replace(ask(question), question=question))
            except QuestionError as error:
                failed[question] = str(error)
        if waiting:
            progress(Progress("answer", len(waiting), len(waiting)))


def _asker(
    library: Path, options: AskOptions, settings: Mapping[str, Any], stack: ExitStack
) -> Callable[[str], Answer]:
    """Return a function that answers one question: by a running server, else with a library that stays open."""
    opened: list[Library] = []

    def ask(question: str) -> Answer:
        if not opened:
            request = {"do": "ask", "question": question, "options": options}
            if served := ask_server(library, settings, request):
                answer: Answer = from_plain(Answer, served["found"]["answer"])
                return answer
            opened.append(stack.enter_context(open_library(library, **settings)))
            opened[0].documents.require_any()
        return opened[0].ask(question, options)

    return ask


def _report(questions: Sequence[str], outcomes: Mapping[str, str], output: Path, *, as_json: bool) -> None:
    counts = Counter(outcomes[question] for question in questions if question in outcomes)
    kinds = {kind: counts[kind] for kind in ("answered", "quoted", "refused", "left") if kind != "left" or counts[kind]}
    if as_json:
        click.echo(printable_json({"questions": len(questions), **kinds, "output": str(output)}))
        return
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    click.echo(f"{counted(len(questions), 'question')}: {said}. The answers are in {one_line(display_path(output))}.")
