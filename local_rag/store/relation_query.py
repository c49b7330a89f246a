"""A copy of relations in another process, which answers single SELECT statements and nothing else, within limits.

`query_process.py` is that process. It keeps the copy, so that a further statement costs a message and its answer. A
statement that goes beyond the limits of the system ends the process, and the copy with it.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import weakref
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from local_rag.errors import QuestionError
from local_rag.store import query_process
from local_rag.store.query_process import HEADER

MAX_SECONDS, MAX_ROWS = 10.0, 10_000
_LARGEST_RESULT = 40_000_000  # characters of all rows of a result, each value counted as some more
_LARGEST_ANSWER = 400_000_000  # bytes
_GRACE = 2.0  # seconds in which the process may end a query by itself, before it is ended
_COPY_SECONDS = 600.0  # in which it has copied a table after its last row
_PIECE, _MOST_AT_ONCE = 1 << 16, 1 << 24  # bytes
_TOOK_MEMORY = "The query took too much memory and was ended."
_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TZ")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The names of the columns of a query, its rows, and whether there are no more than these."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    is_complete: bool


class EndedError(QuestionError):
    """Report that the process of a copy was ended, and that the copy holds no table any more."""


class RelationCopy:
    """Tables in memory, filled once; then each `select` is one statement that only reads."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a process; without one no table is held."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        return self._process is not None

    def close(self) -> None:
        """Free the memory."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def add(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Copy a table, each row with its number as rowid before its values; names may be any text.

        Raise QuestionError with the reason if it cannot be copied, which leaves nothing of it.
        """
        data = json.dumps([(row[0], 0, *row[1:]) for row in rows])
        self.add_blocks(table, columns, [zlib.compress(data.encode(), 1)])

    def add_blocks(self, table: str, columns: Sequence[str], blocks: Iterable[bytes]) -> None:
        """Copy a table as `add` does, from rows as the store keeps them, without those of totals."""
        names = {"table": quoted(table), "columns": list(map(quoted, columns))}
        kind, *said = self._ask(chain([json.dumps(names).encode()], blocks, [b""]), _COPY_SECONDS)
        if kind != "done":
            raise QuestionError(said[0]) if said else self._error(kind, said, _COPY_SECONDS)

    def select(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        seconds: float = MAX_SECONDS,
        most: int = MAX_ROWS,
        largest: int = _LARGEST_RESULT,
    ) -> QueryResult:
        """Return at most so many rows, with about `largest` characters in all.

        Raise QuestionError for anything but one SELECT, for one that is wrong, and for one that takes too much time or
        memory; EndedError if the copy is gone.
        """
        request = {"statement": statement, "parameters": list(parameters), "seconds": seconds}
        kind, *said = self._ask([json.dumps(request | {"most": most, "largest": largest}).encode()], seconds)
        if kind != "rows":
            raise self._error(kind, said, seconds)
        columns, rows, is_complete = said
        return QueryResult(tuple(columns), list(map(tuple, rows)), is_complete)

    def _error(self, kind: str, said: Sequence[str], seconds: float) -> QuestionError:
        match kind:
            case "no select":
                return QuestionError("Only one SELECT is run here.")
            case "forbidden":
                return QuestionError("Only one SELECT on the tables that `local-rag tables` lists is allowed.")
            case "time":
                return QuestionError(_took_long(seconds))
            case "memory":
                return EndedError(_TOOK_MEMORY)
        return QuestionError(f"The query is wrong: {said[0]}.")

    def _ask(self, frames: Iterable[bytes], seconds: float) -> list[Any]:
        """Return what the process answers to a request; end it if it does not so long after the last frame."""
        process = self._process
        if process is None:
            process = self._process = _start()
            weakref.finalize(self, _end, process)
        try:
            with contextlib.suppress(BrokenPipeError):  # a dead process is noticed by its missing answer
                for frame in frames:
                    _write(process, HEADER.pack(len(frame)) + frame)
            answer = _read(process, time.monotonic() + seconds + _GRACE)
        except BaseException as error:
            self.close()
            if isinstance(error, TimeoutError) or process.returncode == -signal.SIGXCPU:
                raise EndedError(_took_long(seconds)) from None
            if isinstance(error, EOFError):
                raise EndedError(_TOOK_MEMORY) from None
            raise
        if answer[0] == "memory":
            self.close()
        return answer


def _took_long(seconds: float) -> str:
    return f"The query took longer than {seconds:g} seconds and was ended."


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(query_process.__file__))],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with process:  # closes its pipes and waits for it
        pass


def _write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    waiting = memoryview(data)
    while waiting:
        waiting = waiting[os.write(process.stdin.fileno(), waiting) :]


def _read(process: subprocess.Popen[bytes], last: float) -> list[Any]:
    """Return an answer; raise TimeoutError if it is not there in time, EOFError if the process ended."""
    assert process.stdout is not None
    opened, length, data = process.stdout.fileno(), HEADER.size, bytearray()
    waiting = select.poll()
    waiting.register(opened, select.POLLIN)
    while len(data) < length:
        if not waiting.poll(max(0.0, last - time.monotonic()) * 1000):
            raise TimeoutError
        piece = os.read(opened, max(_PIECE, min(length - len(data), _MOST_AT_ONCE)))
        if not piece:
            raise EOFError
        data += piece
        if length == HEADER.size <= len(data):
            length += HEADER.unpack_from(data)[0]
            if length > _LARGEST_ANSWER:
                raise EOFError
    answer: list[Any] = json.loads(data[HEADER.size :], object_hook=_bytes)
    return answer


def _bytes(plain: dict[str, str]) -> bytes:
    return bytes.fromhex(plain["hex"])


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever it contains."""
    return '"' + name.replace("\0", " ").replace('"', '""') + '"'
