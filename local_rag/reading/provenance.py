"""Extract a document's own metadata: address, date, author, tags. All of it is bounded in size and untrusted."""

import contextlib
import email.utils
import functools
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from itertools import filterfalse, islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from local_rag.document_records import UNKNOWN, Provenance
from local_rag.files import SCRAPE_STATE
from local_rag.reading.decode import clean

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

MAX_URL, MAX_AUTHOR, MAX_TAG = 2000, 200, 64  # characters
MAX_AUTHORS, MAX_TAGS = 8, 32

# Field names in front matter, in order of preference.
_URL, _AUTHOR, _TAGS = (
    ("url", "source", "canonical_url", "link"),
    ("author", "authors", "by"),
    ("tags", "tag", "keywords"),
)
_DATE = ("date", "published", "publish_date", "pubdate", "created", "updated", "last_modified")
# What is no property to filter by: the fields above, names, and how programs show a note.
_ELSEWHERE = {
    *_URL, *_AUTHOR, *_TAGS, *_DATE, "title", "aliases", "alias", "layout", "permalink", "slug", "cssclass",
    "cssclasses", "template", "description", "summary", "abstract", "publish",
}  # fmt: skip
_MAX_NAMES = 200  # names that are examined, because a list may be endless
_LONGEST_DATE = 100
# 2024-05-01T08:00, and the format of PDF files: D:20240501080000+01'00'.
_DATE_START = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)|(?:D:)?(\d{4})(\d\d)(\d\d)(?:\d\d){0,3}(?!\d)")
# 2024-05-01, 2024_05_01, 2024 05 01 and 20240501 in the name of a file; years from 1990 on, as others are numbers.
_NAMED_DATE = re.compile(r"(?<!\d)(199\d|20\d\d|2100)([-_ .]?)(\d\d)\2(\d\d)(?!\d)")
_WRITTEN_DATES = ("%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%Y")
# What programs write where an author belongs: their own names, and those of accounts and templates.
_PROGRAM = re.compile(
    r"[(<\[{].*[)>\]}]"  # (anonymous)
    r"|.*(?:pdf|docx|xlsx?\b|pptx|openxml|openpyxl|html|latex|https?:|\.(?:exe|dll|jar|py|js)\b).*"
    r"|(?:microsoft|libre|open|apache open|wps|kingsoft)[ -]?office.*"
    r"|(?:microsoft|ms)\u00ae?[ -](?:word|excel|powerpoint|publisher|outlook|print|reporting)\b.*"
    r"|(?:adobe )?(?:acrobat|indesign|illustrator|photoshop|framemaker|livecycle|experience manager)\b.*"
    r"|apache (?:poi|fop)\b.*|(?:aspose|google (?:docs|sheets|slides)|crystal reports|sap (?:netweaver|crystal))\b.*"
    r"|(?:writer|calc|impress|pages|numbers|keynote|word|excel|powerpoint|pandoc|pdflatex|tex|ghostscript|chromium"
    r"|skia|quartz|canva|prawn|itext|epplus|phpword|phpspreadsheet|sheetjs|xlsxwriter|reportlab|weasyprint"
    r"|jasperreports?|confluence|sharepoint|zotero|calibre|scribus|inkscape)(?:[ /]v?[\d.]+.*)?"
    r"|[\w -]{1,40}[ /]v?\d+(?:\.\d+)+.*"  # Name 3.2.1
    r"|(?:windows |office |default |local |system |pc |mac )?"
    r"(?:users?|user ?name|admin|administrator|root|owner|guest|system|author|creator|anonymous|unknown|unnamed"
    r"|untitled|default|none|null|nil|n/?a|nobody|test|your name|author name|no author|not set|-+|\.+|\?+)\d*",
    re.IGNORECASE,
)
# Dates that programs write where they know none: of their templates, and those from which they count.
_NO_DATES = (
    "2013-12-23T23:15:00", "2013-01-27T09:14:16", "2013-01-27T09:15:58", "1601-01-01", "1899-12-30", "1899-12-31",
    "1900-01-01", "1904-01-01", "1970-01-01", "1980-01-01", "1980-00-00", "D:20000101000000",
)  # fmt: skip
_MAX_STATE = 64 * 2**20  # bytes of the state file of `scrape`
_MAX_PROPERTIES = 64 * 1024  # bytes of an Office file's properties
_NAMESPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "cp": "http://schemas.openxmlformats.org/package/2006/metadata/core-properties",
}


