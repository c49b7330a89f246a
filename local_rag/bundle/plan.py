"""Decide which files go into a bundle and compute its size before anything is copied."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from local_rag.bundle.archive import BundleError
from local_rag.files import file_sha256
from local_rag.keys import key_of
from local_rag.model_records import Role
from local_rag.models.choice import find
from local_rag.models.onnx.session import COPY_FILE, copy_folder, find_copy, needs_copy
from local_rag.models.registry import ModelEntry, Registry, load_registry, verify
from local_rag.settings import Settings

Kind = Literal["sbom", "licence", "python", "wheel", "model", "library"]
# Allowed files of a model. Pickles are missing, because they can run code when they are loaded.
ALLOWED = (".gguf", ".safetensors", ".onnx", ".onnx.data", ".json", ".txt", ".md", ".model")
_ALLOWED_NAMES = ("LICENSE", "NOTICE")


@dataclass(frozen=True, slots=True)
class Item:
    """A file of a bundle: its path in the archive and its source, which is None for a file not made yet."""

    path: str
    kind: Kind
    source: Path | bytes | None
    bytes: int
    sha256: str = ""

    def as_member(self) -> dict[str, Any]:
        """Return its entry in the manifest."""
        return {"path": self.path, "kind": self.kind, "bytes": self.bytes, "sha256": self.sha256}


def item_of(path: str, kind: Kind, source: Path | bytes) -> Item:
    """Hash a file or bytes and return them as an item."""
    if isinstance(source, bytes):
        import hashlib

        return Item(path, kind, source, len(source), hashlib.sha256(source).hexdigest())
    return Item(path, kind, source, source.stat().st_size, file_sha256(source))


def models_of(profile: str, registry: Registry | None = None) -> dict[str, tuple[Role, ...]]:
    """Return the models of a profile with their roles; raise BundleError for an unknown profile."""
    registry = registry or load_registry()
    profiles = registry.profiles
    if profile not in profiles:
        raise BundleError("platform", f"Unknown profile {profile!r}; choose one of {', '.join(profiles)}.")
    roles: dict[str, tuple[Role, ...]] = {}
    for role, name in profiles[profile].items():
        for entry in registry.parts(name):
            roles[entry.name] = (*roles.get(entry.name, ()), role)
    return roles


def model_items(entry: ModelEntry, models: Path) -> Iterator[Item]:
    """Yield the files of a pulled model; raise BundleError if one is damaged or may be a pickle."""
    if problems := verify(entry, models_directory=models):
        raise BundleError("integrity", f"{problems[0]}; run `{entry.pull_command(models)}` first.")
    if not entry.sources:  # it is part of the program's wheel
        return
    for file in entry.files:
        if not is_allowed(file.name):
            raise BundleError("integrity", f"{file.name} of {entry.name} has a type that bundles do not accept.")
        yield Item(
            f"models/{entry.name}/{file.name}", "model", entry.folder(models) / file.name, file.bytes, file.sha256
        )


def copy_items(settings: Settings, role: Role) -> list[Item] | None:
    """Return the ONNX copy of a role's model, an empty list if it needs none, or None if there is no copy."""
    model = find(settings, role)
    if not needs_copy(model):
        return []
    if (copy := find_copy(model)) is None:
        return None
    folder = copy_folder(model)
    files = [copy, *sorted(folder.glob("*.data")), folder / COPY_FILE]
    return [item_of(f"models/.onnx/{folder.name}/{file.name}", "model", file) for file in files]


def is_allowed(name: str) -> bool:
    """Return whether a file of a model may go into a bundle."""
    last = name.rpartition("/")[2]
    return last.endswith(ALLOWED) or last in _ALLOWED_NAMES


def library_name(folder: Path) -> str:
    """Return a library's name: that of its folder, or of the parent of a hidden folder."""
    folder = folder.resolve()
    name = folder.parent.name if folder.name.startswith(".") else folder.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:60] or "library"


def library_items(folder: Path, name: str) -> list[Item]:
    """Return the files of a library's copy."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [item_of(f"library/{path.relative_to(folder).as_posix()}", "library", path) for path in files]


def bundle_id(version: str, items: list[Item]) -> str:
    """Return a bundle's id: its version and a hash of its content."""
    return f"{version}-{key_of([(item.path, item.sha256) for item in items])[:12]}"


def summary(items: list[Item], profile: str) -> dict[str, Any]:
    """Return the numbers and sizes of files by kind."""
    kinds: dict[str, dict[str, int]] = {}
    for item in items:
        of_kind = kinds.setdefault(item.kind, {"files": 0, "bytes": 0})
        of_kind["files"] += 1
        of_kind["bytes"] += item.bytes
    return {"profile": profile, "bytes": sum(item.bytes for item in items), "kinds": kinds}
