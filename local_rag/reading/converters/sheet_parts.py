"""Find in an XLSX archive what openpyxl does not tell while it streams: merged cells, bare formulas, comments."""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

_BLOCK, _OVERLAP = 1 << 20, 1 << 13  # bytes: what is searched for is shorter than the overlap
_MOST = 100_000  # of each kind
_LONGEST_COMMENT = 2000  # characters
_MOST_COMMENTS_BYTES = 20_000_000
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_FORMULA = re.compile(
    rb'<(?:\w+:)?(?>c\s[^<>]*?r="([A-Z]{1,3}\d{1,7})")[^<>]*+>\s*+'
    rb"<(?:\w+:)?f(?:\s[^<>]*+)?/?+(?:(?<=/)>|>[^<]*+</(?:\w+:)?f>)\s*+"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)


class Range(NamedTuple):
    """Merged cells: rows are counted from 1, columns from 0."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int


@dataclass(frozen=True, slots=True)
class SheetParts:
    """The merged cells of a sheet, the names of the cells whose formula has no value, and comments by cell."""

    merged: tuple[Range, ...]
    formulas: tuple[str, ...]
    comments: tuple[tuple[str, str], ...]


def parts_of_sheet(archive: zipfile.ZipFile, path: str) -> SheetParts:
    """Search the parts of one sheet; `path` is that of the sheet in the archive."""
    merged: dict[Range, None] = {}
    formulas: dict[str, None] = {}
    for block in _blocks(archive, path):
        for found in _MERGED.finditer(block):
            left, top, right, bottom = (part.decode() for part in found.groups())
            merged[Range(int(top), _column(left), int(bottom), _column(right))] = None
        for found in _FORMULA.finditer(block):
            formulas[found[1].decode()] = None
        if len(merged) > _MOST or len(formulas) > _MOST:
            break
    return SheetParts(tuple(merged), tuple(formulas), tuple(_comments(archive, path)))


def _blocks(archive: zipfile.ZipFile, path: str) -> Iterator[bytes]:
    """Yield a member in blocks that overlap."""
    with archive.open(path.lstrip("/")) as member:
        before = b""
        while block := member.read(_BLOCK):
            yield before + block
            before = (before + block)[-_OVERLAP:]


def _comments(archive: zipfile.ZipFile, path: str) -> Iterator[tuple[str, str]]:
    """Yield the comments of a sheet by cell, without the names of their authors."""
    from lxml import etree

    folder, name = posixpath.split(path.lstrip("/"))
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    with suppress(KeyError, etree.XMLSyntaxError):
        relations = etree.fromstring(archive.read(f"{folder}/_rels/{name}.rels"), parser)
        for relation in relations.iterfind("{*}Relationship"):
            if not relation.get("Type", "").endswith("/comments"):
                continue
            target = relation.get("Target", "")
            part = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            if archive.getinfo(part).file_size > _MOST_COMMENTS_BYTES:
                continue
            for comment in etree.fromstring(archive.read(part), parser).iter("{*}comment"):
                text = " ".join("".join(comment.itertext("{*}t")).split())[:_LONGEST_COMMENT]
                if text:
                    yield comment.get("ref", ""), text


def _column(letters: str) -> int:
    """Return the number of a column from 0: `A` is 0, `AA` is 26."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1
