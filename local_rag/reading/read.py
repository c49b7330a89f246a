"""Read a file into a Document: text, title, headings and pages, as offsets into the text."""

import hashlib
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_rag.document_records import UNKNOWN, Document, DocumentKind, Heading
from local_rag.errors import ReadError
from local_rag.files import FileStamp
from local_rag.reading.converters.converted import Converted, Sections, check_archive, notes_of
from local_rag.reading.converters.images import IMAGE_SUFFIXES
from local_rag.reading.decode import clean, declared_in_text, decode_with_notes
from local_rag.reading.formats import EMPTY, NO_TEXT, PRIVATE_KEY, Format, format_of
from local_rag.reading.line_numbers import blank_line_numbers
from local_rag.reading.mailbox import read_content
from local_rag.reading.markdown import (
    aliases_of,
    blank_drawing,
    blank_front_matter,
    blank_hidden,
    blank_tags,
    find_headings,
    find_tables,
    mark_struck,
    place_notes,
    read_wikilinks,
    tags_in,
    tags_in_org,
    title_of,
)
from local_rag.reading.provenance import date_of_file_name, make_provenance, provenance_of_fields, scraped_from
from local_rag.reading.remarks import blank_remarks
from local_rag.reading.spaced_words import join_spaced_words
from local_rag.reading.structure import find_definitions, find_outline, lacks_grammar
from local_rag.reading.walk import MAX_BYTES
from local_rag.text.struck import SIGN, without_struck

if TYPE_CHECKING:
    from local_rag.reading.converters.pdf import Recognize

MAX_TITLE = 200  # characters of a title or heading
_PRIVATE_KEY = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:(?:Bag Attributes|Key Attributes|[ \t]|\r?\n)[^\n]{0,200}\n){0,20}"
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
)
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_KEY_STARTS_WITHIN = 4096  # bytes, after the attributes that some programs write above a key
_DEEPEST_ATTACHMENT, _MOST_ATTACHMENTS = 4, 200  # files within files
_MOST_PAGES = 1_000_000  # of a file, to tell apart the pages of all attached files
MAX_NOTES, MAX_NOTE = 20, 200  # notes of a document, and characters of one


def read(path: Path) -> Document:
    """Read a file by its suffix; unknown suffixes are read as plain text.

    Raise ReadError with the reason alone (`empty`, `binary file, not a document` ...) if the file has no text.
    """
    return parse(path, read_bytes(path))


def read_bytes(path: Path) -> bytes:
    """Read a regular file of at most MAX_BYTES."""
    return read_file(path)[0]


def read_file(path: Path) -> tuple[bytes, FileStamp]:
    """Read a regular file, or a message of a mailbox, of at most MAX_BYTES; return its content and its stamp."""
    try:
        data, stamp = read_content(path, MAX_BYTES + 1)
    except OSError as error:
        raise ReadError(f"cannot be opened ({error.strerror})", lasting=False) from error
    if len(data) > MAX_BYTES:
        raise ReadError(f"larger than the limit of {MAX_BYTES / 2**20:.1f} MiB")
    return data, stamp


