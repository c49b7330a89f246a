"""What commands have in common: how they are started, what they may reach, the options they share."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click

from local_rag.offline import Cluster, Network, close
from local_rag.records import AskOptions, Filters, first_day

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the command line was started: in a process to be sealed or not, with a library's parts other than usual."""

    seal: bool = False
    parts: Any = None


def has_own_process(ctx: click.Context) -> bool:
    """Say whether this process is there for nothing but the command, which may then close the network to it."""
    return isinstance(ctx.obj, Invocation) and ctx.obj.seal


class Command(click.Command):
    """A command that reaches nothing but this machine."""

    network: ClassVar[Network] = Network.NONE

    def invoke(self, ctx: click.Context) -> Any:
        """Close the network before anything is done."""
        if has_own_process(ctx):
            close(self.allowed(ctx))
        return super().invoke(ctx)

    def allowed(self, ctx: click.Context) -> Network | Cluster:
        """Say what this command may reach: also the cluster that the settings of its library name."""
        folder = ctx.params.get("library")
        if self.network is Network.NONE and isinstance(folder, Path):
            return allowed_network(folder)
        return self.network


def allowed_network(folder: Path) -> Network | Cluster:
    """Return what a command of a library may reach: nothing, or the hosts of the cluster that its settings name."""
    named = any(os.environ.get(f"LOCAL_RAG_{name}") for name in ("CLUSTER_ADDRESS", "SEARCH_ENGINE"))
    settings_file = folder / "settings.toml"
    if not named and not settings_file.exists():
        return Network.NONE
    # Not on top: most commands start without what reads settings.
    from local_rag.cluster.hosts import network_of
    from local_rag.settings import resolve_settings

    return network_of(resolve_settings(folder))


class ClusterCommand(Command):
    """A command that talks to the machines of a cluster: those that it names itself, too."""

    def allowed(self, ctx: click.Context) -> Network | Cluster:
        """Say what this command may reach."""
        from local_rag.cluster.hosts import head_of, private_addresses

        usual = super().allowed(ctx)
        hosts = set(usual.hosts) if isinstance(usual, Cluster) else {"127.0.0.1"}
        for named in (ctx.params.get("host"), ctx.params.get("address")):
            if named:
                host = head_of(named)[0]
                hosts |= {host, *private_addresses(host)}
        return Cluster(frozenset(hosts))


class FetchingCommand(Command):
    """A command that is there to fetch."""

    network: ClassVar[Network] = Network.FETCH


class Group(click.Group):
    """A command of several commands."""

    command_class = Command


def library_options(function: F) -> F:
    """Add the options that choose a library and a profile."""
    function = click.option(
        "--profile", metavar="NAME", help="Models to use: starter, tiny, small or laptop.  [default: starter]"
    )(function)
    return click.option(
        "--library",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".local-rag"),
        show_default=True,
        help="Folder of the library.",
    )(function)


class Day(click.ParamType):  # type: ignore[type-arg]
    """A day as 2024-05-01, or the first one of a month or year that is given alone."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """Read a day, a month or a year."""
        if isinstance(value, date):
            return value
        try:
            return first_day(value)
        except ValueError:
            self.fail(f"{value!r} is no date such as 2024-05-01, 2024-05 or 2024.", param, ctx)


def filter_options(function: F) -> F:
    """Add the options that choose which documents are asked; the command gets them as `filters`."""

    @functools.wraps(function)
    def filtered(
        *,
        within: tuple[str, ...],
        types: tuple[str, ...],
        since: date | None,
        before: date | None,
        tags: tuple[str, ...],
        **others: Any,
    ) -> Any:
        return function(filters=Filters(within, types, since, before, tags), **others)

    options = (
        click.option(
            "--in",
            "within",
            multiple=True,
            metavar="GLOB|PATH",
            help="Only documents that a pattern such as 'policies/**' matches below an indexed folder, or below an "
            "absolute path; several: any of them.",
        ),
        click.option(
            "--type", "types", multiple=True, metavar="SUFFIX", help="Only files such as pdf; several: any of them."
        ),
        click.option(
            "--since",
            type=Day(),
            metavar="DATE",
            help="Only documents of that day or later, by their own date, else their file's.",
        ),
        click.option("--before", type=Day(), metavar="DATE", help="Only documents of before that day."),
        click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only documents with this tag; several: all."),
    )
    for option in reversed(options):
        filtered = option(filtered)
    return filtered  # type: ignore[return-value]


def json_option(function: F) -> F:
    """Add the option that prints JSON."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def model_option(role: str, purpose: str) -> Callable[[F], F]:
    """Add an option that names a model by registry name or path."""
    return click.option(f"--{role}-model", metavar="NAME|PATH", help=f"Another model to {purpose}.")


# The options of a question beside those of the search, each by its field in AskOptions.
_ASK_OPTIONS = {
    "passages": click.option(
        "--passages",
        type=click.IntRange(min=1),
        help="How many passages the model reads; more take longer.  [default: likely ones, for some ten seconds]",
    ),
    "expand": click.option(
        "--expand", is_flag=True, help="Search for the question in other words too, written by the model."
    ),
    "diverse": click.option("--diverse", is_flag=True, help="Prefer passages that differ from each other."),
    "strict": click.option(
        "--strict", is_flag=True, help="Leave out sentences with a number or name that their sources lack."
    ),
    "rewrite": click.option(
        "--rewrite",
        is_flag=True,
        help="Also search for follow-ups as the model rewrites them; needs a model of 3B or more.",
    ),
}


def ask_options(*names: str) -> Callable[[F], F]:
    """Add the options of the search and those named; the command gets what they say as `options`, an AskOptions."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(*, no_rerank: bool, filters: Filters, **others: Any) -> Any:
            chosen = {name: others.pop(name) for name in names}
            return function(options=AskOptions(rerank=not no_rerank, filters=filters, **chosen), **others)

        for name in reversed(names):
            command = _ASK_OPTIONS[name](command)
        return _search_options(filter_options(command))  # type: ignore[return-value]

    return decorate


def _search_options(function: F) -> F:
    """Add the options that choose how passages are found."""
    function = click.option("--no-rerank", is_flag=True, help="Keep the fused order.")(function)
    function = click.option(
        "--rerank-candidates",
        type=click.IntRange(min=1),
        help="How many of the fused passages to rerank.  [default: up to 150, as many as fit 3 seconds]",
    )(function)
    function = model_option("rerank", "rerank with")(function)
    return model_option("embed", "embed with")(function)
