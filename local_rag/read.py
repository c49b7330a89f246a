"""Read a file into a Document: text, title, headings and pages, with offsets that stay true."""

import re
from pathlib import Path

from local_rag.decode import clean, decode
from local_rag.errors import ReadError
from local_rag.markdown import blank_front_matter, blank_tags, find_headings
from local_rag.read_formats import CONVERTED, convert
from local_rag.records import Document
from local_rag.source_code import LANGUAGES, find_definitions

_MARKDOWN = {".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"}


def read(path: Path) -> Document:
    """Read a file by its suffix, as plain text where the suffix is unknown.

    Raises ReadError with the bare reason (`empty`, `binary file, not a document` ...) when there is no text to be had.
    """
    suffix = path.suffix.lower()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReadError(f"cannot be opened ({error.strerror})") from error
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
