"""Mailboxes (.mbox): each message is a document of its own, as if the mailbox were a folder of files.

A message is named by the offset at which it begins, so that appending to a mailbox renames none: `all.mbox/1834.eml`.
Mailboxes may be larger than the memory, so they are read line by line.
"""

import hashlib
import io
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from local_rag.files import FileStamp, document_sha256, open_regular, read_stamped, stamp_of
from local_rag.reading.stores import MAILBOX_INDEX

_SEPARATOR = re.compile(rb"From \S*[ \t].{0,200}?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .{0,60}?\d\d:\d\d.{0,40}?\d{4}")
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_NAME = re.compile(r"(\d{1,18})\.eml")
_LINE = 64 * 1024  # bytes that are read at once, so that an endless line does not fill the memory
_MOST_HASHED = 1 << 30


def is_mailbox(name: str) -> bool:
    """Say whether a file is a mailbox by its name."""
    return name.lower().endswith(".mbox") or name == "mbox"


def mailbox_of(path: str | Path) -> str | None:
    """Return the mailbox that contains a message, None if the path is not that of a message.

    A mailbox of Thunderbird has no suffix, but an index beside it.
    """
    mailbox, _, name = str(path).rpartition("/")
    if not _NAME.fullmatch(name):
        return None
    is_one = is_mailbox(mailbox.rpartition("/")[2]) or Path(f"{mailbox}{MAILBOX_INDEX}").is_file()
    return mailbox if is_one else None


def messages(path: str | Path) -> Iterator[tuple[str, int]]:
    """Yield the path of each message of a mailbox with its size in bytes; raise OSError if it cannot be read."""
    with open_regular(path) as file:
        for start, end in _spans(file):
            yield f"{path}/{start}.eml", end - start


def split_mailbox(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a mailbox in memory."""
    for start, end in _spans(io.BytesIO(data)):
        yield _message(data[start:end])


def read_content(path: Path, most: int) -> tuple[bytes, FileStamp]:
    """Return the content of a file or of a message, cut after `most` bytes, and its stamp."""
    try:
        return read_stamped(path, most)
    except NotADirectoryError:
        if (mailbox := mailbox_of(path)) is None:
            raise
    looked_ns = time.time_ns()
    with open_regular(mailbox) as file:
        stamp = stamp_of(os.fstat(file.fileno()), looked_ns)
        file.seek(_offset(path))
        start, end = next(_spans(file, most), (0, 0))
        if start or not end:
            raise NotADirectoryError(20, "no message begins there", str(path))
        file.seek(_offset(path))
        return _message(file.read(end)), stamp._replace(size=end)


def content_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of a message as it is read."""
    try:
        return document_sha256(path)
    except NotADirectoryError:
        return hashlib.sha256(read_content(Path(path), _MOST_HASHED)[0]).hexdigest()


def _offset(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    assert found is not None
    return int(found[1])


def _spans(file: BinaryIO, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield start and end of each message from the current position on; one of more than `most` bytes is cut.

    A message begins with a line such as `From ada@x.org Mon Jan  1 10:00:00 2024`, the first one or below a blank one.
    """
    place, start, begins_line, after_blank = 0, -1, True, True
    for line in iter(lambda: file.readline(_LINE), b""):
        if begins_line and after_blank and line.startswith(b"From ") and _SEPARATOR.match(line):
            if start >= 0:
                yield start, place
            start = place
        after_blank = begins_line and not line.strip(b"\r\n")
        begins_line = line.endswith(b"\n")
        place += len(line)
        if most is not None and place - max(0, start) > most:
            break
    if start >= 0:
        yield start, place


def _message(data: bytes) -> bytes:
    """Return a message without the line that separates it, and with its lines unescaped."""
    return _ESCAPED.sub(rb"\1", data.partition(b"\n")[2])
