"""Write into the docs what the program itself can say of its settings, commands, packages, profiles and speed.

    .venv/bin/python scripts/write_docs.py            # write what is stale
    .venv/bin/python scripts/write_docs.py --check    # name what is stale, write nothing, exit code 1

docs/settings.md and docs/commands.md are written whole. In other pages a part is written that stands between the
comments `<!-- NAME: written by ... -->` and `<!-- end of NAME -->`: see `parts`.
"""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

from local_rag.cli.main import cli
from local_rag.files import SETTINGS_FILE
from local_rag.maintenance.checks import memory_needed
from local_rag.models.registry import ModelEntry, WheelSource, load_registry
from local_rag.records import Role
from local_rag.settings import Settings
from scripts.docs.packages import (
    CHECKOUT,
    PACKAGE,
    docstring_of,
    forbidden_imports,
    numbered_layers,
    package_imports,
)

COMMAND = ".venv/bin/python scripts/write_docs.py"
COLUMNS = 80

_ALL_DOWN = (
    "No package imports from a higher layer or from its own. `lint-imports`, which `scripts/test.sh` runs, checks this "
    "on every change."
)
VARIANTS = (
    ("no reuse: every prompt from its first token", ("seconds_per_chunk", "no_reuse")),
    ("prefix matching: `Llama.create_completion`, chunk by chunk", ("seconds_per_chunk", "prefix_matching")),
    ("this engine, the same prompt", ("seconds_per_chunk", "engine")),
    ("prefix matching, prompt cut at the chunk", ("cut", "seconds_per_chunk", "prefix_matching")),
    ("this engine, prompt cut at the chunk", ("cut", "seconds_per_chunk", "engine")),
    (
        "the same with the copy that `index` makes where it is faster",
        ("optimized", "cut", "seconds_per_chunk", "engine"),
    ),
)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows))


def prose(text: str, bullet: str = "") -> str:
    """Break a text into lines, behind a bullet where it is one of a list."""
    return textwrap.fill(text, 120, initial_indent=bullet, subsequent_indent=" " * len(bullet))


def measured(pattern: str) -> Any:
    """Read the measurement whose file name fits a pattern."""
    path = next((CHECKOUT / "docs" / "measurements").glob(pattern))
    return json.loads(path.read_text(encoding="utf-8"))


def fill(page: str, name: str, text: str) -> str:
    """Put a text between the two comments that carry a name; they must stand there once."""
    pattern = rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)"
    filled, count = re.subn(pattern, lambda found: f"{found[1]}{text}\n\n{found[2]}", page, flags=re.DOTALL)
    if count != 1:
        sys.exit(f"The comments of `{name}` stand {count} times in a page instead of once; restore them.")
    return filled


# Settings


