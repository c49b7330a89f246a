"""Write compound files of OLE, as Outlook stores messages: few folders and streams, in 512-byte sectors."""

import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
Folder = Mapping[str, "bytes | Mapping[str, Any]"]


def ole_file(root: Folder) -> bytes:
    """Write a compound file of nested folders (mappings) and streams (bytes)."""
    entries: list[list[Any]] = []  # name, kind, child, right, start, size
    mini, big = bytearray(), list[tuple[int, bytes]]()
    mini_fat: list[int] = []

    def add(name: str, content: Any) -> int:
        number = len(entries)
        entries.append([name, 1 if isinstance(content, Mapping) else 2, _FREE, _FREE, 0, 0])
        if isinstance(content, Mapping):
            children = [add(*child) for child in content.items()]
            for left, right in pairwise(children):
                entries[left][3] = right
            entries[number][2] = children[0] if children else _FREE
        elif len(content) < _CUTOFF:
            entries[number][4:] = len(mini) // _MINI if content else _END, len(content)
            count = -(-len(content) // _MINI)
            mini_fat.extend([len(mini_fat) + step + 1 for step in range(count - 1)] + [_END] * bool(count))
            mini.extend(content.ljust(count * _MINI, b"\x00"))
        else:
            entries[number][5] = len(content)
            big.append((number, content))
        return number

    add("Root Entry", root)
    entries[0][1] = 5
    sectors: list[bytes] = []
    fat: list[int] = []

    def store(content: bytes) -> int:
        start, count = len(sectors), max(1, -(-len(content) // _SECTOR))
        sectors.extend(content[step * _SECTOR : (step + 1) * _SECTOR].ljust(_SECTOR, b"\x00") for step in range(count))
        fat.extend([start + step + 1 for step in range(count - 1)] + [_END])
        return start

    for number, content in big:
        entries[number][4] = store(content)
    entries[0][4:] = store(bytes(mini)), len(mini)
    mini_start = store(struct.pack(f"<{len(mini_fat)}I", *mini_fat).ljust(_SECTOR, b"\xff"))
    mini_sectors = len(sectors) - mini_start
    directory = b"".join(_entry(*entry) for entry in entries)
    directory += _entry("", 0, _FREE, _FREE, 0, 0) * (-len(entries) % 4)
    directory_start = store(directory)
    fat_sectors = 1
    while (len(fat) + fat_sectors) * 4 > fat_sectors * _SECTOR:
        fat_sectors += 1
    places = range(len(sectors), len(sectors) + fat_sectors)
    fat += [_FAT] * fat_sectors
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(fat_sectors * _SECTOR, b"\xff")
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        0x3E,
        3,
        0xFFFE,
        9,
        6,
        0,
        fat_sectors,
        directory_start,
        0,
        _CUTOFF,
        mini_start,
        mini_sectors,
        _END,
        0,
        places[0],
    )
    rest = [*places[1:], *[_FREE] * (109 - len(places))]
    header += struct.pack(f"<{len(rest)}I", *rest)
    return header + b"".join(sectors) + table


def _entry(name: str, kind: int, child: int, right: int, start: int, size: int) -> bytes:
    encoded = (name + "\x00").encode("utf-16-le") if name else b""
    return struct.pack("<64sHBBIII16xI8x8xIQ", encoded, len(encoded), kind, 1, _FREE, right, child, 0, start, size)
