"""Arrays in files of NumPy's own format: written a piece at a time, read memory-mapped."""

import io
import mmap
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError

REMEDY = "run `local-rag repair` to build the index again"


class ArrayWriter:
    """Write an array to a file, piece by piece; `shape` is that of one row. A full disk is an OSError."""

    def __init__(self, path: Path, dtype: Any, shape: tuple[int, ...] = ()) -> None:
        self._dtype, self._shape, self.rows = np.dtype(dtype), shape, 0
        self._file = path.open("wb")
        self._file.write(self._header())

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        with self._file:
            if kind is None:
                self._file.seek(0)
                self._file.write(self._header())

    def append(self, piece: np.ndarray) -> None:
        """Write further rows."""
        content = np.ascontiguousarray(piece, dtype=self._dtype)
        self._file.write(content.tobytes())
        self.rows += len(content)

    def _header(self) -> bytes:
        """Return the header, which has the same length whatever the number of rows: NumPy leaves room for it."""
        content = io.BytesIO()
        description = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.rows, *self._shape)}
        np.lib.format.write_array_header_1_0(content, description)
        return content.getvalue()


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array that is in memory."""
    write_pieces(path, array.dtype, [array], array.shape[1:])


def write_pieces(path: Path, dtype: Any, pieces: Iterable[np.ndarray], shape: tuple[int, ...] = ()) -> None:
    """Write an array that comes in pieces."""
    with ArrayWriter(path, dtype, shape) as writer:
        for piece in pieces:
            writer.append(piece)


def open_array(path: Path, *, mapped: bool = True) -> np.ndarray:
    """Open a written array, memory-mapped or read; raise DamagedLibraryError where its header or size is wrong."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError, SyntaxError):  # NumPy's words are not for users
        raise DamagedLibraryError(f"{path} is missing or damaged", REMEDY) from None
    return np.asarray(array)


def give_back(array: np.ndarray) -> None:
    """Let the system take back the memory of a mapped array that was read; it is read again where it is wanted."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    mapped = getattr(owner, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