def parse(path: Path, data: bytes, *, depth: int = 0, recognize: "Recognize | None" = None) -> Document:
    """Parse a file's bytes into a document; `depth` counts the files that it is attached to.

    `recognize` reads images, and the pages of a PDF that have no text.
    """
    suffix, file_format = path.suffix.lower(), format_of(path)
    if depth and file_format.unsupported:  # files of their own are not even opened
        raise ReadError(file_format.unsupported)
    if not data.strip():
        raise ReadError(EMPTY)
    if _PRIVATE_KEY.match(data[:_KEY_STARTS_WITHIN]):
        raise ReadError(PRIVATE_KEY)
    if data.startswith(_LFS_POINTER):
        raise ReadError("a pointer of Git LFS; run `git lfs pull` to get the file itself")
    if file_format.converter:
        converted = _convert(suffix, file_format, data, recognize)
        if suffix == ".pdf" and not converted.provenance.url:  # other scraped pages contain their address
            provenance = replace(converted.provenance, url=scraped_from(path, hashlib.sha256(data).hexdigest()))
            converted = replace(converted, provenance=provenance)
        if converted.attachments:
            converted = _with_attachments(path, converted, depth, recognize)
        document = make_document(path, converted)
    else:
        text, notes = decode_with_notes(data, declared_in_text(data))
        document = as_document(path, text, notes=notes)
    if not document.text.strip():
        raise ReadError(NO_TEXT)
    if len(document.text) > MAX_BYTES:  # a converted table repeats its column names in each row
        mebibytes = f"{len(document.text) / 2**20:.1f} MiB"
        raise ReadError(f"contains {mebibytes} of text, more than the limit of {MAX_BYTES / 2**20:.1f} MiB")
    return document


def _with_attachments(path: Path, converted: Converted, depth: int, recognize: "Recognize | None") -> Converted:
    """Add the text of attached files, each below its name; a note says why one is left out."""
    title = converted.title or make_document(path, converted).title
    sections, notes, waiting = Sections(), list(converted.notes), converted.waiting
    sections.add(converted.text, converted.kind, converted.headings, converted.tables)
    sections.add_grids(converted.grids)
    for number, attached in enumerate(converted.attachments):
        name = _cut(attached.name.replace("/", "_"), 100) or "attachment"
        if depth >= _DEEPEST_ATTACHMENT or number >= _MOST_ATTACHMENTS:
            notes.append(f"attachments beyond the limit, the first of them {name}, are left out")
            break
        try:
            pages = _numbered(recognize, depth, number)
            document = parse(Path(name), attached.data, depth=depth + 1, recognize=pages)
        except ReadError as error:
            waiting += error.waiting
            notes.append(f"the attachment {name} is left out: {error}")
        else:
            waiting += document.waiting
            sections.add_document(f"Attachment: {name}", document)
            notes += [f"{name}: {note}" for note in document.notes]
    made = sections.converted(title, notes=tuple(notes), provenance=converted.provenance)
    # The pages are those of the file, whose text comes first.
    kept = dict[str, Any](
        labels=converted.labels, names=converted.names, links=converted.links, quoted=converted.quoted
    )
    return replace(made, waiting=waiting, pages=converted.pages, ocr=(*converted.ocr, *made.ocr), **kept)


def _numbered(recognize: "Recognize | None", depth: int, number: int) -> "Recognize | None":
    """Give the pages of an attached file numbers that no other page in the whole file has."""
    first = (number + 1) * _MOST_PAGES ** (depth + 1)
    return None if recognize is None else lambda page, page_number: recognize(page, first + page_number)


def _convert(suffix: str, file_format: Format, data: bytes, recognize: "Recognize | None") -> Converted:
    """Convert a file's bytes; raise ReadError with a short reason, whatever the parser raises."""
    if file_format.is_archive:
        check_archive(data)
    more = {"recognize": recognize} if suffix in {".pdf", *IMAGE_SUFFIXES} else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parsers' warnings about odd files are useless to the user
            module, name = file_format.converter.split(".")
            convert: Callable[..., Converted]
            convert = getattr(import_module(f"local_rag.reading.converters.{module}"), name)
            return convert(data, **more)
    except (ReadError, ImportError):  # a broken installation is not the file's fault
        raise
    except MemoryError as error:
        raise ReadError("takes too much memory to read") from error
    except RecursionError as error:
        raise ReadError("is nested too deeply") from error
    except Exception as error:  # parsers raise anything
        raise ReadError(f"damaged {suffix[1:].upper()} file ({type(error).__name__})") from error


