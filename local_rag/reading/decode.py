"""Decode bytes into text: the one decoder of files, mail and web pages.

The encoding is that of a byte order mark, else the declared one, else UTF-8 if the bytes are valid, else a guess.
"""

import codecs
import re
import string
import unicodedata
from collections.abc import Iterator, Sequence

from local_rag.errors import ReadError
from local_rag.reading.formats import BINARY

# UTF-32 comes first, because its little-endian mark begins with UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Programs declare the standard but write the vendor's superset of it, so browsers read these names so.
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
}
_NAMES = {
    "x-sjis": "cp932",
    "ks_c_5601-1987": "cp949",
    "x-gbk": "gb18030",
    "x-mac-roman": "mac_roman",
    "windows-874": "cp874",
}
# Code pages of Windows that Python knows by another name; Hebrew and Thai of Macintosh have the letters of Windows.
_CODE_PAGES = {
    708: "iso8859-6", 1200: "utf-16-le", 1201: "utf-16-be", 12000: "utf-32-le", 12001: "utf-32-be", 20127: "ascii",
    10000: "mac_roman", 10001: "cp932", 10002: "cp950", 10003: "cp949", 10004: "mac_arabic", 10005: "cp1255",
    10006: "mac_greek", 10007: "mac_cyrillic", 10008: "gb18030", 10010: "mac_romanian", 10017: "mac_cyrillic",
    10021: "cp874", 10029: "mac_latin2", 10079: "mac_iceland", 10081: "mac_turkish", 10082: "mac_croatian",
    20866: "koi8-r", 21866: "koi8-u", 20932: "euc_jp", 20936: "gb18030", 20949: "cp949", 38598: "iso8859-8",
    50220: "iso2022_jp", 50221: "iso2022_jp_ext", 50222: "iso2022_jp_ext", 50225: "iso2022_kr",
    51932: "euc_jp", 51936: "gb18030", 51949: "cp949", 52936: "hz", 54936: "gb18030",
    **{28590 + part: f"iso8859-{part}" for part in range(1, 17)},
}  # fmt: skip
# Python's codecs that are no encodings of documents; some take quadratic time.
_NO_ENCODINGS = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf_7", "undefined"}
# Bytes of UTF-8 that other text contains by chance: one character in Western text, more in any other. If so many
# are valid, the declaration is wrong.
_CHANCE = {"cp1252": 1, "latin-1": 1}
_MOST_BY_CHANCE = 8
_SAMPLE = 8 * 1024
_DETECTION_SAMPLE = 256 * 1024
_LEAST_CONFIDENCE = 0.065  # of a guess: noise and single words are below, a sentence in any of 22 languages is above
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROLS = 0.2  # of the characters of a text, some of which separate records with them
_MOST_ZEROS = 0.002  # of the bytes of a text, where a program has damaged it; binary data have more
_LETTERS_OF_DAMAGED = 20  # in a Western text, for each byte beyond ASCII
_WORD = re.compile(r"[^\W\d_]+")
# What ISO 8859-15 alone has: a sign of currency, or a letter behind another one.
_LATIN_9 = re.compile(rb"\xa4|[A-Za-z\xc0-\xff][\xa6\xa8\xb4\xb8\xbc-\xbe]")
_MORE_LIKELY = 2.0  # times as likely as Windows-1252 is another encoding of Western text that is taken instead
_LETTERS, _BEYOND_ASCII = string.ascii_letters.encode(), bytes(range(128, 256))
_LEAST_TEXT = 0.9  # of the characters with a byte of zero, so that data without a mark are UTF-16
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
_DECLARED_IN_HTML = re.compile(rb"""<meta[^>]{0,300}?\bcharset\s*+=\s*+["']?\s*+([\w.:-]{1,40})""", re.IGNORECASE)
_DECLARED_IN_XML = re.compile(rb"""\s*<\?xml[^>]{0,200}?\bencoding\s*=\s*["']([\w.:-]{1,40})["']""", re.IGNORECASE)
_DECLARED_IN_CODE = re.compile(rb"coding[:=]\s*([\w.-]{1,40})|@charset \"([\w.-]{1,40})\"")
_DECLARED_IN_LATEX = re.compile(rb"\\usepackage\[(\w{1,40})\]\{inputenc\}")
_LATEX = {"ansinew": "cp1252", "applemac": "mac_roman", "latin9": "iso8859-15"}
_PROLOGUE = 4096  # bytes in which a declaration is looked for


def decode(data: bytes, *declared: str | None) -> str:
    """Decode text, with line feeds as its only newlines; raise ReadError for binary data.

    Of the `declared` encodings the first one that fits is taken.
    """
    return decode_with_notes(data, *declared)[0]


