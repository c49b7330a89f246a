"""`local-rag ask`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import (
    Command,
    ask_options,
    json_option,
    library_options,
    model_option,
    open_library,
    require_question,
)
from local_rag.cli.search import NO_MATCHING_DOCUMENT, location_as_text, passage_as_text
from local_rag.display import answer_as_dict, changed_citations, display_path, one_line, printable, printable_json
from local_rag.records import Answer, AskOptions, Passage
from local_rag.serialization import from_plain
from local_rag.serving.socket_client import ask_server


@click.command(cls=Command)
@click.argument("question")
@library_options
@model_option("answer", "answer with")
@ask_options("ask")
@click.option("--show-passages", is_flag=True, help="Print the passages found, before the answer.")
@click.option("--verbose", is_flag=True, help="Report on stderr whether a running server answered.")
@json_option
def command(
    question: str,
    library: Path,
    options: AskOptions,
    show_passages: bool,
    verbose: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Answer a QUESTION from the indexed documents with citations, or report that they do not contain the answer."""
    require_question(question)

    def show(found: Sequence[Passage]) -> None:
        if show_passages and not as_json:
            for number, passage in enumerate(found, start=1):
                click.echo(passage_as_text(number, passage))
            click.echo()

    def write(text: str) -> None:
        if not as_json:
            click.echo(printable(text), nl=False)

    def on_event(event: str, value: Any) -> None:
        if event == "passages":
            show([from_plain(Passage, fields) for fields in value])
        elif event == "token":
            write(value)

    if served := ask_server(library, settings, {"do": "ask", "question": question, "options": options}, on_event):
        answer = from_plain(Answer, served["found"]["answer"])
        if verbose:
            again = " The answer was given before." if served["found"]["again"] else ""
            click.echo(f"Answered by the running server of this library.{again}", err=True)
    else:
        with open_library(library, **settings) as opened:
            answer = opened.ask(question, options, on_passages=show, on_text=write)
    if as_json:
        click.echo(printable_json(answer_as_dict(answer)))
        return
    click.echo()
    if options.filters and not answer.passages:
        click.echo(NO_MATCHING_DOCUMENT, err=True)
    if answer.citations:
        click.echo("\nSources:")
    for citation in answer.citations:
        click.echo(f"  [{citation.number}] {location_as_text(citation.passage)}")
    if answer.closest:
        click.echo(f"\nClosest passages ({_reason(answer)}):")
    for passage in answer.closest:
        click.echo(f"  {location_as_text(passage)}")
    if answer.removed_citations:
        numbers = ", ".join(map(str, answer.removed_citations))
        click.echo(f"Removed citations to sources that do not exist: {numbers}.", err=True)
    for remark in remarks(answer, strict=options.strict):
        click.echo(one_line(remark), err=True)


def _reason(answer: Answer) -> str:
    """Return why there is no answer."""
    if answer.log_odds is None or answer.threshold is None:
        return "none was read"
    if answer.log_odds >= answer.threshold:
        return "they support no sentence of the answer"
    return f"confidence too low: log odds {answer.log_odds:.1f}, threshold {answer.threshold:.1f}"


def remarks(answer: Answer, *, strict: bool) -> Iterator[str]:
    """Yield remarks on an answer, one line each: changed citations, similar documents, unsupported sentences."""
    yield from changed_citations(answer)
    if answer.look_alikes:
        about = answer.citations[0].passage
        others = "; ".join(f"{one.title} ({display_path(one.location)})" for one in answer.look_alikes)
        yield f"This answer is about: {about.title}. Similar passages are in: {others}."
    for support in answer.support:
        if not support.supported:
            missing = f"{', '.join(support.missing)} does not occur in the sources of: {support.sentence}"
            yield f"Left out because {missing}" if strict else missing
