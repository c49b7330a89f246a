"""What people say of answers, and what is missing: `local-rag mark` and `local-rag gaps`."""

from pathlib import Path
from typing import Any

import click

from local_rag.asking import Mark
from local_rag.cli.options import FILE, Command, json_option, library_options, open_library
from local_rag.display import counted, display_path, one_line, printable, printable_json
from local_rag.feedback.gaps import gap_as_dict, gaps_as_csv, gaps_as_lines, gaps_as_markdown
from local_rag.files import require_place, writable, write_whole
from local_rag.serving.answer_markdown import escaped

_MARKS: tuple[Mark, ...] = ("right", "wrong")


@click.command(cls=Command, epilog="Example: local-rag mark wrong")
@click.argument("verdict", required=False, metavar="[right|wrong]")
@click.argument("question", required=False)
@library_options
@click.option("--undo", is_flag=True, help="Take back the mark of QUESTION, or the last one.")
@json_option
def mark(verdict: str | None, question: str | None, library: Path, undo: bool, as_json: bool, **settings: Any) -> None:
    """Say that the last answer was right or wrong, or the last one to QUESTION.

    After 20 new marks, local-rag checks whether another least probability of an answer would do better on marks that it
    was not chosen by, and if so gives answers from that one on. It says so on stderr. `local-rag eval marks` shows it.
    """
    if undo:
        if question is not None:
            raise click.UsageError("Give --undo the question alone.")
        said, question = None, verdict
    else:
        said = next((one for one in _MARKS if one == verdict), None)
        if said is None:
            raise click.UsageError('Say right or wrong, as in `local-rag mark wrong "QUESTION"`.')
    with open_library(library, **settings) as opened:
        marked = opened.feedback.mark(question, said)
        opened.feedback.gate_notice()  # it is told below
    if as_json:
        click.echo(printable_json(marked))
    else:
        what = f"Marked as {marked.mark}" if marked.mark else "No longer marked"
        click.echo(one_line(f"{what}: {marked.question}"))
        if marked.gate is None:
            click.echo(f"The gate is fitted after {counted(marked.until_refit, 'more mark')}.", err=True)
    if marked.gate is not None:
        click.echo(one_line(marked.gate), err=True)


@click.command(cls=Command, epilog="Example: local-rag gaps --output gaps.md")
@library_options
@click.option("--output", type=FILE, help="Write them to a file, .md or .csv.")
@json_option
def gaps(library: Path, output: Path | None, as_json: bool, **settings: Any) -> None:
    """List what is missing: the questions that were refused or marked as wrong, grouped by meaning, newest first.

    Each group says which document came closest, and what a document would have to say.
    """
    if output and output.suffix.lower() not in {".md", ".csv"}:
        raise click.UsageError(f"{output} ends neither in .md nor in .csv.")
    if output:
        require_place(output)
    with open_library(library, **settings) as opened:
        found = opened.feedback.gaps()
        is_kept = opened.settings.retention.conversations
    if output:
        text = gaps_as_csv(found) if output.suffix.lower() == ".csv" else gaps_as_markdown(found, escaped)
        with writable(output):
            write_whole(output, text)
        click.echo(f"{counted(len(found), 'group').capitalize()} in {one_line(display_path(output))}.", err=True)
    if as_json:
        click.echo(printable_json({"gaps": [gap_as_dict(one, display_path) for one in found]}))
    elif not output:
        for line in gaps_as_lines(found):
            click.echo(printable(line))
    if not found and not is_kept:
        click.echo("The setting history is off, so no question is kept.", err=True)
    elif not found:
        click.echo("Nothing was refused or marked as wrong.", err=True)
