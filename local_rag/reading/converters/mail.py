"""Convert mail."""

import contextlib
import email
import email.policy
from typing import cast

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted
from local_rag.reading.converters.html_pages import convert_html
from local_rag.reading.decode import clean
from local_rag.reading.provenance import make_provenance
from local_rag.records import DocumentKind

_MAX_HEADER = 2000  # characters
_MAIL_HEADERS = ("From", "To", "Cc", "Date", "Subject")


def convert_mail(data: bytes) -> Converted:
    """Put sender, recipients, date and subject above the text, and the names of attachments below it."""
    mail = email.message_from_bytes(data, policy=email.policy.default)
    # Cut headers, because the time to parse one grows with the square of its length.
    raw = {name.title(): str(value)[:_MAX_HEADER] for name, value in reversed(list(mail.raw_items()))}
    head = {
        name: " ".join(str(mail.policy.header_fetch_parse(name, raw[name])).split())
        for name in _MAIL_HEADERS
        if name in raw
    }
    if not head:
        raise ReadError("not a mail: no sender, recipient, date or subject")
    body = mail.get_body(("plain", "html"))
    content = (cast(bytes, body.get_payload(decode=True)) or b"") if body else b""
    kind: DocumentKind = "text"
    if body and body.get_content_type() == "text/html":
        text, kind = convert_html(content).text, "markdown"
    else:
        text = _decode_as(content, body.get_content_charset("") if body else "")
    attached = [name for part in mail.iter_attachments() if (name := part.get_filename())]
    foot = [f"Attachments: {', '.join(attached)}"] if attached else []
    top = "\n".join(f"{name}: {value}" for name, value in head.items())
    provenance = make_provenance(date=head.get("Date"), author=head.get("From"))
    text = clean("\n\n".join([top, text.strip(), *foot]))
    return Converted(head.get("Subject") or None, text, kind, provenance=provenance)


def _decode_as(data: bytes, encoding: str) -> str:
    """Decode with the mail's encoding, else with the usual ones; a short text is not enough to detect one."""
    for name in (encoding, "utf-8"):
        with contextlib.suppress(LookupError, UnicodeError):
            return data.decode(name)
    return data.decode("cp1252", errors="replace")
