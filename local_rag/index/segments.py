"""The folder of all segments: write them, merge them by size, find those that are no longer needed.

Merges are planned as in Lucene: segments of similar size are merged, so there are never many, up to a largest size.
"""

import re
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
# A merge writes at most this share of all rows, so one change never costs more; but at least and at most so many rows.
_SHARE, _LEAST_ROWS, _MOST_ROWS = 10, 256, 1 << 18

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
