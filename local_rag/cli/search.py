"""`local-rag search`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import Command, json_option, library_options, search_options
from local_rag.cli.running import ask_server, require_question
from local_rag.display import passage_as_dict, passage_as_lines, printable_json
from local_rag.records import Passage
from local_rag.wire import from_plain


@click.command(cls=Command)
@click.argument("question")
@library_options
@search_options
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many passages to print.")
@click.option("--explain", is_flag=True, help="Show the rank and score of each passage in every list.")
@json_option
def command(
    question: str, library: Path, top: int, explain: bool, no_rerank: bool, as_json: bool, **settings: Any
) -> None:
    """Find the passages that fit a QUESTION."""
    require_question(question)
    order = {"do": "search", "question": question, "top": top, "rerank": not no_rerank}
    if served := ask_server(library, settings, order):
        passages = [from_plain(Passage, fields) for fields in served["found"]["passages"]]
        reranks, profile = served["reranks"], served["profile"]
        if explain:
            click.echo("Answered by the running server of this library.", err=True)
    else:
        # Not on top: with a server there is no need of what takes most of the time to import.
        from local_rag.cli.opening import open_library

        with open_library(library, **settings) as opened:
            passages = opened.search(question, top=top, rerank=not no_rerank)
            reranks, profile = opened.reranks, opened.settings.profile
    if as_json:
        found = [passage_as_dict(passage) for passage in passages]
        report = {"question": question, "reranked": reranks and not no_rerank, "passages": found}
        click.echo(printable_json(report))
        return
    for number, passage in enumerate(passages, start=1):
        click.echo(passage_as_text(number, passage, explain=explain))
    if not passages:
        click.echo("No passage fits; `local-rag index` adds documents.", err=True)
    elif not reranks:
        click.echo(f"The profile {profile} has no cross-encoder: this is the fused order.", err=True)


def passage_as_text(number: int, passage: Passage, *, explain: bool = False) -> str:
    """Return a passage for people."""
    place, headings, *rest = passage_as_lines(passage, explain=explain)
    return "\n    ".join([f"{click.style(f'[{number}] {place}', bold=True)}  {headings}", *rest])
