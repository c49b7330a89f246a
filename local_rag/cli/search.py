"""`local-rag search`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from local_rag.asking import AskOptions
from local_rag.cli.no_match import no_matching_document
from local_rag.cli.options import (
    Command,
    ask_options,
    json_option,
    library_options,
    open_library,
    require_question,
)
from local_rag.display import (
    passage_as_dict,
    passage_as_lines,
    printable,
    printable_json,
)
from local_rag.records import Correction, Passage
from local_rag.serialization import from_plain
from local_rag.serving.socket_client import ask_server

_TOP = 10


@click.command(cls=Command)
@click.argument("question")
@library_options
@ask_options("search")
@click.option(
    "--top", type=click.IntRange(min=1), help="How many passages to print.  [default: 10; with --all no limit]"
)
@click.option("--all", "every", is_flag=True, help="Search many more candidates, and print all that are not weak.")
@click.option("--min-score", type=float, metavar="SCORE", help="Leave out passages with a lower score by the reranker.")
@click.option("--explain", is_flag=True, help="Show the rank and score of each passage in every list.")
@json_option
def command(
    question: str,
    library: Path,
    options: AskOptions,
    top: int | None,
    every: bool,
    min_score: float | None,
    explain: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Find the passages that fit a QUESTION.

    Passages with a low score by the reranker are marked as weak.
    """
    require_question(question)
    top = top or (None if every else _TOP)
    request = {"do": "search", "question": question, "top": top, "every": every, "min_score": min_score}
    if served := ask_server(library, settings, {**request, "options": options}):
        passages = from_plain(list[Passage], served["found"]["passages"])
        corrections = from_plain(list[Correction], served["found"]["corrections"])
        reranks, profile = served["reranks"], served["profile"]
        if explain:
            click.echo("Answered by the running server of this library.", err=True)
    else:
        with open_library(library, **settings) as opened:
            most = top or opened.settings.all_candidates
            how = {"rerank": options.rerank, "filters": options.filters, "every": every, "min_score": min_score}
            found = opened.trace(question, top=most, **how)
            passages, corrections = found.passages, found.corrections
            reranks, profile = opened.reranks, opened.settings.profile
    if as_json:
        report = {
            "question": question,
            "corrections": [asdict(one) for one in corrections],
            "reranked": reranks and options.rerank,
            "passages": [passage_as_dict(passage) for passage in passages],
        }
        click.echo(printable_json(report))
        return
    for one in corrections:
        click.echo(printable(str(one)), err=True)
    for number, passage in enumerate(passages, start=1):
        click.echo(passage_as_text(number, passage, explain=explain))
    if not passages and options.filters:
        click.echo(no_matching_document(library, options.filters), err=True)
    elif not passages and (every or min_score is not None):
        click.echo("No passage has such a high score; remove --all and --min-score to see the best passages.", err=True)
    elif not passages:
        click.echo("No passage fits; add documents with `local-rag index`.", err=True)
    elif not reranks:
        click.echo(f"The profile {profile} has no cross-encoder, so this is the fused order.", err=True)


def passage_as_text(number: int, passage: Passage, *, explain: bool = False) -> str:
    """Return a numbered passage as text for the terminal."""
    location, headings, *rest = passage_as_lines(passage, explain=explain)
    return "\n    ".join([f"{click.style(f'[{number}] {location}', bold=True)}  {headings}", *rest])
