"""Write, open and merge segments. A segment is a folder with the indexes of some documents, which never changes.

Merges are planned as in Lucene: segments of similar size are merged, so there are never many, up to a largest size.

`chunk_ids.npy` holds the chunk id of each row; the rows of a document are consecutive. `documents.npy` holds for each
document its id, the version of its rows, its first row, and 1 if that row stands for the whole document. `vectors.npy`,
`codes.faiss` if there are many vectors, and two indexes of bm25s in `keywords/` are searched. The manifest holds the
size and SHA-256 of each file.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from local_rag.errors import DamagedLibraryError
from local_rag.files import file_sha256, flush
from local_rag.index.arrays import REMEDY, give_back, open_array, write_array, write_pieces
from local_rag.index.postings import Postings, merge_postings
from local_rag.index.protocol import DocumentRows
from local_rag.index.vector_index import VectorPart, blend_neighbours, open_near, write_near
from local_rag.text.tokens import document_tokens, spellings

_PIECE = 8192  # vectors that are copied at a time
_CODES = "codes.faiss"
_SECOND_NS = 1_000_000_000
BATCH_ROWS = 16_384  # of a segment built in memory; larger segments are merged from these
NUMBERED = re.compile(r"\d{6,}(?:\.tmp)?")  # names of generations and segments, including unfinished ones
_TIER = 4  # this many segments of a tier are merged; each tier is this many times as large as the one below
_FIRST_TIER = 64  # rows
# A merge writes at most this share of all rows, so one change never costs more; but at least and at most so many rows.
_SHARE, _LEAST_ROWS, _MOST_ROWS = 10, 256, 1 << 18


class Segment:
    """A segment in its folder; raises DamagedLibraryError if a file is missing or has the wrong shape."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.manifest = folder, read_manifest(folder)
        self.chunk_ids = open_array(folder / "chunk_ids.npy")
        columns = open_array(folder / "documents.npy", mapped=False).T
        self.documents, self.versions, self.first_rows, self.described = columns
        self.rows = len(self.chunk_ids)
        self.sizes = np.diff(np.r_[self.first_rows, self.rows])

    @cached_property
    def postings(self) -> Postings:
        """Open the postings."""
        postings = Postings.open(self.folder / "keywords")
        if len(postings.block_of) != self.rows:
            raise DamagedLibraryError(f"{self.folder / 'keywords' / 'blocks.npy'} is damaged", REMEDY)
        return postings

    @cached_property
    def vectors(self) -> np.ndarray:
        """Open the vectors, shape (rows, dimension)."""
        vectors = open_array(self.folder / "vectors.npy")
        if len(vectors) != self.rows:
            raise DamagedLibraryError(f"{self.folder / 'vectors.npy'} is damaged", REMEDY)
        return vectors

    def check(self) -> None:
        """Open all files, to check that they are whole."""
        self.vector_part(None)
        _ = self.postings

    def require_whole(self) -> None:
        """Raise DamagedLibraryError if a file differs from what was written."""
        if problems := damaged_files(self.folder, self.manifest, hash_all=True):
            raise DamagedLibraryError(problems[0], REMEDY)

    def vector_part(self, alive: np.ndarray | None, *, with_codes: bool = True) -> VectorPart:
        """Return the vectors and their codes, if there are any."""
        near = self.folder / _CODES
        return VectorPart(self.vectors, alive, open_near(near) if with_codes and near.exists() else None)

    def alive_rows(self, alive: np.ndarray) -> np.ndarray:
        """Return a mask of the rows of the documents that are alive."""
        return np.repeat(alive, self.sizes)

    def whole_rows(self) -> np.ndarray:
        """Return the rows that stand for whole documents."""
        rows: np.ndarray = self.first_rows[self.described == 1]
        return rows


def write_segment(folder: Path, documents: Sequence[DocumentRows], versions: Sequence[int]) -> None:
    """Write the indexes of some documents durably to a new folder."""
    folder.mkdir(parents=True)
    write_array(folder / "chunk_ids.npy", np.array([i for one in documents for i in one.chunk_ids], dtype=np.int64))
    sizes = np.array([len(one.chunk_ids) for one in documents], dtype=np.int64)
    described = [one.described for one in documents]
    columns = [[one.document_id for one in documents], list(versions), np.cumsum(sizes) - sizes, described]
    write_array(folder / "documents.npy", np.array(columns, dtype=np.int64).T)
    parts = enumerate(one.chunk_ids[part] for one in documents for part in one.parts)
    part_of = [number for number, rows in parts for _ in rows]
    vectors = blend_neighbours(np.concatenate([one.vectors for one in documents]), part_of)
    write_array(folder / "vectors.npy", vectors.astype(np.float32))
    write_near(vectors, folder / _CODES)
    words: dict[str, set[str]] = {}
    tokens = [tokens for one in documents for tokens in document_tokens(one.texts, words)]
    Postings.build(tokens, part_of, spellings=spellings(words)).write(folder / "keywords")
    finish(folder, {})


