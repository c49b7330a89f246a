"""`local-rag verify`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from local_rag.asking import Filters
from local_rag.cli.options import (
    FILE,
    Command,
    json_option,
    library_options,
    model_option,
    open_library,
    say_if_indexed,
    say_what_is_missing,
    stopping,
    version_options,
)
from local_rag.cli.progress import IndexProgress
from local_rag.display import display_path, one_line, printable, printable_json
from local_rag.errors import QuestionError, ReadError
from local_rag.files import require_place, writable, write_whole
from local_rag.reading.isolate import IsolatedReader
from local_rag.serving.answer_markdown import escaped
from local_rag.verification.report import (
    headline,
    verification_as_dict,
    verification_as_lines,
    verification_as_markdown,
)
from local_rag.verification.verdicts import Verification
from local_rag.verification.word_report import verification_as_word

_FORMS = (".md", ".docx", ".json", ".txt")


@click.command(cls=Command, epilog="Example: local-rag verify draft.docx --output checked.docx")
@click.argument("text")
@click.option(
    "--output",
    type=FILE,
    help="A file for the report: .docx and .md are the text with notes, .json and .txt a list of its statements.",
)
@click.option("--allow-missing", is_flag=True, help="Exit with 0 if the only fault is what no document says.")
@click.option(
    "--model/--no-model", default=True, help="Let the answer model decide what words leave open; without it is faster."
)
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Check for at most so many seconds.")
@library_options
@model_option("answer", "decide with")
@version_options
@json_option
def verify(
    text: str,
    output: Path | None,
    allow_missing: bool,
    model: bool,
    seconds: float | None,
    library: Path,
    filters: Filters,
    as_json: bool,
    **settings: Any,
) -> None:
    """Check each statement of TEXT against the indexed documents.

    TEXT is a file (.md, .txt, .docx, or another that `index` reads), `-` for standard input, or the text itself. A
    statement is supported, contradicted, quoted but not there, from another document than it says, superseded, or not
    in these documents. The exit code is 1 if one is anything but supported or no claim. What is checked is not kept.
    """
    if output and output.suffix.lower() not in _FORMS:
        raise QuestionError(
            f"{one_line(display_path(output))} does not end in {', '.join(_FORMS)}; name one that does."
        )
    if output:
        require_place(output)
    written = _read(text)
    with open_library(library, **settings) as opened, IndexProgress() as progress:
        opened.documents.require_any()
        if output:
            say_if_indexed(opened, output)
        with stopping("Stopping; the rest is not checked.") as stopped:
            found = opened.verify(
                written, filters=filters, model=model, seconds=seconds, progress=progress, stop=stopped.is_set
            )
        progress.stop()
        say_what_is_missing(opened)
    if output:
        with writable(display_path(output)):
            write_whole(output, _in_form(output.suffix.lower(), found))
    if as_json:
        click.echo(printable_json(verification_as_dict(found)))
    else:
        for line in [headline(found)] if output else verification_as_lines(found):
            click.echo(line)
    if found.fails(allow_missing=allow_missing):
        raise click.exceptions.Exit(1)


def _read(text: str) -> str:
    """Return the text of a file, of standard input, or as it was given."""
    if text == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    path = Path(text)
    if not _is_file(path):
        if " " not in text.strip() and path.suffix:
            raise QuestionError(f"There is no file {one_line(display_path(path))}; name one, or give a text.")
        return text
    if path.suffix.lower() in {"", ".md", ".txt"}:
        return path.read_bytes().decode("utf-8", "replace")
    with IsolatedReader(None) as reader:
        try:
            return reader.read(path.resolve()).document.text
        except ReadError as error:
            raise QuestionError(f"{one_line(display_path(path))} cannot be checked: {error}.") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a text that is too long for a name
        return False


def _in_form(suffix: str, found: Verification) -> bytes:
    if suffix == ".docx":
        return verification_as_word(found)
    lines: Sequence[str] = [*verification_as_lines(found)]
    forms = {
        ".md": lambda: printable(verification_as_markdown(found, escaped)),
        ".json": lambda: printable_json(verification_as_dict(found), indent=1),
        ".txt": lambda: "\n".join(lines),
    }
    return f"{forms[suffix]()}\n".encode()
