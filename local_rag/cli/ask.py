"""`local-rag ask`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from local_rag.cli.opening import open_library, require_question
from local_rag.cli.options import Command, filter_options, json_option, library_options, model_option, search_options
from local_rag.cli.search import NOTHING_PASSES, passage_as_text
from local_rag.display import answer_as_dict, display_path, one_line, printable, printable_json, provenance_as_text
from local_rag.records import Filters, Passage


@click.command(cls=Command)
@click.argument("question")
@library_options
@model_option("answer", "answer with")
@search_options
@filter_options
@click.option(
    "--passages",
    type=click.IntRange(min=1),
    help="How many passages the model reads; more take longer.  [default: the likely ones, in 1,024 tokens]",
)
@click.option("--show-passages", is_flag=True, help="Print the passages that were found before the answer.")
@json_option
def command(
    question: str,
    library: Path,
    filters: Filters,
    passages: int | None,
    show_passages: bool,
    no_rerank: bool,
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

    with open_library(library, **settings) as opened:
        answer = opened.ask(
            question, passages=passages, rerank=not no_rerank, filters=filters, on_passages=show, on_text=write
        )
    if as_json:
        click.echo(printable_json(answer_as_dict(answer)))
        return
    click.echo()
    if filters and not answer.passages:
        click.echo(NOTHING_PASSES, err=True)
    if answer.citations:
        click.echo("\nSources:")
    for citation in answer.citations:
        said = provenance_as_text(citation.passage.provenance)
        place = display_path(citation.passage.location) + (f" ({said})" if said else "")
        click.echo(f"  [{citation.number}] {one_line(place)}")
    if answer.removed_citations:
        numbers = ", ".join(map(str, answer.removed_citations))
        click.echo(f"Removed citations of sources that do not exist: {numbers}.", err=True)
