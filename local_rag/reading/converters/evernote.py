"""Convert an export of Evernote (.enex): each note with its title, date, tags, text, tasks and attached files."""

import base64
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.entities import html5
from itertools import islice
from typing import Any

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Attachment, Converted, Sections, notes_of, text_of
from local_rag.reading.converters.html_pages import convert_whole_page
from local_rag.reading.decode import clean, declared_in_text, decode_with_notes
from local_rag.reading.markdown import find_headings, find_tables
from local_rag.reading.provenance import make_provenance

_MOST_NOTES, _MOST_TASKS, _MOST_FILES = 20_000, 500, 1000  # of a file, of a note, of a file
_ATTRIBUTES = r"""(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+"""
_TODO = re.compile(rf"<en-todo\b({_ATTRIBUTES})>(?:\s*+</en-todo>)?")
_ITEM = re.compile(rf"<li\b({_ATTRIBUTES})>(?:\s*+<div\b{_ATTRIBUTES}>)?")  # of a list to be ticked, in newer exports
_TICKED = re.compile(r"\bchecked\s*+[=:]\s*+[\"']?true")
_ENCRYPTED = re.compile(rf"<en-crypt\b{_ATTRIBUTES}>[^<>]*+</en-crypt>")
_MEDIA = re.compile(rf"<en-media\b{_ATTRIBUTES}>(?:\s*+</en-media>)?")  # of the attached files
_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z]{2,31};)")


def convert_evernote(data: bytes) -> Converted:
    """Convert an export: each note is a section below its title."""
    text, notes = decode_with_notes(data, declared_in_text(data))
    root = _parse(_with_characters(clean(text)))
    if root.tag != "en-export":
        raise ReadError("not an export of Evernote")
    found = root.findall("note")
    sections, left_out, attachments, tags = Sections(), Counter[str](), list[Attachment](), list[str]()
    for note in found[:_MOST_NOTES]:
        written, more = _write(note, left_out)
        notes += more
        sections.heading(_line(note, "title") or "Untitled note")
        below = [replace(one, level=one.level + 1) for one in find_headings(written)]
        sections.add(written, "text", below, find_tables(written))  # as text, it has the title of its file
        attachments += islice(_files(note), _MOST_FILES - len(attachments))
        tags += map(text_of, note.iterfind("tag"))
    left_out["note* beyond the limit"] = max(0, len(found) - _MOST_NOTES)
    provenance, title = make_provenance(tags=tags), None
    if len(found) == 1:
        made, author, url = (_line(found[0], name) for name in ("created", "*/author", "*/source-url"))
        provenance, title = make_provenance(url=url, date=made, author=author, tags=tags), _line(found[0], "title")
    notes += notes_of(left_out)
    return sections.converted(title, notes=notes, attachments=tuple(attachments), provenance=provenance)


def _with_characters(text: str) -> str:
    """Put characters in the place of the names of HTML for them, which only the DTD of Evernote defines."""
    if "<!ENTITY" in text:
        return text
    first, *others = text.split("<![CDATA[")
    parts = (other.partition("]]>") for other in others)
    return "".join([_named(first), *(f"<![CDATA[{data}{end}{_named(after)}" for data, end, after in parts)])


def _named(text: str) -> str:
    return _ENTITY.sub(lambda one: html5.get(one[1], one[0]), text)


def _parse(text: str) -> Any:
    """Parse an export, whose attached files may be large; one that defines entities, as no export does, is limited."""
    from lxml import etree

    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        huge_tree="<!ENTITY" not in text,
    )
    return etree.fromstring(text.encode(), parser)


def _write(note: Any, left_out: Counter[str]) -> tuple[str, tuple[str, ...]]:
    """Return the text of a note below its date and tags, and notes on what is left out."""
    tags = ", ".join(filter(None, map(text_of, note.iterfind("tag"))))
    head = {"Created": make_provenance(date=_line(note, "created")).date, "Tags": tags}
    markup, encrypted = _ENCRYPTED.subn("", note.findtext("content") or "")
    left_out["encrypted part*"] += encrypted
    markup = _TODO.sub(lambda one: _box(one[1]), _MEDIA.sub("", markup))
    markup = _ITEM.sub(lambda one: one[0] + (_box(one[1]) if "--en-checked" in one[1] else ""), markup)
    page = convert_whole_page(markup.encode(), "utf-8") if markup.strip() else Converted(None, "", "markdown")
    lines = [f"{name}: {value}" for name, value in head.items() if value]
    tasks = [_task(task) for task in islice(note.iterfind("task"), _MOST_TASKS)]
    return "\n\n".join(filter(None, ["\n".join(lines), page.text, "\n".join(tasks)])), page.notes


def _box(attributes: str) -> str:
    return "[x] " if _TICKED.search(attributes) else "[ ] "


def _task(task: Any) -> str:
    return f"- [{'x' if _line(task, 'taskStatus') == 'completed' else ' '}] {_line(task, 'title')}"


def _files(note: Any) -> Iterator[Attachment]:
    """Yield the files of a note that can be decoded."""
    for resource in note.iterfind("resource"):
        ending = mimetypes.guess_extension(_line(resource, "mime")) or ""
        name = _line(resource, "*/file-name") or f"attachment{ending}"
        try:
            data = base64.b64decode("".join((resource.findtext("data") or "").split()), validate=True)
        except ValueError:
            data = b""
        yield Attachment(name, data)


def _line(element: Any, name: str) -> str:
    return " ".join((element.findtext(name) or "").split())
