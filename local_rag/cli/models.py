"""`local-rag models`: list, pull, verify, optimize, path."""

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from local_rag.cli.options import FetchingCommand, Group, json_option
from local_rag.display import printable_json
from local_rag.errors import ModelError
from local_rag.llama.optimize import damaged_gguf_copies
from local_rag.llama.optimize import optimize as optimize_model
from local_rag.models.load import prepare
from local_rag.models.onnx import damaged_onnx_copies
from local_rag.models.pull import pull as pull_model
from local_rag.models.registry import ModelEntry, Registry, default_models_directory, load_registry, missing_files
from local_rag.models.registry import resolve as resolve_model
from local_rag.models.registry import verify as verify_model

models_option = click.option(
    "--models",
    "directory",
    type=click.Path(file_okay=False, resolve_path=True, path_type=Path),
    help="The models folder. Default: LOCAL_RAG_MODELS, the checkout's models/, or the user's data folder.",
)


@click.group(cls=Group)
def command() -> None:
    """List, pull and verify the models.

    Wherever a model is asked for, the path of a GGUF file or of a sentence-transformers folder of your own will do.
    """


@command.command("list")
@json_option
@models_option
def list_models(directory: Path | None, as_json: bool) -> None:
    """List the known models and profiles."""
    registry = load_registry()
    directory = directory or default_models_directory()
    rows = [
        {
            "name": entry.name,
            "roles": entry.roles,
            "format": entry.format,
            "bytes": entry.bytes,
            "licence": entry.licence,
            "context_length": entry.context_length,
            "pulled": not missing_files(entry, directory),
        }
        for entry in registry.models.values()
    ]
    if as_json:
        profiles = {name: dict(roles) for name, roles in registry.profiles.items()}
        click.echo(printable_json({"directory": directory, "models": rows, "profiles": profiles}, indent=2))
    else:
        _print_tables(registry, directory)


@command.command(cls=FetchingCommand)
@click.argument("names", metavar="[NAME|PROFILE]...", nargs=-1)
@models_option
def pull(names: tuple[str, ...], directory: Path | None) -> None:
    """Fetch models or whole profiles; by default the profile `starter`.

    An interrupted pull resumes where it stopped. Files that are already there and whole are not fetched again; damaged
    ones are replaced.
    """
    entries = _choose(load_registry(), names or ("starter",))
    directory = directory or default_models_directory()
    try:
        for entry in entries:
            with _progress(entry) as progress:
                path = pull_model(entry, models_directory=directory, progress=progress)
            click.echo(f"{entry.name}: {path} ({entry.licence})")
            if directory == default_models_directory():
                prepare(entry, lambda text: click.echo(text, err=True))
    except KeyboardInterrupt:
        click.echo("Stopped; run the same command to resume.", err=True)
        sys.exit(130)


@command.command()
@click.argument("names", metavar="[NAME|PROFILE]...", nargs=-1)
@models_option
def verify(names: tuple[str, ...], directory: Path | None) -> None:
    """Hash the files of models, by default of all that are pulled."""
    registry = load_registry()
    directory = directory or default_models_directory()
    pulled = [name for name in registry.models if (directory / name).is_dir()]
    if not names and not pulled:
        raise ModelError(f"No model is pulled to {directory}; run `local-rag models pull`.")
    damaged = []
    chosen = _choose(registry, names or tuple(pulled))
    for entry in chosen:
        problems = verify_model(entry, models_directory=directory)
        for problem in problems:
            click.echo(f"{entry.name}: {problem}")
        if problems:
            damaged.append(entry)
        else:
            click.echo(f"{entry.name}: whole")
    for folder in damaged_onnx_copies(directory):
        shutil.rmtree(folder)
        click.echo(f"{folder}: damaged, and therefore deleted; it is made again when it is needed")
    for copy in damaged_gguf_copies(directory):
        copy.unlink()
        click.echo(f"{copy}: damaged, and therefore deleted; `local-rag models optimize` makes it again")
    if damaged:
        commands = " and ".join(f"`{entry.pull_command(directory)}`" for entry in damaged)
        raise ModelError(f"Damaged or incomplete models: {len(damaged)} of {len(chosen)}; run {commands}.")


@command.command()
@click.argument("name", default="qwen2.5-coder-0.5b-instruct")
def optimize(name: str) -> None:
    """Make a copy of a context model that reads faster on this processor, by default of the profile `starter`'s.

    The copy is made from the pulled file, timed beside it, and kept where it is faster; contexts are then written with
    it. Contexts that were written before stay as they are.
    """
    model = resolve_model(name, "context")
    click.echo(f"Copying {model.name} and timing both, about a minute ...", err=True)
    result = optimize_model(model)
    click.echo(
        f"Tokens a second, as pulled: {result.rates[0]:.0f} read, {result.rates[1]:.0f} written; "
        f"the copy: {result.copy_rates[0]:.0f} read, {result.copy_rates[1]:.0f} written."
    )
    if result.copy:
        click.echo(f"Contexts are written with {result.copy} from now on, {result.gain:.1f} times as fast.")
    else:
        click.echo("The copy is not kept: on this machine it is hardly faster.")


@command.command()
@click.argument("name")
@models_option
def path(name: str, directory: Path | None) -> None:
    """Print where a pulled model is: the GGUF file, or the folder."""
    registry = load_registry()
    (entry,) = _choose(registry, (name,), profiles=False)
    click.echo(resolve_model(name, entry.roles[0], models_directory=directory, registry=registry).path)


def _choose(registry: Registry, names: tuple[str, ...], profiles: bool = True) -> list[ModelEntry]:
    """Look up models by their names or their profiles' names, each model once."""
    chosen: dict[str, ModelEntry] = {}
    for name in names:
        members = tuple(registry.profiles[name].values()) if profiles and name in registry.profiles else (name,)
        for member in members:
            if member not in registry.models:
                what = "model or profile" if profiles else "model"
                raise ModelError(f"There is no {what} '{name}'; `local-rag models list` shows the known ones.")
            chosen[member] = registry.models[member]
    return list(chosen.values())


@contextlib.contextmanager
def _progress(entry: ModelEntry) -> Iterator[Callable[[str, int, int], None]]:
    """Show progress on stderr: a bar to a terminal, else a line for each tenth."""
    console = Console(stderr=True)
    if not console.is_terminal:
        shown = -1

        def report(name: str, done: int, total: int) -> None:
            nonlocal shown
            if (tenth := 10 * done // total) > shown:
                click.echo(f"{name}: {decimal(done)} of {decimal(total)}", err=True)
                shown = tenth

        yield report
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), TimeRemainingColumn(), console=console, transient=True) as bars:
        bar = bars.add_task(entry.name, total=entry.bytes)
        yield lambda name, done, total: bars.update(bar, description=name, completed=done, total=total)


def _print_tables(registry: Registry, directory: Path) -> None:
    models = Table("name", "role", "size", "licence", "pulled", box=None, header_style="bold")
    for entry in registry.models.values():
        pulled = "no" if missing_files(entry, directory) else "yes"
        models.add_row(entry.name, ", ".join(entry.roles), decimal(entry.bytes), entry.licence, pulled)
    profiles = Table("profile", "role", "model", box=None, header_style="bold")
    for profile, roles in registry.profiles.items():
        for number, (role, name) in enumerate(roles.items()):
            profiles.add_row("" if number else profile, role, name)
    # Piped output is not wrapped to the 80 columns that rich assumes.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(models)
    console.print()
    console.print(profiles)
    console.print(f"\nModels folder: {directory}", soft_wrap=True, highlight=False)
