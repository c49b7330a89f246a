"""Convert messages of Outlook (.msg): an OLE file with the properties of MAPI, one stream each."""

import io
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Attachment, Converted
from local_rag.reading.converters.html_pages import convert_whole_page
from local_rag.reading.converters.mail import Message
from local_rag.reading.converters.rich_text import convert_rtf, expand_rtf
from local_rag.reading.decode import code_page, declared_in_html, decode

_SUBJECT, _SENDER, _SENDER_ADDRESS, _TO, _CC = "0037", "0C1A", "5D01", "0E04", "0E03"
_ADDRESS_WITHOUT_SMTP = "0C1F"
_BODY, _HTML, _RTF = "1000", "1013", "1009"
_FILE_NAME, _SHORT_NAME, _DISPLAY_NAME, _DATA = "3707", "3704", "3001", "3701"
_SENT, _RECEIVED, _CODE_PAGE, _PAGE_OF_HTML = 0x0039, 0x0E06, 0x3FFD, 0x3FDE
_DEEPEST = 10
_MOST_ATTACHMENTS = 2000
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


def convert_msg(data: bytes) -> Converted:
    """Convert a message: who wrote when, its text, and messages within it; its attachments are read as files."""
    import olefile

    if not olefile.isOleFile(data):
        raise ReadError("not a message of Outlook")
    with olefile.OleFileIO(io.BytesIO(data)) as file:
        reader = _Reader(file)
        return reader.converted(reader.read([]))


class _Reader(Message):
    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        self._entries = {tuple(entry) for entry in file.listdir(streams=True, storages=True)}

    def read(self, folder: list[str]) -> dict[str, str]:
        """Read the message in a folder of the file; return its head."""
        numbers = self._numbers(folder)
        pages = [numbers.get(name, 0) & 0xFFFFFFFF for name in (_CODE_PAGE, _PAGE_OF_HTML)]
        charset = next(filter(None, map(code_page, pages)), None)
        text = {name: self._text(folder, name, charset) for name in (_SUBJECT, _SENDER, _TO, _CC, _BODY)}
        address = self._text(folder, _SENDER_ADDRESS, charset) or self._text(folder, _ADDRESS_WITHOUT_SMTP, charset)
        sender = f"{text[_SENDER]} <{address}>" if "@" in address and address != text[_SENDER] else text[_SENDER]
        head = {
            "From": sender,
            "To": text[_TO],
            "Cc": text[_CC],
            "Date": _time(numbers.get(_SENT) or numbers.get(_RECEIVED) or 0),
            "Subject": text[_SUBJECT],
        }
        head = {name: line for name, value in head.items() if (line := " ".join(value.split()))}
        self.sections.add("\n".join(f"{name}: {value}" for name, value in head.items()))
        self._body(folder, text[_BODY], charset, code_page(pages[1], wide=True))
        at = len(folder)
        names = {entry[at] for entry in self._entries if len(entry) > at and list(entry[:at]) == folder}
        attached = sorted(name for name in names if name.startswith("__attach_version1.0_"))
        for name in attached[:_MOST_ATTACHMENTS]:
            self._attach([*folder, name], charset)
        self.left_out["attachment* beyond the limit"] += len(attached[_MOST_ATTACHMENTS:])
        return head

    def _body(self, folder: list[str], plain: str, charset: str | None, of_html: str | None) -> None:
        """Add the plain text, else the HTML, else the rich text."""
        if plain.strip():
            self.sections.add(plain)
        elif html := self._stream(folder, _HTML, "0102"):
            self._page(html, of_html, declared_in_html(html), charset)
        elif markup := self._text(folder, _HTML, charset):
            self._page(markup.encode(), "utf-8")
        elif rtf := self._stream(folder, _RTF, "0102"):
            rich = convert_rtf(expand_rtf(rtf))
            self.sections.add(rich.text, rich.kind, rich.headings, rich.tables)

    def _page(self, html: bytes, *charsets: str | None) -> None:
        page = convert_whole_page(html, *charsets)
        self.notes += page.notes
        self.sections.add(page.text, "markdown")

    def _attach(self, folder: list[str], charset: str | None) -> None:
        names = (self._text(folder, one, charset) for one in (_FILE_NAME, _DISPLAY_NAME, _SHORT_NAME))
        name = next(filter(None, names), "attachment")
        inner = [*folder, f"__substg1.0_{_DATA}000D"]
        if tuple(inner) in self._entries:
            if len(inner) > 2 * _DEEPEST:
                self.left_out["message* beyond the limit"] += 1
                return
            self.sections.heading(f"Forwarded message: {' '.join(name.split())}")
            self.read(inner)
        else:
            self.attachments.append(Attachment(name, self._stream(folder, _DATA, "0102")))

    def _stream(self, folder: list[str], name: str, kind: str) -> bytes:
        path = [*folder, f"__substg1.0_{name}{kind}"]
        if tuple(path) not in self._entries or self._file.get_type(path) != _STREAM:
            return b""
        return bytes(self._file.openstream(path).read())

    def _text(self, folder: list[str], name: str, charset: str | None) -> str:
        """Return a text property, which is stored as UTF-16 or in the message's code page."""
        if wide := self._stream(folder, name, "001F"):
            return wide.decode("utf-16-le", errors="replace").rstrip("\x00")
        narrow = self._stream(folder, name, "001E").rstrip(b"\x00")
        return decode(narrow, charset) if narrow else ""

    def _numbers(self, folder: list[str]) -> dict[int, int]:
        """Return the properties of fixed size by their number."""
        path = [*folder, "__properties_version1.0"]
        content = self._file.openstream(path).read() if tuple(path) in self._entries else b""
        header = 24 if folder else 32
        entries = (content[start : start + 16] for start in range(header, len(content) - 15, 16))
        return {number: value for _, number, _, value in (struct.unpack("<HHIQ", entry) for entry in entries)}


_STREAM = 2  # olefile.STGTY_STREAM


def _time(ticks: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=ticks // 10)).strftime("%Y-%m-%d %H:%M UTC") if ticks else ""
    except OverflowError:
        return ""
