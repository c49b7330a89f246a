"""`local-rag plan`."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from local_rag.cli.options import FILE, Command, json_option, library_options, open_library, require_question
from local_rag.display import one_line, printable_json
from local_rag.errors import LibraryError
from local_rag.files import no_library
from local_rag.store.connect import is_library
from local_rag.understanding.question_reader import read_plan


@click.command(cls=Command, epilog='Example: local-rag plan "Which NDAs from 2023 mention Acme?"')
@click.argument("question", nargs=-1)
@click.option("--questions", type=FILE, help="Read all questions of a file: CSV, XLSX, JSON lines, or one per line.")
@library_options
@json_option
def command(question: tuple[str, ...], questions: Path | None, library: Path, as_json: bool, **settings: Any) -> None:
    """Say what each QUESTION asks for, as `ask` understands it; no language model is loaded.

    Where there is a library, what its rows answer has their query. With --json, each question gives one line: an object
    with the fields of its plan.
    """
    if bool(question) == (questions is not None):
        raise click.UsageError("Give a QUESTION or several, or --questions.")
    is_there, source = is_library(library), click.get_current_context().get_parameter_source("library")
    if not is_there and source is not ParameterSource.DEFAULT:
        raise LibraryError(no_library(library))
    asked = list(question)
    if questions is not None:
        # Imported here because other questions need no spreadsheets.
        from local_rag.serving.table_files import read_questions

        asked = read_questions(questions)
    with open_library(library, **settings) if is_there else nullcontext() as opened:
        for one in asked:
            require_question(one)
            plan = opened.plan(one) if opened else read_plan(one)
            click.echo(printable_json(plan.as_dict()) if as_json else one_line(str(plan)))
