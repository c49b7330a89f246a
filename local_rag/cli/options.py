"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


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
