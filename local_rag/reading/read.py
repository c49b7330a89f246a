"""Read a file into a Document: text, title, headings and pages, with offsets that stay true."""

import re
from dataclasses import replace
from pathlib import Path

from local_rag.errors import ReadError
from local_rag.files import open_regular
from local_rag.reading.decode import clean, decode
from local_rag.reading.formats import CONVERTED, Converted, convert
from local_rag.reading.markdown import blank_front_matter, blank_tags, find_headings, title_of
from local_rag.reading.provenance import provenance_of_fields, scraped_from
from local_rag.reading.source_code import LANGUAGES, find_definitions
from local_rag.reading.walk import MAX_BYTES
from local_rag.records import Document, DocumentKind, Skipped

MAX_TITLE = 200  # characters of a title or heading

_MARKDOWN = {".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"}


def read(path: Path) -> Document:
    """Read a file by its suffix, as plain text where the suffix is unknown.

    Raises ReadError with the bare reason (`empty`, `binary file, not a document` ...) when there is no text to be had.
    """
    return parse(path, read_bytes(path))


def skipped(path: Path, error: ReadError | OSError) -> Skipped:
    """Return the record of a file that could not be read because of an error."""
    return Skipped(path, str(error), lasting=isinstance(error, ReadError) and error.lasting)


def read_bytes(path: Path) -> bytes:
    """Read a regular file within the limit."""
    try:
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ReadError(f"cannot be opened ({error.strerror})", lasting=False) from error
    if len(data) > MAX_BYTES:
        raise ReadError(f"larger than the limit of {MAX_BYTES / 2**20:.1f} MiB")
    return data


def parse(path: Path, data: bytes) -> Document:
    """Make a document of a file's bytes."""
    suffix = path.suffix.lower()
    if not data.strip():
        raise ReadError("empty")
    if suffix in CONVERTED:
        converted = convert(suffix, data)
        if suffix == ".pdf" and not converted.provenance.url:  # a page is kept with its address, a PDF as it is
            said = replace(converted.provenance, url=scraped_from(path, data))
            converted = replace(converted, provenance=said)
        document = _make(path, converted, None, is_source=False)
    else:
        document = as_document(path, decode(data))
    if not document.text.strip():
        raise ReadError("holds no text")
    if len(document.text) > MAX_BYTES:  # a table names its columns in each row
        mebibytes = f"{len(document.text) / 2**20:.1f} MiB"
        raise ReadError(f"holds {mebibytes} of text, more than the limit of {MAX_BYTES / 2**20:.1f} MiB")
    return document


def as_document(path: Path, text: str, *, kind: DocumentKind | None = None) -> Document:
    """Make a document of a text, which is Markdown, code or neither as its suffix says, or its `kind`."""
    suffix = path.suffix.lower()
    language = LANGUAGES.get(suffix)
    kind = kind or ("markdown" if suffix in _MARKDOWN else "code" if language else "text")
    if kind == "markdown":
        text, fields = blank_front_matter(text)
        converted = Converted(title_of(fields), blank_tags(text), kind, provenance=provenance_of_fields(fields))
        return _make(path, converted, None, is_source=True)
    return _make(path, Converted(None, text, kind), language, is_source=True)


def _make(path: Path, converted: Converted, language: str | None, *, is_source: bool) -> Document:
    """Make a document, its title and headings cut to what a title is at most."""
    text, kind = converted.text, converted.kind
    headings = find_headings(text) if kind == "markdown" else find_definitions(text) if language == "python" else ()
    first = headings[0].title if headings and kind == "markdown" else path.name if kind == "code" else _title_of(path)
    return Document(
        path=path,
        title=_cut(converted.title or "") or _cut(first),
        text=text,
        kind=kind,
        language=language,
        headings=tuple(replace(heading, title=_cut(heading.title)) for heading in headings),
        pages=converted.pages,
        is_source=is_source,
        note=converted.note,
        provenance=converted.provenance,
    )


def _title_of(path: Path) -> str:
    """Make a title of a file's name: `travel-guide_2024.txt` gives `Travel guide 2024`."""
    words = re.sub(r"[-_\s]+", " ", path.stem).strip()
    return words[:1].upper() + words[1:] if words else path.name


def _cut(title: str) -> str:
    """Make one line of a title, which may be a whole text that was marked as one, and cut it between words."""
    line = " ".join(clean(title).split())
    if len(line) <= MAX_TITLE:
        return line
    start = line[: MAX_TITLE - 1]
    words = start.rpartition(" ")[0]
    return f"{words if len(words) > MAX_TITLE // 2 else start}…"
