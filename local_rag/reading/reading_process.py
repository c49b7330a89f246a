"""The process that reads files: it reads one path per line of its input and answers each with one line of JSON.

An answer holds the document and its chunks, or the reason why the file cannot be read. See `isolate.py`.
"""

import contextlib
import ctypes
import hashlib
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from local_rag import offline
from local_rag.errors import ReadError
from local_rag.reading.isolate import NEXT_PAGE, limit
from local_rag.reading.ocr import PageReader, engine
from local_rag.reading.read import parse, read_file
from local_rag.reading.relations import relations_of
from local_rag.reading.split import Splitting
from local_rag.serialization import from_plain, to_line

_SET_PARENT_DEATH_SIGNAL = 1  # prctl
_MOST_HEADINGS = 20_000  # of a file that is only read


def _answer(path: Path, splitting: Splitting | None, on_page: Callable[[], None]) -> dict[str, Any]:
    """Read a file and split it, unless only its headings are wanted; turn any exception of its parser into a reason."""
    try:
        data, stamp = read_file(path)
        sha256 = hashlib.sha256(data).hexdigest()
        document = parse(
            path, data, recognize=_recognizer(splitting.ocr_folder if splitting else None, sha256, on_page)
        )
        chunks = splitting.split(document) if splitting else ()
        relations = relations_of(document) if splitting else ()
    except ReadError as error:
        return {"reason": str(error), "lasting": error.lasting, "waiting": error.waiting}
    except MemoryError:
        return {"reason": "takes too much memory to read"}
    except RecursionError:
        return {"reason": "is nested too deeply"}
    except Exception as error:  # noqa: BLE001  a single file must not end the run
        return {"reason": f"cannot be read ({type(error).__name__}: {error})"}
    headings = () if splitting else document.headings[:_MOST_HEADINGS]
    return {
        "sha256": sha256,
        "stamp": stamp,
        "document": replace(document, headings=headings, tables=(), grids=()),
        "chunks": [
            (
                one.start,
                one.end,
                one.headings,
                one.page,
                one.line,
                one.end_line,
                one.table_header,
                one.ocr,
                one.page_label,
            )
            for one in chunks
        ],
        "relations": relations,
    }


def _recognizer(folder: Path | None, sha256: str, on_page: Callable[[], None]) -> PageReader | None:
    """Return what reads the scanned pages of a file, if OCR is wanted and installed here.

    On another machine of a cluster the folder does not exist, and no pages are kept.
    """
    if folder is None or not engine():
        return None
    return PageReader(folder / sha256 if folder.parent.is_dir() else None, on_page)


def _end_with_parent(parent: int) -> None:
    """Make the system end this process when its parent ends for any reason."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent has already ended
        sys.exit(1)


def _limit_processor_time(seconds: float) -> None:
    """Make the system end this process after this much more CPU time, even if its parent is gone."""
    limit(resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds), for_good=False)


def _address_space() -> int:
    """Return the address space of this process in bytes, which Linux limits; 0 on other systems."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return 0


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and closes the input
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep output of parsers out of the answers
    memory, seconds, fields = int(sys.argv[1]), float(sys.argv[2]), json.loads(sys.argv[3])
    splitting: Splitting | None = from_plain(Splitting, fields) if fields else None
    if sys.platform == "linux":
        _end_with_parent(int(sys.argv[4]))
        memory = limit(resource.RLIMIT_AS, memory)
    limit(resource.RLIMIT_CORE, 0)
    offline.close()

    def on_page() -> None:
        _limit_processor_time(seconds)
        answers.write(NEXT_PAGE)
        answers.flush()

    for line in sys.stdin.buffer:
        _limit_processor_time(seconds)
        fields = _answer(Path(json.loads(line)), splitting, on_page)
        fields["full"] = _address_space() > memory / 2
        answers.write(to_line(fields))
        answers.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        _main()
