"""`local-rag clean`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal

from local_rag.cli.options import Command, json_option, library_options, open_library
from local_rag.display import printable_json


@click.command(cls=Command)
@library_options
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--history", is_flag=True, help="Also delete all conversations, cached answers and counts of questions.")
@json_option
def command(library: Path, dry_run: bool, history: bool, as_json: bool, **settings: Any) -> None:
    """Delete old indexes, contexts and vectors that no document needs any more, and leftovers of killed runs.

    If you later return to an earlier model or add removed documents again, their contexts and vectors are recomputed.
    """
    with open_library(library, **settings) as opened:
        cleaning, forgotten = opened.clean(dry_run=dry_run), opened.kept_of_questions() if history else None
        if history and not dry_run:
            opened.forget_questions()
    if as_json:
        more = {"history": asdict(forgotten)} if forgotten else {}
        click.echo(printable_json({"dry_run": dry_run, **asdict(cleaning), **more}))
        return
    counts = {
        "older indexes": len(cleaning.generations),
        "leftovers": len(cleaning.leftovers),
        "superseded documents": cleaning.documents,
        "answers that quote removed documents": cleaning.turns,
        "contexts": cleaning.contexts,
        "vectors": cleaning.vectors,
    }
    deleted = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing"
    verb, freed = ("Would delete", "about ") if dry_run else ("Deleted", "")
    click.echo(f"{verb} {deleted}: {freed}{decimal(max(0, cleaning.bytes))} freed.")
    if forgotten:
        click.echo(
            f"{'Would forget' if dry_run else 'Forgot'} {forgotten.conversations} conversations, {forgotten.answers} "
            "cached answers and the counts of questions."
        )
    if cleaning.kept_caches:
        click.echo(
            "All contexts and vectors were kept because the last `index` did not finish; run `local-rag index`.",
            err=True,
        )
