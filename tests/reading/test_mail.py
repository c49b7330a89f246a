"""Mail that was saved as a file."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from local_rag.errors import ReadError
from local_rag.reading.read import read


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
