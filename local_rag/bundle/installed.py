"""Inspect an installation from a bundle, switch to the previous version, or uninstall everything."""

import base64
import csv
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from local_rag.bundle import prefix as layout
from local_rag.bundle.archive import BundleError

# Files that the program itself writes into the models folder, and writes again if they are missing.
_REGENERATED = (".probes.json", ".reading.json", ".reranking.json", ".pull.lock", ".onnx/.*.lock")


def receipt(environment: Path = Path(sys.prefix)) -> dict[str, Any] | None:
    """Return the receipt of the running installation, or None if it was not installed from a bundle."""
    with suppress(OSError, ValueError):
        return dict(json.loads((environment / layout.RECEIPT).read_text()))
    return None


def require_prefix(named: Path | None = None) -> Path:
    """Return the folder of an installation, by default the running program's."""
    if named is None and (found := receipt()) is not None:
        named = Path(found["prefix"])
    if named is None or not layout.current(named):
        where = f"Nothing in {named} was" if named else "This program was not"
        raise BundleError("platform", f"{where} installed from a bundle; choose its folder with --prefix.")
    return named


def differences(environment: Path = Path(sys.prefix)) -> Iterator[str]:
    """Compare the installed files with the manifest and the receipt; yield each difference as half a sentence."""
    installed = json.loads((environment / layout.RECEIPT).read_text())
    manifest = json.loads((environment / layout.MANIFEST).read_text())
    packages = environment / "lib" / f"python{manifest['platform']['python']}" / "site-packages"
    known = set[Path]()
    for name, sha in installed["packages"].items():
        record = packages / name / "RECORD"
        if not record.is_file() or layout.sha256(record) != sha:
            yield f"{record} is missing or changed"
            continue
        for file, wanted, _ in csv.reader(record.read_text().splitlines()):
            path = packages / file
            known.add(path)
            if wanted and not file.startswith("../") and ".data/" not in file and _digest(path) != wanted:
                yield f"{path} is missing or changed"
    for path in packages.rglob("*"):
        if path.is_file() and path not in known and path.suffix != ".pyc" and not _is_moved(path, packages):
            yield f"{path} does not belong to any package"
    prefix = Path(installed["prefix"])
    for member in [*manifest["members"], *manifest["needs_models"]]:
        path = prefix / member["path"]
        if member["kind"] == "model" and (not path.is_file() or layout.sha256(path) != member["sha256"]):
            yield f"{path} is missing or changed"


def _is_moved(path: Path, packages: Path) -> bool:
    """Return whether a file is a package's RECORD, which does not list itself under this path."""
    return path.name == "RECORD" and path.parent.parent == packages


def _digest(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return ""


def rollback(prefix: Path) -> dict[str, str]:
    """Switch to the previous version; a second call switches back."""
    with layout.lock(prefix):
        version, before = layout.current(prefix, "previous"), layout.current(prefix)
        if not version or version == before or not (prefix / "versions" / version).is_dir():
            raise BundleError("platform", f"{prefix} does not contain a previous version; install a bundle instead.")
        layout.switch(prefix, version)
    return {"current": version, "previous": before, "prefix": str(prefix)}


def uninstall(prefix: Path) -> dict[str, Any]:
    """Remove the files that bundles installed; keep and return changed files and files from elsewhere."""
    removed, kept = list[str](), list[str]()
    with layout.lock(prefix):
        for kind, files in layout.read_ledger(prefix).items():
            for file, sha in sorted(files.items()):
                path = prefix / file
                if kind == "models" and path.is_file():
                    (removed if layout.sha256(path) == sha else kept).append(str(path))
            if kind == "libraries":
                _sort_libraries(prefix, files, removed, kept)
        for path in map(Path, removed):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for pattern in _REGENERATED if removed and not (prefix / "models").is_symlink() else ():
            for path in (prefix / "models").glob(pattern):
                path.unlink()
        for link in ("current", "previous"):
            (prefix / link).unlink(missing_ok=True)
        (prefix / "bin" / "local-rag").unlink(missing_ok=True)
        shutil.rmtree(prefix / "versions", ignore_errors=True)
        (prefix / layout.LEDGER).unlink(missing_ok=True)
        (prefix / ".lock").unlink(missing_ok=True)
    for folder in ("models", "libraries", "bin"):
        for directory, _, _ in os.walk(prefix / folder, topdown=False):
            with suppress(OSError):
                Path(directory).rmdir()
    with suppress(OSError):
        prefix.rmdir()
    return {"prefix": str(prefix), "removed": removed, "kept": kept}


def _sort_libraries(prefix: Path, files: dict[str, str], removed: list[str], kept: list[str]) -> None:
    """Add each installed library to `removed` if it is unchanged, else to `kept`."""
    for library in sorted({Path(file).parts[1] for file in files}):
        folder = prefix / "libraries" / library
        ours = {prefix / file: sha for file, sha in files.items() if Path(file).parts[1] == library}
        found = [path for path in folder.rglob("*") if path.is_file() and path.name not in {"lock", "lock.pid"}]
        same = all(path in ours and layout.sha256(path) == ours[path] for path in found)
        if folder.is_dir():
            (removed if same else kept).append(str(folder))
