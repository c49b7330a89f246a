"""Put the notes of a web page, book or Word document where their signs stand.

A sign is a link to what links back to it, as browsers need it, or what the page marks as a note. A list of references
stays a list: its entries say where something is taken from, and not what holds.
"""

import copy
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from local_rag.reading.converters.html_parts import HEADINGS
from local_rag.text.notes import NoteKind

if TYPE_CHECKING:
    from bs4 import Tag

_MARKED_SIGN, _MARKED_NOTE = re.compile("noteref"), re.compile(r"doc-(?:foot|end)note|(?:foot|rear|end)?note")
_REFERENCE = re.compile(r"biblio|cite_note|cite_ref")
_COUNTED_SIGN = re.compile(r"\W{0,2}(?:\d{1,4}|[*\u2020\u2021\u00a7]{1,4})\W{0,2}")
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_SHORT_SIGN = re.compile(r"\W{0,2}(?:\d{1,4}|[A-Za-z]{1,4}\d{0,4}|[*\u2020\u2021\u00a7]{1,4})?\W{0,2}")
_LABEL = re.compile(r"\s*[\[(]?(?:\d{1,4}|[*\u2020\u2021\u00a7\u2191^]{1,4})?[\])]?[.:]?\s+")
_BLOCKS = [
    "p",
    "div",
    "li",
    "ul",
    "ol",
    "dl",
    "dt",
    "dd",
    "aside",
    "section",
    "tr",
    "td",
    "table",
    "tbody",
    "blockquote",
]
_NOTES_OF = ["li", "p", "dd", "aside", "div", "td"]
_RAISING = ["sup", "span", "small"]
_SAYS, _SPACE, _TO_ANCHOR = re.compile(r"\S"), re.compile(r"\s+"), re.compile("#")
_LONGEST_HIDDEN = 1000  # characters of a note that pops up
_MOST_LINKS = 50  # of a note; a chapter has more
_MOST_SIGNS, _LONGEST_REPEATED = 5000, 300  # signs, and characters of a note that stands at each of its signs


@dataclass(slots=True)
class _Target:
    """An element that a link names: its file, and its place in the order of all elements."""

    file: str
    place: int
    tag: "Tag"


def place_notes(page: "Tag") -> None:
    """Put the notes of a page where their signs stand."""
    place_notes_of_files({"": page})


def place_notes_of_files(pages: Mapping[str, "Tag"]) -> None:
    """Put the notes of pages, by the names of their files and in their order, where their signs stand."""
    for page in pages.values():  # a note that pops up where its sign is touched is hidden until then
        for hidden in page.select("[hidden]"):
            if _MARKED_NOTE.fullmatch(str(hidden.get("role", ""))) or _MARKED_NOTE.fullmatch(
                str(hidden.get("epub:type", ""))
            ):
                del hidden["hidden"]
    links = [(file, link) for file, page in pages.items() for link in page.find_all("a", href=_TO_ANCHOR)]
    if not links or len(links) > _MOST_SIGNS:
        return
    targets, places = dict[tuple[str, str], _Target](), dict[int, int]()
    for file, page in pages.items():
        for tag in page.find_all(True):
            places[id(tag)] = len(places)
            for name in filter(None, (tag.get("id"), tag.get("name") if tag.name == "a" else None)):
                targets.setdefault((file, str(name)), _Target(file, len(places) - 1, tag))
    placed: dict[int, Tag] = {}
    below: dict[int, Tag] = {}
    for file, link in links:
        target = targets.get(address_of(file, str(link.get("href", ""))))
        if target is None or link.parent is None or not _is_sign(link):
            continue
        if (ready := placed.get(id(target.tag))) is None:
            if target.place <= places[id(link)] or (found := _note_of(target, file, link)) is None:
                continue
            ready = placed[id(target.tag)] = _taken(found, target, link)
        elif len(ready.get_text()) > _LONGEST_REPEATED:
            ready = None
        _place(link, copy.copy(ready) if ready is not None else None, below)


def address_of(file: str, href: str) -> tuple[str, str]:
    """Return the file and the name of the place that a link in a file leads to."""
    path, _, name = href.partition("#")
    named = posixpath.normpath(posixpath.join(posixpath.dirname(file), unquote(path))) if path else file
    return named, unquote(name)


def _kind_of(tag: "Tag") -> str:
    return f"{tag.get('epub:type', '')} {tag.get('role', '')}"


