"""Build a generation of indexes and switch to it.

A generation is a folder that is complete before it gets its name and never changes afterwards; its manifest holds size
and SHA-256 of each file, and a checksum of its own. `CURRENT` names the live one and is replaced by an atomic rename,
so that a reader sees the old generation or the new one, whole, and a killed publish leaves only a folder with a
temporary name, which the next publish removes.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError, LibraryError
from local_rag.files import file_sha256, flush, write_whole
from local_rag.store.connect import remembered_settings
from local_rag.store.index import Allowed, IndexRows
from local_rag.store.keyword_index import KeywordIndex
from local_rag.store.vector_index import VectorIndex, blend_neighbours


class Generation:
    """A published index in a folder: row `i` of its vectors and texts is the chunk `chunk_ids()[i]`."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self.stamp = _stamp(folder)
        self._ids: np.ndarray | None = None

    def open(self) -> None:
        """Load ids and both indexes."""
        self._ids = np.load(self.folder / "chunk_ids.npy")
        self._vectors = VectorIndex.load(self.folder / "vectors.faiss")
        self._keywords = KeywordIndex.load(self.folder / "keywords")

    def chunk_ids(self) -> list[int]:
        """Return the chunk ids by row."""
        ids: list[int] = np.load(self.folder / "chunk_ids.npy").tolist()
        return ids

    def dense(self, vector: np.ndarray, top: int, allowed: Allowed = None) -> list[tuple[int, float]]:
        """Return chunk ids with cosine similarities, best first."""
        return self._named(self._vectors.search(vector, top, self._rows(allowed)))

    def keywords(
        self, terms: Sequence[str], top: int, allowed: Allowed = None, weights: Sequence[float] | None = None
    ) -> list[tuple[int, float]]:
        """Return chunk ids with BM25 scores, best first."""
        return self._named(self._keywords.search(terms, top, self._rows(allowed), weights))

    def _named(self, found: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        ids = self._loaded()
        return [(int(ids[row]), score) for row, score in found]

    def _rows(self, allowed: Allowed) -> np.ndarray | None:
        if allowed is None:
            return None
        ids = allowed if isinstance(allowed, np.ndarray) else np.fromiter(allowed, dtype=np.int64)
        return np.flatnonzero(np.isin(self._loaded(), ids))

    def _loaded(self) -> np.ndarray:
        assert self._ids is not None, "a generation is opened before it is searched"
        return self._ids

    def damage(self, *, hash_all: bool = True) -> list[str]:
        """Compare every file with the manifest and name those that are missing, cut short or changed.

        Hashing reads 2 GB a second; without `hash_all` it is left out for a file that nobody has written to since.
        """
        problems = []
        for name, wanted in self.manifest.get("files", {}).items():
            path = self.folder / name
            if not path.is_file():
                problems.append(f"{path} is missing")
            elif path.stat().st_size != wanted["bytes"]:
                problems.append(f"{path} has {path.stat().st_size:,} bytes instead of {wanted['bytes']:,}")
            elif not hash_all and path.stat().st_mtime_ns == wanted.get("modified_ns"):
                continue
            elif file_sha256(path) != wanted["sha256"]:
                problems.append(f"{path} has changed since it was written")
        return problems


class Generations:
    """The generations of a library, in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def live_name(self) -> str:
        """Return the name of the live generation, empty before the first publish."""
        pointer = self._folder / "CURRENT"
        return pointer.read_text(errors="replace").strip() if pointer.exists() else ""

    def live_stamp(self) -> str:
        """Return what tells the live generation from every other, also from one of the same number made later."""
        return _stamp(self._folder / "generations" / self.live_name())

    def live(self) -> Generation | None:
        """Return the live generation, or None before the first publish; its files are not looked at."""
        name, pointer = self.live_name(), self._folder / "CURRENT"
        if not pointer.exists():
            return None
        folder = self._folder / "generations" / name
        path = folder / "manifest.json"
        if not name.isdigit() or not folder.is_dir():
            reason = f"{pointer} names no index (but {name!r})"
            raise DamagedLibraryError(reason, "run `local-rag repair` to build one")
        try:
            manifest = json.loads(path.read_bytes())
            if not isinstance(manifest, dict):
                raise TypeError("it holds no object")
            if "checksum" in manifest and manifest.pop("checksum") != _checksum(manifest):
                raise ValueError("it has changed since it was written")
        except (OSError, ValueError, TypeError, AttributeError) as error:
            reason = f"{path} is damaged ({error})"
            raise DamagedLibraryError(reason, "run `local-rag repair` to build the index again") from None
        return Generation(folder, manifest)

    def publish(self, rows: IndexRows, manifest: Mapping[str, Any]) -> None:
        """Build a generation, make it the live one, and remove those before the last."""
        generations = self._folder / "generations"
        generations.mkdir(exist_ok=True)
        for leftover in generations.glob("*.tmp"):
            if leftover.stem.isdigit():
                shutil.rmtree(leftover)
        before = self.live_name()
        numbers = [int(name) for name in (before, *(folder.name for folder in generations.iterdir())) if name.isdigit()]
        name = f"{max(numbers, default=0) + 1:06}"
        temporary = generations / f"{name}.tmp"
        temporary.mkdir()
        np.save(temporary / "chunk_ids.npy", np.asarray(rows.chunk_ids, dtype=np.int64))
        VectorIndex.build(blend_neighbours(rows.vectors, rows.document_ids)).save(temporary / "vectors.faiss")
        KeywordIndex.build(rows.texts, rows.document_ids).save(temporary / "keywords")
        write_manifest(temporary, {**manifest, "files": _describe(temporary)})
        for path in (*temporary.rglob("*"), temporary):
            flush(path)
        temporary.rename(generations / name)
        flush(generations)
        write_whole(self._folder / "CURRENT", name, durable=True)
        # The one before stays for readers that are just opening it.
        for folder in generations.iterdir():
            if folder.name.isdigit() and folder.name not in {name, before}:
                shutil.rmtree(folder, ignore_errors=True)


def _stamp(folder: Path) -> str:
    try:
        status = (folder / "manifest.json").stat()
    except (OSError, ValueError):
        return ""
    return f"{folder.name} {status.st_ino} {status.st_mtime_ns}"


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a generation's manifest with its own checksum."""
    content = json.dumps({**manifest, "checksum": _checksum(manifest)}, indent=1)
    (folder / "manifest.json").write_text(content)


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _describe(folder: Path) -> dict[str, dict[str, Any]]:
    """Return size, time and SHA-256 of each file of a generation."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): {
            "bytes": path.stat().st_size,
            "modified_ns": path.stat().st_mtime_ns,
            "sha256": file_sha256(path),
        }
        for path in files
    }


def remembered(folder: Path, indexes: Generations) -> dict[str, Any]:
    """Return the settings of the last `index`: from the store, or where that is damaged from the live index."""
    if known := remembered_settings(folder):
        return known
    with suppress(LibraryError, OSError):
        live = indexes.live()
        return dict(live.manifest.get("settings", {})) if live else {}
    return {}
