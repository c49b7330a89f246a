"""Pages of PDFs as images: each is drawn once, a few at a time, and the last ones are kept in memory."""

import struct
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from contextlib import suppress
from pathlib import Path

from local_rag.errors import BusyError, ReadError
from local_rag.reading.page_image import draw_page

_AT_ONCE, _MOST_KEPT, _MOST_WAITING = 2, 24, 50
_SIZE = struct.Struct(">II")
_SIZE_AT = 16  # bytes before the width and height in a PNG
_USUAL = (1191, 1684)  # A4, as it is drawn
_PATIENCE = 0.8  # seconds that a page waits for the size of its image
_Key = tuple[object, ...]


class PageDrawings:
    """Draw pages in threads of its own; who asks for one that is being drawn gets the same drawing."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="page drawings")
        self._lock = threading.Lock()
        self._drawn: OrderedDict[_Key, Future[bytes]] = OrderedDict()
        self._sizes: OrderedDict[str, tuple[int, int]] = OrderedDict()  # of the last page drawn of a file

    def draw(self, path: Path, page: int, passage: str = "") -> Future[bytes]:
        """Begin to draw a page with a passage marked, unless it is drawn; raise BusyError where too many wait."""
        key = (*_stamp(path), page, passage)
        with self._lock:
            drawing = self._drawn.get(key)
            if drawing is None or (drawing.done() and drawing.exception()):
                if sum(not one.done() for one in self._drawn.values()) >= _MOST_WAITING:
                    raise BusyError("Too many pages are being drawn; try again in a minute.")
                drawing = self._drawn[key] = self._threads.submit(self._draw, path, page, passage)
            self._drawn.move_to_end(key)
            done = [one for one, kept in self._drawn.items() if kept.done()]
            for old in done[: max(0, len(done) - _MOST_KEPT)]:
                del self._drawn[old]
            return drawing

    def size(self, path: Path, page: int, passage: str = "") -> tuple[int, int]:
        """Begin to draw a page; return its width and height, if it takes long those of another page, or of A4."""
        with suppress(LateError, ReadError, BusyError):
            return _size_of(self.draw(path, page, passage).result(_PATIENCE))
        with self._lock:
            return self._sizes.get(str(path), _USUAL)

    def close(self) -> None:
        """Begin no other drawing."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _draw(self, path: Path, page: int, passage: str) -> bytes:
        image = draw_page(path, page, passage)
        with self._lock:
            self._sizes[str(path)] = _size_of(image)
            if len(self._sizes) > _MOST_KEPT:
                self._sizes.popitem(last=False)
        return image


def _size_of(image: bytes) -> tuple[int, int]:
    width, height = _SIZE.unpack_from(image, _SIZE_AT)
    return width, height


def _stamp(path: Path) -> _Key:
    """Return what changes with a file."""
    with suppress(OSError):
        status = path.stat()
        return str(path), status.st_ino, status.st_size, status.st_mtime_ns
    return (str(path),)
