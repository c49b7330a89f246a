"""Recognise the folders in which programs keep mail and literature, and what in them is to be read.

A Maildir has the folders cur, new and tmp, and one message a file. A profile of Thunderbird has the folders Mail and
ImapMail, whose mailboxes have no suffix, each with an index beside it. Zotero has a database and the folder storage.
"""

import re
from collections.abc import Collection
from pathlib import Path

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


def is_message(path: Path) -> bool:
    """Return whether a file is a message of a Maildir, by its path."""
    return path.parent.name in {"cur", "new"} and _MESSAGE.fullmatch(path.name) is not None


def thunderbird_profiles(home: Path) -> list[Path]:
    """Return the profiles of Thunderbird that hold mail."""
    profiles = (profile for place in _THUNDERBIRD for profile in sorted((home / place).glob("*")))
    return [one for one in profiles if any((one / folder).is_dir() for folder in _PROFILE)]


def zotero_folders(home: Path) -> list[Path]:
    """Return the folders of Zotero that hold a library."""
    return [home / place for place in _ZOTERO_FOLDERS if (home / place / "zotero.sqlite").is_file()]
