"""Convert web pages: remove what a reader would not see, and write the rest, or its main content, as Markdown."""

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from local_rag.reading.converters.converted import Converted, notes_of
from local_rag.reading.converters.html_notes import place_notes
from local_rag.reading.converters.html_parts import (
    HEADINGS,
    counts_from_one,
    end_lines_of_code,
    list_labels,
    open_code,
    rewrite_tables,
)
from local_rag.reading.converters.html_styles import apply_styles, is_out_of_sight
from local_rag.reading.converters.notation import subscript, superscript
from local_rag.reading.decode import clean, declared_in_html, decode_with_notes
from local_rag.reading.provenance import web_provenance
from local_rag.text.struck import strike

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_MOST = 0.5  # of the words of a page, so that a part of it is its main content
_MOST_EXTRACTED = 0.8  # of them, so that what trafilatura has found is
_FEW_WORDS = 30  # beside the main content, as a line of copyright is
_NOISE = "script, style, noscript, template, a.headerlink"
MENUS = "nav, [role=navigation], div.navheader, div.navfooter, ul.docnav, .breadcrumb, .breadcrumbs"
_HIDING_STYLE = re.compile(r"(?:^|;)\s*display\s*:\s*none\b", re.IGNORECASE)
_VISIBILITY = re.compile(r"(?:^|;)\s*visibility\s*:\s*(visible|hidden|collapse)\b", re.IGNORECASE)
_CONTAINERS = {"div", "section", "article", "main", "body", "header", "footer", "center"}
_EMPHASIS = ["b", "strong", "i", "em"]
_INLINE = {"a", "b", "big", "em", "font", "i", "small", "span", "strong", "u"}
_WORD = re.compile(r"\w+")
# Before the links of a handbook stand signs: `Next: Billing, Up: Top`.
_TEXT = re.compile(r"\b(?!(?:next|prev|previous|up|top|home|contents|index)\b\s*:)\w+", re.IGNORECASE)
_NOTE_SIGNS = "a[epub\\:type~=noteref], a[role=doc-noteref]"
_FORMULAS = "msup, msub, msubsup, munder, mover, munderover, mfrac, msqrt, mroot, mtd, mtr"
_RAISED = f"sup, sub, {_NOTE_SIGNS}, [style*=vertical-align i], {_FORMULAS}"
_RAISING_STYLE = re.compile(r"(?:^|;)\s*vertical-align\s*:\s*(super|sub)\b", re.IGNORECASE)
LONGEST_SHEET = 200_000  # characters of a style sheet
_STRIKING, _STRUCK = {"s", "strike", "del"}, "s, strike, del, [style*=line-through i]"
_STRIKING_STYLE = re.compile(r"(?:^|;)\s*text-decoration(?:-line)?\s*:[^;]*\bline-through\b", re.IGNORECASE)
_BLOCKS = [
    *HEADINGS, *_CONTAINERS, "p", "ul", "ol", "li", "dl", "dt", "dd", "table", "tbody", "thead", "tr", "td", "th",
    "blockquote", "pre", "img", "input", "select", "textarea",
]  # fmt: skip
_VALUES = {"text", "number", "date", "email", "tel", "time", "month", "week", "datetime-local"}  # fields to fill in
_INDENT = "   "  # of what stands below a number; four spaces would make it code
_DEEPEST_FRAME = 3  # frames within frames


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
    place_notes(page)
    notes += remove_invisible(page)
    body = page.body or page
    return Converted(None, clean(to_markdown(body)), "markdown", notes=(*notes, *_images(body)))


def main_content(page: "BeautifulSoup") -> tuple[str, tuple[str, ...]]:
    """Return the main content of a page as Markdown, and notes on what is left out; the page is changed.

    It is the element that is marked as such, else what trafilatura finds, if most of the words are in it; else
    everything but menus, header, footer and asides.
    """
    place_notes(page)
    notes = remove_invisible(page)
    write_marks(page)
    end_lines_of_code(page)
    for table in page.find_all("table"):
        open_code(table)
    _unmark_parts_of_words(page)
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
    """Note the images without a description that are stored within the page itself."""
    count = sum(
        str(image.get("src", "")).startswith("data:") and not str(image.get("alt") or "").strip()
        for image in tag.find_all("img")
    )
    return notes_of({"image* without a description": count})


