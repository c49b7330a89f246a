"""Find which versions of the system's libraries a compiled file needs (ELF, 64 bits, little-endian)."""

import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from local_rag.bundle.archive import BundleError
from local_rag.bundle.verify import numbers

_VERSION_NEEDS = 0x6FFFFFFE  # the type of the section .gnu.version_r
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NEED = struct.Struct("<HHIII")
_VERSION = struct.Struct("<IHHII")
_RELR = "2.36"  # the first glibc that understands compressed relocations
_SYSTEM = ("libstdc++.so", "libgcc_s.so", "libgomp.so")  # compilers' libraries, which a system may lack


def needed_versions(data: bytes) -> set[tuple[str, str]]:
    """Return the libraries and symbol versions, such as libc.so.6 and GLIBC_2.28, that an ELF file needs."""
    if data[:6] != b"\x7fELF\x02\x01":
        return set()
    try:
        header = _HEADER.unpack_from(data)
        offset, size, count = header[6], header[11], header[12]
        sections = [_SECTION.unpack_from(data, offset + number * size) for number in range(count)]
        needed = set[tuple[str, str]]()
        for section in sections:
            if section[1] == _VERSION_NEEDS:
                strings = sections[section[6]][4]
                needed.update(_needs(data, section[4], section[7], strings))
    except (struct.error, IndexError, ValueError) as error:
        raise BundleError("platform", f"Cannot parse a compiled file ({error}).") from error
    return needed


def _needs(data: bytes, offset: int, files: int, strings: int) -> Iterator[tuple[str, str]]:
    """Walk the two levels of .gnu.version_r: files, and the needed versions of each file."""
    for _ in range(files):
        _, versions, file, first, following = _NEED.unpack_from(data, offset)
        entry = offset + first
        for _ in range(versions):
            _, _, _, name, following_entry = _VERSION.unpack_from(data, entry)
            yield _text(data, strings + file), _text(data, strings + name)
            entry += following_entry
        offset += following


def _text(data: bytes, begin: int) -> str:
    return data[begin : data.index(b"\0", begin)].decode("ascii", "replace")


@dataclass(frozen=True, slots=True)
class SystemNeeds:
    """What compiled files need of the system: the highest glibc, the file that needs it, and libraries' versions."""

    glibc: str = ""
    glibc_needed_by: str = ""
    library_versions: tuple[str, ...] = ()  # such as `libstdc++.so.6 GLIBCXX_3.4.29`, the highest of each kind


def system_needs(wheels: Mapping[str, Path]) -> SystemNeeds:
    """Return what the compiled files in wheels need of the system, besides the libraries that the wheels contain."""
    glibc, needed_by = "", ""
    highest, contained = dict[tuple[str, str], str](), set[str]()
    for name, path in sorted(wheels.items()):
        with zipfile.ZipFile(path) as wheel:
            for member in wheel.namelist():
                if ".so" not in member and "/bin/" not in member:
                    continue
                contained.add(member.rpartition("/")[2])
                for library, symbol in needed_versions(wheel.read(member)):
                    kind, _, version = symbol.partition("_")
                    if not re.fullmatch(r"[0-9.]+", version):
                        if symbol == "GLIBC_ABI_DT_RELR" and numbers(glibc) < numbers(_RELR):
                            glibc, needed_by = _RELR, f"{member} of {name}"
                    elif kind != "GLIBC":
                        if numbers(version) > numbers(highest.get((library, kind), "")):
                            highest[library, kind] = version
                    elif numbers(version) > numbers(glibc):
                        glibc, needed_by = version, f"{member} of {name}"
    lines = (f"{library} {kind}_{version}" for (library, kind), version in highest.items() if library not in contained)
    known = (line for line in lines if line.startswith(_SYSTEM))
    return SystemNeeds(glibc, needed_by, tuple(sorted(known)))
