"""The `local-rag` command: a group whose commands are imported only when they run."""

import importlib
from typing import Any

import click

from local_rag.errors import LocalRagError

COMMANDS = {
    "ask": "Answer a question from the indexed documents, with citations.",
    "index": "Index folders and files; run again after they change.",
    "models": "List, pull and verify the models.",
    "scrape": "Fetch web pages as Markdown files to index.",
    "search": "Find the passages that fit a question.",
}


class LazyGroup(click.Group):
    """Import a command's module when it is named, so that `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"local_rag.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an expected failure becomes one sentence on stderr and exit code 1."""
        try:
            return super().invoke(ctx)
        except LocalRagError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)
            raise click.exceptions.Exit(130) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="local-rag", prog_name="local-rag")
def cli() -> None:
    """Ask questions of your own documents, with models that run on your own machine."""


def main() -> None:
    """Run the command line."""
    cli(prog_name="local-rag")
