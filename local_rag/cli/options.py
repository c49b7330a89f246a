"""What commands have in common: how they are started, what they may reach, the options they share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click

from local_rag.offline import Network, close

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the command line was started: in a process to be sealed or not, with a library's parts other than usual."""

    seal: bool = False
    parts: Any = None


class Command(click.Command):
    """A command that reaches nothing but this machine."""

    network: ClassVar[Network] = Network.NONE

    def invoke(self, ctx: click.Context) -> Any:
        """Close the network before anything is done."""
        if isinstance(ctx.obj, Invocation) and ctx.obj.seal:
            close(self.network)
        return super().invoke(ctx)


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


def json_option(function: F) -> F:
    """Add the option that prints JSON."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def model_option(role: str, purpose: str) -> Callable[[F], F]:
    """Add an option that names a model by registry name or path."""
    return click.option(f"--{role}-model", metavar="NAME|PATH", help=f"Another model to {purpose}.")


def search_options(function: F) -> F:
    """Add the options that choose how passages are found."""
    function = click.option("--no-rerank", is_flag=True, help="Keep the fused order.")(function)
    function = click.option(
        "--rerank-candidates",
        type=click.IntRange(min=1),
        help="How many of the fused passages to rerank.  [default: up to 150, as many as fit 3 seconds]",
    )(function)
    function = model_option("rerank", "rerank with")(function)
    return model_option("embed", "embed with")(function)
