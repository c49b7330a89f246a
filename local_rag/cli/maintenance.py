"""The commands that keep a library tidy: `clean`, `remove`, `repair` and `roots`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal

from local_rag.cli.options import PATH, Command, DefaultGroup, json_option, library_options, open_library
from local_rag.cli.progress import IndexProgress
from local_rag.display import display_path, one_line, printable, printable_json
from local_rag.files import AUDIT_FILE


@click.command(cls=Command, epilog="Example: local-rag clean --dry-run")
@library_options
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--history", is_flag=True, help="Also delete all conversations, cached answers and counts of questions.")
@json_option
def clean(library: Path, dry_run: bool, history: bool, as_json: bool, **settings: Any) -> None:
    """Delete old indexes, contexts and vectors that no document needs, and leftovers of killed runs.

    If you later return to an earlier model or add removed documents again, their contexts and vectors are recomputed.
    """
    with open_library(library, **settings) as opened:
        cleaning, forgotten = opened.upkeep.clean(dry_run=dry_run), opened.history.kept() if history else None
        if history and not dry_run:
            opened.history.forget()
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


@click.command(cls=Command, epilog="Example: local-rag remove documents/old --erase")
@click.argument("paths", nargs=-1, required=True, type=PATH)
@library_options
@click.option("--erase", is_flag=True, help="Leave no trace of them in any file; also delete contexts and vectors.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@json_option
def remove(paths: tuple[Path, ...], library: Path, erase: bool, dry_run: bool, as_json: bool, **settings: Any) -> None:
    """Remove documents, or all documents below a folder, from the library; the files themselves are not touched.

    A removed path below an indexed folder stays excluded until you run `local-rag index` with exactly this path.
    """
    with open_library(library, **settings) as opened:
        removal = opened.remove(paths, erase=erase, dry_run=dry_run)
    documents = [document.path for document in removal.documents]
    if as_json:
        report = {
            "dry_run": dry_run,
            "erased": erase and not dry_run,
            "documents": documents,
            "forgotten_folders": list(map(str, removal.roots)),
            "excluded": list(map(str, removal.excluded)),
            "earlier": list(removal.earlier),
        }
        click.echo(printable_json(report))
        return
    count = f"{len(documents)} {'document' if len(documents) == 1 else 'documents'}"
    lines = [f"{'Would remove' if dry_run else 'Removed'} {count}{':' if documents else '.'}"]
    lines += [f"  {one_line(display_path(path))}" for path in documents]
    if removal.earlier:
        lines.append(f"{'Would erase' if dry_run else 'Erased'} what is kept of documents that were removed before:")
        lines += [f"  {one_line(display_path(path))}" for path in removal.earlier]
    lines += [f"No longer indexed: {one_line(display_path(root))}" for root in removal.roots]
    lines += [f"`local-rag index` will skip from now on: {one_line(display_path(path))}" for path in removal.excluded]
    if erase and not dry_run:
        lines.append("The library contains no trace of them.")
        if (library / AUDIT_FILE).exists():
            lines.append(f"The audit log {display_path(library / AUDIT_FILE)} is not changed: it holds what was asked.")
    elif not dry_run:
        lines.append("Their contexts and vectors stay cached; run `local-rag clean` to delete them.")
    click.echo(printable("\n".join(lines)))


@click.command(cls=Command, epilog="Example: local-rag repair")
@library_options
@json_option
def repair(library: Path, as_json: bool, **settings: Any) -> None:
    """Check every row and file of the library, and rebuild what is damaged.

    Readable contexts and vectors are kept even if everything else is lost.
    """
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        done = opened.upkeep.repair(progress=progress)
    click.echo(printable_json({"done": done}) if as_json else printable("\n".join(done) or "Nothing is damaged."))


@click.group(cls=DefaultGroup, default="list")
def roots() -> None:
    """List the indexed folders, or record that one has moved."""


@roots.command(
    "list",
    epilog="`local-rag roots move OLD NEW` records that a folder has moved.\n\nExample: local-rag roots --json",
)
@library_options
@json_option
def list_command(library: Path, as_json: bool, **settings: Any) -> None:
    """List the folders and files that `index` was given, with the number of their documents."""
    with open_library(library, **settings) as opened:
        roots = opened.upkeep.roots()
    if as_json:
        click.echo(printable_json(roots))
        return
    for root in roots:
        note = "" if root.reachable else "  not reachable"
        click.echo(f"{root.documents:>7}  {one_line(display_path(root.path))}{note}")
    if not roots:
        click.echo("Nothing is indexed yet; run `local-rag index FOLDER`.", err=True)


@roots.command(epilog="Example: local-rag roots move documents archive/documents")
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@library_options
@json_option
def move(old: Path, new: Path, library: Path, as_json: bool, **settings: Any) -> None:
    """Record that an indexed folder, or a folder that contains indexed folders, has moved from OLD to NEW.

    Nothing is read or computed again, and the documents have their new paths at once. An index in a search engine is
    published again with them.
    """
    with open_library(library, **settings) as opened:
        documents = opened.upkeep.move_root(old, new)
    if as_json:
        click.echo(printable_json({"old": str(old), "new": str(new), "documents": documents}))
    else:
        moved = f"{documents} documents of {one_line(display_path(old))}"
        click.echo(f"{moved} are now in {one_line(display_path(new))}.")
