"""`local-rag chat`."""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from local_rag.answer_records import Answer, Written
from local_rag.asking import AskOptions, KeptConversation, Turn
from local_rag.cli.answer_output import AnswerText, print_below
from local_rag.cli.loaded import Loaded
from local_rag.cli.options import (
    Command,
    json_option,
    library_options,
    model_option,
    open_library,
    search_options,
)
from local_rag.cli.search import passage_as_text
from local_rag.display import answer_as_dict, display_path, one_line, printable, printable_json
from local_rag.errors import LocalRagError, MissingError
from local_rag.files import permissions_of_regular, writable, write_whole
from local_rag.serialization import from_plain

if TYPE_CHECKING:
    from local_rag.conversation import Conversation
    from local_rag.library import Library

_HELP = """\
/sources         show the passages read for the last answer
/new             start a new subject: the next question is not a follow-up
/in [GLOB ...]   search only documents that match a pattern; without one: all
/save FILE       write the conversation as Markdown, with the passages it cites
/list            list the stored conversations
/switch NUMBER   continue another conversation, by its number in the list
/forget [NUMBER] delete a conversation; without a number: this one
/quit            quit, like Ctrl-D"""

_FROM_BEFORE = (
    "Nothing is written to a file, but history.sqlite3 still holds conversations from before the setting history was "
    "turned off; `local-rag clean --history` deletes them."
)


@click.command(cls=Command, epilog="Example: local-rag chat --in 'policies/**'")
@library_options
@model_option("answer", "answer with")
@search_options
@json_option
def command(library: Path, options: AskOptions, as_json: bool, **settings: Any) -> None:
    """Ask questions in a conversation; each follow-up is searched together with the earlier questions on its subject.

    Lines that begin with a slash are commands; /help lists them. The library stores conversations.
    """
    loaded = Loaded(library, settings)
    with (
        open_library(library, **settings) as opened,
        contextlib.closing(opened.chat(partial(_answer, loaded, opened))) as conversation,
    ):
        opened.documents.require_any()
        opened.retrieval.manifest()  # reports a library that cannot be searched before the first question
        conversation.options = options
        if not opened.settings.retention.conversations and opened.history.kept().conversations:
            click.echo(_FROM_BEFORE, err=True)
        asks, listed = sys.stdin is not None and sys.stdin.isatty(), Listed()
        if asks:
            _load_line_history(conversation)
            click.echo("Ask, or type /help. Ctrl-D ends.", err=True)
        while (line := _read_line("> " if asks else "")) is not None:
            try:
                if line.startswith("/"):
                    if not _obey(line, conversation, listed):
                        break
                elif line:
                    _ask(line, conversation, opened, as_json=as_json)
            except LocalRagError as error:
                click.echo(f"Error: {one_line(str(error))}", err=True)
            except KeyboardInterrupt:
                click.echo("\nStopped.", err=True)


def _answer(
    loaded: Loaded,
    opened: "Library",
    question: str,
    options: AskOptions,
    /,
    *,
    earlier: tuple[Turn, ...],
    on_text: Callable[[Written], None],
) -> Answer:
    """Answer a question by the process that has the models loaded, or else by a library that is open here."""

    def on_event(event: str, value: Any) -> None:
        if event == "token":
            on_text(from_plain(Written, value))

    request = {"do": "ask", "question": question, "options": options, "earlier": earlier}
    if served := loaded.ask(request, on_event):
        answer: Answer = from_plain(Answer, served["found"]["answer"])
        return answer
    return opened.ask(question, options, earlier=earlier, on_text=on_text)


def _read_line(prompt: str) -> str | None:
    """Read a line; None at the end of the input, or without one; Ctrl-C discards the line being typed."""
    if sys.stdin is None:
        return None
    try:
        return input(prompt).strip()
    except EOFError:
        return None
    except KeyboardInterrupt:
        click.echo(err=True)
        return ""


def _load_line_history(conversation: "Conversation") -> None:
    with contextlib.suppress(ImportError):
        import readline

        readline.clear_history()
        for question in conversation.questions():
            readline.add_history(printable(question))


def _ask(question: str, conversation: "Conversation", opened: "Library", *, as_json: bool) -> None:
    if len(conversation.turns) == 1 and not as_json:
        click.echo("(A follow-up is searched together with earlier questions; /new starts a new subject.)", err=True)

    text = None if as_json else AnswerText()
    answer = conversation.ask(question, on_text=text or (lambda _written: None))
    if text is None:
        click.echo(printable_json(answer_as_dict(answer)))
        return
    text.end(answer)
    print_below(answer, conversation.options, opened.documents.changed(answer), opened.folder)
    if conversation.notice:
        click.echo(one_line(conversation.notice), err=True)


Listed = dict[int, KeptConversation]  # the conversations by their numbers, as they were last listed


def _list(conversation: "Conversation", listed: Listed) -> None:
    kept = conversation.kept()
    listed.clear()
    listed.update({len(kept) - position: one for position, one in enumerate(kept)})


def _named(number: str, conversation: "Conversation", listed: Listed) -> str:
    if not listed:
        _list(conversation, listed)
    if (one := listed.get(int(number))) is None:
        raise MissingError(f"There is no conversation {number}; /list shows those that there are.")
    return one.id


def _obey(line: str, conversation: "Conversation", listed: Listed) -> bool:
    """Run a command that begins with a slash; return whether to continue."""
    name, *words = line.split()
    rest = line[len(name) :].strip()
    if name in {"/quit", "/exit"}:
        return False
    if name == "/sources":
        for number, passage in enumerate(conversation.passages, start=1):
            click.echo(passage_as_text(number, passage))
        if not conversation.passages:
            click.echo("No passages have been read yet.", err=True)
    elif name == "/new":
        conversation.new_subject()
        click.echo("New subject.", err=True)
    elif name == "/in":
        filters = replace(conversation.options.filters, within=tuple(words))
        conversation.options = replace(conversation.options, filters=filters)
        click.echo(f"Searching {', '.join(words) or 'all documents'}.", err=True)
    elif name == "/save" and rest:
        _save(Path(rest).expanduser(), conversation)
    elif name == "/list":
        _list(conversation, listed)
        for number, kept in listed.items():
            mark = "*" if kept.id == conversation.id else " "
            click.echo(f"{mark}{number:>4}  {kept.started}  {kept.turns:>3}  {one_line(kept.title)}")
    elif name == "/switch" and rest.isdecimal():
        conversation.switch(_named(rest, conversation, listed))
        click.echo(f"Conversation {int(rest)}.", err=True)
    elif name == "/forget" and (rest.isdecimal() or not rest):
        conversation.forget(_named(rest, conversation, listed) if rest else None)
        click.echo("Deleted.", err=True)
    else:
        is_known = name in {"/help", *(one.split()[0] for one in _HELP.splitlines())}
        said = "" if is_known else f"There is no command {one_line(name)}; these are the commands:\n"
        click.echo(f"{said}{_HELP}", err=name != "/help")
    return True


def _save(path: Path, conversation: "Conversation") -> None:
    with writable(path):
        if permissions_of_regular(path) is not None:
            raise FileExistsError(17, "it already exists")
        write_whole(path, printable(conversation.as_markdown()))
    click.echo(f"Saved as {one_line(display_path(path))}.", err=True)
