"""Convert web pages to files: the main content as Markdown with front matter."""

import contextlib
import mimetypes
import re
import warnings
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import yaml

from local_rag.errors import LocalRagError, NetworkError
from local_rag.scraping.fetch import Response, normalize_url

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("text/plain", "text/markdown", "text/x-markdown")
_PDF = "application/pdf"
CONTENT_TYPES = (*_HTML, *_TEXT, _PDF)
# A search engine takes escapes for text, so snake_case must not become snake\_case.
_NO_ESCAPES = {"escape_underscores": False, "escape_asterisks": False, "escape_misc": False}


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
    text = _decode(response)
    title = date = None
    links: list[str] = []
    if response.content_type in _HTML:
        import trafilatura

        tree = trafilatura.load_html(text)
        if tree is None:
            return b"", ".md", []
        links = _links(tree, response.url)
        try:
            metadata = trafilatura.extract_metadata(tree, default_url=response.url, extensive=False)
            if selector is not None:
                text = _select(text, selector)
            else:
                text = trafilatura.extract(tree, url=response.url, output_format="markdown", include_comments=False)
        except Exception as error:  # the parsers raise anything, and no page may stop the run
            raise NetworkError(f"its HTML cannot be parsed ({error})") from error
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


def _select(text: str, selector: str) -> str:
    """Convert the elements that match a selector to Markdown, each as a block, without links and images."""
    from bs4 import BeautifulSoup
    from markitdown.converters import HtmlConverter

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd pages
        found = BeautifulSoup(text, "lxml").select(selector)
        matches = set(map(id, found))
        blocks = [f"<div>{tag}</div>" for tag in found if matches.isdisjoint(map(id, tag.parents))]
        page = f"<body>{''.join(blocks)}</body>"
        return str(HtmlConverter().convert_string(page, strip=["a", "img"], **_NO_ESCAPES).markdown)


def _decode(response: Response) -> str:
    """Decode a page: as UTF-8 if almost all of it is valid, else as declared, else as bs4 detects."""
    from bs4.dammit import UnicodeDammit

    text = response.body.decode(errors="replace")
    beyond_ascii = sum(character > "\x7f" for character in text)
    if 10 * text.count("\ufffd") >= beyond_ascii:  # also if all is ASCII, because ISO-2022-JP consists of ASCII bytes
        declared = [response.charset] if response.charset else []
        is_html = response.content_type in _HTML
        text = UnicodeDammit(response.body, declared, is_html=is_html).unicode_markup or text
    return text.removeprefix("\ufeff")


def _links(tree: Any, url: str) -> list[str]:
    """Return the addresses that a page links to, except media by their suffix."""
    links: dict[str, None] = {}  # an ordered set
    base = next(iter(tree.xpath("//base/@href")), "")
    for href in tree.xpath("//a/@href"):
        with contextlib.suppress(NetworkError, ValueError):
            link = normalize_url(urljoin(urljoin(url, base), href.strip()))
            kind = mimetypes.guess_type(urlsplit(link).path)[0] or ""
            if not kind.startswith(("image/", "audio/", "video/", "font/")):
                links[link] = None
    return list(links)
