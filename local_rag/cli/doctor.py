"""`local-rag doctor`."""

import sys
from itertools import chain
from pathlib import Path

import click

from local_rag.bundle.installed import receipt
from local_rag.bundle.prefix import differences
from local_rag.cli.loaded import running_as_text
from local_rag.cli.options import Command, json_option, library_options
from local_rag.display import one_line, printable_json
from local_rag.maintenance.checks import CheckResult, check_bundle, diagnose
from local_rag.serving.socket_client import running

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red"}


@click.command(cls=Command, epilog="Example: local-rag doctor --profile starter")
@library_options
@json_option
def command(library: Path, profile: str | None, as_json: bool) -> None:
    """Check this machine, the models and the library, and say how to fix each problem.

    Hashes the models and generates a few tokens with them. If local-rag was installed from a bundle, names the bundle
    and the differences from its manifest. The exit code is 1 if a check fails.
    """
    installed = receipt()
    bundled = [check_bundle(installed, list(differences(Path(sys.prefix))))] if installed else []
    found = running(library.resolve())
    process = [CheckResult("process", "ok", running_as_text(found, library))] if found else []
    results = []
    for result in chain(bundled, diagnose(library, profile=profile), process):
        results.append(result)
        if not as_json:
            mark = click.style(f"{result.severity:8}", fg=_COLOURS[result.severity])
            remedy = f"  -> {result.remedy}" if result.remedy else ""
            click.echo(f"{mark}{result.name}: {one_line(result.message)}{one_line(remedy)}")
    if as_json:
        click.echo(printable_json(results, indent=1))
    if any(result.severity == "failed" for result in results):
        raise click.exceptions.Exit(1)
