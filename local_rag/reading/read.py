"""Read a file into a Document: text, title, headings and pages, with offsets that stay true."""

import os
import re
import stat
from pathlib import Path

from local_rag.errors import ReadError
from local_rag.reading.decode import clean, decode
from local_rag.reading.formats import CONVERTED, convert
from local_rag.reading.markdown import blank_front_matter, blank_tags, find_headings
from local_rag.reading.source_code import LANGUAGES, find_definitions
from local_rag.reading.walk import MAX_BYTES
from local_rag.records import Document

_MARKDOWN = {".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"}


def read(path: Path) -> Document:
    """Read a file by its suffix, as plain text where the suffix is unknown.

    Raises ReadError with the bare reason (`empty`, `binary file, not a document` ...) when there is no text to be had.
    """
    suffix = path.suffix.lower()
    data = _read_bytes(path)
    if not data.strip():
        raise ReadError("empty")
    if suffix in CONVERTED:
        document = _read_converted(path, data)
    elif suffix in _MARKDOWN:
        document = _read_markdown(path, decode(data))
    elif suffix in LANGUAGES:
        document = _read_code(path, decode(data))
    else:
        document = Document(path=path, title=_title_of(path), text=decode(data), kind="text")
    if not document.text.strip():
        raise ReadError("holds no text")
    return document


def _read_bytes(path: Path) -> bytes:
    """Read a regular file within the limit, whatever it was when it was found."""
    try:
        # O_NONBLOCK: opening a FIFO would wait for a writer; O_NOFOLLOW: a link may lead anywhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ReadError("cannot be opened (not a regular file)")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ReadError(f"cannot be opened ({error.strerror})") from error
    if len(data) > MAX_BYTES:
        raise ReadError(f"larger than the limit of {MAX_BYTES / 2**20:.1f} MiB")
    return data


def _read_markdown(path: Path, source: str) -> Document:
    text, title = blank_front_matter(source)
    text = blank_tags(text)
    headings = find_headings(text)
    title = title or (headings[0].title if headings else _title_of(path))
    return Document(path=path, title=_one_line(title), text=text, kind="markdown", headings=headings)


def _read_code(path: Path, text: str) -> Document:
    language = LANGUAGES[path.suffix.lower()]
    headings = find_definitions(text) if language == "python" else ()
    return Document(path=path, title=path.name, text=text, kind="code", language=language, headings=headings)


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
