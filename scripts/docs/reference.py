"""What the program says about itself: settings, commands, profiles and the states that `repair` handles."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import click
from click.testing import CliRunner
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from local_rag.cli.main import cli
from local_rag.files import SETTINGS_FILE
from local_rag.maintenance.checks import memory_needed
from local_rag.models.registry import ModelEntry, WheelSource, load_registry
from local_rag.settings import Settings
from scripts.docs.markdown import table
from scripts.docs.packages import PACKAGE, docstring_of

COLUMNS = 80


def _fields(settings: type[BaseModel], table: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield each setting with its field, those of a table under the name `table.setting`."""
    for name, field in settings.model_fields.items():
        if isinstance(field.default, BaseModel):
            yield from _fields(type(field.default), f"{name}.")
        else:
            yield table + name, field


def settings_page() -> str:
    """Describe every field of `Settings`."""
    rows = []
    for name, field in _fields(Settings):
        if not field.description:
            sys.exit(f"The setting {name} has no description; give its Field one in local_rag/settings.py.")
        default = (
            f"`{field.default}`"
            if field.default not in ("", ())
            else "the profile's"
            if name.endswith("_model")
            else "none"
        )
        rows.append(
            [f"`{name}`", default, f"`LOCAL_RAG_{name.upper().replace('.', '_')}`", field.description + _limits(field)]
        )
    return f"""# Settings

Written by `scripts/write_docs.py` from `local_rag/settings.py`; do not edit this page.

You can make each choice in three places. The first of these wins:

1. a flag of the command, where it has one ([commands.md](commands.md));
2. an environment variable that is not empty;
3. a line such as `passages = 10` in the file `{SETTINGS_FILE}` of the library folder. A setting with a point is in a
   table of its own: write `address` below a line `[cluster]`, or `cluster.address = ...` above all tables.

If you choose nothing, `search` and `ask` use what the library was indexed with, or else the default.

{table(["setting", "default", "environment variable", "meaning"], rows)}

Two more environment variables are not settings of a library. `LOCAL_RAG_MODELS` names the folder of the models.
`HF_ENDPOINT` names a mirror of the Hugging Face Hub for `local-rag models pull`.

How each default was chosen is in [results.md](results.md).
"""


def _limits(field: Any) -> str:
    """Say which values a setting may have."""
    if get_origin(field.annotation) is Literal:
        return f" (one of {', '.join(f'`{value}`' for value in get_args(field.annotation))})"
    names = {"ge": "at least", "gt": "more than"}
    found = [
        f"{words} {getattr(limit, name)}"
        for limit in field.metadata
        for name, words in names.items()
        if hasattr(limit, name)
    ]
    return f" ({', '.join(found)})" if found else ""


def commands_page() -> str:
    """Print the help of every command and subcommand, as a terminal of 80 columns shows it."""
    helps: dict[str, str] = {}
    for path in _command_paths(cli, ()):
        result = CliRunner().invoke(cli, [*path, "--help"], prog_name="local-rag", terminal_width=COLUMNS)
        text = "\n".join(line.rstrip() for line in result.output.splitlines())
        if result.exit_code or not text:
            sys.exit(f"`local-rag {' '.join(path)} --help` fails: {result.output or result.exception}")
        if text not in helps.values():  # `eval` shows the help of `eval run`
            helps[" ".join(("local-rag", *path))] = text
    sections = "\n\n".join(f"## {name}\n\n```text\n{text}\n```" for name, text in helps.items())
    return f"""# Commands

Written by `scripts/write_docs.py` from the `--help` of every command; do not edit this page.

Results go to stdout, progress and warnings to stderr. `--json` prints JSON instead of text. Exit codes: 0 done,
1 failed, 2 wrong usage, 130 stopped by Ctrl-C. Flags of models and of search are also [settings](settings.md).

{sections}
"""


def _command_paths(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _command_paths(child, (*path, name))


def profiles_table() -> str:
    """Show the models of each profile, and what they need of memory and disk."""
    registry = load_registry()
    rows = []
    for profile, roles in registry.profiles.items():
        entries = {role: registry.parts(name) for role, name in roles.items()}
        unique = {entry.name: entry for parts in entries.values() for entry in parts}
        disk = sum(entry.bytes for entry in unique.values())
        memory = memory_needed({role: sum(entry.bytes for entry in parts) for role, parts in entries.items()})
        names = [f"`{roles[role]}`" if role in roles else "none" for role in ("context", "answer", "embed", "rerank")]
        mark = " (not tried here)" if profile in registry.not_tried else ""
        default = " (default)" if profile == Settings.model_fields["profile"].default else ""
        rows.append(
            (disk, [f"`{profile}`{default}{mark}", *names, _gigabytes(memory), _gigabytes(disk), _source(unique)])
        )
    header = ["profile", "writes contexts", "answers", "embeds", "reranks", "memory", "disk", "pulled from"]
    return table(header, [cells for _, cells in sorted(rows)])


def _gigabytes(count: int) -> str:
    return f"{count / 1000**3:.1f} GB"


def _source(entries: Mapping[str, ModelEntry]) -> str:
    sources = [entry.sources for entry in entries.values() if entry.sources]
    indexed = all(any(isinstance(source, WheelSource) for source in several) for several in sources)
    return "Hugging Face Hub or package index" if indexed else "Hugging Face Hub"


def states() -> str:
    """Return the table of states that `repair` follows, from its docstring."""
    lines = docstring_of(PACKAGE / "maintenance" / "restore").splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))
