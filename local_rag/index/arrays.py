"""Arrays in files of NumPy's format, written in pieces and read memory-mapped."""

import io
import mmap
from collections.abc import Iterable
from pathlib import Path
from tokenize import TokenError
from types import TracebackType
from typing import Any

import numpy as np

from local_rag.errors import DamagedLibraryError

REMEDY = "run `local-rag repair` to build the index again"


class ArrayWriter:
    """Write an array to a file in pieces; `shape` is that of one row. A full disk raises OSError."""

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
        """Append rows."""
        content = np.ascontiguousarray(piece, dtype=self._dtype)
        self._file.write(content.tobytes())
        self.rows += len(content)

    def _header(self) -> bytes:
        """Return the header; NumPy pads it, so its length does not depend on the number of rows."""
        content = io.BytesIO()
        description = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.rows, *self._shape)}
        np.lib.format.write_array_header_1_0(content, description)
        return content.getvalue()


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array from memory."""
    write_pieces(path, array.dtype, [array], array.shape[1:])


def write_pieces(path: Path, dtype: Any, pieces: Iterable[np.ndarray], shape: tuple[int, ...] = ()) -> None:
    """Write an array that arrives in pieces."""
    with ArrayWriter(path, dtype, shape) as writer:
        for piece in pieces:
            writer.append(piece)


def open_array(path: Path, *, mapped: bool = True) -> np.ndarray:
    """Open an array, memory-mapped or read; raise DamagedLibraryError if its header or size is wrong."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    # NumPy evaluates the header, so damage ends in errors of many types; none of its messages helps users.
    except (FileNotFoundError, ValueError, EOFError, SyntaxError, TypeError, KeyError, TokenError, MemoryError):
        raise DamagedLibraryError(f"{path} is missing or damaged", REMEDY) from None
    return np.asarray(array)


def give_back(array: np.ndarray) -> None:
    """Release the memory of a mapped array; the system reads it again when needed."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    mapped = getattr(owner, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
