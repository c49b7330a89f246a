"""The `local-rag scrape` command."""

from pathlib import Path
from typing import Any

import click

from local_rag.cli.options import FOLDER, FetchingCommand
from local_rag.display import one_line, printable_json
from local_rag.errors import LocalRagError, NetworkError
from local_rag.scraping.convert import check_selector
from local_rag.scraping.fetch import normalize_url
from local_rag.scraping.scraper import scrape


@click.command(
    "scrape",
    cls=FetchingCommand,
    epilog="Example: local-rag scrape https://example.org/handbook --depth 2",
)
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option("--depth", type=click.IntRange(min=0), default=0, help="How many links to follow.")
@click.option("--same-site/--any-site", default=True, help="Which links to follow.")
@click.option("--max-pages", type=click.IntRange(min=1), default=100, help="Stop after this many pages.")
@click.option("--delay", type=click.FloatRange(min=0), default=1.0, help="Seconds between two requests.")
@click.option(
    "--output",
    type=FOLDER,
    default=Path("scraped"),
    help="Folder for the files, with one subfolder per host.",
)
@click.option("--selector", metavar="CSS", help="Keep what this selector matches instead of the main content.")
@click.option("--allow-private", is_flag=True, help="Follow links and redirects to private addresses.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per page.")
def command(
    *, urls: tuple[str, ...], max_pages: int, output: Path, selector: str | None, as_json: bool, **limits: Any
) -> None:
    """Fetch web pages as Markdown files to index.

    Of a web page only the main content is kept; text and PDF files are kept unchanged. Run it again to fetch changes.
    Pages that robots.txt forbids are not fetched.
    """
    try:
        addresses = [normalize_url(url) for url in urls]
        if selector is not None:
            check_selector(selector)
    except LocalRagError as error:
        raise click.UsageError(str(error)) from None
    counts = {"written": 0, "unchanged": 0, "skipped": 0}
    for page in scrape(addresses, output=output, max_pages=max_pages, selector=selector, **limits):
        counts[page.status] += 1
        if as_json:
            path = None if page.path is None else str(page.path)
            click.echo(printable_json({"url": page.url, "path": path, "status": page.status, "reason": page.reason}))
        elif page.path is not None:
            click.echo(one_line(str(page.path)))
        if page.status != "written":
            click.echo(one_line(f"{page.status}: {page.url}" + (f": {page.reason}" if page.reason else "")), err=True)
    if sum(counts.values()) == max_pages:
        click.echo(f"Stopped at --max-pages {max_pages}.", err=True)
    click.echo(", ".join(f"{count} {status}" for status, count in counts.items()) + f" in {output}.", err=True)
    if counts["written"] + counts["unchanged"] == 0:
        raise NetworkError("No page could be fetched; see the reasons above and try again.")
