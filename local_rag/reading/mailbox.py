"""Mailboxes (.mbox), and the folders in which programs keep mail and literature.

Each message of a mailbox is a document of its own, as if the mailbox were a folder of files. It is named by the offset
at which it begins, so that appending to a mailbox renames none: `all.mbox/1834.eml`. Mailboxes may be larger than the
memory, so they are read line by line.

A Maildir has the folders cur, new and tmp, and one message a file. A profile of Thunderbird has the folders Mail and
ImapMail, whose mailboxes have no suffix, each with an index beside it. Zotero has a database and the folder storage.
"""

import hashlib
import io
import os
import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import BinaryIO

from local_rag.document_records import Chunk, Document
from local_rag.files import FileStamp, document_sha256, open_regular, read_stamped, stamp_of

_MAILDIR, _PROFILE, _ZOTERO = {"cur", "new", "tmp"}, {"Mail", "ImapMail"}, {"zotero.sqlite", "storage"}
_MESSAGE = re.compile(r"\d{8,12}\.[^/]{1,240}")
MAILBOX_INDEX = ".msf"
# Where the programs keep what they have, below the home folder.
_THUNDERBIRD = (
    ".thunderbird",
    "snap/thunderbird/common/.thunderbird",
    ".var/app/org.mozilla.Thunderbird/.thunderbird",
    "Library/Thunderbird/Profiles",
)
_ZOTERO_FOLDERS = ("Zotero", "snap/zotero-snap/common/Zotero")


def names_to_read(names: Collection[str]) -> Collection[str]:
    """Return which names in a folder are to be read: all that are not hidden, unless it is one of a program."""
    present = set(names)
    if present >= _MAILDIR:  # of its folders within folders, such as .Sent, the names begin with a dot
        return [name for name in names if name in {"cur", "new"} or (name[:1] == "." and name[1:2].isalnum())]
    if "prefs.js" in present and present & _PROFILE:
        return [name for name in names if name in _PROFILE]
    if present >= _ZOTERO:
        return [name for name in names if name in _ZOTERO]
    return [name for name in names if not name.startswith(".")]


def is_mail_folder(names: Collection[str]) -> bool:
    """Return whether a folder is a Maildir."""
    return set(names) >= _MAILDIR


def is_message(path: PurePath) -> bool:
    """Return whether a file is a message of a Maildir, by its path."""
    return path.parent.name in {"cur", "new"} and _MESSAGE.fullmatch(path.name) is not None


def thunderbird_profiles(home: Path) -> list[Path]:
    """Return the profiles of Thunderbird that hold mail."""
    profiles = (profile for place in _THUNDERBIRD for profile in sorted((home / place).glob("*")))
    return [one for one in profiles if any((one / folder).is_dir() for folder in _PROFILE)]


def zotero_folders(home: Path) -> list[Path]:
    """Return the folders of Zotero that hold a library."""
    return [home / place for place in _ZOTERO_FOLDERS if (home / place / "zotero.sqlite").is_file()]


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


TRIMMED = "what it quotes of the mail that it answers is indexed with that mail only"
_ABOVE_QUOTED = re.compile(
    r"[-_]{2,20} ?(?:Original Message|Original-Nachricht|Urspr\u00fcngliche Nachricht|Message d'origine) ?[-_]{2,20}"
)
_HEAD = re.compile(r"\W{0,4}(?:From|Von|De):\W{0,4}\s\S")
_HEAD_GOES_ON = re.compile(r"\W{0,4}(?:Sent|Date|Gesendet|Datum|Envoy\u00e9|To|An|Subject|Betreff|Objet)\W{0,3}:")
_SENT = re.compile(r"\W{0,4}(?:Sent|Date|Gesendet|Datum|Envoy\u00e9)\W{0,3}:")
_SAYS_WHO = re.compile(r"(?:On|Am|Le|El|Il|Op|Den|Em)\b|.{0,200}(?:wrote|schrieb|\u00e9crit)")
_MOST_OF_HEAD = 6  # lines of the head of a quoted mail
_MOST_ABOVE = 3  # lines that say who wrote what is quoted
_LONGEST = 400  # characters of a line that is looked at


