"""`local-rag search`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import Command, ask_options, json_option, library_options
from local_rag.cli.running import ask_server, require_question
from local_rag.display import (
    display_path,
    one_line,
    passage_as_dict,
    passage_as_lines,
    printable_json,
    provenance_as_text,
)
from local_rag.records import AskOptions, Passage
from local_rag.serialization import from_plain

_TOP = 10
NOTHING_PASSES = "No document that fits passes --in, --type, --since, --before and --tag; leave one of them away."


@click.command(cls=Command)
@click.argument("question")
@library_options
@ask_options()
@click.option(
    "--top", type=click.IntRange(min=1), help="How many passages to print.  [default: 10; with --all every one]"
)
@click.option("--all", "every", is_flag=True, help="Look at many more candidates, and print all that are not weak.")
@click.option(
    "--min-score", type=float, metavar="SCORE", help="Leave out passages that the reranker scores below that."
)
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

    Passages that the reranker finds hardly fitting are marked as weak.
    """
    require_question(question)
    top = top or (None if every else _TOP)
    order = {"do": "search", "question": question, "top": top, "every": every, "min_score": min_score}
    if served := ask_server(library, settings, {**order, "options": options}):
        passages = [from_plain(Passage, fields) for fields in served["found"]["passages"]]
        reranks, profile = served["reranks"], served["profile"]
        if explain:
            click.echo("Answered by the running server of this library.", err=True)
    else:
        # Not on top: with a server there is no need of what takes most of the time to import.
        from local_rag.cli.opening import open_library

        with open_library(library, **settings) as opened:
            passages = opened.search(
                question, top=top, rerank=options.rerank, filters=options.filters, every=every, min_score=min_score
            )
            reranks, profile = opened.reranks, opened.settings.profile
    if as_json:
        found = [passage_as_dict(passage) for passage in passages]
        report = {"question": question, "reranked": reranks and options.rerank, "passages": found}
        click.echo(printable_json(report))
        return
    for number, passage in enumerate(passages, start=1):
        click.echo(passage_as_text(number, passage, explain=explain))
    if not passages and options.filters:
        click.echo(NOTHING_PASSES, err=True)
    elif not passages and (every or min_score is not None):
        click.echo(
            "The reranker scores no passage so high; leave --all and --min-score away to see the best.", err=True
        )
    elif not passages:
        click.echo("No passage fits; `local-rag index` adds documents.", err=True)
    elif not reranks:
        click.echo(f"The profile {profile} has no cross-encoder: this is the fused order.", err=True)


def passage_as_text(number: int, passage: Passage, *, explain: bool = False) -> str:
    """Return a passage for people."""
    place, headings, *rest = passage_as_lines(passage, explain=explain)
    return "\n    ".join([f"{click.style(f'[{number}] {place}', bold=True)}  {headings}", *rest])


def place_as_text(passage: Passage) -> str:
    """Name where a passage stands and what its document says of itself, and where copies of it are."""
    said = provenance_as_text(passage.provenance)
    place = display_path(passage.location) + (f" ({said})" if said else "")
    copies = [f"also in {', '.join(map(display_path, passage.also_in))}"] if passage.also_in else []
    return one_line("; ".join([place, *copies]))