def _extract(page: "BeautifulSoup", body: "Tag", total: int) -> str:
    """Let trafilatura find the main content of a page without tables; return nothing if it loses much.

    It writes no numbers of lists but 1, 2, 3.
    """
    import trafilatura

    if page.find("th") or page.select_one("td[rowspan]") or not counts_from_one(page):
        return ""
    # Without its slow fallbacks: all of the page is the better one.
    options = {"favor_recall": True, "include_comments": False, "fast": True}
    text = (trafilatura.extract(str(page), output_format="markdown", **options) or "").replace("\\~", "~")
    # It reduces short pages to bare lines, and some headings to bold text.
    keeps_headings = len(re.findall(r"^#", text, re.MULTILINE)) >= len(body.select("h1, h2, h3"))
    return text if keeps_headings and len(re.findall(r"\w+", text)) >= _MOST_EXTRACTED * total else ""


def parse_html(text: str) -> "BeautifulSoup":
    """Parse a web page."""
    from local_rag.reading.converters.html_tree import Page

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd pages
        return Page(text, "lxml")


def _sheet(tag: "Tag") -> str:
    """Return what a style sheet says, within the rule for the media that it is for, such as print."""
    said, media = tag.get_text()[:LONGEST_SHEET], str(tag.get("media") or "").strip()
    return f"@media {media} {{{said}}}" if media else said


def remove_invisible(page: "BeautifulSoup") -> tuple[str, ...]:
    """Remove scripts, styles, hidden elements and reading aids, and open frames; the notes say what is left out.

    A page may hide its body until a script has run, so the body stays.
    """
    frames = _open_frames(page)
    apply_styles(page, "\n".join(map(_sheet, page.find_all("style"))))
    for tag in page.select(_NOISE):
        tag.decompose()
    hidden = 0
    for tag in page.select("[hidden]:not([hidden=until-found]), dialog:not([open]), [style]"):
        if "_decomposed" in vars(tag):  # with an element around it; bs4's own property searches all that is below
            continue
        is_hidden = tag.name == "dialog" or tag.has_attr("hidden") or _HIDING_STYLE.search(str(tag.get("style", "")))
        if is_hidden and tag.name not in {"html", "body"}:
            hidden += count_words(tag)
            tag.decompose()
    hidden += _remove_hidden_runs(page) + _remove_out_of_sight(page)
    aids = page.select("rt, rp")
    for tag in aids:
        tag.extract()
    readings = sum(tag.name == "rt" for tag in aids)
    return notes_of({"hidden word*": hidden, "frame* within frames": frames, "reading aid*": readings})


def _remove_out_of_sight(page: "Tag") -> int:
    """Remove what is drawn where nobody sees it; return its number of words.

    If that is most of the page, a script shows it, and all of it stays.
    """
    unseen = {
        id(tag): tag for tag in page.select("[style]") if tag.name not in {"html", "body"} and is_out_of_sight(tag)
    }
    outermost = [tag for tag in unseen.values() if not any(id(above) in unseen for above in tag.parents)]
    words = sum(map(count_words, outermost))
    if words > _MOST * count_words(page):
        return 0
    for tag in outermost:
        tag.decompose()
    return words


def _remove_hidden_runs(page: "Tag") -> int:
    """Remove what is hidden in its place, but not what is shown again within it; return its number of words."""
    of_style = {
        id(tag): found[-1].lower() != "visible"
        for tag in page.select("[style*=visibility i]")
        if (found := _VISIBILITY.findall(str(tag["style"]))) and tag.name not in {"html", "body"}
    }
    if not any(of_style.values()):
        return 0
    tags, hidden, holding = page.find_all(True), set[int](), set[int]()
    for tag in tags:  # what holds a tag comes before it
        if of_style.get(id(tag), id(tag.parent) in hidden):
            hidden.add(id(tag))
            continue
        above = tag.parent
        while above is not None and id(above) in hidden and id(above) not in holding:
            holding.add(id(above))
            above = above.parent
    words = 0
    for tag in tags:
        if id(tag) not in hidden or "_decomposed" in vars(tag):
            continue
        if id(tag) not in holding:
            words += len(_WORD.findall(tag.get_text(" ")))
            tag.decompose()
            continue
        for text in tag.find_all(string=True, recursive=False):
            words += len(_WORD.findall(text))
            text.replace_with(" ")
    return words