def settings_page() -> str:
    """Describe every field of `Settings`."""
    rows = []
    for name, field in Settings.model_fields.items():
        if not field.description:
            sys.exit(f"The setting {name} has no description; give its Field one in local_rag/settings.py.")
        default = (
            f"`{field.default}`" if field.default != "" else "the profile's" if name.endswith("_model") else "none"
        )
        rows.append([f"`{name}`", default, f"`LOCAL_RAG_{name.upper()}`", field.description + _limits(field)])
    return f"""# Settings

Written by `scripts/write_docs.py` from `local_rag/settings.py`; not edited by hand.

Every choice can be made in three places. The first that makes it wins:

1. a flag of the command, where it has one ([commands.md](commands.md));
2. an environment variable that is not empty;
3. a line such as `passages = 10` in the file `{SETTINGS_FILE}` of the library folder.

Where none does, `search` and `ask` take what the library was indexed with, and then the default.

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


# Commands


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

Written by `scripts/write_docs.py` from the `--help` of every command; not edited by hand.

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


# Packages


def packages_table() -> str:
    """Describe each package in the first paragraph of its docstring."""
    rows = []
    for layer, names in numbered_layers():
        for name in names:
            first = docstring_of(PACKAGE / name).split("\n\n", maxsplit=1)[0]
            suffix = "/" if (PACKAGE / name).is_dir() else ".py"
            rows.append([str(layer), f"`{name}{suffix}`", " ".join(first.split())])
    return table(["layer", "package", "what it is for"], rows)


def import_map() -> str:
    """List the packages that each package imports, and say whether an import goes up."""
    imports = {name: package_imports(name) for _, names in numbered_layers() for name in names}
    width = max(map(len, imports))
    lines = []
    for layer, names in numbered_layers():
        for name in names:
            start = f"{layer:>2}  {name:<{width}} -> "
            used = textwrap.fill(
                " ".join(sorted(imports[name])), 110, initial_indent=start, subsequent_indent=" " * len(start)
            )
            lines.append(used or f"{layer:>2}  {name}")
    drawing = "\n".join(["```text", *lines, "```"])
    wrong = "; ".join(forbidden_imports(imports))
    said = f"Imports that break this rule: {wrong}." if wrong else _ALL_DOWN
    return f"{drawing}\n\n{prose(said)}"


# Profiles, speed, answers, states


def profiles_table() -> str:
    """Show the models of each profile, and what they need of memory and disk."""
    registry = load_registry()
    rows = []
    for profile, roles in registry.profiles.items():
        entries = {role: registry.models[name] for role, name in roles.items()}
        disk = sum(entry.bytes for entry in {entry.name: entry for entry in entries.values()}.values())
        memory = memory_needed({role: entry.bytes for role, entry in entries.items()})
        names = [
            f"`{entries[role].name}`" if role in entries else "none"
            for role in ("context", "answer", "embed", "rerank")
        ]
        default = " (default)" if profile == Settings.model_fields["profile"].default else ""
        rows.append((disk, [f"`{profile}`{default}", *names, _gigabytes(memory), _gigabytes(disk), _source(entries)]))
    header = ["profile", "writes contexts", "answers", "embeds", "reranks", "memory", "disk", "pulled from"]
    return table(header, [cells for _, cells in sorted(rows)])


def _gigabytes(count: int) -> str:
    return f"{count / 1000**3:.1f} GB"


def _source(entries: Mapping[Role, ModelEntry]) -> str:
    sources = [entry.source for entry in entries.values() if entry.source]
    return "package index" if all(isinstance(source, WheelSource) for source in sources) else "Hugging Face Hub"


def speed() -> str:
    """Show how fast contexts are written, from what contextualize.py has left."""
    run = measured("contexts-*.json")
    baseline = run["seconds_per_chunk"]["prefix_matching"]
    rows = []
    for title, path in VARIANTS:
        seconds = run
        for name in path:
            seconds = seconds[name]
        rows.append([title, f"{seconds:.2f}", f"{baseline / seconds:.2f}"])
    usual, cut = (one["tokens_reused"] / (one["tokens_reused"] + one["tokens_evaluated"]) for one in (run, run["cut"]))
    head = prose(
        f"{run['chunks']} chunks of a document of {run['document_tokens']:,} tokens, {run['model']}, greedy decoding, "
        f"{run['cores']} cores of an {run['processor']}, no GPU. The figures are medians of {run['rounds']} rounds in "
        "which all variants take turns."
    )
    notes = (
        f"Of the prompt's tokens {usual:.0%} came from the KV cache with the usual prompt, and {cut:.0%} with the cut "
        "one, which is shorter.",
        f"With the usual prompt the engine ran at {run['share_of_limit']:.0%} of what the rates of reading and "
        "decoding, measured in the same run, allow for these token counts.",
        f"{run['contexts_equal']} of {run['contexts']} contexts equal those of prefix matching token for token. Where "
        f"another first differs, the two tokens are at most {run['largest_gap_at_first_difference']:.2f} of log "
        "probability apart: batches of other shapes round differently.",
    )
    figures = table(["variant", "seconds a chunk", "times as fast as prefix matching"], rows)
    return "\n\n".join([head, figures, "\n".join(prose(note, "- ") for note in notes)])


def answers() -> str:
    """Show what the threshold of the answer check trades, from what was counted."""
    report = measured("answers.json")
    counts, registry = report["all"], load_registry()
    used = registry.models[registry.profiles[report["profile"]]["answer"]].answered_log_odds
    rows = []
    for row in report["thresholds"]:
        right = "not counted" if row["right_answer"] is None else str(row["right_answer"])
        refused = counts["answerable"] - row["answered"]
        threshold = f"{row['answered_log_odds']:g}" + (" (in use)" if row["answered_log_odds"] == used else "")
        rows.append([threshold, right, str(refused), str(row["refused"])])
    head = prose(
        f"{counts['answerable']} questions that `corpus/` answers and {counts['unanswerable']} that it does not, "
        f"profile `{report['profile']}`. For {counts['right_document_retrieved']} of the {counts['answerable']} the "
        f"right document was among the passages read. Median: {counts['median_seconds']} seconds a question."
    )
    answerable, others = (f"of the {counts[name]}" for name in ("answerable", "unanswerable"))
    header = ["threshold", f"every fact right, {answerable}", f"refused, {answerable}", f"refused, {others}"]
    return f"{head}\n\n{table(header, rows)}"


def states() -> str:
    """Return the table of states that `repair` follows, from its docstring."""
    lines = docstring_of(PACKAGE / "maintenance" / "repair").splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def parts() -> dict[str, dict[str, str]]:
    """Return the parts to write: page, name of the part, text."""
    return {
        "README.md": {"profiles": profiles_table()},
        "docs/architecture.md": {"packages": packages_table(), "imports": import_map()},
        "docs/engine.md": {"speed": speed()},
        "docs/how-it-works.md": {"answers": answers()},
        "docs/library-folder.md": {"states": states()},
    }


def main() -> None:
    """Write, or with --check name, what is stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where something is stale")
    parser.add_argument("--root", type=Path, default=CHECKOUT, help="folder of README.md and docs/")
    arguments = parser.parse_args()
    wanted = {"docs/settings.md": settings_page(), "docs/commands.md": commands_page()}
    for name, texts in parts().items():
        page = (arguments.root / name).read_text(encoding="utf-8")
        for part, text in texts.items():
            page = fill(page, part, text)
        wanted[name] = page
    stale = []
    for name, text in wanted.items():
        path = arguments.root / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not arguments.check:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name} is stale; run `{COMMAND}`." if arguments.check else f"{name} written.")
    sys.exit(1 if arguments.check and stale else 0)


if __name__ == "__main__":
    main()
