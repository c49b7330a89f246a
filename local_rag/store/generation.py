"""Build a generation of indexes and switch to it.

A generation is a folder that is complete before it gets its name and never changes afterwards; its manifest holds size
and SHA-256 of each file, and a checksum of its own. `CURRENT` names the live one and is replaced by an atomic rename,
so that a reader sees the old generation or the new one, whole, and a killed publish leaves only a folder with a
temporary name, which the next publish removes.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import LibraryError
from local_rag.models.registry import file_sha256
from local_rag.store.keyword_index import KeywordIndex
from local_rag.store.vector_index import VectorIndex, blend_neighbours


@dataclass(frozen=True, slots=True)
class Generation:
    """A published generation: row `i` of both indexes is the chunk `chunk_ids[i]`."""

    folder: Path
    manifest: Mapping[str, Any]

    def chunk_ids(self) -> np.ndarray:
        """Return the chunk ids by row, int64."""
        ids: np.ndarray = np.load(self.folder / "chunk_ids.npy")
        return ids

    def vectors(self) -> VectorIndex:
        """Open the vector index."""
        return VectorIndex.load(self.folder / "vectors.faiss")

    def keywords(self) -> KeywordIndex:
        """Open the keyword index."""
        return KeywordIndex.load(self.folder / "keywords")

    def damage(self) -> list[str]:
        """Compare every file with the manifest and name those that are missing, cut short or changed.

        Hashing takes about as long as reading the files (2 GB a second), which opening them costs anyway.
        """
        problems = []
        for name, wanted in self.manifest.get("files", {}).items():
            path = self.folder / name
            if not path.is_file():
                problems.append(f"{path} is missing")
            elif path.stat().st_size != wanted["bytes"]:
                problems.append(f"{path} has {path.stat().st_size:,} bytes instead of {wanted['bytes']:,}")
            elif file_sha256(path) != wanted["sha256"]:
                problems.append(f"{path} has changed since it was written")
        return problems


def live_name(library: Path) -> str:
    """Return the name of the live generation, empty before the first publish."""
    pointer = library / "CURRENT"
    return pointer.read_text(errors="replace").strip() if pointer.exists() else ""


def current_generation(library: Path) -> Generation | None:
    """Return the live generation, or None before the first publish; its files are not looked at."""
    name = live_name(library)
    if not (library / "CURRENT").exists():
        return None
    folder = library / "generations" / name
    path = folder / "manifest.json"
    if not name.isdigit() or not folder.is_dir():
        raise LibraryError(f"{library / 'CURRENT'} names no index (but {name!r}); run `local-rag repair` to build one.")
    try:
        manifest = json.loads(path.read_bytes())
        if "checksum" in manifest and manifest.pop("checksum") != _checksum(manifest):
            raise ValueError("it has changed since it was written")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise LibraryError(f"{path} is damaged ({error}); run `local-rag repair` to build the index again.") from None
    return Generation(folder, manifest)


def publish(
    library: Path,
    chunk_ids: Sequence[int],
    documents: Sequence[int],
    vectors: np.ndarray,
    texts: Sequence[str],
    manifest: Mapping[str, Any],
) -> Generation:
    """Build both indexes over the chunks, make them the live generation, and remove those before the last.

    `documents` holds the document id of each chunk; the chunks of a document follow each other in reading order.
    """
    generations = library / "generations"
    generations.mkdir(exist_ok=True)
    for leftover in generations.glob("*.tmp"):
        shutil.rmtree(leftover)
    before = live_name(library)
    numbers = [int(name) for name in (before, *(folder.name for folder in generations.iterdir())) if name.isdigit()]
    name = f"{max(numbers, default=0) + 1:06}"
    temporary = generations / f"{name}.tmp"
    temporary.mkdir()
    np.save(temporary / "chunk_ids.npy", np.asarray(chunk_ids, dtype=np.int64))
    VectorIndex.build(blend_neighbours(vectors, documents)).save(temporary / "vectors.faiss")
    KeywordIndex.build(texts, documents).save(temporary / "keywords")
    write_manifest(temporary, {**manifest, "files": _describe(temporary)})
    for path in (*temporary.rglob("*"), temporary):
        flush(path)
    temporary.rename(generations / name)
    flush(generations)
    pointer = library / "CURRENT.tmp"
    pointer.write_text(name)
    flush(pointer)
    pointer.replace(library / "CURRENT")
    flush(library)
    # The one before stays for readers that are just opening it.
    for folder in generations.iterdir():
        if folder.name.isdigit() and folder.name not in {name, before}:
            shutil.rmtree(folder, ignore_errors=True)
    return Generation(generations / name, manifest)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a generation's manifest with its own checksum."""
    content = json.dumps({**manifest, "checksum": _checksum(manifest)}, indent=1)
    (folder / "manifest.json").write_text(content)


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _describe(folder: Path) -> dict[str, dict[str, Any]]:
    """Return size and SHA-256 of each file of a generation."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": file_sha256(path)} for path in files
    }


def flush(path: Path) -> None:
    """Make a file's or folder's content survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
