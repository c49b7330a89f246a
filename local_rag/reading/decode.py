"""Decode a file's bytes into text."""

import codecs
import re

from local_rag.errors import ReadError

# UTF-32 comes first, because its little-endian mark begins with UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Legacy encodings that documents still use. Among all its encodings, charset-normalizer would mistake Western European
# text for Central European or old Macintosh text.
_LEGACY = ["cp1252", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp932", "euc_jp", "gb18030", "big5", "cp949"]
_SAMPLE = 8 * 1024
_DETECTION_SAMPLE = 1024 * 1024
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")


def decode(data: bytes) -> str:
    """Decode text of unknown encoding, with line feeds as its only newlines; raise ReadError for binary data."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    if encoding is None:
        if b"\x00" in data[:_SAMPLE]:
            raise ReadError("binary file, not a document")
        encoding = _detect(data)
    return clean(data.decode(encoding, errors="replace"))


def clean(text: str) -> str:
    """Replace characters that are invalid in text (NUL, lone surrogates) and make every newline a line feed."""
    return _NOT_TEXT.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _detect(data: bytes) -> str:
    """Return the encoding of text without a byte order mark."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    # UTF-8 with a few damaged bytes is still UTF-8.
    text = data.decode("utf-8", errors="replace")
    damaged = text.count("\ufffd")
    if 10 * damaged < sum(character > "\x7f" for character in text) - damaged:
        return "utf-8"

    import charset_normalizer

    # A sample may end inside a character of up to four bytes.
    ends = range(_DETECTION_SAMPLE, _DETECTION_SAMPLE - 4, -1) if len(data) > _DETECTION_SAMPLE else [len(data)]
    matches = [charset_normalizer.from_bytes(data[:end], cp_isolation=_LEGACY) for end in ends]
    best = min((match for found in matches for match in found), default=None)
    if best is None:
        raise ReadError("neither UTF-8 nor any other known encoding; save it as UTF-8")
    return best.encoding
