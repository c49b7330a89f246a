"""`local-rag cluster`: check, start, stop, copy."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from local_rag.cli.opening import open_library
from local_rag.cli.options import ClusterCommand, Group, json_option, library_options
from local_rag.cli.progress import IndexProgress
from local_rag.cluster.engines.choice import check_engine
from local_rag.cluster.hosts import head_of
from local_rag.cluster.workers.check import Machine, compare_machines
from local_rag.cluster.workers.launch import Started, commands_for_others, join, start_head
from local_rag.cluster.workers.launch import stop as stop_here
from local_rag.display import one_line, printable_json
from local_rag.errors import ClusterError
from local_rag.offline import is_loopback


class ClusterGroup(Group):
    """Commands that talk to the machines of a cluster."""

    command_class = ClusterCommand


@click.group(cls=ClusterGroup)
def command() -> None:
    """Let several machines index, and a search engine hold the index.

    The settings `cluster_address` and `search_engine` say where they are; docs/scale.md says how many it takes.
    """


@command.command()
@library_options
@json_option
def check(library: Path, as_json: bool, **settings: Any) -> None:
    """Compare versions and model hashes of all machines, and look at the search engine.

    Ends with exit code 1 where a machine differs from this one.
    """
    with open_library(library, **settings) as opened:
        named = opened.settings
    if not named.cluster_address and not named.search_engine:
        raise ClusterError(
            "No cluster is named; set LOCAL_RAG_CLUSTER_ADDRESS to the address of its head, such as 10.0.0.5:6379, or "
            "start one with `local-rag cluster start`."
        )
    machines = compare_machines(named) if named.cluster_address else []
    engine, damage = check_engine(named) if named.search_engine else ("", [])
    if as_json:
        found = {"machines": [asdict(one) for one in machines], "search_engine": engine, "damage": damage}
        click.echo(printable_json(found, indent=1))
    else:
        _show(machines)
        for line in (engine, *damage):
            if line:
                click.echo(one_line(line))
    if damage or any(one.differences for one in machines):
        raise click.exceptions.Exit(1)


def _show(machines: Sequence[Machine]) -> None:
    for one in machines:
        if one.differences:
            click.echo(one_line(f"{one.name}: differs in {', '.join(one.differences)}"))
        else:
            facts = ", ".join(f"{name} {value}" for name, value in one.facts.items())
            click.echo(one_line(f"{one.name}: {facts}"))


@command.command()
@click.option("--host", metavar="ADDRESS", help="Private address of this machine, for others.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(1, 65535), default=6379, show_default=True, help="Port of the head.")
@click.option("--join", "address", metavar="ADDRESS", help="Join the cluster whose head is there, and work for it.")
@click.option("--drive-only", is_flag=True, help="With --join: run `index` from here, and do no work.")
@json_option
def start(host: str | None, port: int, address: str | None, drive_only: bool, as_json: bool) -> None:
    """Start a cluster on this machine, or let it join one; print what to type on others."""
    if drive_only and not address:
        raise click.UsageError("--drive-only is for a machine that joins; give --join ADDRESS.")
    started = join(address, own=host, drives_only=drive_only) if address else start_head(host or "127.0.0.1", port)
    _tell(started, [] if address else commands_for_others(started.address), as_json=as_json)


def _tell(started: Started, others: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(printable_json({**asdict(started), "commands": others}))
        return
    click.echo(f"{'The cluster runs at' if started.head else 'This machine has joined'} {started.address}.")
    click.echo(f"To index on it: export LOCAL_RAG_CLUSTER_ADDRESS={started.address}")
    if others and not is_loopback(head_of(started.address)[0]):
        click.echo("On every other machine, with the same local-rag, models and token:")
        click.echo("\n".join(f"  {line}" for line in others[:2]))
        click.echo("or, where Ray is started in another way:")
        click.echo("\n".join(f"  {line}" for line in others[2:]))


@command.command()
@json_option
def stop(as_json: bool) -> None:
    """Stop what `cluster start` has started on this machine, and nothing else."""
    stopped = stop_here()
    if as_json:
        click.echo(printable_json({"stopped": asdict(stopped) if stopped else None}))
    elif stopped is None:
        click.echo("Nothing that `local-rag cluster start` has started runs here.")
    else:
        click.echo(f"Stopped{' the cluster at' if stopped.head else ': this machine has left'} {stopped.address}.")


@command.command()
@library_options
@click.option("--back", is_flag=True, help="Publish in the library's folder again, and leave the engine as it is.")
@json_option
def copy(library: Path, back: bool, as_json: bool, **settings: Any) -> None:
    """Publish an indexed library in the search engine that `search_engine` names, or back in its folder.

    Nothing is read or computed again. Which of the two is searched the setting says.
    """
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        engine = opened.settings.search_engine
        if not engine:
            raise ClusterError(
                "No search engine is named; set LOCAL_RAG_SEARCH_ENGINE to one such as "
                "qdrant:https://10.0.0.5:6333/handbook."
            )
        with opened.writing(progress, here=back) as (store, indexer):
            indexer.publish(anew=True)
            documents, chunks = len(store.documents()), indexer.report.chunks
    target = str(opened.folder) if back else engine
    if as_json:
        click.echo(printable_json({"to": target, "documents": documents, "chunks": chunks}))
    else:
        click.echo(f"{documents} documents, {chunks} chunks are in {one_line(target)} now.")