def _open_frames(page: "BeautifulSoup") -> int:
    """Put the pages that are written within frames in their place; return how many are too deep."""
    for _ in range(_DEEPEST_FRAME):
        for frame in page.select("iframe[srcdoc]"):
            inner = parse_html(str(frame["srcdoc"]))
            body = inner.body or inner
            body.name = "div"
            frame.replace_with(body.extract())
    return len(page.select("iframe[srcdoc]"))


def write_marks(page: "Tag") -> None:
    """Write superscripts, subscripts and signs of notes as text that stays apart from what they stand at.

    A raised element within another one is written first. What is struck out is written as such.
    """
    for aid in page.select("math annotation, math annotation-xml"):
        aid.decompose()
    for tag in reversed(page.select(_RAISED)):
        if (written := _raised(tag)) is not None:
            tag.replace_with(written)
    for tag in page.select(_STRUCK):
        if "_decomposed" in vars(tag) or not (
            tag.name in _STRIKING or _STRIKING_STYLE.search(str(tag.get("style", "")))
        ):
            continue
        if tag.find(_BLOCKS) or tag.name in _BLOCKS:
            for text in list(tag.find_all(string=_WORD)):
                text.replace_with(strike(str(text)))
            tag.name, tag["style"] = ("div" if tag.name in _STRIKING else tag.name), ""
        else:
            tag.replace_with(strike(tag.get_text()))


def _raised(tag: "Tag") -> str | None:  # noqa: PLR0911  a table, in fact
    """Return an element as text; None if its style does not raise it."""
    parts = [part.get_text() for part in tag.find_all(True, recursive=False)]
    match tag.name, parts:
        case "sub", _:
            return subscript(tag.get_text())
        case "msup", [base, above]:
            return base + superscript(above)
        case "msub" | "munder", [base, below]:
            return base + subscript(below)
        case "mover", [base, above]:
            return base + (superscript(above) if above.strip().isalnum() else above)
        case "msubsup" | "munderover", [base, below, above]:
            return base + subscript(below) + superscript(above)
        case "mfrac", [above, below]:
            return f"{_as_one(above)}/{_as_one(below)}"
        case "mroot", [base, degree]:
            return f"root {degree} of {_as_one(base)}"
        case "msqrt", _:
            return f"sqrt {_as_one(tag.get_text())}"
        case "mtd" | "mtr", _:
            return f"{tag.get_text().strip()}{',' if tag.name == 'mtd' else ';'} "
        case "sup" | "a", _:
            return superscript(tag.get_text())
    style = _RAISING_STYLE.search(str(tag.get("style", "")))
    if style is None:
        return None
    return superscript(tag.get_text()) if style[1].lower() == "super" else subscript(tag.get_text())


def _as_one(text: str) -> str:
    """Put what consists of several parts in brackets."""
    return text if text.strip().isalnum() else f"({text.strip()})"


def count_words(tag: "Tag") -> int:
    """Count the words of an element that are not in links: menus are links."""
    linked = _in_links(tag)
    return sum(len(_WORD.findall(text)) for text in tag.strings if id(text.parent) not in linked)


def _in_links(page: "Tag", *, with_address: bool = False) -> set[int]:
    """Return the ids of the links within a page, or of those with an address, and of the elements in them."""
    linked = set[int]()
    for tag in page.find_all(True):  # what holds a tag comes before it
        is_link = tag.name == "a" and (tag.has_attr("href") or not with_address)
        if is_link or id(tag.parent) in linked:
            linked.add(id(tag))
    return linked


def remove_menus(body: "Tag") -> None:
    """Remove what consists of links alone before the first or behind the last text of a page: `Prev Up Home Next`.

    The first such block below a heading stays, and so does a page of links.
    """
    pieces = list(_pieces(body))
    texts = [at for at, (_, is_menu) in enumerate(pieces) if not is_menu]
    if not texts:
        return
    first, last = texts[0], texts[-1]
    below = pieces[last][0]
    behind = last + 1 + (below is not None and below.name in HEADINGS)
    for block, _ in (*pieces[:first], *pieces[behind:]):
        if block is not None:
            block.decompose()