def merge_segments(folder: Path, sources: "Sequence[SegmentPart]") -> None:
    """Write the documents that are alive in each segment to a new segment, in bounded memory."""
    folder.mkdir(parents=True)
    rows = [(segment, segment.alive_rows(alive)) for segment, alive in sources]
    write_pieces(folder / "chunk_ids.npy", np.int64, (segment.chunk_ids[alive] for segment, alive in rows))
    sizes = np.concatenate([segment.sizes[alive] for segment, alive in sources])
    documents, versions, described = (
        np.concatenate([getattr(segment, column)[alive] for segment, alive in sources])
        for column in ("documents", "versions", "described")
    )
    write_array(folder / "documents.npy", np.stack([documents, versions, np.cumsum(sizes) - sizes, described]).T)
    write_pieces(
        folder / "vectors.npy",
        np.float32,
        (piece for segment, alive in rows for piece in _vectors_alive(segment, alive)),
        sources[0][0].vectors.shape[1:],
    )
    write_near(open_array(folder / "vectors.npy"), folder / _CODES)
    merge_postings([(segment.postings, alive) for segment, alive in rows]).write(folder / "keywords")
    finish(folder, {})


def _vectors_alive(segment: Segment, alive: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the vectors that are alive in pieces, in bounded memory."""
    for start in range(0, segment.rows, _PIECE):
        yield segment.vectors[start : start + _PIECE][alive[start : start + _PIECE]]
        give_back(segment.vectors)


def finish(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Describe the files of a folder in its manifest and flush them all to disk."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    described = {
        str(path.relative_to(folder)): {
            "bytes": path.stat().st_size,
            "modified_ns": path.stat().st_mtime_ns,
            "sha256": file_sha256(path),
        }
        for path in files
    }
    write_manifest(folder, {**manifest, "files": described})
    for path in (*folder.rglob("*"), folder):
        flush(path)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a folder, with a checksum of itself."""
    content = json.dumps({**manifest, "checksum": _checksum(manifest)}, indent=1)
    (folder / "manifest.json").write_text(content)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a manifest; raise DamagedLibraryError if it differs from what was written."""
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
        if not isinstance(manifest, dict):
            raise TypeError("it holds no object")
        if manifest.pop("checksum", "") != _checksum(manifest):
            raise ValueError("it has changed since it was written")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DamagedLibraryError(f"{path} is damaged ({error})", REMEDY) from None
    return manifest


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def damaged_files(folder: Path, manifest: Mapping[str, Any], *, hash_all: bool) -> list[str]:
    """Compare every file with the manifest; describe those that are missing, truncated or changed.

    Without `hash_all`, files whose modification time is unchanged are not hashed. One that was copied without its time
    gets it back, so it is hashed once.
    """
    problems = []
    for name, wanted in manifest.get("files", {}).items():
        path = folder / name
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif path.stat().st_size != wanted["bytes"]:
            problems.append(f"{path} has {path.stat().st_size:,} bytes instead of {wanted['bytes']:,}")
        elif not hash_all and _is_time(path.stat().st_mtime_ns, wanted["modified_ns"]):
            continue
        elif file_sha256(path) != wanted["sha256"]:
            problems.append(f"{path} has changed since it was written")
        else:
            with suppress(OSError):  # perhaps it may not be written
                os.utime(path, ns=(path.stat().st_atime_ns, wanted["modified_ns"]))
    return problems


def _is_time(modified_ns: int, wanted_ns: int) -> bool:
    """Say whether a file still has its time, or that time in the even seconds that FAT stores."""
    return modified_ns == wanted_ns or (
        modified_ns % _SECOND_NS == 0 and abs(modified_ns - wanted_ns) <= 2 * _SECOND_NS
    )


# A segment and a mask of its documents that are still in the index.
SegmentPart: TypeAlias = tuple[Segment, np.ndarray]


class Segments:
    """The segments of a library; `batch_rows` is the size of a segment that is built in memory."""

    def __init__(self, folder: Path, batch_rows: int = BATCH_ROWS) -> None:
        self._folder, self._batch_rows = folder, batch_rows

    def write(self, documents: Iterable[DocumentRows], versions: Mapping[int, int]) -> list[SegmentPart]:
        """Write documents to segments, each with as many as fit in memory."""
        parts, batch, rows = list[SegmentPart](), list[DocumentRows](), 0
        for document in documents:
            if batch and rows + len(document.chunk_ids) > self._batch_rows:
                parts.append(self._write_batch(batch, versions))
                batch, rows = [], 0
            batch.append(document)
            rows += len(document.chunk_ids)
        return [*parts, self._write_batch(batch, versions)] if batch else parts

    def _write_batch(self, batch: Sequence[DocumentRows], versions: Mapping[int, int]) -> SegmentPart:
        of_batch = [versions[one.document_id] for one in batch]
        return self._make(lambda folder: write_segment(folder, batch, of_batch))

    def rewrite(self, part: SegmentPart) -> SegmentPart:
        """Write a segment again with the documents that are alive, and nothing of the others."""
        part[0].require_whole()  # once copied, damage would go unnoticed
        return self._make(partial(merge_segments, sources=[part]))

    def merge(self, parts: Sequence[SegmentPart]) -> list[SegmentPart] | None:
        """Merge once: some segments of similar size, or what is left of a segment that has lost half of its rows.

        Return all segments then, None if they are few and full. The sources stay, for readers that have opened them.
        """
        chosen = merge_plan([(segment.sizes, alive) for segment, alive in parts])
        if not chosen:
            return None
        sources = [(parts[position][0], copied) for position, copied in chosen.items()]
        for segment, _ in sources:
            segment.require_whole()  # once copied, damage would go unnoticed
        left = [
            (segment, alive & ~chosen[position] if position in chosen else alive)
            for position, (segment, alive) in enumerate(parts)
        ]
        merged = self._make(partial(merge_segments, sources=sources))
        return [*((segment, alive) for segment, alive in left if alive.any()), merged]

    def _make(self, write: Callable[[Path], None]) -> SegmentPart:
        """Write a segment under a temporary name, check that it can be read, and rename it."""
        self._folder.mkdir(exist_ok=True)
        numbers = [int(path.name.removesuffix(".tmp")) for path in self._folder.iterdir() if _is_numbered(path)]
        name = f"{max(numbers, default=0) + 1:06}"
        temporary = self._folder / f"{name}.tmp"
        write(temporary)
        Segment(temporary).check()
        temporary.rename(self._folder / name)
        flush(self._folder)
        segment = Segment(self._folder / name)
        return segment, np.ones(len(segment.documents), dtype=bool)

    def unused(self, named: Iterable[str]) -> list[Path]:
        """Return the segments that are not named, including those of killed publishes."""
        kept = set(named)
        return sorted(path for path in self._folder.glob("*") if _is_numbered(path) and path.name not in kept)


def _is_numbered(path: Path) -> bool:
    return NUMBERED.fullmatch(path.name) is not None


def merge_plan(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[int, np.ndarray]:
    """Return which documents of which segments to write to one segment next, none if segments are few and full.

    Each segment is given as the sizes of its documents and a mask of those that are alive; so is each result.
    """
    rows = [int(sizes[alive].sum()) for sizes, alive in parts]
    most = min(_MOST_ROWS, max(_LEAST_ROWS, sum(rows) // _SHARE))
    tiers: dict[int, list[int]] = {}
    for position, (sizes, alive) in enumerate(parts):
        if rows[position] * 2 < sizes.sum():
            fits = alive & (sizes <= most)
            copied = fits & (np.cumsum(np.where(fits, sizes, 0)) <= most)  # the rest is left for the next merges
            if copied.any():
                return {position: copied}
        tier = 0
        while rows[position] > _FIRST_TIER * _TIER**tier:
            tier += 1
        tiers.setdefault(tier, []).append(position)
    for _, positions in sorted(tiers.items()):
        positions.sort(key=rows.__getitem__)
        fitting = int(np.searchsorted(np.cumsum([rows[one] for one in positions]), most, side="right"))
        if len(positions) >= _TIER and fitting > 1:
            return {one: parts[one][1] for one in sorted(positions[:fitting])}
    return {}
