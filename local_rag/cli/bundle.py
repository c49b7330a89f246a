"""`local-rag bundle`: create, verify, rollback, uninstall."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal

from local_rag.bundle import installed, verify
from local_rag.bundle.archive import BundleError
from local_rag.bundle.create import Packing
from local_rag.bundle.create import create as create_bundle
from local_rag.cli.options import PATH, PRESENT, PRESENT_FILE, PRESENT_FOLDER, FetchingCommand, Group, json_option
from local_rag.display import one_line, printable, printable_json
from local_rag.errors import LocalRagError

_MIB = 1024**2
_UNITS = {"": _MIB, "K": 1024, "M": _MIB, "G": 1024**3}
_LARGEST_PART = 3900 * _MIB  # FAT32 allows files of up to 4 GiB minus one byte
_SMALLEST_PART = 64 * 1024


class PartSize(click.ParamType):  # type: ignore[type-arg]
    """A size such as 500K, 3900M or 2G; a number alone is in MiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the size in bytes."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"\s*+(\d{1,12})\s*+([KMG]?)(?:i?B)?\s*+", value, re.IGNORECASE)
        size = int(found[1]) * _UNITS[found[2].upper()] if found else 0
        if not _SMALLEST_PART <= size <= _LARGEST_PART:
            self.fail(f"{value!r} is not a size between 64K and 3900M.", param, ctx)
        return size


def _glibc(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(r"2\.\d{1,2}", value):
        raise click.BadParameter(f"{value!r} is not a version of glibc such as 2.28.")
    return value


prefix_option = click.option(
    "--prefix",
    type=PRESENT_FOLDER,
    help="Folder of the installation.  [default: that of the running program]",
)


@click.group(cls=Group, epilog="Example: local-rag bundle create --with-library .local-rag")
def command() -> None:
    """Move the program, its models and a library to a machine without a network.

    `create` packs them on a machine with a network; `sh install.sh`, next to the parts, installs them on the other one.
    """


@command.command(cls=FetchingCommand, epilog="Example: local-rag bundle create --output stick/local-rag")
@click.option("--output", type=PATH, default=Path("local-rag-bundle"), help="New folder.")
@click.option("--profile", metavar="NAME", default="starter", help="The profile whose models to pack.")
@click.option(
    "--with-library",
    "library",
    type=PRESENT_FOLDER,
    help="Also pack a library with its contexts and vectors.",
)
@click.option("--without-models", is_flag=True, help="Pack only the program, as an update.")
@click.option("--part-size", type=PartSize(), default="3900M", help="Maximum size of a part, up to 3900M.")
@click.option(
    "--glibc",
    default="",
    show_default=False,
    metavar="VERSION",
    callback=_glibc,
    help="Oldest glibc to support.  [default: what the packages need]",
)
@click.option("--python", type=PRESENT_FILE, help="Archive (.tar.gz) of a Python interpreter to pack.")
@click.option("--sign", type=PRESENT_FILE, help="OpenSSH private key to sign with.")
@click.option(
    "--llama",
    type=click.Choice(["portable", "installed"]),
    default="portable",
    help="Build llama.cpp for every processor of this architecture, or pack the installed one.",
)
@click.option(
    "--extra",
    "extras",
    multiple=True,
    metavar="NAME",
    help="Also pack the packages of an extra, such as cluster; can be given several times.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan and the total size; download and write nothing.")
@json_option
def create(*, dry_run: bool, as_json: bool, without_models: bool, part_size: int, **given: Any) -> None:
    """Pack wheels, models, licences and a manifest into parts, and then test the installation.

    Nothing is built on the other machine. Downloads and builds are kept in the user's cache folder.
    """
    from platformdirs import user_cache_path

    cache = user_cache_path("local-rag", appauthor=False) / "bundle"
    packing = Packing(**given, models=not without_models, part_bytes=part_size, cache=cache)

    def show(plan: dict[str, Any]) -> None:
        for line in _plan_lines(plan):
            click.echo(line, err=as_json or not dry_run)

    created = _run(
        lambda: create_bundle(packing, lambda text: click.echo(f"{text} ...", err=True), show, dry_run=dry_run), as_json
    )
    if as_json:
        click.echo(printable_json({"ok": True, **created}, indent=1))
    elif not dry_run:
        rehearsal = created["rehearsal"]
        click.echo(f"{created['output']}: {created['id']}, {len(created['parts'])} parts, {decimal(created['bytes'])}")
        answer = one_line(rehearsal["answer"]) if rehearsal["answered"] else "not answered from the document"
        click.echo(f"Tested in {rehearsal['seconds']} seconds: {rehearsal['question']} {answer}")


@command.command("verify", epilog="Example: local-rag bundle verify stick/local-rag --key maker.pub")
@click.argument("path", type=PRESENT)
@click.option("--key", type=PRESENT_FILE, help="Public key of the signature.")
@click.option("--require-signature", is_flag=True, help="Fail if the bundle is not signed with the key.")
@json_option
def verify_bundle(path: Path, key: Path | None, require_signature: bool, as_json: bool) -> None:
    """Check the bundle at PATH, its folder or a part, without extracting or running anything.

    Names the files to copy again. `python3 -I verify.py`, next to the parts, does the same without the program.
    """
    result = verify.check(path, key, require_signature)
    click.echo(printable_json(result, indent=1) if as_json else printable(verify.as_text(result)))
    if not result["ok"]:
        raise click.exceptions.Exit(1)


@command.command(epilog="Example: local-rag bundle rollback")
@prefix_option
@json_option
def rollback(prefix: Path | None, as_json: bool) -> None:
    """Switch back to the previous version. Run again to undo."""
    result = _run(lambda: installed.rollback(installed.require_prefix(prefix)), as_json)
    text = f"Now using {result['current']} instead of {result['previous']}."
    click.echo(printable_json({"ok": True, **result}) if as_json else text)


@command.command(epilog="Example: local-rag bundle uninstall --prefix ~/local-rag")
@prefix_option
@json_option
def uninstall(prefix: Path | None, as_json: bool) -> None:
    """Remove exactly what bundles installed; libraries and models that changed since then are kept."""
    result = _run(lambda: installed.uninstall(installed.require_prefix(prefix)), as_json)
    if as_json:
        click.echo(printable_json({"ok": True, **result}))
        return
    for path in result["kept"]:
        click.echo(f"Kept because it has changed: {printable(path)}")
    click.echo(f"Removed from {printable(result['prefix'])}.")


def _run(work: Callable[[], dict[str, Any]], as_json: bool) -> dict[str, Any]:
    """Do the work; turn an expected error into a sentence on stderr, or into JSON with its kind."""
    try:
        return work()
    except BundleError as error:
        kind, message = error.kind, str(error)
    except OSError as error:
        named = error.filename or "The folder"
        kind, message = "disk", f"{named} cannot be read or written ({error.strerror}); fix this and try again."
    if as_json:
        click.echo(printable_json({"ok": False, "kind": kind, "message": message}))
        raise click.exceptions.Exit(1)
    raise LocalRagError(message)


def _plan_lines(plan: dict[str, Any]) -> list[str]:
    lines = [f"A bundle of the profile {plan['profile']} for {plan['output']}:"]
    lines += [f"  {kind}: {of['files']} files, {decimal(of['bytes'])}" for kind, of in plan["kinds"].items()]
    about = "about " if plan["estimated"] else ""
    lines.append(f"Total: {about}{decimal(plan['bytes'])}")
    return lines
