"""Convert books."""

import io
import posixpath
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted, notes_of, parse_xml, text_of
from local_rag.reading.converters.html_notes import address_of, place_notes_of_files
from local_rag.reading.converters.html_pages import LONGEST_SHEET, MENUS, parse_html, remove_invisible, to_markdown
from local_rag.reading.converters.html_styles import apply_styles
from local_rag.reading.decode import clean, declared_in_html, decode
from local_rag.reading.provenance import make_provenance

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

_CONTAINER = "META-INF/container.xml"
_MOST_SHEETS = 10  # of a book's styles, and files of notes
_PAGES = (".xhtml", ".html", ".htm")


def convert_epub(data: bytes) -> Converted:
    """Convert a book: its chapters in reading order."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        root = parse_xml(archive.read(_CONTAINER)).find(".//{*}rootfile")
        if root is None:
            raise ReadError("not a book: it does not name its contents")
        package_name = root.get("full-path", "")
        package = parse_xml(archive.read(package_name))
        named = {name: [text_of(one) for one in package.iterfind(f".//{{*}}metadata//{{*}}{name}")] for name in _NAMED}
        hrefs = {item.get("id"): item.get("href", "") for item in package.iterfind(".//{*}manifest/{*}item")}
        members, folder = set(archive.namelist()), posixpath.dirname(package_name)
        names = (posixpath.normpath(posixpath.join(folder, unquote(href))) for href in hrefs.values())
        sheets = [name for name in names if name.endswith(".css") and name in members]
        sheet = "\n".join(decode(archive.read(name))[:LONGEST_SHEET] for name in sheets[:_MOST_SHEETS])
        chapters, notes, images = [text for text in named["description"] if text], list[str](), 0
        pages: dict[str, BeautifulSoup] = {}
        for reference in package.iterfind(".//{*}spine/{*}itemref"):
            href = hrefs.get(reference.get("idref"), "")
            names = (
                posixpath.normpath(posixpath.join(folder, one))
                for one in (unquote(href), href, unquote(href).partition("#")[0])
            )
            name = next((name for name in names if name in members), None)
            if name is None:
                notes.append(f"the chapter {href or reference.get('idref')} is missing")
                continue
            pages[name] = _page(archive, name)
        beside = {name: _page(archive, name) for name in _linked(pages) if name in members}
    place_notes_of_files({**pages, **beside})
    for page in pages.values():
        apply_styles(page, sheet)
        notes += remove_invisible(page)
        for menu in page.select(MENUS):
            menu.decompose()
        images += sum(not str(image.get("alt") or "").strip() for image in page.find_all(["img", "image"]))
        chapters.append(to_markdown(page.body or page))
    notes += notes_of({"image* without a description": images})
    provenance = make_provenance(date=next(iter(named["date"]), None), author=list(named["creator"]))
    title = next(filter(None, named["title"]), None)
    text = clean("\n\n".join(filter(None, chapters)))
    return Converted(title, text, "markdown", notes=tuple(notes), provenance=provenance)


def _page(archive: zipfile.ZipFile, name: str) -> "BeautifulSoup":
    content = archive.read(name)
    return parse_html(decode(content, declared_in_html(content)))


def _linked(pages: "Mapping[str, BeautifulSoup]") -> list[str]:
    """Return the files outside the reading order that pages link to, for the notes in them."""
    links = (
        address_of(name, str(link["href"]))[0] for name, page in pages.items() for link in page.select("a[href*='#']")
    )
    names = (name for name in links if name not in pages and name.endswith(_PAGES))
    return list(dict.fromkeys(names))[:_MOST_SHEETS]


_NAMED = ("title", "creator", "date", "description")
