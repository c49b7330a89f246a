"""`local-rag ask`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from local_rag.cli.options import library_options, model_option, search_options

if TYPE_CHECKING:
    from local_rag.records import Passage


@click.command()
@click.argument("question")
@library_options
@model_option("answer", "answer with")
@search_options
@click.option(
    "--passages",
    type=click.IntRange(min=1),
    help="How many passages the model reads; more take longer.  [default: what fits 1,280 tokens]",
)
@click.option("--show-passages", is_flag=True, help="Print the passages that were found before the answer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    question: str,
    library: Path,
    passages: int | None,
    show_passages: bool,
    no_rerank: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Answer a QUESTION from the indexed documents, with citations, or say that they do not hold the answer."""
    from local_rag.cli.search import passage_as_dict, passage_as_text
    from local_rag.display import one_line, printable, printable_json
    from local_rag.library import Library

    if not question.strip():
        raise click.UsageError("The question is empty.")

    def show(found: "Sequence[Passage]") -> None:
        if show_passages and not as_json:
            for number, passage in enumerate(found, start=1):
                click.echo(passage_as_text(number, passage))
            click.echo()

    def write(text: str) -> None:
        if not as_json:
            click.echo(printable(text), nl=False)

    with Library(library, **settings) as opened:
        answer = opened.ask(question, passages=passages, rerank=not no_rerank, on_passages=show, on_text=write)
    if as_json:
        report = {
            "question": question,
            "answered": answer.answered,
            "answer": answer.text,
            "log_odds": answer.log_odds,
            "citations": [
                {"number": citation.number, **passage_as_dict(citation.passage)} for citation in answer.citations
            ],
            "removed_citations": answer.removed_citations,
            "passages": [passage_as_dict(passage) for passage in answer.passages],
        }
        click.echo(printable_json(report))
        return
    click.echo()
    if answer.citations:
        click.echo("\nSources:")
    for citation in answer.citations:
        click.echo(f"  [{citation.number}] {one_line(citation.passage.location)}")
    if answer.removed_citations:
        numbers = ", ".join(map(str, answer.removed_citations))
        click.echo(f"Removed citations of sources that do not exist: {numbers}.", err=True)
