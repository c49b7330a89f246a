"""`local-rag cluster`: check, start, stop, copy."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import ClusterCommand, Group, json_option, library_options, open_library
from local_rag.cli.progress import IndexProgress
from local_rag.cluster.hosts import head_of
from local_rag.cluster.on_request import check_engine
from local_rag.cluster.workers.launch import Started, commands_for_others, join, start_head
from local_rag.cluster.workers.launch import stop as stop_here
from local_rag.cluster.workers.ray_workers import Machine, compare_machines
from local_rag.display import one_line, printable_json
from local_rag.errors import ClusterError
from local_rag.offline import is_loopback

_TOLD = ("Python", "local-rag", "ray", "llama-cpp-python", "onnxruntime")  # of the facts of a machine, when all agree


class ClusterGroup(Group):
    """A group of commands that connect to the machines of a cluster."""

    command_class = ClusterCommand


@click.group(cls=ClusterGroup, epilog="Example: local-rag cluster start --host 10.0.0.5")
def command() -> None:
    """Index on several machines, and keep the index in a search engine.

    The settings `cluster.address` and `search_engine.address` name them; docs/scale.md helps to choose their number.
    """


@command.command(epilog="Example: local-rag cluster check")
@library_options
@json_option
def check(library: Path, as_json: bool, **settings: Any) -> None:
    """Compare versions and model hashes of all machines, and check the search engine.

    The exit code is 1 if a machine differs from this one.
    """
    with open_library(library, **settings) as opened:
        named = opened.settings
    if not named.cluster.address and not named.search_engine.address:
        raise ClusterError(
            "The setting cluster.address is empty; set LOCAL_RAG_CLUSTER_ADDRESS to the address of the head, such as "
            "10.0.0.5:6379, or start a cluster with `local-rag cluster start`."
        )
    machines = compare_machines(named) if named.cluster.address else []
    engine, damage = check_engine(named) if named.search_engine.address else ("", [])
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
            told = {name: value for name, value in one.facts.items() if name in _TOLD or " " in name}
            facts = ", ".join(f"{name} {value}" for name, value in told.items())
            facts += f" and {len(one.facts) - len(told)} other packages"
            click.echo(one_line(f"{one.name}: {facts}"))


@command.command(epilog="Example: local-rag cluster start --join 10.0.0.5:6379")
@click.option(
    "--host", metavar="ADDRESS", help="Private address of this machine for other machines.  [default: 127.0.0.1]"
)
@click.option("--port", type=click.IntRange(1, 65_528), default=6379, help="Port of the head.")
@click.option("--join", "address", metavar="ADDRESS", help="Join the cluster with this head as a worker.")
@click.option(
    "--drive-only", is_flag=True, help="With --join: only run `index` from here, without working for the cluster."
)
@json_option
def start(host: str | None, port: int, address: str | None, drive_only: bool, as_json: bool) -> None:
    """Start a cluster on this machine or join one, and print the commands for the other machines."""
    if drive_only and not address:
        raise click.UsageError("--drive-only needs --join ADDRESS.")
    started = join(address, own=host, drives_only=drive_only) if address else start_head(host or "127.0.0.1", port)
    _show_started(started, [] if address else commands_for_others(started.address), as_json=as_json)


def _show_started(started: Started, others: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(printable_json({**asdict(started), "commands": others}))
        return
    click.echo(f"{'The cluster runs at' if started.head else 'This machine has joined'} {started.address}.")
    click.echo(f"To index on it: export LOCAL_RAG_CLUSTER_ADDRESS={started.address}")
    if others and not is_loopback(head_of(started.address)[0]):
        click.echo("Let another machine join, which needs the same local-rag and models: the first command runs here.")
        click.echo("\n".join(f"  {line}" for line in others))


@command.command(epilog="Example: local-rag cluster stop")
@json_option
def stop(as_json: bool) -> None:
    """Stop the processes that `cluster start` started on this machine, and nothing else."""
    stopped = stop_here()
    if as_json:
        click.echo(printable_json({"stopped": asdict(stopped) if stopped else None}))
    elif stopped is None:
        click.echo("No process started by `local-rag cluster start` runs on this machine.")
    else:
        click.echo(f"Stopped{' the cluster at' if stopped.head else ': this machine has left'} {stopped.address}.")


@command.command(epilog="Example: local-rag cluster copy --replace")
@library_options
@click.option("--back", is_flag=True, help="Publish in the library folder again; the engine is not changed.")
@click.option("--replace", is_flag=True, help="Replace another library that has this name in the search engine.")
@json_option
def copy(library: Path, back: bool, replace: bool, as_json: bool, **settings: Any) -> None:
    """Publish an indexed library in the engine that `search_engine.address` names, or back in its folder.

    Nothing is read or computed again. The setting `search_engine.address` decides which one is searched.
    """
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        engine = opened.settings.search_engine.address
        if not engine:
            raise ClusterError(
                "The setting search_engine.address is empty; set LOCAL_RAG_SEARCH_ENGINE_ADDRESS to an engine such as "
                "qdrant:https://10.0.0.5:6333/handbook."
            )
        with opened.upkeep.writing(progress, here=back) as (store, indexer):
            indexer.publish(rebuild=True, replace=replace)
            documents, chunks = len(store.documents()), indexer.report.chunks
    target = str(opened.folder) if back else engine
    if as_json:
        click.echo(printable_json({"to": target, "documents": documents, "chunks": chunks}))
    else:
        click.echo(f"{documents} documents with {chunks} chunks are now in {one_line(target)}.")
