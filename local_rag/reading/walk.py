"""Find the files to read below folders, as git would see them."""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from local_rag.errors import LocalRagError
from local_rag.files import is_utf8, open_regular
from local_rag.reading.ignore import Pattern, parse
from local_rag.records import Skipped

MAX_BYTES = 50 * 1024 * 1024
_MAX_RULES_BYTES = 128 * 1024  # of a .gitignore, each line of which is held against each path

_NEVER_ENTERED = {"node_modules", "__pycache__"}

# Suffixes that need no opening: whatever else is binary is found out when it is read.
_UNSUPPORTED = {
    "image": ".png .jpg .jpeg .gif .bmp .tif .tiff .webp .ico .svg .heic .avif .psd .ai .eps .xcf",
    "audio or video": ".mp3 .wav .flac .ogg .m4a .aac .opus .mp4 .m4v .mkv .mov .avi .webm .wmv",
    "archive": ".zip .tar .gz .tgz .bz2 .xz .zst .7z .rar .iso .dmg .whl .jar .war .deb .rpm .apk .cab",
    "program": ".exe .dll .so .dylib .o .a .lib .obj .class .pyc .pyd .wasm .msi .bin",
    "font": ".ttf .otf .woff .woff2 .eot",
    "data file": ".jsonl .ndjson .parquet .arrow .feather .avro .npy .npz .pkl .pickle .h5 .hdf5 .mat .rds "
    ".sqlite .sqlite3 .db .mdb .dat .gguf .safetensors .pt .pth .onnx .ckpt .map",
    "unsupported document format": ".doc .xls .ppt .xlsb .odt .ods .odp .rtf .pages .numbers .key .mobi .azw .azw3 "
    ".djvu .ps .msg .one .vsd .vsdx",
}
_REASONS = {
    suffix: kind if kind.startswith("unsupported") else f"{kind}, not a document"
    for kind, suffixes in _UNSUPPORTED.items()
    for suffix in suffixes.split()
}

# The .gitignore files that hold for a folder, outermost first: each with the depth of the folder it stands in, and its
# patterns, the last one first.
_Rules = tuple[tuple[int, tuple[Pattern, ...]], ...]


def walk(
    paths: Sequence[Path], *, max_bytes: int = MAX_BYTES, exclude: Sequence[Path] = ()
) -> Iterator[Path | Skipped]:
    """Yield every readable file once, in a fixed order, as an absolute path; yield the rest as Skipped.

    Hidden and ignored files are passed over in silence, unless they are named themselves. Raises LocalRagError before
    the first file when one of the paths does not exist.
    """
    for path in paths:
        if not _exists(path):
            raise LocalRagError(f"There is no file or folder {path}; check the spelling of the path.")
    excluded = {path.resolve() for path in exclude}
    seen: set[Path] = set()
    for path in paths:
        root = path.resolve()
        for found in _walk_folder(root, excluded) if root.is_dir() else (root,):
            place = found.path if isinstance(found, Skipped) else found
            if place in seen:
                continue
            seen.add(place)
            if isinstance(found, Skipped):
                yield found
            else:
                reason = _reason_to_skip(found, max_bytes)
                yield Skipped(found, reason) if reason else found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _walk_folder(root: Path, excluded: set[Path]) -> Iterator[Path | Skipped]:
    """Yield the files below a folder, depth first, sorted by name."""
    waiting: list[tuple[Path, _Rules]] = [(root, _rules_above(root))]
    while waiting:
        path, rules = waiting.pop()
        try:
            if path != root:
                if path.name.startswith(".") or path.name in _NEVER_ENTERED or path in excluded:
                    continue
                if not is_utf8(path.name):
                    yield Skipped(path, "name is not UTF-8")
                    continue
                mode = path.lstat().st_mode
                if _is_ignored(path, stat.S_ISDIR(mode), rules):
                    continue
                if stat.S_ISLNK(mode):
                    yield Skipped(path, _reason_of_link(path, root))
                    continue
                if not stat.S_ISDIR(mode):
                    yield path
                    continue
            children = sorted(path.iterdir(), reverse=True)
        except OSError as error:
            yield Skipped(path, f"cannot be opened ({error.strerror})")
            continue
        rules += _rules_of(path)
        waiting += [(child, rules) for child in children]


def _reason_to_skip(path: Path, max_bytes: int) -> str | None:
    """Say why a file is left out by its looks, or None."""
    try:
        status = path.stat()
    except OSError as error:
        return f"cannot be opened ({error.strerror})"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if path.suffix.lower() in _REASONS:
        return _REASONS[path.suffix.lower()]
    if status.st_size > max_bytes:
        return f"{status.st_size / 2**20:.1f} MiB, larger than the limit of {max_bytes / 2**20:.1f} MiB"
    return None


def _reason_of_link(path: Path, root: Path) -> str:
    """Say why a symbolic link is not followed: what it points to is read at its own place or not at all."""
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        return "broken symbolic link"
    except (OSError, RuntimeError):  # Python 3.11 and 3.12 raise RuntimeError for a loop, later ones OSError
        return "symbolic link loop"
    if path.is_relative_to(target):
        return "symbolic link loop"
    if target.is_relative_to(root):
        return "symbolic link to another place in the same folder"
    return "symbolic link that leads out of the folder"


def _is_ignored(path: Path, is_folder: bool, rules: _Rules) -> bool:
    """Ask the .gitignore files, the innermost first: the first pattern that matches decides."""
    for depth, patterns in reversed(rules):
        names = path.parts[depth:]
        for pattern in patterns:
            if pattern.matches(names, is_folder=is_folder):
                return pattern.ignores
    return False


def _rules_above(root: Path) -> _Rules:
    """Collect the .gitignore files between the enclosing git repository and the folder."""
    folders = (root, *root.parents)
    top = next((folder for folder in folders if (folder / ".git").exists()), root)
    rules: _Rules = ()
    for folder in reversed(folders[: folders.index(top)]):
        rules += _rules_of(folder.parent)
        if _is_ignored(folder, True, rules):
            # What lies in an ignored folder was named on purpose: the rules that hide it would hide all of it.
            return ()
    return rules


def _rules_of(folder: Path) -> _Rules:
    """Read a folder's own .gitignore."""
    try:
        with open_regular(folder / ".gitignore") as file:
            data = file.read(_MAX_RULES_BYTES + 1)
    except OSError:
        return ()
    lines = data.decode("utf-8-sig", errors="replace").split("\n") if len(data) <= _MAX_RULES_BYTES else []
    patterns = tuple(filter(None, (parse(line.removesuffix("\r")) for line in reversed(lines))))
    return ((len(folder.parts), patterns),) if patterns else ()
