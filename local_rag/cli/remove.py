"""`local-rag remove`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import Command, json_option, library_options, open_library
from local_rag.display import display_path, one_line, printable, printable_json
from local_rag.files import AUDIT_FILE


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@library_options
@click.option("--erase", is_flag=True, help="Leave no trace of them in any file; also delete contexts and vectors.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@json_option
def command(paths: tuple[Path, ...], library: Path, erase: bool, dry_run: bool, as_json: bool, **settings: Any) -> None:
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
