"""Print an answer: its text as it is written, then remarks on it and its sources."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.cells import get_character_cell_size

from local_rag.answer_records import SHOWN_TABLE_ROWS, Answer, TableAnswer, Written
from local_rag.answering.remarks import remarks, sources_as_lines
from local_rag.asking import AskOptions
from local_rag.cli.options import no_matching_document
from local_rag.display import display_path, printable, row_lines


class AnswerText:
    """Print the text of an answer: on a terminal as it is written, otherwise once it is known.

    On a terminal, what is replaced is erased, as far as it has not been scrolled out.
    """

    def __init__(self) -> None:
        self._live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._text = self._shown = ""

    def __call__(self, written: Written) -> None:
        """Print what was written, on a terminal."""
        if not self._live:
            return
        self._text = written.text if written.replaces else self._text + written.text
        text = printable(self._text).replace("\t", "    ")  # a tab is as wide as its place in the line
        if text.startswith(self._shown):
            click.echo(text[len(self._shown) :], nl=False)
        else:
            self._rewrite(text)
        self._shown = text

    def end(self, answer: Answer) -> None:
        """Leave the text of the answer, and the cursor in the line below it."""
        if self._live:
            self(Written(answer.text, replaces=True))
            click.echo()
        else:
            click.echo(printable(answer.text))

    def _rewrite(self, text: str) -> None:
        """Print a text in the place of the one that is shown, from the first row on in which they differ."""
        width, height = shutil.get_terminal_size()
        old, new = rows_of(self._shown, width), rows_of(text, width)
        same = next((row for row, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(new) - 1)
        same = min(same, len(old) - 1)
        up = len(old) - 1 - same
        if up >= height:  # its first row cannot be reached any more: all of the text, from the first row that can
            up, same = height - 1, 0
        higher = f"\x1b[{up}A" if up else ""
        click.echo(f"{higher}\r\x1b[J{''.join(new[same:])}", nl=False)


def rows_of(text: str, width: int) -> list[str]:
    """Return the rows into which a terminal of this width, in cells, breaks a text; the end of a line is in its row."""
    rows, row, used = list[str](), list[str](), 0
    for character in text:
        size = 0 if character == "\n" else get_character_cell_size(character)
        if used + size > width or row[-1:] == ["\n"]:
            rows.append("".join(row))
            row, used = [], 0
        row.append(character)
        used += size
    rows.append("".join(row))
    return [*rows, ""] if text.endswith("\n") else rows


def _print_rows(table: TableAnswer) -> None:
    width = shutil.get_terminal_size().columns // max(1, min(6, len(table.columns)))
    for number, line in enumerate(row_lines(table, width=max(12, width))):
        click.echo(line if number else f"\n{line}")
    if table.count > SHOWN_TABLE_ROWS:
        click.echo(
            f"{SHOWN_TABLE_ROWS} of {table.count:,} rows; all of them: local-rag query {shlex.quote(table.rows_sql)}"
        )


def print_below(answer: Answer, options: AskOptions, changed: Sequence[str], library: Path) -> None:
    """Print what comes below the text of an answer: remarks and hints on stderr, and the sources.

    `changed` are the paths of cited documents whose files have changed.
    """
    for remark in remarks(answer, display_path, changed):
        click.echo(remark, err=True)
    if answer.table:
        _print_rows(answer.table)
    searched = answer.found or not answer.answered  # not for a greeting
    if options.filters and searched and not answer.passages:
        click.echo(no_matching_document(library, options.filters), err=True)
    for number, line in enumerate(sources_as_lines(answer)):
        click.echo(line if number else f"\n{line}")
