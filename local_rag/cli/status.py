"""`local-rag status`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from local_rag.cli.options import library_options

if TYPE_CHECKING:
    from local_rag.upkeep.status import Status

_EXAMPLES = 5


@click.command()
@library_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(library: Path, as_json: bool, **settings: Any) -> None:
    """Show what the library holds, what shaped it, and what is stale and why. Nothing is changed."""
    from dataclasses import asdict

    from local_rag.display import printable_json
    from local_rag.library import Library

    with Library(library, **settings) as opened:
        status = opened.status()
    click.echo(printable_json(asdict(status)) if as_json else _as_text(status))


def _as_text(status: "Status") -> str:
    from rich.filesize import decimal

    from local_rag.asking.search import display_path
    from local_rag.display import describe_contexts, one_line, printable

    written = describe_contexts(status.contexts)
    if status.contexts["missing"]:
        written.append(f"{status.contexts['missing']} still to be written")
    generations = [
        f"{name} ({decimal(size)}{', live' if name == status.live_generation else ''})"
        for name, size in status.generations.items()
    ]
    lines = [
        f"Library: {status.library} ({decimal(status.disk['library'])})",
        f"Folders: {', '.join(display_path(Path(root)) for root in status.roots) or 'none'}",
        f"Documents: {status.documents}, {status.chunks} chunks, {status.vectors} of them with vectors",
        f"Contexts: {', '.join(written) or 'none'}",
        f"Cached: {status.cached['cached_contexts']} contexts, {status.cached['cached_vectors']} vectors, "
        f"{status.cached['superseded_documents']} superseded documents ({decimal(status.disk['store'])})",
        f"Models: {', '.join(f'{role} {name}' for role, name in status.models.items())}",
        f"Indexes: {', '.join(generations) or 'none'}",
    ]
    if status.fingerprint:
        lines.append(f"Made with: {', '.join(_fingerprint(status.fingerprint))}")
    for stale in status.stale:
        lines.append(f"Stale: {stale.reason}; run `{stale.command}`.")
        lines += [f"  {one_line(_example(example))}" for example in stale.examples[:_EXAMPLES]]
        if len(stale.examples) > _EXAMPLES:
            lines.append(f"  and {len(stale.examples) - _EXAMPLES} more")
    if not status.stale:
        lines.append("Up to date.")
    return printable("\n".join(lines))


def _example(text: str) -> str:
    from local_rag.asking.search import display_path

    return display_path(Path(text)) if text.startswith("/") and " " not in text else text


def _fingerprint(fingerprint: Any) -> list[str]:
    """Name what shaped the index; hashes by their first digits."""
    shown = {name: value for name, value in fingerprint.items() if value not in ("", 0)}
    return [
        f"{name.replace('_', ' ')} {value[:12] if name in {'embedder', 'context_model'} else value}"
        for name, value in shown.items()
    ]
