"""Read winmail.dat, into which Outlook packs a message and its files (TNEF): attributes with a length each."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Attachment
from local_rag.reading.converters.html_pages import convert_whole_page
from local_rag.reading.converters.rich_text import convert_rtf, expand_rtf
from local_rag.reading.decode import code_page

_SIGNATURE = 0x223E9F78
_SUBJECT, _BODY, _PROPERTIES, _CODE_PAGE = 0x8004, 0x800C, 0x9003, 0x9007
_BEGINS_FILE, _FILE_NAME, _FILE_DATA, _FILE_PROPERTIES = 0x9002, 0x8010, 0x800F, 0x9005
_OF_TEXT, _OF_PAGE, _OF_RTF, _LONG_NAME, _PAGE_OF_HTML = 0x1000, 0x1013, 0x1009, 0x3707, 0x3FDE  # properties
# How many bytes a value of a type has, with those that fill it up to four; the others say their length.
_SIZES = {0x02: 4, 0x03: 4, 0x04: 4, 0x05: 8, 0x06: 8, 0x07: 8, 0x0A: 4, 0x0B: 4, 0x14: 8, 0x40: 8, 0x48: 16}
_WIDE, _SEVERAL, _NAMED, _GUID = 0x1F, 0x1000, 0x8000, 16
_MOST_FILES = 2000
_USUAL = "cp1252"


@dataclass(slots=True)
class Packed:
    """The texts of a packed message, its files, and notes on what is left out."""

    texts: list[str] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def read_winmail(data: bytes) -> Packed:
    """Read a packed message; raise ReadError if it is damaged."""
    try:
        return _read(data)
    except (struct.error, IndexError) as error:
        raise ReadError("damaged file") from error


def _read(data: bytes) -> Packed:
    packed, charset = Packed(), _USUAL
    names, files = list[str](), list[bytes]()
    for kind, value in _attributes(data):
        if kind == _CODE_PAGE:
            charset = code_page(struct.unpack_from("<I", value)[0]) or _USUAL
        elif kind == _BODY:
            packed.texts.append(_text(value, charset))
        elif kind == _PROPERTIES:
            _add_body(packed, dict(_properties(value)), charset)
        elif kind == _BEGINS_FILE and len(files) < _MOST_FILES:
            names.append("")
            files.append(b"")
        elif not files:
            continue
        elif kind == _FILE_NAME:
            names[-1] = names[-1] or _text(value, charset)
        elif kind == _FILE_DATA:
            files[-1] = value
        elif kind == _FILE_PROPERTIES and (found := dict(_properties(value)).get(_LONG_NAME)):
            names[-1] = _text(found[1], "utf-16-le" if found[0] == _WIDE else charset)
    packed.texts = [text for text in packed.texts if text.strip()]
    packed.attachments = [Attachment(name or "part", file) for name, file in zip(names, files, strict=True) if file]
    return packed


def _add_body(packed: Packed, properties: dict[int, tuple[int, bytes]], charset: str) -> None:
    """Add the text of a message, which stands in one of several forms."""
    if any(map(str.strip, packed.texts)):
        return
    if found := properties.get(_OF_TEXT):
        packed.texts.append(_text(found[1], "utf-16-le" if found[0] == _WIDE else charset))
    elif found := properties.get(_OF_PAGE):
        _, number = properties.get(_PAGE_OF_HTML, (0, b""))
        page = convert_whole_page(found[1], code_page(int.from_bytes(number[:4], "little"), wide=True))
        packed.texts.append(page.text)
        packed.notes += page.notes
    elif found := properties.get(_OF_RTF):
        page = convert_rtf(expand_rtf(found[1]))
        packed.texts.append(page.text)
        packed.notes += page.notes


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and the value of each attribute."""
    if len(data) < 6 or struct.unpack_from("<I", data)[0] != _SIGNATURE:  # noqa: PLR2004
        raise ReadError("not a message of Outlook")
    at = 6
    while at + 11 <= len(data):
        _level, kind, length = struct.unpack_from("<BII", data, at)
        at += 9
        yield kind & 0xFFFF, data[at : at + length]
        at += length + 2  # with the checksum


def _properties(data: bytes) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Yield the number of each property with its type and its first value."""
    (count,), at = struct.unpack_from("<I", data), 4
    for _ in range(count):
        kind, number = struct.unpack_from("<HH", data, at)
        at += 4
        if number >= _NAMED:
            (by_name,) = struct.unpack_from("<I", data, at + _GUID)
            at += _GUID + 4
            at += 4 + _padded(struct.unpack_from("<I", data, at)[0]) if by_name else 4
        several, kind = kind & _SEVERAL, kind & ~_SEVERAL
        values = 1
        if several or kind not in _SIZES:
            (values,) = struct.unpack_from("<I", data, at)
            at += 4
        first = b""
        for place in range(values):
            length = _SIZES.get(kind, 0)
            if not length:
                (length,) = struct.unpack_from("<I", data, at)
                at += 4
            first = data[at : at + length] if not place else first
            at += _padded(length)
            if at > len(data):
                return
        yield number, (kind, first)


def _padded(length: int) -> int:
    return length + -length % 4


def _text(value: bytes, encoding: str) -> str:
    return value.decode(encoding, errors="replace").rstrip("\0")
