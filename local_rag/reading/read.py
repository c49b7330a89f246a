"""Read a file into a Document: text, title, headings and pages, with offsets that stay true."""

import re
from pathlib import Path

from local_rag.errors import ReadError, UnopenedError
from local_rag.files import open_regular
from local_rag.reading.decode import clean, decode
from local_rag.reading.formats import CONVERTED, convert
from local_rag.reading.markdown import blank_front_matter, blank_tags, find_headings
from local_rag.reading.source_code import LANGUAGES, find_definitions
from local_rag.reading.walk import MAX_BYTES
from local_rag.records import Document, DocumentKind

_MARKDOWN = {".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"}


def read(path: Path) -> Document:
    """Read a file by its suffix, as plain text where the suffix is unknown.

    Raises ReadError with the bare reason (`empty`, `binary file, not a document` ...) when there is no text to be had.
    """
    return parse(path, read_bytes(path))


def read_bytes(path: Path) -> bytes:
    """Read a regular file within the limit."""
    try:
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnopenedError(f"cannot be opened ({error.strerror})") from error
    if len(data) > MAX_BYTES:
        raise ReadError(f"larger than the limit of {MAX_BYTES / 2**20:.1f} MiB")
    return data


def parse(path: Path, data: bytes) -> Document:
    """Make a document of a file's bytes."""
    suffix = path.suffix.lower()
    if not data.strip():
        raise ReadError("empty")
    document = _read_converted(path, data) if suffix in CONVERTED else as_document(path, decode(data))
    if not document.text.strip():
        raise ReadError("holds no text")
    return document


def as_document(path: Path, text: str, *, title: str = "", kind: DocumentKind | None = None) -> Document:
    """Make a document of a text, which is Markdown, code or neither as its suffix says, or its `kind`."""
    suffix = path.suffix.lower()
    language = LANGUAGES.get(suffix)
    kind = kind or ("markdown" if suffix in _MARKDOWN else "code" if language else "text")
    if kind == "markdown":
        return _as_markdown(path, text, title)
    headings = find_definitions(text) if language == "python" else ()
    named = title or (path.name if kind == "code" else _title_of(path))
    return Document(path=path, title=named, text=text, kind=kind, language=language, headings=headings)


def _as_markdown(path: Path, source: str, title: str) -> Document:
    text, named = blank_front_matter(source)
    text = blank_tags(text)
    headings = find_headings(text)
    title = title or named or (headings[0].title if headings else _title_of(path))
    return Document(path=path, title=_one_line(title), text=text, kind="markdown", headings=headings)


def _read_converted(path: Path, data: bytes) -> Document:
    converted = convert(path.suffix.lower(), data)
    headings = find_headings(converted.text) if converted.kind == "markdown" else ()
    title = converted.title or (headings[0].title if headings else _title_of(path))
    return Document(
        path=path,
        title=_one_line(title),
        text=converted.text,
        kind=converted.kind,
        headings=headings,
        pages=converted.pages,
        is_source=False,
    )


def _title_of(path: Path) -> str:
    """Make a title of a file's name: `travel-guide_2024.txt` gives `Travel guide 2024`."""
    words = re.sub(r"[-_\s]+", " ", path.stem).strip()
    return words[:1].upper() + words[1:] if words else path.name


def _one_line(title: str) -> str:
    return " ".join(clean(title).split())
