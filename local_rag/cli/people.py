"""`local-rag people`: who may use a library that is served, and what of it."""

from pathlib import Path
from typing import Any, cast

import click

from local_rag.asking import PERSON_ROLES, PersonRole
from local_rag.cli.options import DefaultGroup, json_option, library_options, open_library
from local_rag.display import one_line, printable_json
from local_rag.errors import QuestionError


@click.group(cls=DefaultGroup, default="list")
def command() -> None:
    """Say who may use the library when it is served, and what of it each may see."""


@command.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(PERSON_ROLES),
    default="reader",
    show_default=True,
    help="A reader asks and reads, an editor also adds documents, an owner may do all.",
)
@click.option(
    "--in",
    "within",
    multiple=True,
    metavar="GLOB|PATH",
    help="Only documents that match a pattern such as 'policies/**' below an indexed folder, or that are below an "
    "absolute path; repeat for several alternatives.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only documents with this tag; repeat for several.")
@library_options
def add(name: str, role: str, within: tuple[str, ...], tags: tuple[str, ...], library: Path, **_settings: Any) -> None:
    """Add a person, and print the token with which NAME comes in; it is shown only now.

    What --in and --tag leave out is never read, named or counted for this person, whichever interface asks.
    """
    from local_rag.store.people_file import add_person

    try:
        token = add_person(library.resolve(), name, cast(PersonRole, role), within=within, tags=tags)
    except QuestionError as error:
        raise click.UsageError(str(error)) from None
    click.echo(token)
    click.echo(f"This is the token of {name}; only its hash is kept.", err=True)


@command.command("list")
@library_options
@json_option
def list_command(library: Path, as_json: bool, **_settings: Any) -> None:
    """List the people of the library, their roles, and what each may see."""
    from local_rag.store.people_file import list_people

    people = list_people(library.resolve())
    if as_json:
        listed = [
            {"name": one.name, "role": one.role, "in": list(one.limits.within), "tags": list(one.limits.tags)}
            for one in people
        ]
        click.echo(printable_json(listed))
        return
    for one in people:
        limits = [f"in {pattern}" for pattern in one.limits.within] + [f"tag {tag}" for tag in one.limits.tags]
        click.echo(one_line(f"{one.role:<7} {one.name}  {', '.join(limits) or 'everything'}"))
    if not people:
        click.echo("No people: who has the server's token may do all.", err=True)


@command.command()
@click.argument("name")
@library_options
def remove(name: str, library: Path, **settings: Any) -> None:
    """Remove a person with the conversations of NAME, whose token and sessions end at once."""
    from local_rag.store.people_file import remove_person

    person = remove_person(library.resolve(), name)
    with open_library(library, **settings) as opened:
        conversations = opened.forget_questions(person.id)
    click.echo(f"Removed {one_line(person.name)} and {conversations} conversations.")
