"""Read the archive of a bundle: its parts as one stream, member by member. Needs only Python 3.6 or later.

`tarfile` is not used: it reads headers of any size into memory, accepts many more types of members than a bundle has,
and the unpatched versions of old Pythons can be made to loop for ever.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

FORMAT, MANIFEST = 1, "manifest.json"
BLOCK = 512  # of a tar
CHUNK = 1024 * 1024
_LARGEST_MANIFEST = 32 * 1024 * 1024
_LARGEST_PATH = 4096


class BundleError(Exception):
    """The bundle cannot be used; `kind` is integrity, signature, platform, disk or self-test."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Stream:
    """Read the parts as one file and hash each of them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)
        self._file = None  # type: Any
        self._digest = hashlib.sha256()
        self.hashes = []  # type: List[str]
        self.bytes = 0

    def read(self, size: int) -> bytes:
        """Return `size` bytes, or fewer at the end of the last part."""
        blocks = []
        while size > 0:
            if self._file is None:
                if len(self.hashes) == len(self._paths):
                    break
                self._file = self._paths[len(self.hashes)].open("rb")
            block = self._file.read(min(size, CHUNK))
            if block:
                self._digest.update(block)
                blocks.append(block)
                size -= len(block)
                self.bytes += len(block)
            else:
                self._file.close()
                self.hashes.append(self._digest.hexdigest())
                self._file, self._digest = None, hashlib.sha256()
        return b"".join(blocks)

    def rest(self) -> bool:
        """Read to the end; return whether all bytes were zero."""
        zeros = True
        for block in iter(lambda: self.read(CHUNK), b""):
            zeros = zeros and not block.strip(b"\0")
        return zeros

    def close(self) -> None:
        """Close the current part."""
        if self._file is not None:
            self._file.close()


def members(stream: Stream) -> Iterator[Tuple[str, int, Callable[[], Iterator[bytes]]]]:
    """Yield path, size and reader of each member of a tar; the unread rest of a member is skipped.

    Accept only regular files with plain relative paths; raise BundleError at the first other member.
    """
    path = ""
    while True:
        header = stream.read(BLOCK)
        if len(header) < BLOCK:
            raise BundleError("integrity", "The archive is truncated.")
        if not header.strip(b"\0"):
            return
        name, size, kind = _read_header(header)
        if kind == b"x":
            path = _read_long_path(stream.read(size + -size % BLOCK)[:size] if size <= _LARGEST_PATH else b"")
            continue
        name, path = path or name, ""
        if kind not in (b"0", b"\0"):
            what = {b"1": "a link", b"2": "a link", b"5": "a folder"}.get(kind, "not a regular file")
            raise BundleError("integrity", "The archive member %s is %s; copy it again." % (ascii(name), what))
        require_plain_path(name)
        left = [size]

        def read(left: List[int] = left) -> Iterator[bytes]:
            while left[0]:
                block = stream.read(min(left[0], CHUNK))
                if not block:
                    raise BundleError("integrity", "The archive is truncated.")
                left[0] -= len(block)
                yield block

        yield name, size, read
        for _ in read():
            pass
        stream.read(-size % BLOCK)


def require_plain_path(name: str) -> None:
    """Raise BundleError for a path that is absolute, contains `..` or contains other than plain characters."""
    pieces = name.split("/")
    if not all(re.fullmatch(r"[A-Za-z0-9._+@!-]+", piece) and piece.strip(".") for piece in pieces):
        raise BundleError("integrity", "The archive member %s has an unsafe path." % ascii(name[:200]))


def _read_header(header: bytes) -> Tuple[str, int, bytes]:
    def number(field: bytes) -> int:
        text = field.strip(b" \0")
        if not re.fullmatch(b"[0-7]+", text):
            raise BundleError("integrity", "The archive is damaged: a header contains an invalid number.")
        return int(text, 8)

    wanted = number(header[148:156])
    if sum(header) - sum(header[148:156]) + 8 * 32 != wanted or header[257:263] != b"ustar\0":
        raise BundleError("integrity", "The archive is damaged: the checksum of a header is wrong.")
    # Sizes of 8 GiB and more are binary.
    large = header[124:125] == b"\x80"
    size = int.from_bytes(header[125:136], "big") if large else number(header[124:136])
    parts = [header[345:500].split(b"\0")[0], header[:100].split(b"\0")[0]]
    return b"/".join(part for part in parts if part).decode("ascii", "replace"), size, header[156:157]


def _read_long_path(record: bytes) -> str:
    """Parse the only record of an extended header, for a path of over 100 characters: `123 path=...`."""
    found = re.fullmatch(b"([0-9]+) path=([^\n]+)\n", record)
    if not found or int(found.group(1)) != len(record):
        raise BundleError("integrity", "The archive is damaged: an extended header contains more than a path.")
    return found.group(2).decode("ascii", "replace")


def read_manifest(name: str, size: int, read: Callable[[], Iterator[bytes]]) -> Dict[str, Any]:
    """Read and check the manifest, which is the first member of the archive."""
    if name != MANIFEST or size > _LARGEST_MANIFEST:
        raise BundleError("integrity", "The archive does not start with its manifest.")
    try:
        manifest = json.loads(b"".join(read()).decode("utf-8"))
        if isinstance(manifest, dict) and manifest.get("format") != FORMAT:
            raise BundleError("integrity", "The bundle has another format; verify it with the verify.py beside it.")
        wrong = wrong_field(manifest)
    except (ValueError, RecursionError):
        wrong = "its text"
    if wrong:
        raise BundleError("integrity", "The manifest is damaged at %s; copy the bundle again." % ascii(wrong))
    return dict(manifest)


_VERSION = r"[0-9A-Za-z][0-9A-Za-z.+-]{0,79}"
_WORD = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}"
_TEXT = r"[ -~]{0,300}"
_MEMBER = {"path": r"(?s).{1,4000}", "kind": "[a-z]+", "bytes": int, "sha256": "[0-9a-f]{64}"}
# What a field must be: a pattern, a type, a list with the pattern of its elements, or a dictionary of fields.
_FIELDS = {
    "format": int,
    "id": _VERSION,
    "version": _VERSION,
    "commit": "([0-9a-f]{40}(-changed)?)?",
    "profile": _WORD,
    "platform": {
        "system": _WORD,
        "machine": _WORD,
        "python": r"3\.[0-9]{1,2}",
        "glibc": r"(2\.[0-9]{1,2}(\.[0-9]{1,2})?)?",
        "glibc_needed_by": _TEXT,
        "macos": r"([0-9]{1,2}\.[0-9]{1,2})?",
        "processor_flags": ["[a-z0-9_]{1,40}"],
        "library_versions": [r"[a-z_+-]{1,30}\.so\.[0-9]{1,3} [A-Z_]{1,30}[0-9.]{1,30}"],
    },
    "llama_variants": [_WORD],
    "needs_models": [_MEMBER],
    "unpacked_bytes": int,
    "members": [_MEMBER],
}  # type: Dict[str, Any]
# The folder of each kind of member.
_FOLDERS = {"sbom": "", "licence": "licences/", "python": "python/", "wheel": "wheels/"}
_FOLDERS.update({"model": "models/", "library": "library/"})


def wrong_field(manifest: Any) -> str:
    """Return the first field that is missing, or not what it must be; empty if all are right."""
    wrong = _wrong(manifest, _FIELDS, "")
    if wrong:
        return wrong
    for field in ("members", "needs_models"):
        for number, member in enumerate(manifest[field]):
            kind, path = member["kind"], member["path"]
            require_plain_path(path)
            placed = path == "sbom.cdx.json" if kind == "sbom" else path.startswith(_FOLDERS.get(kind) or "\n")
            if not placed or member["bytes"] < 0 or (field == "needs_models" and kind != "model"):
                return "%s.%d" % (field, number)
    paths = [member["path"] for member in manifest["members"]]
    interpreter = manifest["platform"].get("interpreter")
    if interpreter is not None and (interpreter not in paths or not interpreter.startswith("python/")):
        return "platform.interpreter"
    committed = manifest.get("committed", 0)  # bundles of before had none
    if type(committed) is not int or not 0 <= committed < 2**33:
        return "committed"
    library = manifest.get("library")
    if library is not None and (not isinstance(library, dict) or _wrong(library, {"name": _WORD}, "library")):
        return "library"
    return "members" if len(set(paths)) < len(paths) else ""


def _wrong(value: Any, wanted: Any, where: str) -> str:
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return where or "its beginning"
        inner = ((value.get(name), kind, ("%s.%s" % (where, name)).strip(".")) for name, kind in wanted.items())
    elif isinstance(wanted, list):
        if not isinstance(value, list):
            return where
        inner = ((one, wanted[0], "%s.%d" % (where, number)) for number, one in enumerate(value))
    elif wanted is int:
        return "" if type(value) is int and value >= 0 else where
    else:
        return "" if isinstance(value, str) and re.fullmatch(wanted, value) else where
    return next(filter(None, (_wrong(*one) for one in inner)), "")
