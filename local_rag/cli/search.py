"""`local-rag search`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from local_rag.cli.options import library_options, search_options

if TYPE_CHECKING:
    from local_rag.records import Passage

_SNIPPET_CHARACTERS = 320


@click.command()
@click.argument("question")
@library_options
@search_options
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many passages to print.")
@click.option("--explain", is_flag=True, help="Show the rank and score of each passage in every list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    question: str, library: Path, top: int, explain: bool, no_rerank: bool, as_json: bool, **settings: Any
) -> None:
    """Find the passages that fit a QUESTION."""
    from local_rag.display import printable_json
    from local_rag.library import Library

    if not question.strip():
        raise click.UsageError("The question is empty.")
    with Library(library, **settings) as opened:
        passages = opened.search(question, top=top, rerank=not no_rerank)
        reranked = opened.reranks and not no_rerank
    if as_json:
        found = [passage_as_dict(passage) for passage in passages]
        click.echo(printable_json({"question": question, "reranked": reranked, "passages": found}))
        return
    for number, passage in enumerate(passages, start=1):
        click.echo(passage_as_text(number, passage, explain=explain))
    if not passages:
        click.echo("No passage fits; `local-rag index` adds documents.", err=True)
    elif not opened.reranks:
        click.echo(f"The profile {opened.settings.profile} has no cross-encoder: this is the fused order.", err=True)


def passage_as_dict(passage: "Passage") -> dict[str, Any]:
    """Return a passage for JSON."""
    return {
        "location": passage.location,
        "path": passage.path,
        "title": passage.title,
        "headings": passage.headings,
        "page": passage.page,
        "line": passage.line,
        "end_line": passage.end_line,
        "text": passage.text,
        "context": passage.context,
        "score": passage.score,
        "ranks": {hit.list_name: {"rank": hit.rank, "score": hit.score} for hit in passage.hits},
    }


def passage_as_text(number: int, passage: "Passage", *, explain: bool = False) -> str:
    """Return a passage for people: where it stands, under which headings, how it begins."""
    from local_rag.display import one_line
    from local_rag.indexing.contextualize import headings_context

    snippet = " ".join(passage.text.split())
    if len(snippet) > _SNIPPET_CHARACTERS:
        snippet = snippet[:_SNIPPET_CHARACTERS].rsplit(" ", 1)[0] + " ..."
    lines = [
        f"{click.style(f'[{number}] {one_line(passage.location)}', bold=True)}  "
        f"{one_line(headings_context(passage.title, passage.headings))}",
        f"    {one_line(snippet)}",
    ]
    if explain:
        ranks = ", ".join(f"{hit.list_name} #{hit.rank} ({hit.score:.4g})" for hit in passage.hits)
        lines.append(f"    {ranks}")
        if passage.context:
            lines.append(f"    context ({passage.context_kind}): {one_line(passage.context)}")
    return "\n".join(lines)
