"""Parse HTML, remove what a reader would not see, and write the rest as Markdown."""

import re
import warnings
from typing import TYPE_CHECKING, Any

from local_rag.reading.converters.converted import notes_of
from local_rag.reading.converters.html_tables import rewrite_tables

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from bs4.element import NavigableString

_NOISE = "script, style, noscript, template, a.headerlink"
_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_INLINE = {"a", "b", "big", "em", "font", "i", "small", "span", "strong", "u"}
_WORD = re.compile(r"\w+")


def parse_html(text: str) -> "BeautifulSoup":
    """Parse a web page."""
    from bs4 import BeautifulSoup

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd pages
        return BeautifulSoup(text, "lxml")


def remove_invisible(page: "BeautifulSoup") -> tuple[str, ...]:
    """Remove scripts, styles and hidden elements; the note says how many words were hidden.

    A page may hide its body until a script has run, so the body stays.
    """
    for tag in page.select(_NOISE):
        tag.decompose()
    hidden = 0
    for tag in page.select("[hidden]:not([hidden=until-found]), [style]"):
        if "_decomposed" in vars(tag):  # with an element around it; bs4's own property searches all that is below
            continue
        is_hidden = tag.has_attr("hidden") or _HIDING_STYLE.search(str(tag["style"]))
        if is_hidden and tag.name not in {"html", "body"}:
            hidden += count_words(tag)
            tag.decompose()
    return notes_of({"hidden word*": hidden})


def count_words(tag: "Tag") -> int:
    """Count the words of an element that are not in links: menus are links."""
    return sum(len(_WORD.findall(text)) for text in tag.strings if not _is_linked(text, tag))


def _is_linked(text: "NavigableString", within: "Tag") -> bool:
    """Say whether a text is in a link."""
    above = text.parent
    while above is not None and above is not within:
        if above.name == "a":
            return True
        above = above.parent
    return False


def count_images(tag: "Tag") -> int:
    """Count the images without a description that are stored within the page itself."""
    return sum(
        str(image.get("src", "")).startswith("data:") and not str(image.get("alt") or "").strip()
        for image in tag.find_all("img")
    )


def to_markdown(tag: "Tag") -> str:
    """Write an element as Markdown: links as their text and images as their description; its tables are rewritten."""
    rewrite_tables(tag)
    for heading in tag.find_all(_HEADINGS):  # a heading within bold text would be bold text
        around = heading.parent
        while around is not None and around.name in _INLINE:
            around.name, around = "div", around.parent
    try:
        return str(_converter().convert_soup(tag)).strip()
    except RecursionError:  # nested too deeply: the text alone
        return tag.get_text("\n", strip=True)


def _converter() -> Any:
    from markdownify import ATX, MarkdownConverter

    class Converter(MarkdownConverter):
        """What an index needs of Markdown: structure, without addresses and escapes."""

        def convert_img(self, el: Any, text: str, parent_tags: Any) -> str:
            return " ".join(str(el.get("alt") or "").split())

        def convert_input(self, el: Any, text: str, parent_tags: Any) -> str:
            if el.get("type") == "checkbox":
                return "[x] " if el.has_attr("checked") else "[ ] "
            return ""

    # A search engine takes escapes for text, so snake_case must not become snake\_case.
    return Converter(
        heading_style=ATX, strip=["a"], escape_underscores=False, escape_asterisks=False, escape_misc=False
    )
