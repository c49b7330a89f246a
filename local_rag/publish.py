"""Build a generation of indexes and switch to it.

A generation is a folder that is complete before it gets its name and never changes afterwards. `CURRENT` names the live
one and is replaced by an atomic rename, so that a reader sees the old generation or the new one, whole, and a killed
publish leaves only a folder with a temporary name, which the next publish removes.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import LibraryError
from local_rag.keyword_index import KeywordIndex
from local_rag.vector_index import VectorIndex


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


def current_generation(library: Path) -> Generation | None:
    """Return the live generation, or None before the first publish."""
    pointer = library / "CURRENT"
    if not pointer.exists():
        return None
    folder = library / "generations" / pointer.read_text().strip()
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise LibraryError(
            f"The index in {folder} is damaged ({error}); run `local-rag index` to build it again from the library."
        ) from None
    return Generation(folder, manifest)


def publish(
    library: Path, chunk_ids: Sequence[int], vectors: np.ndarray, texts: Sequence[str], manifest: Mapping[str, Any]
) -> Generation:
    """Build both indexes over the chunks, make them the live generation, and remove those before the last."""
    generations = library / "generations"
    generations.mkdir(exist_ok=True)
    for leftover in generations.glob("*.tmp"):
        shutil.rmtree(leftover)
    numbers = sorted(int(folder.name) for folder in generations.iterdir() if folder.name.isdigit())
    name = f"{(numbers[-1] if numbers else 0) + 1:06}"
    temporary = generations / f"{name}.tmp"
    temporary.mkdir()
    np.save(temporary / "chunk_ids.npy", np.asarray(chunk_ids, dtype=np.int64))
    VectorIndex.build(vectors).save(temporary / "vectors.faiss")
    KeywordIndex.build(texts).save(temporary / "keywords")
    (temporary / "manifest.json").write_text(json.dumps(manifest, indent=1))
    for path in temporary.rglob("*"):
        _flush(path)
    temporary.rename(generations / name)
    _flush(generations)
    pointer = library / "CURRENT.tmp"
    pointer.write_text(name)
    _flush(pointer)
    pointer.replace(library / "CURRENT")
    _flush(library)
    # The one before stays for readers that opened it a moment ago.
    for number in numbers[:-1]:
        shutil.rmtree(generations / f"{number:06}", ignore_errors=True)
    return Generation(generations / name, manifest)


def _flush(path: Path) -> None:
    """Make a file's or folder's content survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