def find_history(text: str) -> tuple[int, int]:
    """Return the span of the quoted mail that ends a message, empty if there is none; a list of files may follow."""
    lines = text.split("\n")
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].startswith("Attachments: ")):
        end -= 1
    start = _below_separator(lines, end) or _quoted(lines, end)
    if not start:
        return 0, 0
    offset = sum(len(line) + 1 for line in lines[:start])
    return offset, offset + len("\n".join(lines[start:end]))


def _below_separator(lines: list[str], end: int) -> int:
    """Return the line with which a program separates the mail that is answered, 0 if there is none."""
    head = next((number for number, line in enumerate(lines[:end]) if not line.strip()), end)
    for number in range(head, end):
        line = lines[number][:_LONGEST].strip()
        if _ABOVE_QUOTED.fullmatch(line):
            return number
        if _HEAD.match(line) and sum(bool(_HEAD_GOES_ON.match(one)) for one in lines[number + 1 : number + 5]) > 1:
            return number
    return 0


def sender_of(head: str) -> str:
    """Return who wrote a quoted mail, and when, from the head above it; empty if a text is no such head."""
    lines = [line[:_LONGEST].strip().lstrip("> ") for line in head.split("\n", _MOST_OF_HEAD)[:_MOST_OF_HEAD]]
    if lines and _ABOVE_QUOTED.fullmatch(lines[0]):
        del lines[0]
    if not lines or not _HEAD.match(lines[0]) or sum(bool(_HEAD_GOES_ON.match(line)) for line in lines[1:]) < 2:  # noqa: PLR2004
        return ""
    sent = next((line for line in lines[1:] if _SENT.match(line)), "")
    return ", ".join(filter(None, (lines[0], sent)))


def _quoted(lines: list[str], end: int) -> int:
    """Return the first of the lines that quote up to the end, with those above that say whom, 0 if none does."""
    start = end
    while start and (lines[start - 1].startswith(">") or not lines[start - 1].strip()):
        start -= 1
    if not any(line.startswith(">") for line in lines[start:end]):
        return 0
    if start and lines[start - 1].rstrip().endswith(":"):
        for above in range(_MOST_ABOVE, 0, -1):
            said = lines[max(0, start - above) : start]
            if all(map(str.strip, said)) and _SAYS_WHO.match(said[0][:_LONGEST]):
                return start - len(said)
    return start


def without_history(document: Document, chunks: tuple[Chunk, ...]) -> tuple[Document, tuple[Chunk, ...]]:
    """Return a reply whose chunks lack the mail that it quotes, with a note; its text stays whole."""
    start, end = document.quoted
    kept = list[Chunk]()
    for chunk in chunks:
        first, last = chunk.start, chunk.end
        if start <= first and last <= end:
            continue
        if first < start < last:
            last = first + len(document.text[first:start].rstrip())
        elif start <= first < end:
            first = end + len(document.text[end:last]) - len(document.text[end:last].lstrip())
        if text := document.text[first:last]:
            kept.append(replace(chunk, position=len(kept), start=first, end=last, text=text))
    return replace(document, notes=(*document.notes, TRIMMED)), tuple(kept)


def folder_of(path: Path) -> Path:
    """Return the mailbox or the folder that a mail is in; a Maildir keeps one folder's mail in two."""
    return path.parent.parent if path.parent.name in {"cur", "new"} else path.parent


def quoted_elsewhere(document: Document, in_same_folder: Callable[[str, Path], bool]) -> bool:
    """Return whether a reply quotes a mail that is in the library, in the same folder: others may see another one."""
    answered = [one.target for one in document.links if one.kind == "answers"]
    return document.quoted[1] > 0 and any(in_same_folder(one, folder_of(document.path)) for one in answered[:1])
