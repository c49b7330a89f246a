"""Convert mail and web archives: all of their parts, in order."""

import base64
import email
import email.policy
import mimetypes
import quopri
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from email.message import Message as Part
from html import escape, unescape
from pathlib import PurePath
from typing import cast
from urllib.parse import urljoin

from local_rag.document_records import Link
from local_rag.errors import ReadError
from local_rag.reading.converters.calendars import add_entries
from local_rag.reading.converters.converted import Attachment, Converted, Sections, notes_of
from local_rag.reading.converters.html_pages import LONGEST_SHEET, convert_html, convert_whole_page
from local_rag.reading.converters.uuencoded import split_uuencoded
from local_rag.reading.converters.winmail import read_winmail
from local_rag.reading.decode import decode, decode_with_notes
from local_rag.reading.formats import DELETED
from local_rag.reading.mailbox import find_history, split_mailbox
from local_rag.reading.provenance import make_provenance

_MAX_HEADER, _LONG_HEADER = 20_000, 2000  # characters: headers are cut, and long ones are read without their grammar
_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_SAME = 0.6  # the share of the words of one text that another has if it says the same
_STUB_WORDS = 60
_STUB = re.compile(r"html|browser|mail (?:program|client|reader)|view|display|anzeigen|darstellen", re.IGNORECASE)
_MOST_PARTS, _DEEPEST, _MOST_FRAMES, _MOST_SHEETS = 2000, 20, 200, 100
_LINK = re.compile(rb"<link\s[^<>]{1,2000}>", re.IGNORECASE)
_SAID = re.compile(rb"\b(href|media)\s{0,9}=\s{0,9}(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_BROKEN_CODE = re.compile(r"(\w-) $")  # programs also break behind a hyphen, and keep the space
_WORD = re.compile(r"\w+")
_ID = re.compile(r"<([^<>\s@]{1,200}@[^<>\s@]{1,200})>")
_STATUS, _EXPUNGED = re.compile(r"[0-9a-fA-F]{4}"), 0x0008


class _ShortHeaders(email.policy.Compat32):
    """Cut headers, because the time to parse one grows with the square of its length."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return the name and value of a header."""
        name, value = super().header_source_parse(sourcelines)
        return name, value[: _MAX_HEADER + 1]


def parse_message(data: bytes) -> Part:
    """Parse a message with headers of limited length."""
    return email.message_from_bytes(data, policy=_ShortHeaders())


def convert_mail(data: bytes) -> Converted:
    """Convert a mail: who wrote when, all inline text, and forwarded messages; its attachments are read as files."""
    mail = parse_message(data)
    head = _headers(mail)
    if not head:
        raise ReadError("not a mail: no sender, recipient, date or subject")
    if _is_deleted(mail):
        raise ReadError(DELETED)
    reader = _Reader()
    reader.read(mail)
    converted = reader.converted(head)
    names, answers = _ids(mail, "Message-ID"), _ids(mail, "In-Reply-To") or _ids(mail, "References")[-1:]
    links = tuple(Link("answers", one) for one in answers[:1])
    return replace(converted, names=names[:1], links=links, quoted=find_history(converted.text) if links else (0, 0))


def _ids(mail: Part, header: str) -> tuple[str, ...]:
    """Return the numbers of mails in a header, such as `<17@host.example>`."""
    return tuple(_ID.findall(str(mail.get(header, ""))[:_MAX_HEADER]))


def _is_deleted(mail: Part) -> bool:
    """Return whether Thunderbird has deleted a message that its mailbox still holds."""
    status = str(mail.get("X-Mozilla-Status", "")).strip()
    return _STATUS.fullmatch(status) is not None and bool(int(status, 16) & _EXPUNGED)


def convert_mailbox(data: bytes) -> Converted:
    """Convert a mailbox that is attached to something, each message below its subject."""
    reader = _Reader()
    for message in map(parse_message, split_mailbox(data)):
        reader.sections.heading(_headers(message).get("Subject") or "Message")
        reader.read(message)
    return reader.converted({}, is_listing=False)


def _address(base: str, name: str) -> str:
    """Return an address that may be relative to another one; as it is written if it is none."""
    try:
        return urljoin(base, name.strip())
    except ValueError:
        return name.strip()


def _names(part: Part, base: str) -> Iterator[str]:
    """Yield the addresses by which a page names another file of its archive."""
    if location := _location(part):
        yield _address(base, location)
    if identity := str(part.get("Content-ID") or "").strip(" <>"):
        yield f"cid:{identity}"


def _location(part: Part) -> str:
    return str(part.get("Content-Location") or "").strip()


def _sheets(page: bytes, address: str, styles: Mapping[str, Part]) -> bytes:
    """Return the style sheets that a page of an archive links to, each for its media, as elements of the page."""
    found = list[bytes]()
    for link in _LINK.findall(page)[:_MOST_SHEETS]:
        written = _SAID.findall(link)
        said = {name.lower(): unescape((one or other).decode(errors="replace")) for name, one, other in written}
        if part := styles.get(_address(address, said.get(b"href", ""))):
            media = escape(said.get(b"media", "")).encode("ascii", "ignore")
            rules = _content(part)[:LONGEST_SHEET].decode("ascii", "ignore").replace("<", " ").encode()
            found.append(b'<style media="' + media + b'">' + rules + b"</style>")
    return b"".join(found)


def convert_web_archive(data: bytes) -> Converted:
    """Convert a page that a browser has saved with all of its files (.mht)."""
    archive = parse_message(data)
    pages = [part for part in archive.walk() if part.get_content_type() in {"text/html", "application/xhtml+xml"}]
    if not pages:
        raise ReadError("not a web archive: no page in it")
    base = str(archive.get("Snapshot-Content-Location") or "").strip() or _location(archive) or _location(pages[0])
    sheets = (part for part in archive.walk() if part.get_content_type() == "text/css")
    styles = {name: part for part in sheets for name in _names(part, base)}
    first, *frames = (
        convert_html(content + _sheets(content, _address(base, _location(page)), styles), _charset(page))
        for page, content in ((page, _content(page)) for page in pages[:_MOST_FRAMES])
    )
    sections = Sections()
    for page in (first, *frames):
        sections.add(page.text, page.kind)
    notes = tuple(note for page in (first, *frames) for note in page.notes)
    notes += notes_of({"frame* beyond the limit": len(pages[_MOST_FRAMES:])})
    address = pages[0].get("Content-Location") or archive.get("Snapshot-Content-Location")
    found = first.provenance
    made = make_provenance(
        url=found.url or str(address or ""),
        date=found.date or str(archive.get("Date", ""))[:_MAX_HEADER],
        author=found.author,
        tags=list(found.tags),
    )
    return sections.converted(first.title, notes=notes, provenance=made)


class Message:
    """The text, the attachments and the notes of a message in the making."""

    def __init__(self) -> None:
        self.sections = Sections()
        self.attachments: list[Attachment] = []
        self.notes: list[str] = []
        self.left_out = Counter[str]()

    def converted(self, head: Mapping[str, str], *, is_listing: bool = True) -> Converted:
        """Return the message with its head; its text ends with a list of its attachments."""
        if self.attachments and is_listing:
            self.sections.add(f"Attachments: {', '.join(attached.name for attached in self.attachments)}")
        return self.sections.converted(
            head.get("Subject"),
            notes=(*self.notes, *notes_of(self.left_out)),
            attachments=tuple(self.attachments),
            provenance=make_provenance(date=head.get("Date"), author=head.get("From")),
        )


class _Reader(Message):
    def __init__(self) -> None:
        super().__init__()
        self._parts = 0
        self._words = set[str]()  # of the texts so far

    def read(self, mail: Part, depth: int = 0) -> None:
        """Read a message: its head, its inline text and what is attached to it."""
        self.sections.add("\n".join(f"{name}: {value}" for name, value in _headers(mail).items()))
        cut = (name for name in _HEADERS if len(str(mail.get(name, ""))) > _MAX_HEADER)
        self.notes += [f"the header {name} is cut after {_MAX_HEADER:,} characters" for name in cut]
        self._part(mail, depth)

    def _part(self, part: Part, depth: int) -> None:
        self._parts += 1
        kind = part.get_content_type()
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            self.left_out["part* beyond the limit"] += 1
        elif kind in _MESSAGES:
            self._forwarded(part, depth)
        elif kind == "multipart/encrypted" or kind.endswith("/pkcs7-mime"):
            self.left_out["encrypted part*"] += 1
        elif part.get_content_maintype() == "multipart" and part.is_multipart():
            parts = cast(list[Part], part.get_payload())
            for one in self._chosen(parts) if kind == "multipart/alternative" else parts:
                self._part(one, depth + 1)
        elif part.is_multipart():  # a report on the delivery
            for one in cast(list[Part], part.get_payload()):
                self.sections.add("\n".join(f"{name}: {value}" for name, value in one.items()))
        elif kind in {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}:
            return  # says who wrote, as the head does
        elif part.get_content_maintype() in {"text", "multipart", "message"} and not _is_attached(part):
            self._text(part, kind)
        elif kind in _PACKED_BY_OUTLOOK or (part.get_filename() or "").lower() == "winmail.dat":
            self._unpack(part)
        else:
            self._attach(part, kind)

    def _unpack(self, part: Part) -> None:
        """Read the message and the files that Outlook has packed into winmail.dat."""
        try:
            packed = read_winmail(_content(part))
        except ReadError as error:
            self.notes.append(f"Outlook's winmail.dat cannot be read: {error}")
            return
        for text in packed.texts:  # mostly what the mail says beside it, too
            words = set(_WORD.findall(text))
            if len(words & self._words) < _SAME * len(words):
                self.sections.add(text)
        self.notes += packed.notes
        self.attachments += packed.attachments

    def _forwarded(self, part: Part, depth: int) -> None:
        messages = cast(list[Part], part.get_payload()) if part.is_multipart() else ()
        encoding = str(part.get("Content-Transfer-Encoding") or "").strip().lower()
        for message in (_decoded(one, encoding) for one in messages):
            subject = _headers(message).get("Subject", "")
            self.sections.heading(f"Forwarded message: {subject}" if subject else "Forwarded message")
            self.read(message, depth + 1)

    def _chosen(self, parts: list[Part]) -> Iterator[Part]:
        """Choose among alternatives the plain text, the richer one if that says more; keep calendar entries."""
        plain = next((one for one in parts if one.get_content_type() == "text/plain"), None)
        rich = next((one for one in reversed(parts) if one.get_content_type() in _RICH), None)
        if plain is not None and rich is not None:
            keeps_plain, keeps_rich = _compared(plain, rich)
            yield from [plain] * keeps_plain + [rich] * keeps_rich
        else:
            others = (one for one in parts if one.get_content_type() != "text/calendar")
            yield from filter(None, [rich or plain or next(others, None)])
        yield from (one for one in parts if one.get_content_type() == "text/calendar")

    def _text(self, part: Part, kind: str) -> None:
        content, charset = _content(part), _charset(part)
        try:
            if kind == "text/html":
                page = convert_whole_page(content, charset)
                self.notes += page.notes
                self._words.update(_WORD.findall(page.text))
                self.sections.add(page.text, "markdown")
            else:
                text, notes = decode_with_notes(content, charset)
                self.notes += notes
                self._words.update(_WORD.findall(text))
                if str(part.get_param("format") or "").lower() == "flowed":
                    text = _unflowed(text, deletes_spaces=str(part.get_param("delsp") or "").lower() == "yes")
                if kind == "text/calendar":
                    add_entries(self.sections, text)
                else:
                    text, files = split_uuencoded(text)
                    self.attachments += files
                    self.sections.add(text.strip())
        except ReadError as error:
            self.notes.append(f"a part ({kind}) cannot be read: {error}")

    def _attach(self, part: Part, kind: str) -> None:
        name = _header("Filename", part.get_filename() or "")
        if part.get_content_maintype() == "image" and part.get_content_disposition() != "attachment":
            self.left_out["image* in the text"] += 1
            return
        if not name:
            name = f"part{mimetypes.guess_extension(kind) or ''}"
        self.attachments.append(Attachment(PurePath(name.replace("\\", "/")).name or "part", _content(part)))


_MESSAGES = {"message/rfc822", "message/global"}
_PACKED_BY_OUTLOOK = {"application/ms-tnef", "application/vnd.ms-tnef"}
_RICH = {"text/html", "multipart/related", "multipart/mixed"}


def _compared(plain: Part, rich: Part) -> tuple[bool, bool]:
    """Say whether to keep a plain text and the page beside it: usually both say the same, and the plain text is kept.

    A stub says only that the page cannot be shown.
    """
    page = next((one for one in rich.walk() if one.get_content_type() == "text/html"), None)
    if page is None:
        return True, True
    try:
        text = decode_with_notes(_content(plain), _charset(plain))[0]
        words, of_page = (
            set(_WORD.findall(one)) for one in (text, convert_whole_page(_content(page), _charset(page)).text)
        )
    except ReadError:
        return True, True
    is_stub = len(words) < _STUB_WORDS and bool(_STUB.search(text)) and not words <= of_page
    if not is_stub and len(words) >= _SAME * len(of_page):
        return True, False
    return not is_stub and len(words & of_page) < _SAME * len(words), True


def _unflowed(text: str, *, deletes_spaces: bool) -> str:
    """Join the lines that a program has broken (format=flowed, RFC 3676): they end with a space."""
    paragraphs: list[str] = []
    depth, is_open = 0, False
    for line in text.split("\n"):
        quoted = len(line) - len(line.lstrip(">"))
        said = line[quoted:].removeprefix(" ") if quoted or line.startswith(" ") else line
        goes_on = is_open and quoted == depth and said != "-- "
        if goes_on:
            paragraphs[-1] += said
        else:
            paragraphs.append(f"{'>' * quoted} {said}" if quoted else said)
        is_open, depth = said.endswith(" ") and said != "-- ", quoted
        if is_open and deletes_spaces:
            paragraphs[-1] = _BROKEN_CODE.sub(r"\1", paragraphs[-1][:-1])
    return "\n".join(paragraphs)


def _decoded(message: Part, encoding: str) -> Part:
    """Return a forwarded message, of which the module leaves an encoded one as it is: base64 without headers."""
    if encoding == "quoted-printable" and not message.is_multipart():  # whose parts stand there as they are
        head = "".join(f"{name}: {value}\n" for name, value in message.items())
        return parse_message(quopri.decodestring(f"{head}\n{message.get_payload()}".encode(errors="surrogateescape")))
    if message.keys():
        return message
    written = message.get_payload()
    with suppress(ValueError):
        data = base64.b64decode("".join(str(written).split()), validate=True)
        if (found := parse_message(data)).keys():
            return found
    return message


def _is_attached(part: Part) -> bool:
    return part.get_content_disposition() == "attachment" and bool(part.get_filename())


def _headers(mail: Part) -> dict[str, str]:
    """Return the decoded headers that say who wrote what when; of several of a name the first one."""
    raw = {name.title(): str(value) for name, value in reversed(list(mail.raw_items()))}
    return {name: text for name in _HEADERS if (text := _header(name, raw.get(name, "")))}


def _header(name: str, raw: str) -> str:
    """Decode a header, in which bytes beyond ASCII may stand as they are.

    The time to parse addresses grows with the square of their length, so long headers are parsed as plain text.
    """
    text = raw[:_MAX_HEADER]
    if _ESCAPED.search(text):
        text = decode(text.encode(errors="surrogateescape"))
    parse: Callable[[str, str], object] = email.policy.default.header_fetch_parse
    is_plain = name == "Filename" or len(text) > _LONG_HEADER
    return " ".join(str(parse("Subject" if is_plain else name, text)).split())


_ESCAPED = re.compile("[\udc80-\udcff]")


def _charset(part: Part) -> str | None:
    charset = part.get_content_charset()
    return str(charset)[:40] if charset else None


def _content(part: Part) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""
