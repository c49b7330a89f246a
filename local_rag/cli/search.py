"""The commands that find passages: `search` the best ones, `find` all of them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from local_rag.answer_records import Correction, Found
from local_rag.asking import AskOptions, Filters
from local_rag.cli.loaded import Loaded
from local_rag.cli.options import (
    FILE,
    Command,
    json_option,
    library_options,
    model_option,
    no_matching_document,
    open_library,
    require_question,
    say_what_is_missing,
    search_options,
    stopping,
    version_options,
)
from local_rag.cli.progress import IndexProgress
from local_rag.display import (
    found_as_csv,
    found_as_dict,
    found_as_lines,
    one_line,
    passage_as_dict,
    passage_as_lines,
    printable,
    printable_json,
)
from local_rag.errors import LocalRagError
from local_rag.files import permissions_of_regular, writable, write_whole
from local_rag.passage_records import Passage
from local_rag.serialization import from_plain

_TOP = 10


@click.command(cls=Command, epilog="Example: local-rag search \"parental leave\" --in 'policies/**' --top 5")
@click.argument("question")
@library_options
@search_options
@click.option(
    "--top", type=click.IntRange(min=1), help="How many passages to print.  [default: 10; with --all no limit]"
)
@click.option("--all", "every", is_flag=True, help="Search many more candidates, and print all that are not weak.")
@click.option("--min-score", type=float, metavar="SCORE", help="Leave out passages with a lower score by the reranker.")
@click.option("--explain", is_flag=True, help="Show what is asked for, and the rank and score of each passage.")
@json_option
def search(
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
    loaded = Loaded(library, settings)
    if served := loaded.ask({**request, "options": options}):
        passages = from_plain(list[Passage], served["found"]["passages"])
        corrections = from_plain(list[Correction], served["found"]["corrections"])
        reranks, profile = served["reranks"], served["profile"]
        if explain:
            click.echo(f"Answered by {loaded.name}.", err=True)
    else:
        with open_library(library, **settings) as opened:
            opened.documents.require_any()
            most = top or opened.settings.all_candidates
            how = dict[str, Any](rerank=options.rerank, filters=options.filters, every=every, min_score=min_score)
            found = opened.retrieval.trace(question, top=most, **how)
            passages, corrections = found.passages, found.corrections
            reranks, profile = opened.retrieval.reranks, opened.settings.profile
            say_what_is_missing(opened)
    plan = None
    if explain:
        # Imported here because without it a search of a running server needs no numpy.
        from local_rag.understanding.question_reader import read_plan

        plan = read_plan(question)
        click.echo(one_line(f"Understood as: {plan}."), err=True)
    if as_json:
        report = {
            "question": question,
            **({"plan": plan.as_dict()} if plan else {}),
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


@click.command(cls=Command, epilog='Example: local-rag find "Which policies cover travel?" --csv found.csv')
@click.argument("question")
@library_options
@model_option("embed", "embed with")
@version_options
@click.option("--count", is_flag=True, help="Count the documents with the text of QUESTION, as it stands.")
@click.option("--not", "negated", is_flag=True, help="Find the documents without the text of QUESTION.")
@click.option("--about", is_flag=True, help="Find the documents that deal with the text of QUESTION.")
@click.option("--sort", metavar="NOUN", default="", help="Only documents named so, such as policies.")
@click.option("--csv", "table", type=FILE, metavar="FILE", help="Also write a new CSV file.")
@json_option
def find(
    question: str,
    library: Path,
    filters: Filters,
    count: bool,
    negated: bool,
    about: bool,
    sort: str,
    table: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Count or list all documents that contain words, or that are about something, without a language model.

    The QUESTION asks how many, which, or for all: `How many reports mention the crane?`, `Which policies cover travel
    expenses?`, `List every deadline in the contracts`. A few bare words are looked for as they are; quoted words
    exactly. With --count, --not, --about or --sort, the QUESTION is no question but the words to look for. Ctrl-C stops
    a long search and shows what it has found.
    """
    require_question(question)
    if table is not None:
        with writable(table):
            if permissions_of_regular(table) is not None and table.stat().st_size:
                raise LocalRagError(f"{table} already exists; name another file.")
    exactly: dict[str, Any] = {"count": count, "negated": negated, "about": about, "sort": sort}
    request = {"do": "find", "question": question, "filters": filters, **exactly}
    with stopping() as stopped:
        if served := Loaded(library, settings).ask(request, stop=stopped.is_set):
            found = from_plain(Found, served["found"])
        else:
            with open_library(library, **settings) as opened, IndexProgress() as progress:
                opened.documents.require_any()
                # Imported here because --help needs no numpy.
                from local_rag.retrieval.find_question import exact_question

                exact = exact_question(question, **exactly) if any(exactly.values()) else None
                found = opened.find(question, filters=filters, exact=exact, progress=progress, stop=stopped.is_set)
    if table is not None:
        with writable(table):
            write_whole(table, found_as_csv(found))
    if as_json:
        click.echo(printable_json(found_as_dict(found)))
    else:
        for line in found_as_lines(found):
            click.echo(line)
    for note in found.notes:
        click.echo(one_line(note), err=True)
    if filters and not found.places:
        click.echo(no_matching_document(library, filters), err=True)
