"""`local-rag ask`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import Command, json_option, library_options, model_option, search_options
from local_rag.cli.running import ask_server, require_question
from local_rag.cli.search import passage_as_text
from local_rag.display import answer_as_dict, display_path, one_line, printable, printable_json
from local_rag.records import Answer, Passage
from local_rag.wire import from_plain


@click.command(cls=Command)
@click.argument("question")
@library_options
@model_option("answer", "answer with")
@search_options
@click.option(
    "--passages",
    type=click.IntRange(min=1),
    help="How many passages the model reads; more take longer.  [default: the likely ones, in 1,024 tokens]",
)
@click.option("--show-passages", is_flag=True, help="Print the passages that were found before the answer.")
@click.option("--verbose", is_flag=True, help="Say on stderr who has answered.")
@json_option
def command(
    question: str,
    library: Path,
    passages: int | None,
    show_passages: bool,
    no_rerank: bool,
    verbose: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Answer a QUESTION from the indexed documents, with citations, or say that they do not hold the answer."""
    require_question(question)

    def show(found: Sequence[Passage]) -> None:
        if show_passages and not as_json:
            for number, passage in enumerate(found, start=1):
                click.echo(passage_as_text(number, passage))
            click.echo()

    def write(text: str) -> None:
        if not as_json:
            click.echo(printable(text), nl=False)

    def tell(event: str, value: Any) -> None:
        if event == "passages":
            show([from_plain(Passage, fields) for fields in value])
        elif event == "token":
            write(value)

    order = {"do": "ask", "question": question, "passages": passages, "rerank": not no_rerank}
    if served := ask_server(library, settings, order, tell):
        answer = from_plain(Answer, served["found"]["answer"])
        if verbose:
            again = " It is an answer given before." if served["found"]["again"] else ""
            click.echo(f"Answered by the running server of this library.{again}", err=True)
    else:
        # Not on top: with a server there is no need of what takes most of the time to import.
        from local_rag.cli.opening import open_library

        with open_library(library, **settings) as opened:
            answer = opened.ask(question, passages=passages, rerank=not no_rerank, on_passages=show, on_text=write)
    if as_json:
        click.echo(printable_json(answer_as_dict(answer)))
        return
    click.echo()
    if answer.citations:
        click.echo("\nSources:")
    for citation in answer.citations:
        click.echo(f"  [{citation.number}] {one_line(display_path(citation.passage.location))}")
    if answer.removed_citations:
        numbers = ", ".join(map(str, answer.removed_citations))
        click.echo(f"Removed citations of sources that do not exist: {numbers}.", err=True)
