"""`local-rag ask`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from local_rag.answer_records import Answer, Written
from local_rag.answering.translations import is_answered_in_english
from local_rag.asking import AskOptions
from local_rag.cli.answer_output import AnswerText, print_below
from local_rag.cli.loaded import Loaded
from local_rag.cli.options import (
    FILE,
    Command,
    ask_options,
    json_option,
    library_options,
    model_option,
    open_library,
    require_question,
    say_what_is_missing,
)
from local_rag.cli.progress import IndexProgress
from local_rag.cli.search import passage_as_text
from local_rag.display import answer_as_dict, one_line, printable_json
from local_rag.passage_records import Passage
from local_rag.serialization import from_plain


@click.command(cls=Command, epilog='Example: local-rag ask "How long is parental leave?"')
@click.argument("question", required=False)
@click.option("--questions", type=FILE, help="Answer all questions of a file: CSV, XLSX, JSON lines, or one per line.")
@click.option(
    "--output",
    type=FILE,
    help="The file for the answers to --questions, .csv, .xlsx or .jsonl; what it holds already is not asked again.",
)
@library_options
@model_option("answer", "answer with")
@ask_options
@click.option("--show-passages", is_flag=True, help="Print the passages found, before the answer.")
@click.option("--explain", is_flag=True, help="Print on stderr what the question was understood to ask for.")
@click.option("--verbose", is_flag=True, help="Report on stderr whether a running server answered.")
@json_option
def command(
    question: str | None,
    questions: Path | None,
    output: Path | None,
    library: Path,
    options: AskOptions,
    show_passages: bool,
    explain: bool,
    verbose: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Answer a QUESTION, or those of a file, from the indexed documents with citations.

    If the answer is doubtful, quote what the documents say; if nothing in them is close, report that; with --code-only
    leave what code does not answer. The exit code is 0 for all four.
    """
    if questions is not None:
        if question is not None or show_passages or explain:
            raise click.UsageError("--questions takes neither a QUESTION nor --show-passages or --explain.")
        # Imported here because one question needs neither spreadsheets nor a progress bar.
        from local_rag.cli.many_questions import ask_questions

        ask_questions(questions, output, library, options, as_json=as_json, settings=settings)
        return
    if question is None or output is not None:
        raise click.UsageError("Give a QUESTION, or --questions with an --output.")
    require_question(question)

    def show(found: Sequence[Passage]) -> None:
        if show_passages and not as_json:
            for number, passage in enumerate(found, start=1):
                click.echo(passage_as_text(number, passage))
            click.echo()

    text = None if as_json else AnswerText()

    def write(written: Written) -> None:
        if text:
            text(written)

    def on_event(event: str, value: Any) -> None:
        if event == "passages":
            show(from_plain(list[Passage], value))
        elif event == "token":
            write(from_plain(Written, value))

    loaded = Loaded(library, settings)
    if served := loaded.ask({"do": "ask", "question": question, "options": options}, on_event):
        answer, changed = from_plain(Answer, served["found"]["answer"]), served["found"].get("changed", ())
        if verbose:
            again = " The answer was given before." if served["found"]["again"] else ""
            click.echo(f"Answered by {loaded.name}.{again}", err=True)
    else:
        with open_library(library, **settings) as opened, IndexProgress() as progress:

            def show_found(found: Sequence[Passage]) -> None:
                progress.stop()
                show(found)

            opened.documents.require_any()
            answer = opened.ask(question, options, on_passages=show_found, on_text=write, progress=progress)
            changed = opened.documents.changed(answer)
            progress.stop()
            say_what_is_missing(opened)
    if explain and answer.plan:
        click.echo(one_line(f"Understood as: {answer.plan}."), err=True)
    if text is None:
        click.echo(printable_json(answer_as_dict(answer)))
    else:
        text.end(answer)
        print_below(answer, options, changed, library)
        if answer.outcome == "quoted" and is_answered_in_english(question):
            click.echo("For the answer of the model, which is doubtful, add --anyway.", err=True)
