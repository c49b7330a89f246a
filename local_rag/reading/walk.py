"""Find the files to read in folders, with the rules of .gitignore."""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from local_rag.errors import LocalRagError
from local_rag.files import is_utf8, open_regular
from local_rag.reading.formats import format_of
from local_rag.reading.ignore import IgnorePattern, parse_pattern
from local_rag.records import Skipped

MAX_BYTES = 50 * 1024 * 1024
_MAX_RULES_BYTES = 128 * 1024  # of a .gitignore, because each line is compared with each path

_NEVER_ENTERED = {"node_modules", "__pycache__"}

# The .gitignore files that apply to a folder, outermost first: each with the depth of its folder and its patterns, last
# one first.
_Rules = tuple[tuple[int, tuple[IgnorePattern, ...]], ...]


def walk(
    paths: Sequence[Path], *, max_bytes: int = MAX_BYTES, exclude: Sequence[Path] = ()
) -> Iterator[Path | Skipped]:
    """Yield every readable file once, in a fixed order, as an absolute path; yield other files as Skipped.

    Omit hidden and ignored files unless they are named in `paths`. Raise LocalRagError before the first file if one of
    the paths does not exist.
    """
    for path in paths:
        if not _exists(path):
            raise LocalRagError(f"File or folder {path} does not exist; check the spelling of the path.")
    excluded = {path.resolve() for path in exclude}
    seen: set[Path] = set()
    for path in paths:
        root = path.resolve()
        for found in _walk_folder(root, excluded) if root.is_dir() else (root,):
            absolute = found.path if isinstance(found, Skipped) else found
            if absolute in seen:
                continue
            seen.add(absolute)
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
    """Yield the files in a folder, depth first, sorted by name."""
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
    """Return why a file is skipped without being read, or None."""
    try:
        status = path.stat()
    except OSError as error:
        return f"cannot be opened ({error.strerror})"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if reason := format_of(path).unsupported:
        return reason
    if status.st_size > max_bytes:
        return f"{status.st_size / 2**20:.1f} MiB, larger than the limit of {max_bytes / 2**20:.1f} MiB"
    return None


def _reason_of_link(path: Path, root: Path) -> str:
    """Return why a symbolic link is not followed; its target is read at its own path or not at all."""
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        return "broken symbolic link"
    except (OSError, RuntimeError):  # Python 3.11 and 3.12 raise RuntimeError for a loop, later ones OSError
        return "symbolic link loop"
    if path.is_relative_to(target):
        return "symbolic link loop"
    if target.is_relative_to(root):
        return "symbolic link to another path in the same folder"
    return "symbolic link out of the folder"


def _is_ignored(path: Path, is_folder: bool, rules: _Rules) -> bool:
    """Return whether a path is ignored; the first matching pattern of the innermost .gitignore decides."""
    for depth, patterns in reversed(rules):
        names = path.parts[depth:]
        for pattern in patterns:
            if pattern.matches(names, is_folder=is_folder):
                return pattern.ignores
    return False


def _rules_above(root: Path) -> _Rules:
    """Return the rules of the .gitignore files between the enclosing git repository and the folder."""
    folders = (root, *root.parents)
    top = next((folder for folder in folders if (folder / ".git").exists()), root)
    rules: _Rules = ()
    for folder in reversed(folders[: folders.index(top)]):
        rules += _rules_of(folder.parent)
        if _is_ignored(folder, True, rules):
            # The user named an ignored folder on purpose. The rules above it would hide all its files.
            return ()
    return rules


def _rules_of(folder: Path) -> _Rules:
    """Return the rules of a folder's own .gitignore."""
    try:
        with open_regular(folder / ".gitignore") as file:
            data = file.read(_MAX_RULES_BYTES + 1)
    except OSError:
        return ()
    lines = data.decode("utf-8-sig", errors="replace").split("\n") if len(data) <= _MAX_RULES_BYTES else []
    patterns = tuple(filter(None, (parse_pattern(line.removesuffix("\r")) for line in reversed(lines))))
    return ((len(folder.parts), patterns),) if patterns else ()
