"""Read files in another process, so no document can crash or hang local-rag or fill its memory.

The parsers are large and partly native code. `reading_process.py` is that process.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local_rag import offline
from local_rag.document_records import Chunk, Document, Relation, Skipped
from local_rag.errors import ReadError
from local_rag.files import UNKNOWN_STAMP, FileStamp
from local_rag.reading.split import Splitting
from local_rag.serialization import from_plain, to_line

MAX_SECONDS = 180.0
MAX_MEMORY = 4 * 1024**3
MAX_STILL_SECONDS = 60.0
_PATIENCE = 4
_LOOK_SECONDS = 0.5
NEXT_PAGE = b"\n"  # instead of an answer
_VARIABLES = {"PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TZ", "VIRTUAL_ENV"}


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read: the SHA-256 of its bytes, document, chunks, the stamp of what was read, and its tables.

    The document has no tables here, and headings only if it was not split, because a text may have millions. Each chunk
    has the headings above it and the header of its table.
    """

    sha256: str
    document: Document
    chunks: tuple[Chunk, ...]
    stamp: FileStamp = UNKNOWN_STAMP
    relations: tuple[Relation, ...] = ()


def skipped(path: Path, error: ReadError | OSError) -> Skipped:
    """Return the record of a file that could not be read because of an error."""
    if isinstance(error, ReadError):
        return Skipped(path, str(error), lasting=error.lasting, waiting=error.waiting)
    return Skipped(path, str(error))


class IsolatedReader:
    """Read and split files one after another in another process, which is restarted if a file ended it.

    Without `splitting`, files are only read: they have no chunks, and their first headings instead.
    A file may use `seconds` of CPU time and `memory` bytes (on Linux only). On a busy machine or a slow disk, it may
    take `_PATIENCE` times as long by the clock, but on Linux it may sleep only for `still_seconds`.
    """

    def __init__(
        self,
        splitting: Splitting | None,
        *,
        seconds: float = MAX_SECONDS,
        memory: int = MAX_MEMORY,
        still_seconds: float = MAX_STILL_SECONDS,
    ) -> None:
        self._splitting, self._seconds = splitting, seconds
        self._memory, self._still_seconds = memory, still_seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "IsolatedReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def pid(self) -> int:
        """Return the id of the other process, or 0 if it is not running."""
        return self._process.pid if self._process else 0

    def read(self, path: Path) -> ReadFile:
        """Read and split a file; raise ReadError as `read.read` does, or if reading crashes or exceeds its limits."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with _Watch(process, self._seconds * _PATIENCE, self._still_seconds) as watch:
                with contextlib.suppress(BrokenPipeError):  # a dead process is detected by its missing answer
                    process.stdin.write(json.dumps(os.fspath(path)).encode() + b"\n")
                    process.stdin.flush()
                # The reader announces each page that it reads by OCR: each has the time of a file.
                while (answer := process.stdout.readline()) == NEXT_PAGE:
                    watch.restart()
        except BaseException:  # interrupted within an answer
            self._end()
            raise
        if not answer.endswith(b"\n"):
            status = self._end()
            if watch.is_still:
                raise ReadError(f"stops for {self._still_seconds:g} seconds while it is read")
            if watch.expired or status == -signal.SIGXCPU:
                raise ReadError(f"takes longer than {self._seconds:g} seconds to read")
            raise ReadError(f"crashes the reader ({signal.Signals(-status).name if status < 0 else f'exit {status}'})")
        fields = json.loads(answer)
        if fields.pop("full", False):  # parsers rarely free memory, which the next file would lack
            self._end()
        if "reason" in fields:
            raise ReadError(fields["reason"], lasting=fields.get("lasting", True), waiting=fields.get("waiting", 0))
        return _file_of(path, fields)

    def stop(self) -> None:
        """End the other process from any thread; the file that is being read counts as unreadable."""
        process = self._process
        if process is not None:
            process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        arguments = map(str, (self._memory, self._seconds, to_line(self._splitting).decode(), os.getpid()))
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "local_rag.reading.reading_process", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            env=bare_environment(),
        )

    def _end(self) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        if process.poll() is None:
            process.kill()
        with contextlib.suppress(BrokenPipeError), process:  # its exit writes what a dead process was not sent
            pass
        return process.returncode


class _Watch:
    """End a process that takes longer than `seconds`, or that sleeps without a pause for `still_seconds`.

    Looks are counted, not the clock, so that time in which this program itself was stopped does not count.
    """

    def __init__(self, process: subprocess.Popen[bytes], seconds: float, still_seconds: float) -> None:
        self._process = process
        self._most, self._most_still = seconds / _LOOK_SECONDS, still_seconds / _LOOK_SECONDS
        self._looks = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.expired = self.is_still = False

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def restart(self) -> None:
        """Give the process all of its time again."""
        self._looks = 0

    def _run(self) -> None:
        still, before = 0, 0
        while not self._done.wait(_LOOK_SECONDS):
            self._looks += 1
            sleeps, computed = _activity(self._process.pid)
            still = still + 1 if sleeps and computed == before else 0
            before = computed
            self.expired, self.is_still = self._looks >= self._most, still >= self._most_still
            if self.expired or self.is_still:
                self._process.kill()
                return


def _activity(pid: int) -> tuple[bool, int]:
    """Return whether a process sleeps or is stopped, which waiting for a disk is not, and what it has computed.

    On other systems than Linux it never sleeps.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False, 0
    return fields[0] in "STt", int(fields[11]) + int(fields[12])


def _file_of(path: Path, fields: dict[str, Any]) -> ReadFile:
    document = replace(from_plain(Document, fields["document"]), path=path)
    chunks = tuple(
        Chunk(position, start, end, document.text[start:end], tuple(headings), *place)
        for position, (start, end, headings, *place) in enumerate(fields["chunks"])
    )
    relations = from_plain(tuple[Relation, ...], fields["relations"])
    return ReadFile(fields["sha256"], document, chunks, FileStamp(*fields["stamp"]), relations)


def confine(seconds: int, memory: int) -> None:
    """Close the network to this process, which reads what a stranger may have made, and limit its time and memory."""
    offline.close()
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_CPU, seconds)
    if sys.platform == "linux":
        limit(resource.RLIMIT_AS, memory)


def limit(kind: int, most: int, *, for_good: bool = True) -> int:
    """Limit what this process may use, and return the limit, which is lower where the system allows no more.

    It can be raised again only if it is not `for_good`.
    """
    hard = resource.getrlimit(kind)[1]
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (allowed, allowed if for_good else hard))
    return allowed


def bare_environment() -> dict[str, str]:
    """Return the variables that a process that parses documents needs, without keys and tokens.

    On many cores, numpy's threads would use most of the allowed memory before the first file.
    """
    kept = {name for name in os.environ if name in _VARIABLES or name.startswith(("LC_", "PYTHON"))}
    return {name: os.environ[name] for name in kept} | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
