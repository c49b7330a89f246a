"""Recognise the text of scanned pages with models that lie in a Python package: the extra `ocr`.

Pages are recognised in the process that reads files, without network, and kept one by one: a run that is stopped goes
on with the next page.
"""

import importlib.metadata
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from local_rag.files import write_whole
from local_rag.reading.converters.pdf_page import Cell, Line, RecognizedPage
from local_rag.serialization import from_plain

_PACKAGE = "rapidocr"
_DOTS_PER_INCH, _POINTS_PER_INCH = 200, 72
_MOST_PIXELS = 12_000_000
_GAP = 0.75  # of a line's height: closer boxes are one cell
_PROSE, _FEWEST_LINES = 20, 5  # characters, and lines on both sides of the gap between two columns of prose


@dataclass(frozen=True, slots=True)
class Box:
    """A piece of a line in the image: its text and extent in points, from above."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    score: float


def engine() -> str:
    """Return the name and version of what recognises text; empty if the extra is not installed."""
    try:
        return f"{_PACKAGE}-{importlib.metadata.version(_PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def recognize(page: Any) -> RecognizedPage:
    """Draw a page of PDFium's and recognise its text."""
    width, height = page.get_size()
    pixels = width * height / _POINTS_PER_INCH**2
    scale = min(_DOTS_PER_INCH, (_MOST_PIXELS / max(pixels, 1e-6)) ** 0.5) / _POINTS_PER_INCH
    found = _model()(page.render(scale=scale).to_pil().convert("RGB"))
    boxes = []
    for corners, text, score in zip(
        *(() if one is None else one for one in (found.boxes, found.txts, found.scores)), strict=True
    ):
        across, down = ([float(corner[axis]) / scale for corner in corners] for axis in (0, 1))
        if text.strip():
            boxes.append(Box(" ".join(text.split()), min(across), min(down), max(across), max(down), float(score)))
    characters = sum(len(box.text) for box in boxes)
    confidence = sum(box.score * len(box.text) for box in boxes) / characters if characters else 0.0
    return RecognizedPage(tuple(lines_of_boxes(boxes, height)), round(confidence, 4))


class PageReader:
    """Recognise the pages of one PDF; `folder` keeps them, and `on_page` is called before each page that is new."""

    def __init__(
        self,
        folder: Path | None,
        on_page: Callable[[], None],
        *,
        engine: Callable[[], str] = engine,
        recognize: Callable[[Any], RecognizedPage] = recognize,
    ) -> None:
        self._folder, self._on_page = folder, on_page
        self._engine, self._recognize = engine, recognize

    def __call__(self, page: Any, number: int) -> RecognizedPage:
        """Return the text of a page of PDFium's; `number` counts from 0."""
        file = self._folder / f"{self._engine()}-{number}.json" if self._folder else None
        if file and (kept := _load(file)):
            return kept
        self._on_page()
        recognized = self._recognize(page)
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, json.dumps(asdict(recognized), ensure_ascii=False).encode())
        return recognized


@lru_cache(maxsize=1)
def _model() -> Any:
    import rapidocr

    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.use_cls": False,  # takes upright lines for ones upside down
            "Global.max_side_len": 5000,
            # Lines are found in a smaller image, in which the words of a short one are not too far apart.
            "Det.limit_type": "max",
            "Det.limit_side_len": 1280,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def lines_of_boxes(boxes: Sequence[Box], height: float) -> Iterator[Line]:
    """Put the boxes of a line together, from the top; a column of prose is read to its end before the next one."""
    for column in _columns(boxes):
        rows: list[list[Box]] = []
        for box in sorted(column, key=lambda one: one.top + one.bottom):
            middle = (box.top + box.bottom) / 2
            if rows and rows[-1][0].top < middle < rows[-1][0].bottom:
                rows[-1].append(box)
            else:
                rows.append([box])
        for row in rows:
            size = median(box.bottom - box.top for box in row)
            cells: list[Cell] = []
            for box in sorted(row, key=lambda one: one.left):
                if cells and box.left - cells[-1].right <= _GAP * size:
                    cells[-1] = Cell(f"{cells[-1].text} {box.text}", cells[-1].left, box.right)
                else:
                    cells.append(Cell(box.text, box.left, box.right))
            yield Line(tuple(cells), height - row[0].top, size)


def _columns(boxes: Sequence[Box]) -> Iterator[Sequence[Box]]:
    """Cut a page at a gap that no box crosses, if there is prose on both sides of it."""
    ordered = sorted(boxes, key=lambda one: one.left)
    right = 0.0
    for index, box in enumerate(ordered):
        sides = ordered[:index], ordered[index:]
        if box.left > right and all(
            len(side) >= _FEWEST_LINES and median(len(one.text) for one in side) >= _PROSE for side in sides
        ):
            yield sides[0]
            yield from _columns(sides[1])
            return
        right = max(right, box.right)
    yield boxes


def _load(file: Path) -> RecognizedPage | None:
    try:
        page: RecognizedPage = from_plain(RecognizedPage, json.loads(file.read_bytes()))
    except (OSError, ValueError):
        return None
    return page
