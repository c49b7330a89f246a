"""What a library contains: `local-rag status` and `local-rag documents`."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.filesize import decimal

from local_rag.asking import Filters
from local_rag.cli.loaded import running_as_text
from local_rag.cli.options import Command, filter_options, json_option, library_options, open_library
from local_rag.display import (
    counted,
    describe_contexts,
    display_path,
    duration,
    gain_as_text,
    one_line,
    printable,
    printable_json,
)
from local_rag.serving.socket_client import running

if TYPE_CHECKING:
    from local_rag.catalogue.library_status import Status

_EXAMPLES = 5
_MANY_UNUSED = 3  # vectors in the store for each that is used; a chunk also has one from before its context
_NOTES = 100  # all are in the JSON


@click.command(cls=Command, epilog="Example: local-rag status --json")
@library_options
@json_option
def status(library: Path, as_json: bool, **settings: Any) -> None:
    """Show what the library contains, how it was built, and what is stale and why. Nothing is changed."""
    with open_library(library, **settings) as opened:
        status = opened.status()
    found = running(library.resolve())
    if as_json:
        told = {one.name: getattr(status, one.name) for one in fields(status)}
        click.echo(printable_json({**told, "running": found}))
    else:
        click.echo(_as_text(status))
        if found:
            click.echo(one_line(running_as_text(found, library)))


def _as_text(status: "Status") -> str:
    written = describe_contexts(status.contexts)
    if unwritten := status.contexts["unwritten"]:
        left = f" ({duration(status.writing_seconds)} of writing)" if status.writing_seconds is not None else ""
        written.append(f"{unwritten:,} of {counted(status.chunks, 'sentence')} not written yet{left}")
    generations = [
        f"{name} ({decimal(size)}{', live' if name == status.live_generation else ''})"
        for name, size in status.generations.items()
    ]
    lines = [
        f"Library: {status.library} ({decimal(status.disk['library'])})",
        f"Folders: {', '.join(display_path(root) for root in status.roots) or 'none'}",
        f"Documents: {status.documents:,}, {counted(status.chunks, 'chunk')}, {status.vectors:,} of them with vectors",
        f"Contexts: {', '.join(written) or 'none'}",
        f"Cached: {counted(status.cached['cached_contexts'], 'context')}, "
        f"{counted(status.cached['cached_vectors'], 'vector')}, "
        f"{counted(status.cached['superseded_documents'], 'superseded document')} ({decimal(status.disk['store'])})",
        f"Models: {', '.join(f'{role} {name}' for role, name in status.models.items())}",
        f"Indexes: {', '.join(generations) or 'none'}",
    ]
    lines += _answers(status)
    if status.contexts_gain:
        lines.append(gain_as_text(status.contexts_gain))
    if status.cached["cached_vectors"] > _MANY_UNUSED * (status.chunks + status.documents):
        lines.append("Most cached vectors belong to no document any more; `local-rag clean` deletes them.")
    if (usage := status.usage).questions:
        lines.append(
            f"Last 30 days: {counted(usage.questions, 'question')}, {usage.refused:,} of them not answered, "
            f"median {usage.median_seconds:.1f} seconds"
        )
    if status.fingerprint:
        lines.append(f"Built with: {', '.join(_fingerprint(status.fingerprint))}")
    if status.writing:
        lines.append("Another command is changing this library now; look again when it has ended.")
    for stale in status.stale:
        lines.append(f"Stale: {stale.reason}{'' if status.writing else f'; run `{stale.command}`'}.")
        shown = stale.examples[:_EXAMPLES]
        lines += [f"  {one_line(display_path(one) if isinstance(one, Path) else one)}" for one in shown]
        if len(stale.examples) > _EXAMPLES:
            lines.append(f"  and {len(stale.examples) - _EXAMPLES} more")
    unread = {(item.path, item.reason) for item in status.unreadable}
    notes = [note for note in status.notes if (note.path, note.note) not in unread]
    lines += [f"{one_line(display_path(note.path))}: {one_line(note.note)}." for note in notes[:_NOTES]]
    if len(notes) > _NOTES:
        lines.append(f"  and {len(notes) - _NOTES} more")
    for item in status.unreadable[:_EXAMPLES]:
        lines.append(f"Not read: {one_line(display_path(item.path))}: {one_line(item.reason)}.")
    if len(status.unreadable) > _EXAMPLES:
        lines.append(f"  and {len(status.unreadable) - _EXAMPLES} more")
    if not status.stale:
        lines.append("Everything else is indexed." if status.unreadable else "Up to date.")
    return printable("\n".join(lines))


def _answers(status: "Status") -> list[str]:
    lines = list[str]()
    if status.answered_from is not None:
        lines.append(f"Answers: given if they are right with a probability of {status.answered_from:.2f} or more")
    if marks := status.marks:
        lines.append(f"Marks: {marks['right']} right, {marks['wrong']} wrong. {marks['gate'] or ''}".rstrip())
    return lines


def _fingerprint(fingerprint: Mapping[str, Any]) -> list[str]:
    """Return the settings that shaped the index; hashes are shortened."""
    shown = {name: value for name, value in fingerprint.items() if value not in ("", 0)}
    return [
        f"{name.replace('_', ' ')} {value[:12] if name in {'embedder', 'context_model'} else value}"
        for name, value in shown.items()
    ]


@click.command(cls=Command, epilog="Example: local-rag documents --type pdf --since 2024")
@library_options
@filter_options
@click.option("--families", is_flag=True, help="List instead the documents that are versions of each other.")
@json_option
def documents(library: Path, filters: Filters, families: bool, as_json: bool, **settings: Any) -> None:
    """List the documents of the library: what each is about, its state, its dates and its size.

    The state is indexed, waiting for `local-rag index` to finish, changed or missing since it was read, or unreachable.
    """
    if families:
        _list_families(library, filters, as_json=as_json, **settings)
        return
    with open_library(library, **settings) as opened:
        documents = opened.documents.listed(filters=filters)
    if as_json:
        click.echo(printable_json(documents))
        return
    for document in documents:
        path = click.style(one_line(display_path(document.path)), bold=True)
        own = f", of {document.date}" if document.date else ""
        tags = f", tags: {', '.join(document.tags)}" if document.tags else ""
        facts = f"{document.state}, {decimal(document.size)}, file of {document.modified}{own}{tags}"
        lines = [path, one_line(document.title), one_line(facts), one_line(document.about)]
        click.echo("\n    ".join(line for line in lines if line))
    if not documents:
        click.echo("No document matches." if filters else "The library contains no documents yet.", err=True)


def _list_families(library: Path, filters: Filters, *, as_json: bool, **settings: Any) -> None:
    with open_library(library, **settings) as opened:
        families = opened.documents.families(filters=filters)
    if as_json:
        named = [
            [{"path": display_path(one.path), "title": one.title, "date": one.date} for one in family]
            for family in families
        ]
        click.echo(printable_json(named))
        return
    for family in families:
        click.echo(click.style(one_line(family[0].title), bold=True))
        for one in family:
            click.echo(f"    {one.date}{'' if one.stated else ' (of the file)'}  {one_line(display_path(one.path))}")
    if not families:
        click.echo("No documents are versions of each other.", err=True)
