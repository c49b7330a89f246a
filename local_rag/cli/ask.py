"""`local-rag ask`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import (
    Command,
    ask_options,
    json_option,
    library_options,
    model_option,
    open_library,
    require_question,
)
from local_rag.cli.progress import IndexProgress
from local_rag.cli.search import NO_MATCHING_DOCUMENT, passage_as_text
from local_rag.display import (
    answer_as_dict,
    confidence,
    display_path,
    location_as_text,
    one_line,
    printable,
    printable_json,
)
from local_rag.records import Answer, AskOptions, Passage, Written
from local_rag.serialization import from_plain
from local_rag.serving.socket_client import ask_server


@click.command(cls=Command)
@click.argument("question", required=False)
@click.option(
    "--questions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Answer all questions of a file: CSV, XLSX, JSON lines, or one per line.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file for the answers to --questions, .csv, .xlsx or .jsonl; what it holds already is not asked again.",
)
@library_options
@model_option("answer", "answer with")
@ask_options("ask")
@click.option("--show-passages", is_flag=True, help="Print the passages found, before the answer.")
@click.option("--verbose", is_flag=True, help="Report on stderr whether a running server answered.")
@json_option
def command(
    question: str | None,
    questions: Path | None,
    output: Path | None,
    library: Path,
    options: AskOptions,
    show_passages: bool,
    verbose: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Answer a QUESTION, or those of a file, from the indexed documents with citations.

    If the answer is doubtful, quote what the documents say; if nothing in them is close, report that. The exit code is
    0 for all three.
    """
    if questions is not None:
        if question is not None or show_passages:
            raise click.UsageError("--questions takes neither a QUESTION nor --show-passages.")
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

    def write(written: Written) -> None:
        if not as_json:
            click.echo(printable(written.text), nl=False)

    def on_event(event: str, value: Any) -> None:
        if event == "passages":
            show(from_plain(list[Passage], value))
        elif event == "token":
            write(from_plain(Written, value))

    if served := ask_server(library, settings, {"do": "ask", "question": question, "options": options}, on_event):
        answer = from_plain(Answer, served["found"]["answer"])
        if verbose:
            again = " The answer was given before." if served["found"]["again"] else ""
            click.echo(f"Answered by the running server of this library.{again}", err=True)
    else:
        with open_library(library, **settings) as opened, IndexProgress() as progress:

            def show_found(found: Sequence[Passage]) -> None:
                progress.stop()
                show(found)

            answer = opened.ask(question, options, on_passages=show_found, on_text=write, progress=progress)
    if as_json:
        click.echo(printable_json(answer_as_dict(answer)))
    else:
        _print_sources(answer, options)


def _print_sources(answer: Answer, options: AskOptions) -> None:
    """Print what comes below the text of an answer."""
    click.echo()
    if options.filters and not answer.passages:
        click.echo(NO_MATCHING_DOCUMENT, err=True)
    if answer.citations:
        click.echo("\nSources:")
    for citation in answer.citations:
        click.echo(f"  [{citation.number}] {location_as_text(citation.passage)}")
    if answer.closest:
        click.echo("\nClosest passages:")
    for passage in answer.closest:
        click.echo(f"  {location_as_text(passage)}")
    for remark in remarks(answer):
        click.echo(one_line(remark), err=True)
    if answer.outcome == "quoted":
        click.echo("For the answer of the model, which is doubtful, add --anyway.", err=True)


def remarks(answer: Answer) -> Iterator[str]:
    """Yield remarks on an answer, one line each: how sure it is, similar documents, unsupported sentences."""
    if answer.answered and (sure := confidence(answer)):
        yield f"{sure}."
    if answer.look_alikes:
        about = answer.citations[0].passage
        others = "; ".join(f"{one.title} ({display_path(one.location)})" for one in answer.look_alikes)
        yield f"This answer is about: {about.title}. Similar passages are in: {others}."
    for support in answer.support:
        if not support.supported:
            lacking = ", ".join(support.missing) or "This"
            yield f"{lacking} does not occur in the sources of: {support.sentence}"
