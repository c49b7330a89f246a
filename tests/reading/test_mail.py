"""Mail that was saved as a file."""

import base64
import binascii
import quopri
import struct
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest

from local_rag.document_records import Document
from local_rag.errors import ReadError
from local_rag.reading.converters.rich_text import expand_rtf
from local_rag.reading.read import parse, read
from tests.support.ole_files import Folder, ole_file


def mail(**headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in headers.items():
        message[name] = value
    return message


def test_mail_keeps_who_wrote_when_and_what_is_attached(tmp_path: Path) -> None:
    message = mail(
        Subject="Größe der Lampe", From="Ada <ada@x.org>", To="bo@x.org", Date="Tue, 03 Mar 2026 10:00:00 +0100"
    )
    message.set_content("Bitte 12 Stück für den Turm.\n\n-- \nAda")
    message.add_alternative("<p>not this one</p>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    (tmp_path / "order.eml").write_bytes(message.as_bytes())
    document = read(tmp_path / "order.eml")
    assert document.title == "Größe der Lampe"
    assert document.text.startswith(
        "From: Ada <ada@x.org>\nTo: bo@x.org\nDate: Tue, 03 Mar 2026 10:00:00 +0100\nSubject:"
    )
    assert "Bitte 12 Stück für den Turm." in document.text
    assert document.text.endswith("Attachments: plan.pdf")
    assert "not this one" not in document.text
    assert not document.is_source


@pytest.mark.slow
def test_mail_of_html_alone_is_read_as_a_page(tmp_path: Path) -> None:
    message = mail(Subject="News")
    message.set_content("<h1>Harbour</h1><p>Closed on Monday.</p><script>x()</script>", subtype="html")
    (tmp_path / "news.eml").write_bytes(message.as_bytes())
    document = read(tmp_path / "news.eml")
    assert "Closed on Monday." in document.text
    assert "x()" not in document.text
    assert document.kind == "markdown"


@pytest.mark.parametrize("charset", ["iso-8859-1", "no-such-charset", "utf-8"])
def test_mail_in_any_encoding(charset: str, tmp_path: Path) -> None:
    body = "Kaffee für alle".encode("iso-8859-1")
    head = f"Subject: Coffee\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n".encode()
    (tmp_path / "a.eml").write_bytes(head + body)
    assert "Kaffee für alle" in read(tmp_path / "a.eml").text


@pytest.mark.parametrize("data", [b"just a text", b"\x00\xff" * 50])
def test_other_files_are_not_read_as_mail(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(data)
    with pytest.raises(ReadError, match="not a mail"):
        read(tmp_path / "a.eml")


def part(kind: str, content: str, *more: str) -> str:
    return "\n".join([f"Content-Type: {kind}", *more, "", content])


def multipart(kind: str, *parts: str, head: str = "") -> str:
    inner = "".join(f"--{kind}\n{one}\n" for one in parts)
    return f"{head}MIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary={kind}\n\n{inner}--{kind}--\n"


HEAD = "From: a@x.org\nSubject: Boats\n"


def parsed(source: str) -> Document:
    return parse(Path("a.eml"), source.encode())


def test_text_behind_an_inline_attachment_is_kept() -> None:
    document = parsed(
        multipart(
            "mixed",
            part("text/plain", "Before."),
            part(
                "application/zip; name=x.zip",
                "UEsD",
                "Content-Disposition: inline",
                "Content-Transfer-Encoding: base64",
            ),
            part("text/plain; charset=utf-8", "Äfter: the price is 500."),
            part("text/html", "<p>And a page.</p>"),
            head=HEAD,
        )
    )
    assert document.text.split("\n\n")[1:] == [
        "Before.",
        "Äfter: the price is 500.",
        "And a page.",
        "Attachments: x.zip",
    ]
    assert document.notes == ("the attachment x.zip is left out: archive, not a document",)


def test_forwarded_messages_are_included_with_their_own_parts() -> None:
    inner = "From: x@y.z\nTo: a@x.org\nSubject: =?utf-8?q?Gr=C3=B6=C3=9Fe?=\n"
    middle = multipart("related", part("text/plain", "Twelve metres."), head=inner)
    outer = part(
        "message/rfc822",
        part(
            "message/rfc822",
            "Subject: Deep\n\nThe deepest.",
        ),
    )
    document = parsed(
        multipart("mixed", part("text/plain", "See below."), part("message/rfc822", middle), outer, head=HEAD)
    )
    assert [(heading.level, heading.title) for heading in document.headings] == [
        (1, "Forwarded message: Größe"),
        (1, "Forwarded message"),
        (1, "Forwarded message: Deep"),
    ]
    for words in ("See below.", "From: x@y.z", "Twelve metres.", "The deepest."):
        assert words in document.text


PAGE = "<p style='display:none'>preheader</p><h1>Move</h1><p>The office moves to Bergen on 3 May.</p>"


@pytest.mark.parametrize(
    ("plain", "kept", "dropped"),
    [
        ("Your mail program cannot show HTML.", ["moves to Bergen"], ["cannot show"]),
        ("Move\n\nThe office moves to Bergen on 3 May.", ["moves to Bergen"], ["# Move"]),
        ("", ["moves to Bergen"], []),
        ("About boats.", ["moves to Bergen", "About boats"], []),
    ],
)
def test_of_two_alternatives_the_one_that_says_more_is_kept(plain: str, kept: list[str], dropped: list[str]) -> None:
    document = parsed(multipart("alternative", part("text/plain", plain), part("text/html", PAGE), head=HEAD))
    assert all(document.text.count(words) == 1 for words in kept)
    assert not any(words in document.text for words in (*dropped, "preheader"))


def test_an_invitation_says_what_when_and_where() -> None:
    entry = (
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Budget\\, second\n  part\nDTSTART:20240503T100000Z\n"
        "DTEND;TZID=Europe/Oslo:20240503T113000\nORGANIZER;CN=Ada:mailto:ada@x.org\nLOCATION:Room 4\nEND:VEVENT\n"
    )
    document = parsed(multipart("alternative", part("text/calendar; method=REQUEST", entry), head=HEAD))
    assert document.text.split("\n\n")[2].split("\n") == [
        "Event: Budget, second part",
        "Start: 2024-05-03 10:00 UTC",
        "End: 2024-05-03 11:30 (Europe/Oslo)",
        "Organizer: Ada <ada@x.org>",
        "Location: Room 4",
    ]


def test_attachments_of_known_types_are_parts_of_the_document() -> None:
    message = mail(Subject="Plans", From="ada@x.org")
    message.set_content("See the files.")
    message.add_attachment(b"# Depths\n\nTwo metres.\n", maintype="text", subtype="markdown", filename="a.md")
    message.add_attachment(
        b"<h1>Tides</h1><p>Twice a day.</p><table><tr><th>Hour</th></tr><tr><td>Six</td></tr></table>",
        maintype="text",
        subtype="html",
        filename="b.html",
    )
    message.add_attachment("Größe".encode("utf-16"), maintype="text", subtype="plain", filename="c.txt")
    message.add_attachment(b"\x00\x01", maintype="application", subtype="octet-stream", filename="../d.bin")
    inner = mail(Subject="Inner")
    inner.set_content("Within a file.")
    inner.add_attachment("Deepest.", filename="e.txt")
    message.add_attachment(inner.as_bytes(), maintype="application", subtype="octet-stream", filename="f.eml")
    document = parse(Path("a.eml"), message.as_bytes())
    assert [(heading.level, heading.title) for heading in document.headings] == [
        (1, "Attachment: a.md"),
        (2, "Depths"),
        (1, "Attachment: b.html"),
        (2, "Tides"),
        (1, "Attachment: c.txt"),
        (1, "Attachment: f.eml"),
        (2, "Attachment: e.txt"),
    ]
    assert all(document.text[one.start :].lstrip("# ").startswith(one.title) for one in document.headings)
    for words in ("See the files.", "Two metres.", "Twice a day.", "Größe", "Within a file.", "Deepest."):
        assert words in document.text
    assert document.notes == ("the attachment d.bin is left out: program, not a document",)
    assert document.title == "Plans"
    [table] = document.tables
    assert document.text[table.rows : table.end].strip() == "| Six |"


def test_encrypted_parts_and_pictures_in_the_text_are_noted() -> None:
    picture = part(
        "image/png; name=logo.png", "AAAA", "Content-Disposition: inline", "Content-Transfer-Encoding: base64"
    )
    secret = part("application/pkcs7-mime; smime-type=enveloped-data", "AAAA")
    document = parsed(multipart("mixed", part("text/plain", "Hello."), picture, secret, head=HEAD))
    assert document.notes == ("1 image in the text is left out", "1 encrypted part is left out")


def test_headers_may_hold_bytes_as_they_are() -> None:
    head = "From: Ада <ada@x.org>\nSubject: Größe\n\n".encode()
    document = parse(Path("a.eml"), head + "Grüße".encode())
    assert document.title == "Größe"
    assert document.text == "From: Ада <ada@x.org>\nSubject: Größe\n\nGrüße"


def test_endless_nesting_is_cut_with_a_note() -> None:
    nested = part("text/plain", "innermost")
    for number in range(60):
        nested = f"Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n{nested}\n--b{number}--\n"
    document = parsed(f"{HEAD}{nested}")
    assert document.notes == ("1 part beyond the limit is left out",)


# Web archives


def test_a_web_archive_is_its_page_and_frames() -> None:
    page = "<html><head><title>Tide</title></head><body><h1>Łódź</h1><p>caf\u00e9</p></body></html>"
    encoded = quopri.encodestring(page.encode("cp1250")).decode()
    frame = part("text/html", "<p>In a frame.</p>", "Content-Location: http://x.org/f")
    first = part(
        'text/html; charset="windows-1250"',
        encoded,
        "Content-Transfer-Encoding: quoted-printable",
        "Content-Location: http://x.org/tide",
    )
    source = multipart("related", first, frame, part("image/png", "AAAA"), head="From: <Saved by Blink>\n")
    document = parse(Path("a.mht"), source.encode())
    assert (document.title, document.provenance.url) == ("Tide", "http://x.org/tide")
    assert document.text == "# Łódź\n\ncafé\n\nIn a frame."
    with pytest.raises(ReadError, match="not a web archive"):
        parse(Path("a.mhtml"), b"just text")


# Outlook


def properties(*numbers: tuple[int, int, int], header: int = 32) -> bytes:
    return bytes(header) + b"".join(struct.pack("<HHIQ", kind, number, 6, value) for number, kind, value in numbers)


def wide(**values: str) -> dict[str, bytes]:
    return {f"__substg1.0_{name}001F": value.encode("utf-16-le") for name, value in values.items()}


def attached(name: str, data: bytes) -> dict[str, bytes]:
    return {**wide(**{"3707": name}), "__substg1.0_37010102": data, "__properties_version1.0": bytes(8)}


def message_of_outlook() -> Folder:
    inner = {**wide(**{"0037": "Inner", "1000": "The innermost."}), "__properties_version1.0": properties(header=24)}
    sent = int((datetime(2024, 5, 3, 10, tzinfo=UTC) - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10**7
    return {
        "__properties_version1.0": properties((0x0039, 0x40, sent), (0x3FFD, 3, 1250)),
        **wide(**{"0037": "Größe der Räume", "0C1A": "Ada", "5D01": "ada@x.org", "0E04": "Bo"}),
        "__substg1.0_1000001E": "Łódź jest duża.".encode("cp1250"),
        "__attach_version1.0_#00000000": attached("plan.md", b"# Plan\n\n" + b"Twelve boats. " * 400),
        "__attach_version1.0_#00000001": {**wide(**{"3001": "Inner"}), "__substg1.0_3701000D": inner},
        "__attach_version1.0_#00000002": attached("a.png", b"PNG"),
    }


def test_messages_of_outlook_are_read_with_what_is_attached() -> None:
    document = parse(Path("a.msg"), ole_file(message_of_outlook()))
    assert document.title == "Größe der Räume"
    assert document.text.startswith(
        "From: Ada <ada@x.org>\nTo: Bo\nDate: 2024-05-03 10:00 UTC\nSubject: Größe der Räume\n\nŁódź jest duża.\n\n"
    )
    assert [heading.title for heading in document.headings] == [
        "Forwarded message: Inner",
        "Attachment: plan.md",
        "Plan",
    ]
    assert "The innermost." in document.text
    assert document.text.count("Twelve boats.") == 400
    assert document.notes == ("the attachment a.png is left out: an image that waits for OCR, the extra `ocr`",)
    assert (document.provenance.date, document.provenance.author) == ("2024-05-03", "Ada <ada@x.org>")


def test_a_message_of_outlook_in_html_or_rich_text() -> None:
    page = "<html><head><meta charset='utf-8'></head><body><p>Zażółć</p></body></html>".encode()
    read = parse(Path("a.msg"), ole_file({**wide(**{"0037": "S"}), "__substg1.0_10130102": page}))
    assert read.text == "Subject: S\n\nZażółć"
    # The example of [MS-OXRTFCP].
    rich = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    assert expand_rtf(rich) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    read = parse(Path("a.msg"), ole_file({**wide(**{"0037": "S"}), "__substg1.0_10090102": rich}))
    assert read.text == "Subject: S\n\nhello world"


def read_in_code_pages(name: str, value: bytes, *pages: tuple[int, int]) -> str:
    numbers = properties(*((number, 3, page) for number, page in pages))
    folder = {**wide(**{"0037": "S"}), name: value, "__properties_version1.0": numbers}
    return parse(Path("a.msg"), ole_file(folder)).text.partition("\n\n")[2]


def test_narrow_text_of_outlook_is_in_the_code_page_of_the_message_and_html_in_that_of_the_internet() -> None:
    message, internet = 0x3FFD, 0x3FDE
    plain, markup = "__substg1.0_1000001E", "__substg1.0_10130102"
    text = "Это небольшой документ. Правила отпуска."
    pages = ((internet, 20866), (message, 1251))
    assert read_in_code_pages(plain, text.encode("cp1251"), *pages) == text
    assert read_in_code_pages(plain, text.encode("koi8-r"), pages[0]) == text
    assert read_in_code_pages(markup, f"<p>{text}</p>".encode("koi8-r"), *pages) == text
    assert read_in_code_pages("__substg1.0_1013001E", f"<p>{text}</p>".encode("cp1251"), *pages) == text
    # Pages that Python knows by another name, a wide one of narrow text, one that it lacks, and more than four bytes.
    assert read_in_code_pages(plain, "café".encode("mac_roman"), (message, 10000)) == "café"
    assert read_in_code_pages(plain, "Größe".encode("cp1252"), (message, 1200), (internet, 28591)) == "Größe"
    assert read_in_code_pages(plain, "Größe".encode("cp1252"), (message, 57002), (internet, 1252)) == "Größe"
    assert read_in_code_pages(plain, "Łódź".encode("cp1250"), (message, 7 << 32 | 1250)) == "Łódź"


@pytest.mark.parametrize("data", [b"just text", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600])
def test_other_files_are_not_read_as_messages_of_outlook(data: bytes) -> None:
    with pytest.raises(ReadError, match=r"not a message of Outlook|damaged MSG file"):
        parse(Path("a.msg"), data)


def test_a_mail_to_hundreds_of_people_names_them_all() -> None:
    people = [f"=?utf-8?q?J=C3=B6rg_{number}?= <joerg{number}@example.org>" for number in range(300)]
    head = "To: " + ",\n ".join(people)
    document = parse(Path("a.eml"), f"{head}\nSubject: Hello\n\nText\n".encode())
    assert all(f"Jörg {number} <joerg{number}@example.org>" in document.text for number in range(300))
    assert document.notes == ()


@pytest.mark.parametrize("header", ["To", "Subject"])
def test_a_header_that_is_cut_is_noted(header: str) -> None:
    document = parse(Path("a.eml"), f"{header}: {'word ' * 5000}end\nCc: bo@x.org\n\nText\n".encode())
    assert document.notes == (f"the header {header} is cut after 20,000 characters",)
    assert "end" not in document.text


def test_a_forwarded_message_in_base64_is_read() -> None:
    inner = base64.encodebytes(b"From: Ola <o@x.org>\nSubject: Budget\n\nThe budget is 5500 crowns.\n").decode()
    whole = f"Subject: x\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}"
    text = parse(Path("a.eml"), whole.encode()).text
    assert "Forwarded message: Budget" in text
    assert "The budget is 5500 crowns." in text


def packed_by_outlook(*attributes: tuple[int, bytes]) -> bytes:
    parts = (b"\1" + struct.pack("<II", kind, len(value)) + value + b"\0\0" for kind, value in attributes)
    return struct.pack("<IH", 0x223E9F78, 1) + b"".join(parts)


def test_the_message_and_files_in_winmail_are_read() -> None:
    body, name = "Sigrid Aas is master.\0".encode("utf-16-le"), b"a long name.txt\0"
    named = struct.pack("<I", 2) + struct.pack("<HHI", 0x0003, 0x0E07, 5)
    named += struct.pack("<HHII", 0x001E, 0x3707, 1, len(name)) + name
    properties = struct.pack("<I", 2) + struct.pack("<HH16sIII", 0x0003, 0x8001, b"g" * 16, 0, 7, 1)
    properties += struct.pack("<HHII", 0x001F, 0x1000, 1, len(body)) + body + b"\0\0"
    data = packed_by_outlook(
        (0x00069003, properties),
        (0x00069002, b"x" * 14),
        (0x00018010, b"ALONGN~1.TXT\0"),
        (0x0006800F, b"Lock fee: 85 crowns.\n"),
        (0x00069005, named),
    )
    message = mail(Subject="Lock")
    message.set_content("")
    message.add_attachment(data, maintype="application", subtype="ms-tnef", filename="winmail.dat")
    document = parse(Path("a.eml"), message.as_bytes())
    for part in ("Sigrid Aas is master.", "Attachments: a long name.txt", "Lock fee: 85 crowns."):
        assert part in document.text
    assert document.notes == ()
    for broken in (data[:40], b"", b"\0" * 40):
        message = mail(Subject="Lock")
        message.add_attachment(broken, maintype="application", subtype="ms-tnef", filename="winmail.dat")
        assert "Subject: Lock" in parse(Path("a.eml"), message.as_bytes()).text


@pytest.mark.parametrize(("page", "text"), [(10000, "café"), (20866, "Ада"), (54936, "联通"), (57002, "café")])
def test_winmail_in_a_code_page_that_python_knows_by_another_name_or_lacks(page: int, text: str) -> None:
    encoding = {10000: "mac_roman", 20866: "koi8-r", 54936: "gb18030"}.get(page, "cp1252")
    data = packed_by_outlook((0x00069007, struct.pack("<II", page, 0)), (0x0002800C, text.encode(encoding) + b"\0"))
    message = mail(Subject="Lock")
    message.set_content("")
    message.add_attachment(data, maintype="application", subtype="ms-tnef", filename="winmail.dat")
    assert text in parse(Path("a.eml"), message.as_bytes()).text


def test_a_file_that_is_written_into_the_text_is_an_attachment() -> None:
    coded = binascii.b2a_uu(b"The budget is 5500 crowns.\n").decode()
    read = parsed(f"Subject: Budget\n\nSee below.\n\nbegin 644 budget.txt\n{coded}`\nend\nRegards\n")
    assert "The budget is 5500 crowns." in read.text
    assert coded not in read.text
    assert "Regards" in read.text
    said = "begin 644 times over\nand come to the\nend"
    assert said in parsed(f"Subject: Budget\n\n{said}\n").text
