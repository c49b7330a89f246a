"""Decide which files go into a bundle and how large it will be, and copy the library that goes with it."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from local_rag.bundle.archive import BundleError
from local_rag.errors import LibraryError, ModelError
from local_rag.files import SETTINGS_FILE, file_sha256, folder_bytes
from local_rag.index.generations import Generations
from local_rag.index.segment import read_manifest
from local_rag.indexing.fingerprint import require_compatible
from local_rag.keys import key_of
from local_rag.machine import free_bytes
from local_rag.model_records import Role
from local_rag.models.choice import chosen, find
from local_rag.models.registry import ModelEntry, load_registry, verify
from local_rag.settings import resolve_settings
from local_rag.store.connect import remembered_settings
from local_rag.store.database import Store
from local_rag.store.published import copy_library

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
        return Item(path, kind, source, len(source), hashlib.sha256(source).hexdigest())
    return Item(path, kind, source, source.stat().st_size, file_sha256(source))


def models_of(profile: str) -> dict[str, tuple[Role, ...]]:
    """Return the models of a profile with their roles; raise BundleError for an unknown profile."""
    registry = load_registry()
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


def is_allowed(name: str) -> bool:
    """Return whether a file of a model may go into a bundle."""
    last = name.rpartition("/")[2]
    return last.endswith(ALLOWED) or last in _ALLOWED_NAMES


def library_name(folder: Path) -> str:
    """Return a library's name: that of its folder, or of the parent of a hidden folder."""
    folder = folder.resolve()
    name = folder.parent.name if folder.name.startswith(".") else folder.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:60] or "library"


def bundle_id(version: str, items: list[Item]) -> str:
    """Return a bundle's id: its version and a hash of its content."""
    return f"{version}-{key_of([(item.path, item.sha256) for item in items])[:12]}"


# Settings that name machines or files of the packer.
_OF_THIS_MACHINE = ("search_engine", "cluster", "answer_hosts", "answer_model", "rerank_model", "gpu_layers")
_SPARE = 16 * 1024 * 1024


def copy_for_bundle(folder: Path, target: Path, profile: str) -> None:
    """Copy a library; raise BundleError if the models of the profile cannot use it, or the disk is too small."""
    require_fit(folder, profile)
    needed = folder_bytes(folder) + _SPARE
    if (free := free_bytes(target.parent)) < needed:
        raise BundleError(
            "disk",
            f"The copy of the library needs {needed / 1e6:,.0f} MB, but {target.parent} has {free / 1e6:,.0f} MB free; "
            "choose another folder with TMPDIR.",
        )
    try:
        copy_library(folder, target)
    except LibraryError as error:
        raise BundleError("platform", str(error)) from None
    settings = target / SETTINGS_FILE
    if settings.is_file():
        given = tomllib.loads(settings.read_text()).items()
        kept = [f"{name} = {json.dumps(value)}\n" for name, value in given if name not in _OF_THIS_MACHINE]
        settings.write_text("".join(kept))


def require_fit(folder: Path, profile: str) -> None:
    """Raise BundleError if a library was made with models that the profile does not contain."""
    packed = models_of(profile)
    try:
        settings = resolve_settings(folder, {"profile": profile} | remembered_settings(folder))
        for role, name in chosen(settings.model_copy(update={"answer_model": "", "rerank_model": ""})).items():
            if name not in packed:
                text = f"The library {folder} uses the {role} model {name}, which is not in the profile {profile}"
                raise BundleError("platform", f"{text}; choose another with --profile, or index the library with it.")
        if live := Generations(folder).live_name():
            manifest = read_manifest(folder / "generations" / live)
            require_compatible(manifest, settings, find(settings, "embed"))
    except (LibraryError, ModelError) as error:
        raise BundleError("platform", f"The library {folder} does not fit the packed models: {error}") from None


def a_sentence(folder: Path) -> str:
    """Return the beginning of a passage of a library, to ask it about; empty if it holds none."""
    with closing(Store(folder)) as store:
        chunk = next(iter(store.chunks()), None)
        return " ".join(store.chunk_text(chunk.id).split()[:12]) if chunk else ""
