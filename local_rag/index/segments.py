"""The folder of all segments: write them, merge them by size, find those that are no longer needed."""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from local_rag.files import flush
from local_rag.index.protocol import DocumentRows
from local_rag.index.segment import Segment, merge_segments, write_segment

BATCH_ROWS = 16_384  # of a segment built in memory; larger segments are merged from these
NUMBERED = re.compile(r"\d{6,}(?:\.tmp)?")  # names of generations and segments, including unfinished ones
_TIER = 4  # this many segments of a tier are merged; each tier is this many times as large as the one below
_FIRST_TIER = 64  # rows

# A segment and a mask of its documents that are still in the index.
SegmentPart: TypeAlias = tuple[Segment, np.ndarray]


class Segments:
    """The segments of a library; `batch_rows` is the size of a segment that is built in memory."""

    def __init__(self, folder: Path, batch_rows: int = BATCH_ROWS) -> None:
        self._folder, self._batch_rows = folder, batch_rows
        self._kept = set[str]()

    def keep(self, names: Iterable[str]) -> None:
        """Keep the segments that the live index lists; others are removed as soon as they are merged."""
        self._kept = set(names)

    def write(self, documents: Iterable[DocumentRows], versions: Mapping[int, int]) -> list[SegmentPart]:
        """Write documents to segments, each with as many as fit in memory."""
        parts, batch, rows = list[SegmentPart](), list[DocumentRows](), 0
        for document in documents:
            if batch and rows + len(document.chunk_ids) > self._batch_rows:
                parts.append(self._write_batch(batch, versions))
                parts = self.merge(parts)
                batch, rows = [], 0
            batch.append(document)
            rows += len(document.chunk_ids)
        return [*parts, self._write_batch(batch, versions)] if batch else parts

    def _write_batch(self, batch: Sequence[DocumentRows], versions: Mapping[int, int]) -> SegmentPart:
        of_batch = [versions[one.document_id] for one in batch]
        return self._make(lambda folder: write_segment(folder, batch, of_batch))

    def merge(self, parts: Iterable[SegmentPart]) -> list[SegmentPart]:
        """Merge segments of similar size until there are few; rewrite a segment that has lost half of its rows."""
        left = list(parts)
        while chosen := _to_merge(left):
            sources = [left[position] for position in chosen]
            for segment, _ in sources:
                segment.require_whole()  # once copied, damage would go unnoticed
            left = [part for position, part in enumerate(left) if position not in chosen]
            left.append(self._make(partial(merge_segments, sources=sources)))
            for segment, _ in sources:
                if segment.folder.name not in self._kept:
                    shutil.rmtree(segment.folder, ignore_errors=True)
        return left

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


def _to_merge(parts: Sequence[SegmentPart]) -> list[int]:
    """Return the positions of the segments to merge next, none if they are few and full."""
    tiers: dict[int, list[int]] = {}
    for position, (segment, alive) in enumerate(parts):
        rows = int(segment.sizes[alive].sum())
        if rows * 2 < segment.rows:
            return [position]
        tier = 0
        while rows > _FIRST_TIER * _TIER**tier:
            tier += 1
        tiers.setdefault(tier, []).append(position)
    return next((positions for _, positions in sorted(tiers.items()) if len(positions) >= _TIER), [])
