"""Inspect an installation from a bundle, switch to the previous version, or uninstall everything."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from local_rag.bundle import prefix as layout
from local_rag.bundle.archive import BundleError

# Files that the program itself writes into the models folder, and writes again if they are missing.
_REGENERATED = (
    *(f".{name}.json" for name in ("probes", "reranking", "copies", "calibration", "hashes")),
    *(".pull.lock", ".optimized", ".onnx"),  # the last one by earlier versions
)
_REMOVED = ".removed.tmp"  # what `uninstall` has taken out of use


def receipt(environment: Path = Path(sys.prefix)) -> dict[str, Any] | None:
    """Return the receipt of the running installation, or None if it was not installed from a bundle."""
    with suppress(OSError, ValueError):
        return dict(json.loads((environment / layout.RECEIPT).read_text()))
    return None


def require_prefix(named: Path | None = None) -> Path:
    """Return the folder of an installation, by default the running program's."""
    if named is None and (found := receipt()) is not None:
        named = Path(found["prefix"])
    if named is None or not (layout.current(named) or (named / _REMOVED).exists()):
        where = f"Nothing in {named} was" if named else "This program was not"
        raise BundleError("platform", f"{where} installed from a bundle; choose its folder with --prefix.")
    return named


def rollback(prefix: Path) -> dict[str, str]:
    """Switch to the previous version; a second call switches back."""
    with layout.lock(prefix):
        version, before = layout.current(prefix, "previous"), layout.current(prefix)
        if not version or not before:
            raise BundleError("platform", f"{prefix} does not contain a previous version; install a bundle instead.")
        layout.switch(prefix, version)
        layout.clean(prefix)
    return {"current": version, "previous": before, "prefix": str(prefix)}


def uninstall(prefix: Path) -> dict[str, Any]:
    """Remove the files that bundles installed; keep and return changed libraries and files from elsewhere.

    Until the versions are renamed in one step, the current one works and can run this again; from then on another
    call, or the next installation, removes what is left.
    """
    with layout.lock(prefix):
        removed, kept = _remove_libraries(prefix)
        taken = prefix / _REMOVED
        taken.mkdir(exist_ok=True)
        for name in ("versions", "bin/local-rag", "content", "selected", "current", "previous", layout.LEDGER):
            if os.path.lexists(prefix / name):
                removed.append(str(prefix / name))
                (prefix / name).rename(taken / name.replace("/", "-"))
        for name in _REGENERATED if not (prefix / "models").is_symlink() else ():
            layout.remove(prefix / "models" / name)
        for path in (*prefix.glob("@*"), *prefix.glob(".*.tmp")):
            if path != taken:
                layout.remove(path)
        for name in ("models", "libraries", "bin"):
            for directory, _, _ in os.walk(prefix / name, topdown=False):
                with suppress(OSError):
                    Path(directory).rmdir()
        layout.remove(taken)
        (prefix / ".lock").unlink(missing_ok=True)
    with suppress(OSError):
        prefix.rmdir()
    return {"prefix": str(prefix), "removed": removed, "kept": kept}


def _remove_libraries(prefix: Path) -> tuple[list[str], list[str]]:
    """Remove the libraries from bundles that have not changed; return the removed ones and the others."""
    removed, kept = list[str](), list[str]()
    for name, files in sorted(layout.read_ledger(prefix).items()):
        folder, hidden = prefix / "libraries" / name, prefix / f".{name}.library.tmp"
        if folder.is_dir() and _is_unchanged(folder, files):
            removed.append(str(folder))
            layout.remove(hidden)
            folder.rename(hidden)
        elif folder.is_dir():
            kept.append(str(folder))
        layout.remove(hidden)
    return removed, kept


def _is_unchanged(folder: Path, files: dict[str, str]) -> bool:
    """Return whether all files of a library are as they were installed, but for its lock."""
    found = [path for path in folder.rglob("*") if path.is_file() and path.name not in {"lock", "lock.pid"}]
    return all(files.get(path.relative_to(folder).as_posix()) == layout.sha256(path) for path in found)
