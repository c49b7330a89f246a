"""`local-rag models`: list, pull, add, verify, optimize, path."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from local_rag.cli.options import FetchingCommand, Group, json_option, library_options
from local_rag.display import one_line, printable_json
from local_rag.errors import ModelError
from local_rag.files import needs_package
from local_rag.llama.optimize import damaged_gguf_copies
from local_rag.llama.optimize import optimize as optimize_model
from local_rag.machine import memory, physical_cores
from local_rag.maintenance.recommend import RERANKERS, choose, describe, offers_of, speaks_other_languages
from local_rag.models.models_folder import default_models_directory, sha256_of
from local_rag.models.other_programs import find_models, model_folders, other_gguf_files
from local_rag.models.registry import ModelEntry, Registry, load_registry, missing_files
from local_rag.models.registry import resolve as resolve_model
from local_rag.models.registry import verify as verify_model
from local_rag.models.sources.hub import hub_problem
from local_rag.models.sources.pull import add as add_models
from local_rag.models.sources.pull import pull as pull_model

models_option = click.option(
    "--models",
    "directory",
    type=click.Path(file_okay=False, resolve_path=True, path_type=Path),
    help="The models folder. Default: LOCAL_RAG_MODELS, the checkout's models/, or the user's data folder.",
)


@click.group(cls=Group, epilog="Example: local-rag models pull starter")
def command() -> None:
    """List, pull and verify the models.

    Instead of a model name you can also give the path of your own GGUF file or sentence-transformers folder.
    """


@command.command("list", epilog="Example: local-rag models list --found")
@click.option("--found", is_flag=True, help="List the models that other programs have (Ollama, LM Studio ...).")
@json_option
@models_option
def list_models(directory: Path | None, as_json: bool, found: bool) -> None:
    """List the known models and profiles, or those that other programs have on this machine.

    `models pull` uses the files of other programs where they are, if their SHA-256 is that of the registry.
    """
    registry = load_registry()
    directory = directory or default_models_directory()
    if found:
        _list_found(registry, directory, as_json=as_json)
        return
    if as_json:
        told = ("name", "roles", "format", "bytes", "licence", "context_length")
        rows = [
            {name: getattr(entry, name) for name in told}
            | {"adapter_of": entry.base or None, "pulled": _is_pulled(entry, registry, directory)}
            for entry in registry.models.values()
        ]
        profiles = {name: dict(roles) for name, roles in registry.profiles.items()}
        found_json = {"directory": directory, "models": rows, "profiles": profiles, "settings": registry.settings}
        click.echo(printable_json({**found_json, "not_tried": sorted(registry.not_tried)}, indent=2))
    else:
        _print_tables(registry, directory)


@command.command(cls=FetchingCommand, epilog="Example: local-rag models pull starter")
@click.argument("names", metavar="[NAME|PROFILE]...", nargs=-1)
@json_option
@models_option
def pull(names: tuple[str, ...], directory: Path | None, as_json: bool) -> None:
    """Download models or whole profiles; by default the profile `starter`.

    An interrupted pull resumes where it stopped. Complete files are not downloaded again; damaged ones are replaced.
    """
    directory = directory or default_models_directory()
    entries = _choose(load_registry(), names or ("starter",))
    rows = []
    try:
        for entry in entries:
            with _progress(entry) as progress:
                pulled = pull_model(
                    entry, models_directory=directory, progress=progress, folders=model_folders(), note=_note
                )
            rows.append({**_installed(entry, directory), "sources": pulled.sources})
            if not as_json:
                source = f", from {' and '.join(pulled.sources)}" if pulled.sources else ""
                click.echo(f"{entry.name}: {pulled.path} ({entry.licence}){source}")
            if entry.needs_sentence_transformers and find_spec("sentence_transformers") is None:
                _note(needs_package(entry.name, "sentence-transformers", "sentence-transformers"))
    except KeyboardInterrupt:
        click.echo("Stopped; run the same command to resume.", err=True)
        sys.exit(130)
    if as_json:
        click.echo(printable_json(rows, indent=2))


@command.command(epilog="Example: local-rag models add /media/stick/models")
@click.argument("path", type=click.Path(exists=True, resolve_path=True, path_type=Path))
@json_option
@models_option
def add(path: Path, directory: Path | None, as_json: bool) -> None:
    """Add a model from a file or folder, for example on a USB stick.

    The SHA-256 of each file decides to which model it belongs, whatever it is called. The file itself stays as it is.
    """
    directory = directory or default_models_directory()
    added = add_models(path, load_registry(), models_directory=directory)
    if as_json:
        rows = [{**_installed(entry, directory), "missing": missing} for entry, missing in added]
        click.echo(printable_json(rows, indent=2))
        return
    for entry, missing in added:
        if missing:
            click.echo(
                f"{entry.name}: still missing {', '.join(missing)}; add them or run `{entry.pull_command(directory)}`"
            )
        else:
            click.echo(f"{entry.name}: {entry.path(directory)} ({entry.licence})")


@command.command(epilog="Example: local-rag models verify starter")
@click.argument("names", metavar="[NAME|PROFILE]...", nargs=-1)
@json_option
@models_option
def verify(names: tuple[str, ...], directory: Path | None, as_json: bool) -> None:
    """Check the hashes of models, by default of all pulled models."""
    registry = load_registry()
    directory = directory or default_models_directory()
    pulled = [name for name in registry.models if (directory / name).is_dir()]
    if not names and not pulled:
        raise ModelError(f"There are no models in {directory}; run `local-rag models pull`.")
    chosen = _choose(registry, names or tuple(pulled))
    rows = []
    for entry in chosen:
        problems = verify_model(entry, models_directory=directory)
        rows.append({"name": entry.name, "problems": problems})
        for told in () if as_json else problems or ("intact",):
            click.echo(f"{entry.name}: {told}")
    copies = damaged_gguf_copies(directory)
    for copy in copies:
        copy.unlink()
        if not as_json:
            click.echo(f"{copy}: damaged, so it was deleted; run `local-rag models optimize` to create it again")
    if as_json:
        click.echo(printable_json({"models": rows, "deleted_copies": copies}, indent=2))
    if damaged := [entry for entry, row in zip(chosen, rows, strict=True) if row["problems"]]:
        commands = " and ".join(f"`{entry.pull_command(directory)}`" for entry in damaged)
        raise ModelError(f"Damaged or incomplete models: {len(damaged)} of {len(chosen)}; run {commands}.")


@command.command(cls=FetchingCommand, epilog="Example: local-rag models recommend --library .local-rag")
@library_options
@json_option
def recommend(library: Path, profile: str | None, as_json: bool) -> None:
    """Recommend a profile for this machine and the languages of the library.

    Considers memory, cores, the languages of the documents, the models on this machine, and whether the Hugging Face
    Hub can be reached.
    """
    registry, directory = load_registry(), default_models_directory()
    folders = model_folders()
    found = find_models(folders, list(registry.models.values()), lambda path: sha256_of(path, directory))
    here = {one.entry.name for one in found if not one.missing}
    here |= {name for name, entry in registry.models.items() if not missing_files(entry, directory)}
    offers = offers_of(registry, cores=physical_cores(), hub=not hub_problem(), here=here)
    other_languages = speaks_other_languages(library)
    chosen = choose(offers, memory=memory()[0], multilingual=other_languages, only=profile)
    if as_json:
        rows = {"recommended": chosen, "offers": offers, "multilingual": other_languages}
        click.echo(printable_json(rows, indent=2))
        return
    languages = "also other languages than English" if other_languages else "English"
    click.echo(f"{memory()[0] / 1e9:.0f} GB of memory, {physical_cores()} cores, documents in {languages}.")
    click.echo(f"Recommended: {describe(chosen)}")
    click.echo(f"  local-rag models pull {chosen.profile} && local-rag index --profile {chosen.profile}")
    for offer in offers:
        if offer.profile != chosen.profile:
            click.echo(f"Else: {describe(offer)}")
    click.echo(RERANKERS)


@command.command(epilog="Example: local-rag models optimize qwen2.5-coder-0.5b-instruct")
@click.argument("name", default="qwen2.5-coder-0.5b-instruct")
@json_option
def optimize(name: str, as_json: bool) -> None:
    """Create a copy of a context model that reads faster on this processor, by default of the one in `starter`.

    The copy is made from the pulled file, timed against it, and kept only if it is faster. New contexts are then
    written with the copy; existing contexts stay as they are.
    """
    model = resolve_model(name, "context")
    click.echo(f"Copying {model.name} and timing both; this takes about a minute ...", err=True)
    result = optimize_model(model)
    if as_json:
        click.echo(printable_json({"model": model.name, **asdict(result), "gain": result.gain}, indent=2))
        return
    click.echo(
        f"Tokens per second: the pulled file reads {result.rates[0]:.0f} and writes {result.rates[1]:.0f}; "
        f"the copy reads {result.copy_rates[0]:.0f} and writes {result.copy_rates[1]:.0f}."
    )
    if result.copy:
        click.echo(f"Contexts are now written with {result.copy}, {result.gain:.1f} times as fast.")
    else:
        click.echo("The copy was deleted because it is hardly faster on this machine.")


@command.command(epilog="Example: local-rag models path all-minilm-l6-v2")
@click.argument("name")
@json_option
@models_option
def path(name: str, directory: Path | None, as_json: bool) -> None:
    """Print the path of a pulled model: a GGUF file or a folder."""
    registry = load_registry()
    entry = _choose(registry, (name,), profiles=False)[-1]
    found = resolve_model(name, entry.roles[0], models_directory=directory, registry=registry).path
    click.echo(printable_json({"name": name, "path": found}, indent=2) if as_json else found)


def _installed(entry: ModelEntry, directory: Path) -> dict[str, Any]:
    return {"name": entry.name, "path": entry.path(directory), "licence": entry.licence}


def _is_pulled(entry: ModelEntry, registry: Registry, directory: Path) -> bool:
    """Return whether all files of a model are here; an adapter also needs the model that it changes."""
    return not any(missing_files(part, directory) for part in registry.parts(entry.name))


def _list_found(registry: Registry, directory: Path, *, as_json: bool) -> None:
    folders = model_folders()
    models = find_models(folders, list(registry.models.values()), lambda path: sha256_of(path, directory))
    others = list(other_gguf_files(folders, [model.weights for model in models]))
    if as_json:
        rows = [
            {
                "name": model.entry.name,
                "program": model.program,
                "path": model.weights,
                "missing": model.missing,
                "pulled": not missing_files(model.entry, directory),
            }
            for model in models
        ]
        other = [{"program": program, "path": path, "bytes": path.stat().st_size} for program, path in others]
        click.echo(printable_json({"found": rows, "other": other}, indent=2))
        return
    for model in models:
        lacks = f" (without {', '.join(model.missing)})" if model.missing else ""
        click.echo(f"{model.entry.name}: {one_line(str(model.weights))}, {model.program}{lacks}")
    for program, path in others:
        click.echo(f"not in the registry: {one_line(str(path))}, {program}, {decimal(path.stat().st_size)}")
    if names := [model.entry.name for model in models if missing_files(model.entry, directory)]:
        _note(f"`local-rag models pull {' '.join(dict.fromkeys(names))}` uses these files where they are.")
    if others:
        _note("Use a file that is not in the registry by its path, as in `--answer-model PATH`.")
    if not models and not others:
        looked = ", ".join(dict.fromkeys(place.program for place in folders)) or "Ollama, LM Studio and llama.cpp"
        _note(f"No models found ({looked}).")


def _note(text: str) -> None:
    click.echo(text, err=True)


def _choose(registry: Registry, names: tuple[str, ...], profiles: bool = True) -> list[ModelEntry]:
    """Look up models by their names or the names of profiles, each model once."""
    chosen: dict[str, ModelEntry] = {}
    for name in names:
        members = tuple(registry.profiles[name].values()) if profiles and name in registry.profiles else (name,)
        for member in members:
            if member not in registry.models:
                what = "model or profile" if profiles else "model"
                raise ModelError(f"There is no {what} '{name}'; `local-rag models list` shows the known ones.")
            chosen |= {entry.name: entry for entry in registry.parts(member)}
    return list(chosen.values())


@contextlib.contextmanager
def _progress(entry: ModelEntry) -> Iterator[Callable[[str, int, int], None]]:
    """Show progress on stderr: a bar on a terminal, otherwise a line for each tenth."""
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
    with Bar(*columns, TransferSpeedColumn(), TimeRemainingColumn(), console=console, transient=True) as bars:
        bar = bars.add_task(entry.name, total=entry.bytes)
        yield lambda name, done, total: bars.update(bar, description=name, completed=done, total=total)


def _print_tables(registry: Registry, directory: Path) -> None:
    models = Table("name", "role", "size", "licence", "pulled", box=None, header_style="bold")
    for entry in registry.models.values():
        pulled = "yes" if _is_pulled(entry, registry, directory) else "no"
        models.add_row(entry.name, ", ".join(entry.roles), decimal(entry.bytes), entry.licence, pulled)
    profiles = Table("profile", "role", "model", "memory", "disk", "an answer", box=None, header_style="bold")
    offers = offers_of(registry, cores=physical_cores(), hub=True, here=())
    costs = {offer.profile: (decimal(offer.memory), decimal(offer.disk), f"{offer.seconds:.0f} s") for offer in offers}
    for profile, roles in registry.profiles.items():
        for number, (role, name) in enumerate(roles.items()):
            mark = " (not tried here)" if profile in registry.not_tried else ""
            profiles.add_row("" if number else f"{profile}{mark}", role, name, *(() if number else costs[profile]))
        for setting, value in registry.settings.get(profile, {}).items():
            profiles.add_row("", setting, str(value))
    # Piped output is not wrapped to the 80 columns that rich assumes.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(models)
    console.print()
    console.print(profiles)
    console.print(f"\nModels folder: {directory}", soft_wrap=True, highlight=False)
