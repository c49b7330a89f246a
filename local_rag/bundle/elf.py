"""Find which versions of the system's libraries a compiled file needs (ELF, 64 bits, little-endian)."""

import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from local_rag.bundle.archive import BundleError
from local_rag.bundle.verify import numbers

_VERSION_NEEDS = 0x6FFFFFFE  # the type of the section .gnu.version_r
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NEED = struct.Struct("<HHIII")
_VERSION = struct.Struct("<IHHII")


def needed_versions(data: bytes) -> set[str]:
    """Return the symbol versions, such as GLIBC_2.28, that an ELF file needs; none for other files."""
    if data[:6] != b"\x7fELF\x02\x01":
        return set()
    try:
        header = _HEADER.unpack_from(data)
        offset, size, count = header[6], header[11], header[12]
        sections = [_SECTION.unpack_from(data, offset + number * size) for number in range(count)]
        names = set[str]()
        for section in sections:
            if section[1] == _VERSION_NEEDS:
                strings = sections[section[6]][4]
                names.update(_names(data, section[4], section[7], strings))
    except (struct.error, IndexError, ValueError) as error:
        raise BundleError("platform", f"Cannot parse a compiled file ({error}).") from error
    return names


def _names(data: bytes, offset: int, files: int, strings: int) -> Iterator[str]:
    """Walk the two levels of .gnu.version_r: files, and the needed versions of each file."""
    for _ in range(files):
        _, versions, _, first, following = _NEED.unpack_from(data, offset)
        entry = offset + first
        for _ in range(versions):
            _, _, _, name, following_entry = _VERSION.unpack_from(data, entry)
            begin = strings + name
            yield data[begin : data.index(b"\0", begin)].decode("ascii", "replace")
            entry += following_entry
        offset += following


def highest_glibc(wheels: Mapping[str, Path]) -> tuple[str, str]:
    """Return the highest glibc version that a file in the wheels needs, and that file; both may be empty."""
    highest, needed_by = "", ""
    for name, path in sorted(wheels.items()):
        with zipfile.ZipFile(path) as wheel:
            for member in wheel.namelist():
                if ".so" not in member and "/bin/" not in member:
                    continue
                for version in needed_versions(wheel.read(member)):
                    found = re.fullmatch(r"GLIBC_([0-9.]+)", version)
                    if found and numbers(found[1]) > numbers(highest):
                        highest, needed_by = found[1], f"{member} of {name}"
    return highest, needed_by
