"""Convert the database of Zotero: each item with title, authors, date, collections, tags, notes and annotations."""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted, Sections, notes_of
from local_rag.reading.converters.html_pages import convert_whole_page

_JOURNAL = 18  # the bytes that say that changes may be in another file, of which memory has none
_MOST_ITEMS, _MOST_LINES = 100_000, 2000  # items, and notes and annotations of one
_FIELDS = {
    "title": "",
    "date": "Date",
    "publicationTitle": "In",
    "publisher": "Publisher",
    "DOI": "DOI",
    "ISBN": "ISBN",
    "url": "Address",
    "abstractNote": "Abstract",
}
_ITEMS = """
    SELECT items.itemID, itemTypes.typeName FROM items JOIN itemTypes USING (itemTypeID)
    WHERE itemTypes.typeName NOT IN ('attachment', 'note', 'annotation')
    AND itemID NOT IN (SELECT itemID FROM deletedItems) ORDER BY itemID LIMIT ?
"""
_VALUES = """
    SELECT itemID, fieldName, value FROM itemData JOIN fields USING (fieldID) JOIN itemDataValues USING (valueID)
"""
_CREATORS = """
    SELECT itemID, trim(firstName || ' ' || lastName) FROM itemCreators JOIN creators USING (creatorID)
    ORDER BY itemID, orderIndex
"""
_COLLECTIONS = "SELECT itemID, collectionName FROM collectionItems JOIN collections USING (collectionID)"
_TAGS = "SELECT itemID, name FROM itemTags JOIN tags USING (tagID)"
_NOTES = "SELECT parentItemID, note FROM itemNotes WHERE parentItemID IS NOT NULL"
_ANNOTATIONS = """
    SELECT itemAttachments.parentItemID, text, comment, pageLabel FROM itemAnnotations
    JOIN itemAttachments ON itemAttachments.itemID = itemAnnotations.parentItemID
    WHERE itemAttachments.parentItemID IS NOT NULL ORDER BY itemAnnotations.itemID
"""


def convert_zotero(data: bytes) -> Converted:
    """Convert a database of Zotero, which is only read: each item is a section."""
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(data[:_JOURNAL] + b"\x01\x01" + data[_JOURNAL + 2 :])
            database.execute("PRAGMA query_only = 1")
            database.execute("PRAGMA trusted_schema = 0")
            return _converted(database)
    except sqlite3.Error as error:
        raise ReadError("not a database of Zotero that can be read") from error


def _converted(database: sqlite3.Connection) -> Converted:
    items = database.execute(_ITEMS, (_MOST_ITEMS + 1,)).fetchall()
    values = defaultdict[int, dict[str, str]](dict)
    for item, name, value in database.execute(_VALUES):
        if name in _FIELDS:
            values[item][name] = _line(value)
    lists = {
        name: _listed(database, query)
        for name, query in (("By", _CREATORS), ("Collections", _COLLECTIONS), ("Tags", _TAGS), ("notes", _NOTES))
    }
    annotations = lists["annotations"] = defaultdict(list)
    for item, text, comment, page in database.execute(_ANNOTATIONS):
        if len(annotations[item]) < _MOST_LINES:
            place = f" (page {_line(page)})" if page else ""
            annotations[item].append("; ".join(filter(None, (_line(text), _line(comment)))) + place)
    sections = Sections()
    for item, kind in items[:_MOST_ITEMS]:
        sections.heading(values[item].get("title") or f"Untitled {kind}")
        of_item = {name: some.get(item, []) for name, some in lists.items()}
        sections.add(_item(kind, values[item], of_item))
    left_out = notes_of({"item* beyond the limit": len(items) - _MOST_ITEMS}) if len(items) > _MOST_ITEMS else ()
    return sections.converted("Zotero", notes=left_out)


def _listed(database: sqlite3.Connection, query: str) -> dict[int, list[str]]:
    found = defaultdict[int, list[str]](list)
    for item, value in database.execute(query):
        if len(found[item]) < _MOST_LINES:
            found[item].append(str(value or ""))
    return found


def _item(kind: str, values: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> str:
    lines = [f"{name}: {', '.join(map(_line, lists[name]))}" for name in ("By", "Collections", "Tags")]
    lines = [line for line in lines if not line.endswith(": ")]
    lines += [f"{name}: {values[field]}" for field, name in _FIELDS.items() if name and values.get(field)]
    notes = filter(str.strip, lists["notes"])
    lines += [f"Note: {_line(convert_whole_page(note.encode(), 'utf-8').text)}" for note in notes]
    lines += [f"Annotation: {one}" for one in lists["annotations"] if one]
    return "\n\n".join([f"Type: {kind}", *lines])


def _line(value: object) -> str:
    return " ".join(str(value or "").split())
