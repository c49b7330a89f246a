"""Publish generations of an index in a folder. A generation lists its segments, and the documents removed from them.

The cost of a publish is proportional to what changed: it writes a segment for the new documents, and a generation that
lists this segment and the earlier ones. Then a few segments of similar sizes are merged into another generation, so
there are never many; one change merges at most a tenth of all rows. Segments and
generations are complete before they get their names, and never change afterwards. `CURRENT` holds the name of the live
generation and is replaced by an atomic rename, so a reader sees either the old or the new generation, whole. A killed
publish leaves only folders that no generation lists; the next publish removes them.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.asking import Filters
from local_rag.errors import DamagedLibraryError
from local_rag.files import flush, folder_bytes, write_whole
from local_rag.index.arrays import REMEDY, open_array, write_array
from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.protocol import Allowed, AllowedDocuments, Contents, PassageStore
from local_rag.index.segment import (
    BATCH_ROWS,
    NUMBERED,
    Segment,
    SegmentPart,
    Segments,
    damaged_files,
    finish,
    read_manifest,
)
from local_rag.index.vector_index import VectorIndex

SEGMENTS = "segments"
# What a manifest says of the whole index and of any part of it.
_OF_ANY_PART = ("format", "fingerprint", "settings", "segments")
# What NumPy raises if an index file has changed since it was opened.
_CHANGED = (IndexError, ValueError, OverflowError)


class Generation:
    """A published index in a folder, or what it shows of some documents.

    `documents.npy` holds the documents in the order in which equal scores rank, `gone.npy` the removed documents of
    each segment.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], shown: np.ndarray | None = None) -> None:
        self.folder, self.manifest, self._shown = folder, manifest, shown
        self.stamp = _stamp_of(folder)
        self._vectors: VectorIndex | None = None

    def showing(self, documents: Collection[int]) -> "Generation":
        """Return the same index as if it held these documents alone.

        Statistics are counted over them, so no score depends on others. No codes are searched: others shaped them, too.
        """
        manifest = {name: self.manifest[name] for name in _OF_ANY_PART if name in self.manifest}
        return Generation(self.folder, manifest, np.fromiter(documents, dtype=np.int64))

    def segments(self) -> list[tuple[Segment, np.ndarray]]:
        """Open the segments, each with a mask of the documents that are still in the index."""
        return self._open_segments(self.manifest["segments"])

    def _open_segments(self, names: Sequence[str]) -> list[tuple[Segment, np.ndarray]]:
        gone = open_array(self.folder / "gone.npy", mapped=False)
        folder, found = self.folder.parent.parent / SEGMENTS, []
        for name in names:
            segment = Segment(folder / name)
            alive = ~np.isin(segment.documents, gone[gone[:, 0] == int(name), 1])
            found.append((segment, alive if self._shown is None else alive & np.isin(segment.documents, self._shown)))
        return found

    def whole_segments(self) -> list[tuple[Segment, np.ndarray]]:
        """Open the segments that are not damaged, none if the generation itself is."""
        if damaged_files(self.folder, self.manifest, hash_all=True):
            return []
        names = [name for name in self.manifest["segments"] if not self._segment_damage(name)]
        return self._open_segments(names)

    def open(self) -> None:
        """Open both indexes, memory-mapped."""
        with self._unchanged():
            self._open()

    def _open(self) -> None:
        ids, order, rows_alive = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, dtype=bool)]
        whole, owners, sizes, first = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        vectors, chunk_vectors, postings = [], [], []
        documents = open_array(self.folder / "documents.npy", mapped=False)
        by_id = np.argsort(documents)
        for segment, alive in self.segments():
            positions = np.minimum(np.searchsorted(documents, segment.documents, sorter=by_id), len(documents) - 1)
            rows = segment.alive_rows(alive)
            ids.append(segment.chunk_ids)
            order.append(np.repeat(by_id[positions].astype(np.int32), segment.sizes))
            rows_alive.append(rows)
            mask = None if alive.all() else rows
            vectors.append(segment.vector_part(mask, with_codes=self._shown is None))
            chunks = rows.copy()
            chunks[segment.whole_rows()] = False
            chunk_vectors.append(vectors[-1] if chunks.all() else replace(vectors[-1], alive=chunks))
            postings.append((segment.postings, mask))
            whole.append(first + segment.whole_rows())
            owners.append(segment.documents)
            sizes.append(segment.sizes)
            first += segment.rows
        self._ids: np.ndarray = np.concatenate(ids)
        self._order: np.ndarray = np.concatenate(order)
        self._alive: np.ndarray = np.concatenate(rows_alive)
        self._whole_rows: np.ndarray = np.concatenate(whole)
        self._owners: np.ndarray = np.concatenate(owners)
        self._sizes: np.ndarray = np.concatenate(sizes)
        self._keywords = KeywordIndex(postings, order=self._order)
        self._vectors = VectorIndex(vectors, self._order)
        self._chunk_vectors = VectorIndex(chunk_vectors, self._order)
        self._last_rows: tuple[Allowed, bool, np.ndarray | None] = (None, False, None)

    def chunk_ids(self) -> list[int]:
        """Return the ids of all rows, in the order in which equal scores rank."""
        if self._vectors is None:
            self.open()
        rows = np.flatnonzero(self._alive)
        ids: list[int] = self._ids[rows[np.lexsort((rows, self._order[rows]))]].tolist()
        return ids

    def documents(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of all documents and the versions of their rows."""
        held = [np.stack([segment.documents[alive], segment.versions[alive]]) for segment, alive in self.segments()]
        ids, versions = np.concatenate([np.zeros((2, 0), np.int64), *held], axis=1)
        return ids, versions

    def dense(
        self, vector: np.ndarray, top: int, allowed: Allowed = None, *, documents: bool = False
    ) -> list[tuple[int, float]]:
        """Return chunk ids with cosine similarities, best first."""
        assert self._vectors is not None, "a generation is opened before it is searched"
        vectors = self._vectors if documents else self._chunk_vectors
        with self._unchanged():
            return self._named(vectors.search(vector, top, self._rows(allowed, documents)))

    def keywords(
        self,
        terms: Sequence[str],
        top: int,
        allowed: Allowed = None,
        weights: Sequence[float] | None = None,
        *,
        documents: bool = False,
    ) -> list[tuple[int, float]]:
        """Return chunk ids with BM25 scores, best first."""
        hidden = None if documents else self._whole_rows
        with self._unchanged():
            return self._named(self._keywords.search(terms, top, self._rows(allowed, documents), weights, hidden))

    def vocabulary(self) -> set[str]:
        """Return the words of the segments, in lower case."""
        with self._unchanged():
            return self._keywords.vocabulary()

    def _named(self, found: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        return [(int(self._ids[row]), score) for row, score in found]

    def _rows(self, allowed: Allowed, documents: bool) -> np.ndarray | None:
        """Return the rows that may be found, ascending, None for all; those of the last call are remembered."""
        if allowed is None:
            return None
        last, with_documents, rows = self._last_rows
        if last is not allowed or with_documents != documents:
            assert not isinstance(allowed, Filters), "the store selects no filters"
            if isinstance(allowed, AllowedDocuments):
                mask = np.repeat(np.isin(self._owners, allowed.ids), self._sizes)
            else:
                ids = allowed if isinstance(allowed, np.ndarray) else np.fromiter(allowed, dtype=np.int64)
                mask = np.isin(self._ids, ids)
            if not documents:
                mask[self._whole_rows] = False
            rows = np.flatnonzero(mask & self._alive)
            self._last_rows = allowed, documents, rows
        return rows

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise DamagedLibraryError for what changed bytes raise."""
        try:
            yield
        except _CHANGED as error:
            raise DamagedLibraryError(f"The index {self.folder} is damaged ({error})", REMEDY) from error

    def damage(self, *, hash_all: bool = True) -> list[str]:
        """Compare every file with the manifests; describe those that are missing, truncated or changed."""
        problems = damaged_files(self.folder, self.manifest, hash_all=hash_all)
        for name in self.manifest["segments"]:
            problems += self._segment_damage(name, hash_all=hash_all)
        return problems

    def _segment_damage(self, name: str, *, hash_all: bool = True) -> list[str]:
        folder = self.folder.parent.parent / SEGMENTS / name
        try:
            return damaged_files(folder, read_manifest(folder), hash_all=hash_all)
        except DamagedLibraryError as error:
            return [error.reason]

    def passages(self) -> None:
        """Return None: the passages are in the store of the library."""


def _stamp_of(folder: Path) -> str:
    """Return a value that differs from that of every other generation, even of a later one with the same name."""
    try:
        status = (folder / "manifest.json").stat()
    except (OSError, ValueError):
        return ""
    return f"{folder.name} {status.st_ino} {status.st_mtime_ns}"


class Generations:
    """The generations in the folder of a library; `batch_rows` is the size of a segment that is built in memory."""

    def __init__(self, folder: Path, *, batch_rows: int = BATCH_ROWS) -> None:
        self._folder = folder
        self._generations = folder / "generations"
        self._segments = Segments(folder / SEGMENTS, batch_rows)

    def live_name(self) -> str:
        """Return the name of the live generation, empty before the first publish."""
        pointer = self._folder / "CURRENT"
        return pointer.read_text(errors="replace").strip() if pointer.exists() else ""

    def live_stamp(self) -> str:
        """Return the stamp of the live generation, empty before the first publish."""
        return _stamp_of(self._generations / self.live_name())

    def live(self) -> Generation | None:
        """Return the live generation, None before the first publish; its files are not checked."""
        name, pointer = self.live_name(), self._folder / "CURRENT"
        if not pointer.exists():
            return None
        folder = self._generations / name
        if not name.isdecimal() or not folder.is_dir():
            reason = f"{pointer} does not name an index (but {name!r})"
            raise DamagedLibraryError(reason, "run `local-rag repair` to build one")
        return Generation(folder, read_manifest(folder))

    def over(self, passages: PassageStore) -> "Generations":
        """Return these indexes: they hold no passages."""
        return self

    def publish(
        self, contents: Contents, manifest: Mapping[str, Any], *, rebuild: bool = False, replace: bool = False
    ) -> None:
        """Publish a segment of what is new beside those there are; then merge, which changes nothing that is found.

        To `rebuild`, write the documents of damaged segments again, and of those that hold removed documents.
        """
        self._generations.mkdir(exist_ok=True)
        before = self.live_name()
        by_id = np.argsort(contents.documents)
        ids, versions = contents.documents[by_id], contents.versions[by_id]
        parts, missing = list[SegmentPart](), np.ones(len(ids), dtype=bool)
        live = None if rebuild else self.live()
        for segment, alive in self._whole_segments() if rebuild else live.segments() if live else ():
            positions = np.minimum(np.searchsorted(ids, segment.documents), max(0, len(ids) - 1))
            same = alive & (versions[positions] == segment.versions) if len(ids) else np.zeros_like(alive)
            same &= (ids[positions] == segment.documents) if len(ids) else False
            if same.any() and (same.all() or not rebuild):
                missing[positions[same]] = False
                parts.append((segment, same))
        self._remove_all_but(before)
        wanted = dict(zip(ids[missing].tolist(), versions[missing].tolist(), strict=True))
        new = [one for one in contents.documents.tolist() if one in wanted] if wanted else []
        written = self._segments.write(contents.rows(new) if new else (), wanted)
        parts += written
        self._switch(contents.documents, parts, manifest)
        self._remove_all_but(before, self.live_name())  # the previous one stays for readers that are opening it
        for _ in range(max(1, len(written))):
            if (merged := self._segments.merge(parts)) is None:
                return
            parts = merged
            self._switch(contents.documents, parts, manifest)
            self._remove_all_but(before, self.live_name())

    def _whole_segments(self) -> list[SegmentPart]:
        """Return the segments of the live generation that are not damaged."""
        try:
            live = self.live()
            return live.whole_segments() if live else []
        except DamagedLibraryError:
            return []

    def expunge(self) -> None:
        """Publish the live index again with the segments rewritten that hold removed documents."""
        live = self.live()
        parts = live.segments() if live else []
        if live is None or all(alive.all() for _, alive in parts):
            return
        before = self.live_name()
        self._remove_all_but(before)
        documents = open_array(live.folder / "documents.npy", mapped=False)
        kept = [part if part[1].all() else self._segments.rewrite(part) for part in parts if part[1].any()]
        self._switch(documents, kept, live.manifest)
        self._remove_all_but(before, self.live_name())

    def _switch(self, documents: np.ndarray, parts: Sequence[SegmentPart], manifest: Mapping[str, Any]) -> None:
        """Write a generation that lists these segments, and make it the live one."""
        folders = (folder.name for folder in self._generations.iterdir())
        numbers = [int(name) for name in (self.live_name(), *folders) if name.isdecimal()]
        name = f"{max(numbers, default=0) + 1:06}"
        temporary = self._generations / f"{name}.tmp"
        temporary.mkdir()
        write_array(temporary / "documents.npy", documents.astype(np.int64))
        gone = [
            (int(segment.folder.name), one) for segment, alive in parts for one in segment.documents[~alive].tolist()
        ]
        write_array(temporary / "gone.npy", np.array(gone, dtype=np.int64).reshape(-1, 2))
        finish(temporary, {**manifest, "segments": [segment.folder.name for segment, _ in parts]})
        temporary.rename(self._generations / name)
        flush(self._generations)
        write_whole(self._folder / "CURRENT", name, durable=True)

    def prune(self) -> None:
        """Remove every generation except the live one, and every segment that it does not list."""
        for folder in self.unused(self.live_name()):
            shutil.rmtree(folder)

    def unused(self, *kept: str) -> list[Path]:
        """Return the folders of all generations except those kept, and of the segments that these do not list."""
        numbered = [folder for folder in self._generations.glob("*") if NUMBERED.fullmatch(folder.name)]
        unlisted = sorted(one for one in numbered if one.name not in kept)
        try:
            manifests = [read_manifest(self._generations / name) for name in kept if name]
        except DamagedLibraryError:  # perhaps it cannot be read just now; nobody knows which segments it lists
            return unlisted
        return unlisted + self._segments.unused({name for one in manifests for name in one.get("segments", ())})

    def sizes(self) -> dict[str, int]:
        """Return the size of each generation in bytes, with its segments, by name."""
        found = {}
        for folder in sorted(self._generations.glob("*")):
            found[folder.name] = folder_bytes(folder)
            with suppress(DamagedLibraryError):
                names = read_manifest(folder).get("segments", ())
                found[folder.name] += sum(folder_bytes(self._folder / SEGMENTS / name) for name in names)
        return found

    def _remove_all_but(self, *kept: str) -> None:
        for folder in self.unused(*kept):
            shutil.rmtree(folder, ignore_errors=True)
