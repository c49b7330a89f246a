"""`local-rag remove`."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.opening import open_library
from local_rag.cli.options import Command, json_option, library_options
from local_rag.cli.progress import IndexProgress
from local_rag.display import display_path, one_line, printable, printable_json


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@library_options
@click.option("--erase", is_flag=True, help="Leave nothing of them in any file: contexts and vectors go as well.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@json_option
def command(paths: tuple[Path, ...], library: Path, erase: bool, dry_run: bool, as_json: bool, **settings: Any) -> None:
    """Take documents, or all below a folder, out of the library; the files themselves are not touched.

    What lies below an indexed folder stays out until `local-rag index` is given its very path again.
    """
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        removal = opened.remove(paths, erase=erase, dry_run=dry_run, progress=progress)
    documents = [document.path for document in removal.documents]
    if as_json:
        report = {
            "dry_run": dry_run,
            "erased": erase and not dry_run,
            "documents": documents,
            "forgotten_folders": list(map(str, removal.roots)),
            "excluded": list(map(str, removal.excluded)),
        }
        click.echo(printable_json(report))
        return
    lines = [f"{'Would remove' if dry_run else 'Removed'} {len(documents)} documents:"]
    lines += [f"  {one_line(display_path(path))}" for path in documents]
    lines += [f"No longer indexed: {display_path(root)}" for root in removal.roots]
    lines += [f"Passed over by `local-rag index` from now on: {display_path(path)}" for path in removal.excluded]
    if erase and not dry_run:
        lines.append("Nothing of them is left in the library.")
    elif not dry_run:
        lines.append("Their contexts and vectors stay cached; `local-rag clean` deletes them.")
    click.echo(printable("\n".join(lines)))