def decode_with_notes(data: bytes, *declared: str | None) -> tuple[str, tuple[str, ...]]:
    """Decode text as `decode` does; the note says which encoding was guessed."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    notes: tuple[str, ...] = ()
    encoding = encoding or next(filter(None, (_fitting(data, name) for name in declared)), None)
    if encoding is None and not _is_utf8(data):
        encoding = _guess(data)
        notes = (f"its encoding was guessed as {encoding}; save it as UTF-8 if letters are wrong",)
    text = clean(data.decode(encoding or "utf-8", errors="replace"))
    if len(_CONTROL.findall(text, 0, _SAMPLE)) > _MOST_CONTROLS * min(len(text), _SAMPLE):
        raise ReadError(BINARY)
    return text, notes


_OF_TERMINAL = re.compile(
    r"\x9b[0-9;?]{1,40}[A-Za-z]"
    r"|\x1b(?:\[[0-?]{0,40}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|[()*+][0-9A-Z]|[78=>@-Z\\^_c])"
)
_PROGRESS = re.compile(r"(?<![^\r\n])[^\r\n%]{0,200}\d ?%[^\r\n]{0,300}\r(?=[^\r\n%]{0,200}\d ?%)")
_OVERSTRUCK = re.compile(r"[^\n\x08]\x08")  # by the bold letters of a line printer
_EMBEDDED = re.compile(  # a file within the text, mostly an image
    r"(?<=data:)([\w.+-]{1,40}/[\w.+-]{1,80}(?:;[\w-]{1,20}=[\w.+-]{1,40}){0,3};base64,)[A-Za-z0-9+/=_-]{100,}"
)


def clean(text: str) -> str:
    """Make every newline a line feed; leave out what is no text: colours of a terminal, embedded files, NUL.

    Of a line that a program has written over again to show its progress, the last state stays.
    """
    text = text.replace("\r\n", "\n")
    text = _PROGRESS.sub("", text) if "\r" in text and "\n" in text else text
    text = text.replace("\r", "\n")
    text = _OF_TERMINAL.sub("", text) if "\x1b" in text or "\x9b" in text else text
    text = _OVERSTRUCK.sub("", text) if "\x08" in text else text
    return _NOT_TEXT.sub("\ufffd", _EMBEDDED.sub(r"\1", text) if ";base64," in text else text)


def code_page(number: int, *, wide: bool = False) -> str | None:
    """Return the encoding of a code page of Windows, None if Python has none.

    UTF-16 and UTF-32 are none unless the text may be `wide`: programs name them beside text in single bytes.
    """
    try:
        encoding = codecs.lookup(_CODE_PAGES.get(number, f"cp{number:03}")).name
    except LookupError:
        return None
    return _SUPERSETS.get(encoding, encoding) if wide or not encoding.startswith(("utf-16", "utf-32")) else None


def declared_in_html(data: bytes) -> str | None:
    """Return the encoding that a web page declares in its beginning."""
    found = _DECLARED_IN_XML.match(data[:_PROLOGUE]) or _DECLARED_IN_HTML.search(data[:_PROLOGUE])
    return found[1].decode("ascii", errors="replace") if found else None


def declared_in_text(data: bytes) -> str | None:
    """Return the encoding that source code, XML, CSS or LaTeX declares in its beginning."""
    start = data[:_PROLOGUE]
    if found := _DECLARED_IN_XML.match(start) or _DECLARED_IN_LATEX.search(start):
        name = found[1].decode("ascii", errors="replace")
        return _LATEX.get(name, name)
    found = _DECLARED_IN_CODE.search(b"\n".join(start.split(b"\n", 2)[:2]))
    return (found[1] or found[2]).decode("ascii", errors="replace") if found else None


def _fitting(data: bytes, declared: str | None) -> str | None:
    """Return the Python name of a declared encoding, None if it is unknown or the data are in another one."""
    name = (declared or "").strip().lower()
    try:
        codec = codecs.lookup(_NAMES.get(name, name)).name
        b"x".decode(codec, errors="ignore")  # LookupError for a codec of bytes
    except (LookupError, ValueError):
        return None
    encoding = _SUPERSETS.get(codec, codec)
    if codec.replace("-", "_") in _NO_ENCODINGS:
        return None
    is_utf8 = encoding != "utf-8" and _is_strict(data, "utf-8")
    if is_utf8 and encoding.startswith(("utf-16", "utf-32")) and not _CONTROLS.search(data[:_SAMPLE]):
        return None
    if is_utf8 and not data.isascii() and _beyond_ascii(data.decode()) >= _CHANCE.get(encoding, _MOST_BY_CHANCE):
        return None
    return encoding if _is_strict(data, encoding) or _is_damaged(data, encoding) else None


def _is_utf8(data: bytes) -> bool:
    """Return whether data are UTF-8, perhaps with a few damaged bytes."""
    if b"\x1b$" in data and data.isascii():  # ISO-2022-JP consists of ASCII bytes
        return not _is_strict(data, "iso2022_jp")
    if _has_zeros(data):
        return False
    return _is_strict(data, "utf-8") or _is_damaged(data, "utf-8")


def _is_strict(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except (UnicodeError, ValueError):
        return False
    return True


def _is_damaged(data: bytes, encoding: str) -> bool:
    text = data.decode(encoding, errors="replace")
    damaged = text.count("\ufffd")
    return 10 * damaged < _beyond_ascii(text) - damaged


def _beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", errors="ignore"))


def _guess(data: bytes) -> str:
    """Guess the encoding of text that is not UTF-8; raise ReadError for binary data."""
    import chardet
    from chardet.enums import EncodingEra

    binary = _has_zeros(data)
    sample = data[:_DETECTION_SAMPLE] if binary else _telling_lines(data)
    eras = EncodingEra.ALL & ~EncodingEra.MAINFRAME
    found = chardet.detect(sample, encoding_era=eras, compat_names=False, max_bytes=_DETECTION_SAMPLE)
    encoding = str(found["encoding"] or "")
    if binary:
        wide = encoding.startswith(("utf-16", "utf-32"))
        if not (
            wide
            and _is_strict(data[: len(data) // 4 * 4], encoding)
            and _is_wide_text(sample.decode(encoding, "ignore"))
        ):
            raise ReadError(BINARY)
    elif not encoding or encoding == "utf-8" or found["confidence"] < _LEAST_CONFIDENCE:
        # A few letters in a Western text tell nothing, and damaged bytes may be none in any encoding.
        is_western = _is_strict(data, "cp1252") and _count(sample, _LETTERS) >= _count(sample, _BEYOND_ASCII)
        if not is_western and _count(data, _LETTERS) < _LETTERS_OF_DAMAGED * _count(data, _BEYOND_ASCII):
            raise ReadError("neither UTF-8 nor any other known encoding; save it as UTF-8")
        return "cp1252"
    elif not _fits_script(sample, encoding):
        others = chardet.detect_all(
            sample, encoding_era=eras, compat_names=False, max_bytes=_DETECTION_SAMPLE, ignore_threshold=True
        )
        return _western(data, sample, [(str(one["encoding"]), one["confidence"]) for one in others])
    is_superset = encoding == "iso8859-1" or (encoding == "iso8859-15" and not _LATIN_9.search(data))
    return "cp1252" if is_superset and _is_strict(data, "cp1252") else encoding


def _western(data: bytes, sample: bytes, guesses: Sequence[tuple[str, float]]) -> str:
    """Choose the first guess whose letters fit together, Windows-1252 if it is nearly as likely."""
    fitting = [one for one in guesses if _is_strict(data, one[0]) and _fits_script(sample, one[0])]
    usual = next((confidence for name, confidence in fitting if name == "cp1252"), 0.0)
    return next((name for name, confidence in fitting if confidence > _MORE_LIKELY * usual), "cp1252")


def _fits_script(data: bytes, encoding: str) -> bool:
    """Return whether letters beyond the Latin ones form words of their own.

    A guess takes the letters of a Western text for those of another script: within Latin words, or singly.
    """
    text = data.decode(encoding, errors="replace")
    if len(text) < len(data) or _count(data, _LETTERS) < _count(data, _BEYOND_ASCII):
        return True
    words = [word for word in _WORD.findall(text) if any(map(_is_foreign, word))]
    return 2 * sum(len(word) > 1 and all(map(_is_foreign, word)) for word in words) >= len(words)


def _is_foreign(letter: str) -> bool:
    return letter > "\u024f" and not unicodedata.name(letter, "LATIN").startswith("LATIN")


def _has_zeros(data: bytes) -> bool:
    """Return whether more bytes are zero than in a text in which some are damaged."""
    return data.count(b"\x00", 0, _SAMPLE) > _MOST_ZEROS * min(len(data), _SAMPLE)


def _count(data: bytes, which: bytes) -> int:
    return len(data) - len(data.translate(None, which))


def _is_wide_text(text: str) -> bool:
    """Return whether most characters with a byte of zero are letters, digits, signs or white space, and not numbers."""
    zero = [character for character in text[:_SAMPLE] if character < "\u0100" or ord(character) % 256 == 0]
    return sum(one < "\u0100" and (one.isprintable() or one.isspace()) for one in zero) > _LEAST_TEXT * len(zero)


def _telling_lines(data: bytes) -> bytes:
    """Return the lines that are not ASCII, up to the size of a sample."""

    def lines() -> Iterator[bytes]:
        room = _DETECTION_SAMPLE
        for line in data.split(b"\n"):
            if room > 0 and (not line.isascii() or b"\x1b" in line):
                first = re.search(rb"[\x80-\xff\x1b]", line)
                part = line[max(0, (first.start() if first else 0) - _SAMPLE) :][:room]
                room -= len(part)
                yield part

    return b"\n".join(lines())
