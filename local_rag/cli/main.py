"""The `local-rag` command: a group whose commands are imported only when they run."""

import codecs
import errno
import importlib
import io
import json
import os
import sys
import tempfile
from typing import Any

import click

from local_rag.cli.options import Invocation
from local_rag.display import one_line
from local_rag.errors import LocalRagError, nearest
from local_rag.machine import is_supported

COMMANDS = {
    "ask": "Answer a question from the indexed documents, with citations.",
    "brief": "Sum up documents in quotations, without a language model.",
    "bundle": "Move the program, its models and a library to a machine without a network.",
    "chat": "Ask questions in a conversation.",
    "clean": "Delete what the library no longer needs.",
    "cluster": "Index on several machines, and keep the index in a search engine.",
    "diff": "Say what changed between two documents, without a language model.",
    "doctor": "Check this machine, the models and the library, and say how to fix each problem.",
    "documents": "List the documents and what each is about.",
    "eval": "Measure retrieval on questions whose passages are known.",
    "extract": "Ask every document the same questions, and write the answers as a table.",
    "find": "Count or list the documents that contain words, or that are about something.",
    "gaps": "List the questions that the documents did not answer, grouped by meaning.",
    "index": "Index folders and files; run it again after they change.",
    "mark": "Say that an answer was right or wrong.",
    "mcp": "Serve the library to editors, assistants and other MCP hosts.",
    "models": "List, pull and verify the models.",
    "people": "Choose who may use a served library, and what each person can see.",
    "plan": "Say what a question asks for, without a language model.",
    "query": "Run a SELECT on the tables of the documents.",
    "remove": "Remove documents from the library.",
    "repair": "Check the library and rebuild what is damaged.",
    "roots": "List the indexed folders, or record that one has moved.",
    "scrape": "Fetch web pages as Markdown files to index.",
    "search": "Find the passages that fit a question.",
    "serve": "Serve a web page that answers questions and shows the evidence.",
    "status": "Show what the library contains, and what is out of date and why.",
    "stop": "End the process that keeps the models loaded.",
    "tables": "List the tables of the documents, with their columns.",
    "verify": "Check what a text says against the documents, statement by statement.",
}
# The modules of commands that have another name or share one; in it each is called like the command. Others are the
# `command` of their own.
_MODULES = {
    **dict.fromkeys(("brief", "diff"), "digests"),
    **dict.fromkeys(("clean", "remove", "repair", "roots"), "maintenance"),
    **dict.fromkeys(("documents", "status"), "status"),
    **dict.fromkeys(("find", "search"), "search"),
    **dict.fromkeys(("gaps", "mark"), "feedback"),
    **dict.fromkeys(("query", "tables"), "tables"),
    **dict.fromkeys(("mcp", "people", "serve"), "serve"),
    "verify": "verification",
}


class LazyGroup(click.Group):
    """A group that imports the module of a command only when it is used, so `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names, or say which one has nearly that name."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}; {nearest(args[0], COMMANDS) or 'see `local-rag --help`.'}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"local_rag.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name if cmd_name in _MODULES else "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn an expected error into one sentence on stderr and exit code 1."""
        try:
            return super().invoke(ctx)
        except LocalRagError as error:
            raise click.ClickException(one_line(str(error))) from error
        except OSError as error:
            if error.errno != errno.ENOSPC or error.filename:
                raise
            raise click.ClickException("The results cannot be written, because the disk is full.") from None
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)
            raise click.exceptions.Exit(130) from None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog='Example: local-rag ask "How long is parental leave?"',
)
@click.version_option(package_name="local-rag", prog_name="local-rag")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Ask questions of your own documents, with models that run on your own machine."""
    ctx.obj = ctx.obj or Invocation()
    # Importing torch creates a cache folder for its compiler, which is never used; this folder exists already.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())


def main(parts: Any = None) -> None:
    """Run the command line in its own process, whose network access each command blocks."""
    if not is_supported():
        sys.exit("Error: local-rag runs on Linux and macOS; on Windows use it in WSL.")
    codecs.register_error("escape", _escape)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="escape")
    cli(prog_name="local-rag", obj=Invocation(seal=True, parts=parts))


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Escape what the terminal's encoding lacks like JSON does, so that printed JSON stays valid."""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