def _pieces(tag: "Tag") -> Iterator[tuple["Tag | None", bool]]:
    """Yield the blocks of a page in order, None for bare text, with whether they consist of links and signs alone."""
    from bs4 import Tag

    with_text = _with_own_text(tag)
    waiting = [tag.children]  # a page may be nested deeper than Python calls functions
    while waiting:
        child = next(waiting[-1], None)
        if child is None:
            waiting.pop()
        elif not isinstance(child, Tag):
            if _TEXT.search(str(child)):
                yield None, False
        elif _WORD.search(child.get_text() if child.name in HEADINGS else "") or id(child) in with_text:
            if child.name in _CONTAINERS:
                waiting.append(child.children)
            else:
                yield child, False
        elif (
            child.find("a", href=True)
            or (child.name == "a" and child.has_attr("href"))
            or _WORD.search(child.get_text())
        ):
            yield child, True


def _with_own_text(page: "Tag") -> set[int]:
    """Return the ids of the elements within a page that hold a heading, or a word that is in no link."""
    linked = _in_links(page, with_address=True)
    holders = [heading.parent for heading in page.find_all(HEADINGS)]
    holders += [text.parent for text in page.strings if id(text.parent) not in linked and _TEXT.search(text)]
    found = set[int]()
    for holder in holders:
        above = holder
        while above is not None and above is not page and id(above) not in found:
            found.add(id(above))
            above = above.parent
    return found


def to_markdown(tag: "Tag", labels: Mapping[int, str] | None = None) -> str:
    """Write an element as Markdown: links as their text and images as their description; its tables are rewritten.

    `labels` are the numbers of list items by the id of their tag, as a page writes them if none are given.
    """
    write_marks(tag)
    _unmark_parts_of_words(tag)
    rewrite_tables(tag)
    for heading in tag.find_all(HEADINGS):  # a heading within bold text would be bold text
        around = heading.parent
        while around is not None and around.name in _INLINE:
            around.name, around = "div", around.parent
    try:
        return str(_converter(list_labels(tag) if labels is None else labels).convert_soup(tag)).strip()
    except RecursionError:  # nested too deeply: the text alone
        return tag.get_text("\n", strip=True)


def _unmark_parts_of_words(tag: "Tag") -> None:
    """Take bold and italic from parts of words, as in `re<b>sti</b>ng`: signs within a word would hide it."""
    for marked in tag.find_all(_EMPHASIS):
        text, before, after = marked.get_text(), marked.previous_sibling, marked.next_sibling
        if _is_one_word(before, text) or _is_one_word(text, after):
            marked.unwrap()


def _is_one_word(first: object, second: object) -> bool:
    """Return whether a word goes on from one text into the next; a capital begins a word of its own."""
    if not (isinstance(first, str) and isinstance(second, str)):
        return False
    return first[-1:].isalpha() and second[:1].isalpha() and not second[0].isupper()


def _converter(labels: Mapping[int, str]) -> Any:
    from markdownify import ATX, MarkdownConverter

    class Converter(MarkdownConverter):
        """What an index needs of Markdown: structure, without addresses and escapes."""

        def convert_img(self, el: Any, text: str, parent_tags: Any) -> str:
            return " ".join(str(el.get("alt") or "").split())

        def convert_input(self, el: Any, text: str, parent_tags: Any) -> str:
            kind = str(el.get("type", "text")).lower()
            if kind in {"checkbox", "radio"}:
                return "[x] " if el.has_attr("checked") else "[ ] "
            return f"{el.get('value', '')} " if kind in _VALUES else ""

        def convert_option(self, el: Any, text: str, parent_tags: Any) -> str:
            chosen = el.find_parent("select")
            is_chosen = el.has_attr("selected") or chosen is None or not chosen.select_one("option[selected]")
            return f"{text.strip()} " if is_chosen else ""

        def convert_textarea(self, el: Any, text: str, parent_tags: Any) -> str:
            return f"{text} "

        def convert_li(self, el: Any, text: str, parent_tags: Any) -> str:
            label = labels.get(id(el))
            if label is None:
                return str(super().convert_li(el, text, parent_tags))  # type: ignore[misc]
            first, *lines = (text or "").strip().split("\n")
            below = (f"{_INDENT if label else ''}{line}" if line else "" for line in lines)
            return "\n".join([f"{label} {first}".strip(), *below]) + "\n"

    # A search engine takes escapes for text, so snake_case must not become snake\_case.
    return Converter(
        heading_style=ATX, strip=["a"], escape_underscores=False, escape_asterisks=False, escape_misc=False
    )
