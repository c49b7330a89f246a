"""Convert web pages to files: the main content as Markdown with front matter."""

import contextlib
import mimetypes
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

import yaml

from local_rag.errors import LocalRagError, NetworkError, ReadError
from local_rag.reading.converters.html_pages import main_content, parse_html, remove_invisible, to_markdown
from local_rag.reading.decode import declared_in_html, decode
from local_rag.scraping.fetch import Response, normalize_url

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("text/plain", "text/markdown", "text/x-markdown")
_PDF = "application/pdf"
CONTENT_TYPES = (*_HTML, *_TEXT, _PDF)


def check_selector(selector: str) -> None:
    """Raise LocalRagError if the selector is not valid CSS."""
    import soupsieve

    try:
        soupsieve.compile(selector)
    except soupsieve.SelectorSyntaxError as error:
        why = str(error).splitlines()[0]
        raise LocalRagError(
            f"{selector!r} is not a valid CSS selector ({why}); write one such as 'main' or 'div.text'"
        ) from None


def convert(response: Response, selector: str | None) -> tuple[bytes, str, list[str]]:
    """Convert a page; return the bytes of its file (empty if it contains no text), the file's suffix and its links.

    From HTML, keep the elements that match the CSS selector, or the main content without a selector.
    """
    if response.content_type == _PDF:
        return response.body, ".pdf", []
    is_html = response.content_type in _HTML
    try:
        text = decode(response.body, response.charset, declared_in_html(response.body) if is_html else None)
    except ReadError as error:
        raise NetworkError(f"it is no text ({error})") from error
    title = date = None
    links: list[str] = []
    if is_html:
        import trafilatura

        try:
            page = parse_html(text)
            links = _links(page, response)
            tree = trafilatura.load_html(text)
            metadata = None if tree is None else trafilatura.extract_metadata(tree, response.url, extensive=False)
            text = main_content(page)[0] if selector is None else _select(page, selector)
        except Exception as error:  # the parsers raise anything, and no page may stop the run
            raise NetworkError(f"its HTML cannot be parsed ({error})") from error
        if metadata is not None:
            title, date = metadata.title, metadata.date
    elif heading := re.search(r"^# +(.+)$", text, re.MULTILINE):
        title = heading[1]
    if not (text and text.strip()):
        return b"", ".md", links
    title = " ".join((title or unquote(urlsplit(response.url).path.strip("/").rpartition("/")[2])).split())
    fields = {"url": response.url, "title": title, "date": date}
    front_matter = yaml.safe_dump(
        {name: value for name, value in fields.items() if value}, allow_unicode=True, sort_keys=False, width=10_000
    )
    return f"---\n{front_matter}---\n\n{text.rstrip()}\n".encode(errors="replace"), ".md", links


def _select(page: "BeautifulSoup", selector: str) -> str:
    """Convert the elements that match a selector to Markdown, each as a block, without links and images."""
    found = page.select(selector)
    matches = set(map(id, found))
    outermost = [tag for tag in found if matches.isdisjoint(map(id, tag.parents))]
    return "\n\n".join(filter(None, (_block(tag) for tag in outermost)))


def _block(tag: "Tag") -> str:
    page = parse_html(f"<body>{tag}</body>")
    remove_invisible(page)
    return to_markdown(page)


def _links(page: "BeautifulSoup", response: Response) -> list[str]:
    """Return the addresses that a page links to and lets robots follow, except media by their suffix."""
    said = [
        response.robots,
        *(str(tag.get("content")) for tag in page.select("meta[name=robots i], meta[name=local-rag i]")),
    ]
    if any(re.search(r"\b(?:nofollow|none)\b", one, re.IGNORECASE) for one in said):
        return []
    links: dict[str, None] = {}  # an ordered set
    base = next((str(tag["href"]) for tag in page.select("base[href]")), "")
    for tag in page.select("a[href]:not([rel~=nofollow i])"):
        with contextlib.suppress(NetworkError, ValueError):
            link = normalize_url(urljoin(urljoin(response.url, base), str(tag["href"]).strip()))
            kind = mimetypes.guess_type(urlsplit(link).path)[0] or ""
            if not kind.startswith(("image/", "audio/", "video/", "font/")):
                links[link] = None
    return list(links)
