"""Pages for a test's web server, and how to scrape them without a pause."""

from pathlib import Path
from typing import Any

import yaml

from local_rag.scraping.scraper import ScrapedPage, scrape
from tests.support.web_server import Reply, WebServer

TEXT = "The tide rises twice a day in the harbour, and every boat that draws more than two metres waits for it."


def article(title: str = "The tide", text: str = TEXT, links: tuple[str, ...] = (), head: str = "") -> str:
    anchors = "".join(f'<a href="{link}">menu entry</a> ' for link in links)
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body><nav>{anchors}</nav><main><article>"
        f"<h1>{title}</h1><p>{text}</p><h2>Depths</h2><p>Two metres at low water, four metres at high water.</p>"
        f"</article></main><footer>All rights reserved</footer></body></html>"
    )


def run(*urls: str, output: Path, **options: Any) -> list[ScrapedPage]:
    return list(scrape(urls, output=output, **{"delay": 0.0, "timeout": 5.0, **options}))


def reason(url: str, output: Path, **options: Any) -> str:
    """Scrape one address that must be skipped, and say why it was."""
    (page,) = run(url, output=output, **options)
    assert (page.status, page.path) == ("skipped", None)
    assert not list(output.rglob("*.md"))
    return page.reason


def read(page: ScrapedPage) -> tuple[dict[str, str], str]:
    """Read a file's front matter and text."""
    assert page.path is not None, page.reason
    _, front_matter, text = page.path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front_matter), text


def linked_pages(site: WebServer) -> None:
    links = ("b", "/b#part", "/photo.jpg", "mailto:x@example.org", "http://[bad/", "ftp://127.0.0.1/", "c?page=2")
    site.pages |= {
        "/a": Reply(article("A", links=(*links, site.url("/other", host="localhost")))),
        "/b": Reply(article("B", links=("/a", "/d"))),
        "/c?page=2": Reply(article("C")),
        "/d": Reply(article("D")),
        "/other": Reply(article("Other")),
    }
