"""Write the archive of a bundle: one uncompressed tar in parts; the same members give the same bytes.

`tarfile` is not used: its headers differ between versions of Python, and it writes sizes and paths in records that
`archive.py` would have to accept too.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from local_rag.bundle.archive import BLOCK, CHUNK, BundleError

_RECORD = 20 * BLOCK  # the length of a tar is a multiple of it
_LONGEST_NAME = 100
_LARGEST_OCTAL = 8**11


class PartWriter:
    """Write bytes into files of a maximum size and hash each file."""

    def __init__(self, folder: Path, name: str, part_bytes: int) -> None:
        self._folder, self._name, self._part_bytes = folder, name, part_bytes
        self.hashes: dict[str, str] = {}
        self.bytes = 0
        self._next()

    def write(self, data: bytes) -> None:
        """Write bytes into as many parts as necessary."""
        while data:
            if self._left == 0:
                self.close()
                self._next()
            taken, data = data[: self._left], data[self._left :]
            self._file.write(taken)
            self._digest.update(taken)
            self._left -= len(taken)
            self.bytes += len(taken)

    def close(self) -> None:
        """Close the last part."""
        self._file.close()
        self.hashes[Path(self._file.name).name] = self._digest.hexdigest()

    def _next(self) -> None:
        self._file = (self._folder / f"{self._name}.tar.{len(self.hashes) + 1:03}").open("xb")
        self._digest, self._left = hashlib.sha256(), self._part_bytes


def write_parts(
    members: Iterable[tuple[str, int, str, Callable[[], Iterator[bytes]]]], folder: Path, name: str, part_bytes: int
) -> dict[str, str]:
    """Write members (path, size, SHA-256, reader) as parts; return the parts' names and hashes.

    Raise BundleError if a member changed after it was hashed.
    """
    with closing(PartWriter(folder, name, part_bytes)) as out:
        for path, size, sha256, read in members:
            out.write(tar_header(path, size))
            digest, written = hashlib.sha256(), 0
            for block in read():
                digest.update(block)
                written += len(block)
                out.write(block)
            if (written, digest.hexdigest()) != (size, sha256):
                raise BundleError("integrity", f"{path} changed while it was packed; run the command again.")
            out.write(bytes(-size % BLOCK))
        out.write(bytes(2 * BLOCK))
        out.write(bytes(-out.bytes % _RECORD))
    return out.hashes


def read_source(source: Path | bytes) -> Iterator[bytes]:
    """Yield the content of a file, or the given bytes."""
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        yield from iter(lambda: file.read(CHUNK), b"")


def tar_header(path: str, size: int, kind: bytes = b"0") -> bytes:
    """Return a regular file's header without owner and date, after an extended header if the path is long."""
    name = path.encode("ascii")
    before = b""
    if len(name) > _LONGEST_NAME:
        record = b" path=" + name + b"\n"
        length = len(record) + len(str(len(record) + 3))
        record = str(length).encode() + record
        before = tar_header("path", len(record), b"x") + record + bytes(-len(record) % BLOCK)
        name = name[-_LONGEST_NAME:].lstrip(b"/")
    digits = b"%011o\0" % size if size < _LARGEST_OCTAL else b"\x80" + size.to_bytes(11, "big")
    begin = [name.ljust(100, b"\0"), b"0000644\0", b"0000000\0" * 2, digits, b"%011o\0" % 0, b" " * 8]
    header = b"".join([*begin, kind, bytes(100), b"ustar\0", b"00", bytes(64), b"0000000\0" * 2, bytes(167)])
    return before + header[:148] + b"%06o\0 " % sum(header) + header[156:]
