"""The commands that quote whole documents: `diff` what changed between two, `brief` what they say."""

from pathlib import Path
from typing import Any

import click

from local_rag.asking import Filters
from local_rag.cli.options import (
    PATH,
    Command,
    filter_options,
    json_option,
    library_options,
    no_matching_document,
    open_library,
)
from local_rag.digests.brief import DEFAULT_LINES, MOST_LINES
from local_rag.digests.output import (
    brief_as_dict,
    brief_as_lines,
    brief_as_markdown,
    difference_as_dict,
    difference_as_lines,
    difference_as_markdown,
)
from local_rag.display import printable, printable_json
from local_rag.serving.answer_markdown import escaped

_markdown = click.option("--markdown", is_flag=True, help="Print Markdown.")


@click.command(cls=Command, epilog="Example: local-rag diff contract-2023.docx contract-2024.docx")
@click.argument("before", type=PATH)
@click.argument("after", required=False, type=PATH)
@library_options
@_markdown
@json_option
def diff(before: Path, after: Path | None, library: Path, markdown: bool, as_json: bool, **settings: Any) -> None:
    """Say what changed between two documents, the important changes first, each with both quotations.

    BEFORE and AFTER are files, indexed or not, or paths, file names or titles of documents in the library. With BEFORE
    alone, its two newest versions in the library are compared.
    """
    _require_one_form(markdown=markdown, as_json=as_json)
    with open_library(library, **settings) as opened:
        difference = opened.changes.diff(before, after or "", read_files=True)
    if as_json:
        click.echo(printable_json(difference_as_dict(difference)))
    elif markdown:
        click.echo(printable(difference_as_markdown(difference, escaped)))
    else:
        for line in difference_as_lines(difference):
            click.echo(line)


@click.command(cls=Command, epilog="Example: local-rag brief minutes/ --lines 20")
@click.argument("paths", nargs=-1, type=PATH)
@library_options
@filter_options
@click.option(
    "--lines",
    type=click.IntRange(1, MOST_LINES),
    default=DEFAULT_LINES,
    help="How many lines carry the documents, at least one of each; the lists have at most as many each.",
)
@_markdown
@json_option
def brief(
    paths: tuple[Path, ...],
    library: Path,
    filters: Filters,
    lines: int,
    markdown: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Sum up documents in quotations: what carries them, dates, amounts, roles, obligations and open questions.

    PATHS are files, indexed or not, or folders, file names or titles of documents in the library; without any, all
    documents that pass the filters. Every line is a quotation with its place, chosen by code.
    """
    _require_one_form(markdown=markdown, as_json=as_json)
    with open_library(library, **settings) as opened:
        found = opened.changes.brief(paths, lines=lines, filters=filters, read_files=True)
    if as_json:
        click.echo(printable_json(brief_as_dict(found)))
    elif markdown:
        click.echo(printable(brief_as_markdown(found, escaped)))
    else:
        for line in brief_as_lines(found):
            click.echo(line)
    if not found.documents:
        click.echo(
            no_matching_document(library, filters) if filters else "The library contains no documents yet.", err=True
        )


def _require_one_form(*, markdown: bool, as_json: bool) -> None:
    if markdown and as_json:
        raise click.UsageError("Give --json or --markdown, not both.")
