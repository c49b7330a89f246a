"""`local-rag index`."""

import math
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, get_args

import click

from local_rag.cli.options import PATH, Command, has_own_process, library_options, model_option, open_library
from local_rag.cli.progress import IndexProgress
from local_rag.display import counted, describe_contexts, display_path, duration, one_line, printable, printable_json
from local_rag.document_records import Chunker, Note, Skipped
from local_rag.errors import LocalRagError
from local_rag.indexing.indexer import IndexReport
from local_rag.indexing.watch import Watch, batches
from local_rag.library import Library
from local_rag.machine import give_way
from local_rag.passage_records import ContextMode, WrittenForm
from local_rag.reading.mailbox import thunderbird_profiles, zotero_folders
from local_rag.settings import Settings

_SHOWN = 20  # lines of a list; all are in the JSON
_LEAST_TOKENS = 16
_PATIENCE_SECONDS = 10.0
_CONTINUE = "run `local-rag index` again to continue."


def _chunk_tokens(_ctx: click.Context, _option: click.Parameter, value: int | None) -> int | None:
    if value and value < _LEAST_TOKENS:
        raise click.BadParameter(f"{value} is less than {_LEAST_TOKENS}; 0 sets the default size.")
    return value


@click.command(cls=Command, epilog="Example: local-rag index documents notes.md --watch")
@click.argument("paths", nargs=-1, type=PATH)
@library_options
@click.option(
    "--context",
    type=click.Choice(get_args(ContextMode)),
    help="The context of chunks. `auto`: a sentence that a model writes for each, and what distinguishes their "
    "document if they can be confused with another; `headings`: only title and headings; `none`: nothing.  "
    "[default: auto]",
)
@click.option(
    "--context-form",
    type=click.Choice(get_args(WrittenForm)),
    help="What the context model writes about a chunk: the question that it answers, or a sentence that situates it. A "
    "model that was not trained for questions writes sentences.  [default: questions]",
)
@click.option(
    "--chunker",
    type=click.Choice(get_args(Chunker)),
    help="How to split documents.  [default: auto, by type of file]",
)
@click.option(
    "--chunk-tokens",
    type=click.IntRange(min=0),
    callback=_chunk_tokens,
    help="Maximum length of a chunk in tokens of the embedder; 0 restores the default.",
)
@click.option("--overlap", type=click.IntRange(min=0), help="Tokens that neighbouring chunks share.  [default: 0]")
@model_option("context", "write contexts with")
@model_option("embed", "embed with")
@click.option(
    "--contexts",
    is_flag=True,
    help="Then write the contexts of all chunks, until they are done or Ctrl-C, and not only for `context_minutes`.",
)
@click.option("--renew-contexts", is_flag=True, help="Recompute what distinguishes each document from the others.")
@click.option("--thunderbird", is_flag=True, help="Also index the mail of Thunderbird's profiles of this user.")
@click.option("--zotero", is_flag=True, help="Also index the literature of this user's Zotero.")
@click.option("--watch", "watches", is_flag=True, help="Keep running and index changes until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(
    paths: tuple[Path, ...],
    library: Path,
    contexts: bool,
    renew_contexts: bool,
    thunderbird: bool,
    zotero: bool,
    watches: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Index folders and files, or without PATHS everything that was indexed before.

    Only new and changed files are processed. You can stop at any time; the same command continues where it stopped.
    """
    if thunderbird:
        paths += _kept_by("Thunderbird", thunderbird_profiles(Path.home()))
    if zotero:
        paths += _kept_by("Zotero", zotero_folders(Path.home()))
    if has_own_process(click.get_current_context()):
        give_way()  # searches meanwhile should not become slower
    live = list[tuple[IndexReport, int]]()  # a report that has been printed, but for later notes and sentences
    with open_library(library, **settings) as opened, IndexProgress() as progress:

        def say(report: IndexReport, sentences: int, seconds: float) -> None:
            progress.stop()
            live.append((report, len(report.notes)))
            if not as_json:
                click.echo(_as_text(report, opened.settings))
            limit = "until all are written" if math.isinf(seconds) else f"for {duration(seconds)} at most"
            said = f"Now the context model writes the contexts of {counted(sentences, 'chunk')}, {limit}"
            click.echo(f"{said}; you can ask already, and stop with Ctrl-C.", err=True)

        try:
            report = opened.index(
                paths, contexts=contexts or None, renew_contexts=renew_contexts, progress=progress, on_live=say
            )
        except KeyboardInterrupt:
            progress.stop()
            if live and as_json:
                click.echo(printable_json(live[0][0]))
            elif live:
                _say_written(*live[0], opened.settings)
            click.echo(f"Stopped. Everything finished is kept; {_CONTINUE}", err=True)
            raise click.exceptions.Exit(130) from None
    if as_json or not live:
        click.echo(printable_json(report) if as_json else _as_text(report, opened.settings))
    else:
        _say_written(*live[0], opened.settings)
    if watches:
        with suppress(KeyboardInterrupt), closing(Watch(opened.folder)) as watch:
            _watch(opened, watch, as_json)


def _kept_by(program: str, folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders in which a program keeps what it has; raise LocalRagError if there is none."""
    if not folders:
        raise LocalRagError(f"No folder of {program} was found below {Path.home()}; name its folder instead.")
    return tuple(folders)


def _watch(opened: Library, watch: Watch, as_json: bool) -> None:
    """Index each batch of changes; report a failure once and retry after a pause."""
    click.echo("Watching for changes; press Ctrl-C to stop.", err=True)
    known = list[Path]()

    def roots() -> Sequence[Path]:
        with suppress(LocalRagError):  # the next `index` reports it
            known[:] = [root.path for root in opened.upkeep.roots()]
        return tuple(known)

    for _ in batches(watch, roots, Event()):
        reported = ""
        while True:
            try:
                with IndexProgress() as progress:
                    report = opened.index(contexts=False, progress=progress)  # the next change does not wait
                break
            except LocalRagError as error:
                if reported != str(error):
                    click.echo(f"Error: {one_line(str(error))}", err=True)
                reported = str(error)
                time.sleep(_PATIENCE_SECONDS)
        if report.published or report.unreachable:
            click.echo(printable_json(report) if as_json else _as_text(report, opened.settings))


def _say_written(report: IndexReport, notes: int, settings: Settings) -> None:
    """Say what was written since the report was printed, which had so many notes."""
    sentences = {kind: count for kind, count in report.contexts.items() if kind != "by_terms"}
    later = replace(report, contexts=sentences, notes=report.notes[notes:])
    for line in (*_context_lines(later, settings), *_note_lines(later.notes)):
        click.echo(printable(line))


def _as_text(report: IndexReport, settings: Settings) -> str:
    names = ("added", "changed", "moved", "removed", "unchanged")
    counts = [f"{getattr(report, name)} {name}" for name in names if getattr(report, name)]
    lines = [f"Documents: {', '.join(counts) or 'none'}.", *_context_lines(report, settings)]
    look_at, expected = report.skipped[: report.to_look_at], report.skipped[report.to_look_at :]
    lines += [
        f"{one_line(display_path(root))} is not reachable; its documents stay until you run `local-rag remove` on it."
        for root in report.unreachable
    ]
    lines += _listed("Not read", map(_skipped, look_at))
    if report.waiting_for_ocr:
        lines.append(
            f"Pages that wait for OCR: {report.waiting_for_ocr}; install local-rag with the extra `ocr`, then run "
            "`local-rag index` again."
        )
    lines += _listed("Removed", (one_line(display_path(path)) for path in report.removed_paths))
    lines += _note_lines(report.notes)
    if report.published or not report.documents:  # otherwise an earlier run has listed them
        lines += _listed("Nothing to read in", map(_skipped, expected))
    if not report.published:
        lines.append("The index is up to date.")
    lines.append(_verdict(report))
    return printable("\n".join(lines))


def _context_lines(report: IndexReport, settings: Settings) -> list[str]:
    """Say which contexts were added, and which are missing."""
    lines = list[str]()
    if report.contexts:
        line = f"Contexts: {', '.join(describe_contexts(report.contexts))}."
        prompt = report.tokens_evaluated + report.tokens_reused
        if report.written:
            line += (
                f" {report.written:,} written in {report.writing_seconds:.0f} s, {report.written_per_second} a second; "
                f"of {prompt:,} prompt tokens {report.share_reused:.0%} came from the KV cache."
            )
        lines.append(line)
    if report.unwritten and settings.context_minutes:
        lines.append(
            f"Contexts still to be written: {report.unwritten:,}. The next `local-rag index` goes on with them, "
            "`local-rag index --contexts` until all are written, and `serve` while nobody asks."
        )
    if report.model_to_pull:
        lines.append(
            f"No sentences were written because the model {report.model_to_pull} is not pulled; run "
            f"`local-rag models pull {report.model_to_pull}`, or index with `--context headings`."
        )
    return lines


def _note_lines(notes: Iterable[Note]) -> list[str]:
    shown = (f"{one_line(display_path(one.path))}: {one_line(one.note)}" for one in notes)
    return _listed("Read, with a remark", shown)


def _listed(title: str, lines: Iterable[str]) -> list[str]:
    """Return a list below its title, cut after some lines; nothing if it is empty."""
    items = list(lines)
    more = [f"  and {len(items) - _SHOWN} more; `--json` lists all"] if len(items) > _SHOWN else []
    return [f"{title} ({len(items)}):", *(f"  {item}" for item in items[:_SHOWN]), *more] if items else []


def _skipped(item: Skipped) -> str:
    kept = " (its last good version is kept)" if item.kept else ""
    return f"{one_line(display_path(item.path))}: {one_line(item.reason)}{kept}"


def _verdict(report: IndexReport) -> str:
    """Say in one line whether a person must look at something."""
    unread = sum(not item.waiting for item in report.skipped[: report.to_look_at])
    concerns = (
        (unread, "file that is not read", "files that are not read"),
        (report.waiting_for_ocr, "page that waits for OCR", "pages that wait for OCR"),
        (len(report.unreachable), "folder that is not reachable", "folders that are not reachable"),
    )
    problems = ", ".join(f"{count} {one if count == 1 else several}" for count, one, several in concerns if count)
    held = f"{counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')}, {report.seconds:.0f} s"
    verdict = f"Please look at: {problems}. Everything else is fine" if problems else "Everything is fine"
    if not report.documents:
        found = f"Please look at: {problems}" if problems else "Nothing was found to read"
        return f"{found}; the library holds no documents, {report.seconds:.0f} s."
    return f'{verdict}: {held}. Next: local-rag ask "your question"'