def _is_sign(link: "Tag") -> bool:
    text = link.get_text().strip()
    if _REFERENCE.search(f"{_kind_of(link)} {link.get('href', '')}"):
        return False
    return bool(_MARKED_SIGN.search(_kind_of(link))) or (bool(text) and bool(_SHORT_SIGN.fullmatch(text)))


def _note_of(target: _Target, file: str, link: "Tag") -> "Tag | None":
    """Return the element that holds the note, None if it is none: what links back, or is marked as one."""
    tag = target.tag
    if tag.name == "dt":  # its text stands beside it
        tag = tag.find_next_sibling("dd") or tag
    holder = tag if tag.name in _NOTES_OF else tag.find_parent(_NOTES_OF)
    links = holder.find_all("a", limit=_MOST_LINKS) if holder is not None else []
    if holder is None or len(links) == _MOST_LINKS or tag.name in HEADINGS or any(one is link for one in links):
        return None
    names = {str(name) for one in (link, link.parent) if one is not None for name in (one.get("id"), one.get("name"))}
    addresses = (address_of(target.file, str(one.get("href", ""))) for one in links)
    links_back = any(of == file and name in names for of, name in addresses)
    is_marked = any(_MARKED_NOTE.fullmatch(word) for word in _kind_of(holder).split())
    # A note that pops up where its number is touched; a longer text is a part of the page that a script shows.
    pops_up = (
        _COUNTED_SIGN.fullmatch(link.get_text().strip())
        and (holder.has_attr("hidden") or _HIDING.search(str(holder.get("style", ""))))
        and len(holder.get_text()) <= _LONGEST_HIDDEN
    )
    return holder if links_back or is_marked or pops_up else None


def _taken(holder: "Tag", target: _Target, link: "Tag") -> "Tag":
    """Take a note out of its page, and return it in brackets, without its label and the link back."""
    from bs4 import BeautifulSoup

    for back in holder.find_all("a", href=_TO_ANCHOR):
        if _SHORT_SIGN.fullmatch(back.get_text().strip()):
            _outermost(back).extract()
    beside, parent = target.tag if target.tag.name == "dt" else None, holder.parent
    holder.extract()
    if beside is not None:
        beside.extract()
    while parent is not None and parent.name in _BLOCKS and not parent.find(string=_SAYS):
        above = parent.parent
        parent.extract()
        parent = above
    for block in holder.find_all(_BLOCKS):
        block.insert_before(" ")
        block.insert_after(" ")
        block.unwrap()
    holder.smooth()
    for text in list(holder.strings):
        text.replace_with(_SPACE.sub(" ", text))
    if (first := holder.find(string=_SAYS)) and (label := _LABEL.match(first)):
        first.replace_with(first[label.end() :])
    is_comment = str(link.get("href", "")).startswith("#comment-")
    kind: NoteKind = "Comment" if is_comment else "Note"
    written = BeautifulSoup("", "lxml").new_tag("span")
    if holder.get_text().strip():
        _strip(holder)
        written.extend([f" ({kind}: ", *list(holder.children), ")"])
        written.smooth()
    return written


def _strip(tag: "Tag") -> None:
    """Remove the white space at the ends of an element."""
    for order, strip in ((1, str.lstrip), (-1, str.rstrip)):
        for text in list(tag.strings)[::order]:
            stripped = strip(text)
            text.replace_with(stripped)
            if stripped:
                break


def _outermost(link: "Tag") -> "Tag":
    """Return the element that raises a sign, else the sign."""
    holder = link
    while holder.parent is not None and holder.parent.name in _RAISING:
        if holder.parent.get_text().strip() != link.get_text().strip():
            break
        holder = holder.parent
    return holder


def _place(link: "Tag", note: "Tag | None", below: dict[int, "Tag"]) -> None:
    """Put a note in the place of its sign; that of a heading stands below it."""
    from bs4 import BeautifulSoup
    from bs4.element import NavigableString

    holder = link.find_parent(_RAISING) or link  # which may raise several signs
    heading = link.find_parent(HEADINGS)
    if note is not None and heading is not None:
        paragraph = BeautifulSoup("", "lxml").new_tag("p")
        paragraph.append(note)
        below.get(id(heading), heading).insert_after(paragraph)
        below[id(heading)] = paragraph
    elif note is not None:
        before = holder.previous_sibling
        if isinstance(before, NavigableString) and before != before.rstrip():
            before.replace_with(before.rstrip())
        holder.insert_before(note)
    link.extract()
    if not any(map(str.isalnum, holder.get_text())):
        holder.extract()
