"""Convert web pages."""

import re
from typing import TYPE_CHECKING

from local_rag.reading.converters.converted import Converted, notes_of
from local_rag.reading.converters.html_lists import counts_from_one
from local_rag.reading.converters.markup import (
    MENUS,
    count_images,
    count_words,
    parse_html,
    remove_invisible,
    remove_menus,
    to_markdown,
    write_raised,
)
from local_rag.reading.decode import clean, declared_in_html, decode_with_notes
from local_rag.reading.provenance import web_provenance

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_MOST = 0.5  # of the words of a page, so that a part of it is its main content
_MOST_EXTRACTED = 0.8  # of them, so that what trafilatura has found is
_FEW_WORDS = 30  # beside the main content, as a line of copyright is


def convert_html(data: bytes, *declared: str | None) -> Converted:
    """Convert the main content of a page; `declared` are the encodings that its sender named."""
    text, notes = decode_with_notes(data, *declared, declared_in_html(data))
    page = parse_html(text)
    title = page.title.get_text() if page.title else None
    provenance = web_provenance(page)
    markdown, left_out = main_content(page)
    return Converted(title, clean(markdown), "markdown", notes=(*notes, *left_out), provenance=provenance)


def convert_whole_page(data: bytes, *declared: str | None) -> Converted:
    """Convert all visible text of a page, as that of a mail."""
    text, notes = decode_with_notes(data, *declared, declared_in_html(data))
    page = parse_html(text)
    notes += remove_invisible(page)
    body = page.body or page
    return Converted(None, clean(to_markdown(body)), "markdown", notes=(*notes, *_images(body)))


def main_content(page: "BeautifulSoup") -> tuple[str, tuple[str, ...]]:
    """Return the main content of a page as Markdown, and notes on what is left out; the page is changed.

    It is the element that is marked as such, else what trafilatura finds, if most of the words are in it; else
    everything but menus, header, footer and asides.
    """
    notes = remove_invisible(page)
    write_raised(page)
    for menu in page.select(MENUS):
        menu.decompose()
    body = page.body or page
    remove_menus(body)
    total = count_words(body)
    articles = page.find_all("article")
    marked = page.select("main, [role=main]") or (articles if len(articles) == 1 else [])
    main = next((tag for tag in marked if count_words(tag) > _MOST * total), None)
    markdown = "" if main else _extract(page, body, total)
    if not markdown:
        if main is None:
            main = body
            for frame in body.select("header:not(:has(h1)), footer, aside"):
                if count_words(frame) <= _MOST * total:
                    frame.decompose()
        markdown = to_markdown(main)
        notes += _images(main)
        missing = total - count_words(main)
    else:
        missing = total - len(re.findall(r"\w+", markdown))
    if missing > _FEW_WORDS:
        notes += notes_of({"word* beside the main content": missing})
    return markdown, notes


def _images(tag: "Tag") -> tuple[str, ...]:
    return notes_of({"image* without a description": count_images(tag)})


def _extract(page: "BeautifulSoup", body: "Tag", total: int) -> str:
    """Let trafilatura find the main content of a page without tables; return nothing if it loses much.

    It writes no numbers of lists but 1, 2, 3.
    """
    import trafilatura

    if page.find("th") or page.select_one("td[rowspan]") or not counts_from_one(page):
        return ""
    # Without its slow fallbacks: all of the page is the better one.
    options = {"favor_recall": True, "include_comments": False, "fast": True}
    text = trafilatura.extract(str(page), output_format="markdown", **options) or ""
    # It reduces short pages to bare lines, and some headings to bold text.
    keeps_headings = len(re.findall(r"^#", text, re.MULTILINE)) >= len(body.select("h1, h2, h3"))
    return text if keeps_headings and len(re.findall(r"\w+", text)) >= _MOST_EXTRACTED * total else ""