def make_provenance(
    *, url: object = None, date: object = None, author: object = None, tags: object = None
) -> Provenance:
    """Make a Provenance from values of any type, keeping valid ones within bounds; a program is no author."""
    authors = list(islice(filterfalse(_PROGRAM.fullmatch, _names(author, r";")), MAX_AUTHORS))
    words = dict.fromkeys(tag.lstrip("#")[:MAX_TAG].rstrip() for tag in _names(tags, r"[,;]"))
    return Provenance(_url(url), _date(date), ", ".join(authors)[:MAX_AUTHOR].rstrip(), tuple(islice(words, MAX_TAGS)))


def provenance_of_fields(fields: Mapping[str, object], tags: Iterable[str] = ()) -> Provenance:
    """Read the fields of front matter, whose names may be in upper case; `tags` are those in the text."""
    known = {name.lower(): value for name, value in fields.items()}

    def first(names: Iterable[str]) -> Iterator[object]:
        return (known[name] for name in names if known.get(name))

    return make_provenance(
        url=next(filter(None, map(_url, first(_URL))), None),
        date=next(filter(None, map(_date, first(_DATE))), None),
        author=next(first(_AUTHOR), None),
        tags=[*_tags_of(known), *tags, *_properties_of(known)],
    )


def _tags_of(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield the tags of front matter. Programs part those in a text by spaces if it has no other signs of a list."""
    name = next((name for name in _TAGS if fields.get(name)), "")
    said = fields.get(name)
    is_spaced = name in {"tag", "tags"} and isinstance(said, str) and not re.search(r"[,;\n]", said)
    return _names(said, r"\s" if is_spaced else r"[,;]")


def _properties_of(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield the properties that are short values, as `name=value`, which filters find like tags."""
    for name, value in fields.items():
        if name not in _ELSEWHERE:
            values = value if isinstance(value, list | tuple) else [value]
            for one in islice(values, MAX_TAGS):
                written = str(one).lower() if isinstance(one, bool) else one
                for said in _names(written if isinstance(written, str) else [written], r"\n"):
                    if len(tag := f"{name}={said}") <= MAX_TAG:
                        yield tag


def pdf_provenance(fields: Mapping[str, str]) -> Provenance:
    """Read a PDF's information dictionary."""
    made = next(filter(is_real_date, (fields.get("CreationDate"), fields.get("ModDate"))), None)
    return make_provenance(date=made, author=fields.get("Author"), tags=fields.get("Keywords"))


def scraped_from(path: Path, sha256: str) -> str:
    """Return the address that a file with this hash was scraped from, or an empty string.

    `scrape` stores it with the file's hash in the folder above the host's folder.
    """
    file = path.parent.parent / SCRAPE_STATE
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        status = file.stat()
        pages = _scraped(file, status.st_size, status.st_mtime_ns).get(f"{path.parent.name}/{path.name}", {})
        return next((_url(url) for url, known in pages.items() if known == sha256), "")
    return ""


@functools.lru_cache(maxsize=4)
def _scraped(file: Path, size: int, _modified_ns: int) -> dict[str, dict[str, str]]:
    """Return a mapping file -> address -> hash from the state file of `scrape`."""
    if size > _MAX_STATE:
        return {}
    found: dict[str, dict[str, str]] = {}
    for url, known in json.loads(file.read_bytes()).items():
        found.setdefault(str(known["file"]), {})[url] = str(known["sha256"])
    return found


def date_of_file_name(name: str) -> str:
    """Return the last day in the name of a file as YYYY-MM-DD, or an empty string."""
    days = (_date(f"{year}-{month}-{day}") for year, _, month, day in _NAMED_DATE.findall(name))
    return next(filter(None, reversed([*days])), "")


def web_provenance(page: "BeautifulSoup") -> Provenance:
    """Read the head of a web page."""
    named: dict[str, str] = {}
    for tag in page.select("meta[content]", limit=_MAX_NAMES):
        name = str(tag.get("name") or tag.get("property") or "").lower()
        named.setdefault(name, str(tag["content"]))
    link = page.select_one("link[rel~=canonical][href]")
    dates = ("article:published_time", "date", "dc.date", "dcterms.date", "article:modified_time")
    return make_provenance(
        url=_url(link["href"]) if link else named.get("og:url"),
        date=next(filter(None, (_date(named[name]) for name in dates if name in named)), None),
        author=named.get("author"),
        tags=named.get("keywords"),
    )


def is_real_date(written: str | None) -> bool:
    """Return whether a date in a file's properties is one, not that of a template or the first day of a calendar."""
    return written is not None and bool(written.strip()) and not written.strip().startswith(_NO_DATES)


def office_provenance(data: bytes) -> Provenance:
    """Read the properties of an Office file; return UNKNOWN if they are missing or invalid."""
    from xml.etree import ElementTree

    with contextlib.suppress(KeyError, OSError, ValueError, zipfile.BadZipFile, ElementTree.ParseError):
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("docProps/core.xml") as file:
            content = file.read(_MAX_PROPERTIES + 1)
        if len(content) > _MAX_PROPERTIES or b"<!DOCTYPE" in content or b"<!ENTITY" in content:
            return UNKNOWN
        tree = ElementTree.fromstring(content)  # noqa: S314  the content is short and has no entities

        def text(name: str) -> str | None:
            return tree.findtext(name, namespaces=_NAMESPACES)

        made = next(filter(is_real_date, (text("dcterms:created"), text("dcterms:modified"))), None)
        return make_provenance(date=made, author=text("dc:creator"), tags=text("cp:keywords"))
    return UNKNOWN


def _url(value: object) -> str:
    """Return a web address, or an empty string for anything else."""
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > MAX_URL or not text.isprintable() or any(map(str.isspace, text)):
        return ""
    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        return text if parts.scheme in {"http", "https"} and parts.hostname else ""
    return ""


def _date(value: object) -> str:
    """Return a date as YYYY-MM-DD, or an empty string; a year alone is not a date."""
    if isinstance(value, date):  # or a datetime
        return f"{value:%Y-%m-%d}" if value.year >= 1000 else ""  # noqa: PLR2004  what strftime writes with fewer digits
    text = value.strip()[:_LONGEST_DATE] if isinstance(value, str) else ""
    if found := _DATE_START.match(text):
        with contextlib.suppress(ValueError):
            return date(*map(int, filter(None, found.groups()))).isoformat()
    for form in _WRITTEN_DATES:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, form).date().isoformat()
    with contextlib.suppress(ValueError, TypeError, IndexError, OverflowError):
        return email.utils.parsedate_to_datetime(text).date().isoformat()
    return ""


def _names(value: object, separator: str) -> Iterator[str]:
    """Yield the names in a list or in a text with separators, each on one line; for a mapping its `name`."""
    parts: Iterable[object] = ()
    if isinstance(value, str):
        parts = re.split(separator, value[: MAX_TAGS * 2 * MAX_AUTHOR])
    elif isinstance(value, list | tuple):
        parts = value
    elif isinstance(value, dict):
        parts = [value.get("name")]
    for part in islice(parts, _MAX_NAMES):
        named = part.get("name") if isinstance(part, dict) else part
        if isinstance(named, int):
            named = str(named) if abs(named) < 10**MAX_TAG else ""  # Python refuses to format very long numbers
        # Cut the name before splitting it, because it may be as long as the document.
        text = named[: 4 * MAX_AUTHOR] if isinstance(named, str) else ""
        if name := " ".join(clean(text).split())[:MAX_AUTHOR].strip():
            yield name
