"""Why a file is not read, if nobody need look at it: it is no document, or there is nothing to read."""

EMPTY, NO_TEXT, NOT_REGULAR = "empty", "contains no text", "not a regular file"
BINARY = "binary file, not a document"
PRIVATE_KEY = "a private key, which is never read"
KEYS = "a file of keys or passwords, which is never read"
IMAGE = "image, not a document"
MEDIA = "audio or video, not a document"
ARCHIVE = "archive, not a document"
PROGRAM = "program, not a document"
FONT = "font, not a document"
DATA = "data file, not a document"
_EXPECTED = {
    EMPTY, NO_TEXT, NOT_REGULAR, BINARY, PRIVATE_KEY, KEYS, IMAGE, MEDIA, ARCHIVE, PROGRAM, FONT, DATA
}  # fmt: skip


def is_expected(reason: str) -> bool:
    """Return whether nothing is lost with a file that is not read for a reason."""
    return reason in _EXPECTED
