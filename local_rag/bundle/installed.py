"""Tell what was installed here from a bundle, go back to the version before, take everything away again."""

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

# What the program itself writes into a folder of models; it is made again where it is missing.
_REMEMBERED = (".probes.json", ".reading.json", ".reranking.json", ".pull.lock", ".onnx/.*.lock")


def receipt(environment: Path = Path(sys.prefix)) -> dict[str, Any] | None:
    """Return what is told of the installation that this program runs from, None where it came from no bundle."""
    with suppress(OSError, ValueError):
        return dict(json.loads((environment / layout.RECEIPT).read_text()))
    return None


def require_prefix(named: Path | None = None) -> Path:
    """Return the folder that was installed into: the one named, or that of the running program."""
    if named is None and (found := receipt()) is not None:
        named = Path(found["prefix"])
    if named is None or not layout.current(named):
        where = f"Nothing in {named} was" if named else "This program was not"
        raise BundleError("platform", f"{where} installed from a bundle; name its folder with --prefix.")
    return named


def differences(environment: Path = Path(sys.prefix)) -> Iterator[str]:
    """Compare what is installed with the manifest and the receipt; yield what differs, in half a sentence each."""
    told = json.loads((environment / layout.RECEIPT).read_text())
    manifest = json.loads((environment / layout.MANIFEST).read_text())
    packages = environment / "lib" / f"python{manifest['platform']['python']}" / "site-packages"
    known = set[Path]()
    for name, sha in told["packages"].items():
        record = packages / name / "RECORD"
        if not record.is_file() or layout.sha256(record) != sha:
            yield f"{record} is missing or changed"
            continue
        for place, wanted, _ in csv.reader(record.read_text().splitlines()):
            path = packages / place
            known.add(path)
            if wanted and not place.startswith("../") and ".data/" not in place and _digest(path) != wanted:
                yield f"{path} is missing or changed"
    for path in packages.rglob("*"):
        if path.is_file() and path not in known and path.suffix != ".pyc" and not _is_moved(path, packages):
            yield f"{path} is of no package"
    prefix = Path(told["prefix"])
    for member in [*manifest["members"], *manifest["needs_models"]]:
        path = prefix / member["path"]
        if member["kind"] == "model" and (not path.is_file() or layout.sha256(path) != member["sha256"]):
            yield f"{path} is missing or changed"


def _is_moved(path: Path, packages: Path) -> bool:
    """Say whether a file stands in its wheel under another path, of which its record speaks."""
    return path.name == "RECORD" and path.parent.parent == packages


def _digest(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return ""


def rollback(prefix: Path) -> dict[str, str]:
    """Make the previous version the current one; again, and the newer one is back."""
    with layout.lock(prefix):
        version, before = layout.current(prefix, "previous"), layout.current(prefix)
        if not version or version == before or not (prefix / "versions" / version).is_dir():
            raise BundleError("platform", f"There is no previous version in {prefix}; install a bundle instead.")
        layout.switch(prefix, version)
    return {"current": version, "previous": before, "prefix": str(prefix)}


def uninstall(prefix: Path) -> dict[str, Any]:
    """Remove exactly what bundles put into a folder; what has changed since, or is another's, stays and is named."""
    removed, kept = list[str](), list[str]()
    with layout.lock(prefix):
        for kind, files in layout.read_ledger(prefix).items():
            for place, sha in sorted(files.items()):
                path = prefix / place
                if kind == "models" and path.is_file():
                    (removed if layout.sha256(path) == sha else kept).append(str(path))
            if kind == "libraries":
                _sort_libraries(prefix, files, removed, kept)
        for path in map(Path, removed):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for pattern in _REMEMBERED if removed and not (prefix / "models").is_symlink() else ():
            for path in (prefix / "models").glob(pattern):
                path.unlink()
        for link in ("current", "previous"):
            (prefix / link).unlink(missing_ok=True)
        (prefix / "bin" / "local-rag").unlink(missing_ok=True)
        shutil.rmtree(prefix / "versions", ignore_errors=True)
        (prefix / layout.LEDGER).unlink(missing_ok=True)
        (prefix / ".lock").unlink(missing_ok=True)
    for folder in ("models", "libraries", "bin"):
        for place, _, _ in os.walk(prefix / folder, topdown=False):
            with suppress(OSError):
                Path(place).rmdir()
    with suppress(OSError):
        prefix.rmdir()
    return {"prefix": str(prefix), "removed": removed, "kept": kept}


def _sort_libraries(prefix: Path, files: dict[str, str], removed: list[str], kept: list[str]) -> None:
    """Say of each library that came along whether it is as it came, which is when it goes."""
    for library in sorted({Path(place).parts[1] for place in files}):
        folder = prefix / "libraries" / library
        ours = {prefix / place: sha for place, sha in files.items() if Path(place).parts[1] == library}
        found = [path for path in folder.rglob("*") if path.is_file() and path.name not in {"lock", "lock.pid"}]
        same = all(path in ours and layout.sha256(path) == ours[path] for path in found)
        if folder.is_dir():
            (removed if same else kept).append(str(folder))