def as_document(path: Path, text: str, *, kind: DocumentKind | None = None, notes: tuple[str, ...] = ()) -> Document:
    """Make a document from a text; its suffix or `kind` says whether it is Markdown, code or plain text."""
    file_format = format_of(path)
    kind, language = kind or file_format.kind, file_format.language
    if kind == "markdown":
        text, fields = blank_front_matter(text)
        text = mark_struck(blank_tags(blank_drawing(text) if "excalidraw-plugin" in fields else text))
        text, hidden = blank_hidden(text)
        notes += notes_of({"hidden word*": hidden})
        text, links = read_wikilinks(place_notes(text))
        named = dict[str, Any](
            provenance=provenance_of_fields(fields, tags_in(text)), names=aliases_of(fields), links=links
        )
        converted = Converted(title_of(fields), text, kind, notes=notes, **named)
        return make_document(path, converted, is_source=True)
    said = UNKNOWN
    if kind == "text":
        text = join_spaced_words(blank_line_numbers(blank_remarks(text, path.suffix.lower())))
        said = make_provenance(tags=tags_in_org(text)) if path.suffix.lower() == ".org" else said
    if kind == "code" and lacks_grammar(language):
        notes += ("cut as plain text, because the extra code, the grammars, is not installed",)
    return make_document(path, Converted(None, text, kind, notes=notes, provenance=said), language, is_source=True)


def make_document(
    path: Path, converted: Converted, language: str | None = None, *, is_source: bool = False
) -> Document:
    """Make a document, with its title, headings and notes cut to their limits."""
    text, kind = converted.text, converted.kind
    headings = converted.headings
    if headings is None:
        headings = _find_headings(path, text, kind, language)
    tables = converted.tables
    if tables is None:
        tables = find_tables(text) if kind == "markdown" else ()
    if kind == "code":
        first = path.name
    elif headings and not converted.grids and (kind == "markdown" or converted.headings is None):
        first = headings[0].title  # of a workbook this would be its first sheet
    else:
        first = _title_of(path)
    said = converted.provenance
    given = {one.name: getattr(converted, one.name) for one in fields(converted) if one.name != "attachments"}
    given |= {
        "title": _cut(_unmarked(converted.title or "")) or _cut(_unmarked(first)),
        "headings": tuple(replace(heading, title=_cut(heading.title)) for heading in headings),
        "tables": tables,
        "notes": _limit_notes(converted.notes),
        "provenance": said if said.date else replace(said, date=date_of_file_name(path.stem)),
    }
    return Document(path=path, language=language, is_source=is_source, **given)


def _unmarked(title: str) -> str:
    """Return a title without what is struck out in it, or without the signs of that if all of it is."""
    return without_struck(title) or title.replace(SIGN, "")


def _find_headings(path: Path, text: str, kind: DocumentKind, language: str | None) -> tuple[Heading, ...]:
    if kind == "markdown":
        return find_headings(text)
    if kind == "code":
        return find_definitions(text, language)
    return find_outline(text, path.suffix.lower())


def _limit_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Put each different note on one line within the limits; the last one says how many more there are."""
    different = [_cut(note, MAX_NOTE) for note in islice(dict.fromkeys(notes), 100 * MAX_NOTES)]
    if len(different) <= MAX_NOTES:
        return tuple(different)
    return *different[: MAX_NOTES - 1], f"and {len(different) - MAX_NOTES + 1} more such notes"


def _title_of(path: Path) -> str:
    """Make a title from a file's name: `travel-guide_2024.txt` gives `Travel guide 2024`."""
    words = re.sub(r"[-_\s]+", " ", path.stem).strip()
    return words[:1].upper() + words[1:] if words else path.name


def _cut(title: str, length: int = MAX_TITLE) -> str:
    """Put a title on one line and cut it between words; a whole text may be marked as a title."""
    line = " ".join(clean(title).split())
    if len(line) <= length:
        return line
    start = line[: length - 1]
    words = start.rpartition(" ")[0]
    return f"{words if len(words) > length // 2 else start}…"
