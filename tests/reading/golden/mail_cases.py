"""Mail as programs send it: parts in odd orders, alternatives that differ, messages within messages."""

import base64
import quopri

from tests.reading.golden.case import Case, Cell
from tests.reading.test_ocr import read_as, scan

HEAD = "From: Ada <ada@x.org>\nTo: bo@x.org\nSubject: Lamp\nMIME-Version: 1.0\n"
FACT, MORE, LAST = "The lamp costs 500 euros.", "It is delivered on 3 May.", "Payment is due in June."


def part(kind: str, text: str, *more: str) -> str:
    return "\n".join([f"Content-Type: {kind}", *more, "", text])


def multipart(kind: str, *parts: str) -> str:
    inner = "".join(f"--={kind}\n{one}\n" for one in parts)
    return f'Content-Type: multipart/{kind}; boundary="={kind}"\n\n{inner}--={kind}--\n'


def mail(body: str, head: str = HEAD) -> bytes:
    return (head + body).encode()


def file(name: str, data: bytes, kind: str = "application/octet-stream") -> str:
    encoded = base64.encodebytes(data).decode()
    return part(
        kind, encoded, f'Content-Disposition: attachment; filename="{name}"', "Content-Transfer-Encoding: base64"
    )


NOTHING = dict.fromkeys((FACT, MORE), "")
CSV = b"Part,Price\nLamp,500\nCable,20\n"
CASES = [
    Case(
        "behind-an-attachment.eml",
        lambda: mail(multipart("mixed", part("text/plain", FACT), file("a.bin", b"\x00"), part("text/plain", MORE))),
        NOTHING,
        noted={"a file": "the attachment a.bin is left out"},
    ),
    Case(
        "forwarded.eml",
        lambda: mail(multipart("mixed", part("text/plain", FACT), part("message/rfc822", f"Subject: Old\n\n{MORE}"))),
        {FACT: "", MORE: "Forwarded message: Old"},
    ),
    Case(
        "stub.eml",
        lambda: mail(
            multipart(
                "alternative",
                part("text/plain", "Please view this mail in a browser."),
                part("text/html", f"<p>{FACT}</p><p>{MORE}</p>"),
            )
        ),
        NOTHING,
        absent=("Please view this mail",),
    ),
    Case(
        "related-in-alternative.eml",
        lambda: mail(
            multipart(
                "mixed",
                multipart(
                    "alternative",
                    part("text/plain", ""),
                    multipart("related", part("text/html", f"<p>{FACT}"), part("image/png", "AA")),
                ),
                part("text/plain", MORE),
            )
        ),
        NOTHING,
        noted={"a picture": "1 image in the text is left out"},
    ),
    Case(
        "attached-table.eml",
        lambda: mail(multipart("mixed", part("text/plain", FACT), file("parts.csv", CSV))),
        {FACT: ""},
        (Cell("500", "Price", "Lamp"), Cell("Cable", "Part", "20")),
    ),
    Case(
        "attached-mail.eml",
        lambda: mail(
            multipart(
                "mixed",
                part("text/plain", FACT),
                file("old.eml", mail(multipart("mixed", part("text/html", f"<h1>Terms</h1><p>{MORE}")))),
            )
        ),
        {FACT: "", MORE: "Terms"},
    ),
    Case(
        "quoted-printable.eml",
        lambda: mail(
            part(
                "text/plain; charset=iso-8859-2",
                quopri.encodestring(f"{FACT} Zażółć.".encode("iso-8859-2")).decode(),
                "Content-Transfer-Encoding: quoted-printable",
            )
        ),
        {f"{FACT} Zażółć.": ""},
    ),
    Case(
        "no-such-charset.eml",
        lambda: mail(part("text/plain; charset=x-unknown", f"{FACT} Größe.", "Content-Transfer-Encoding: 8bit")),
        {f"{FACT} Größe.": ""},
    ),
    Case("no-boundary.eml", lambda: mail(f"Content-Type: multipart/mixed; boundary=gone\n\n{FACT}\n{MORE}\n"), NOTHING),
    Case(
        "cut-off.eml",
        lambda: mail(multipart("mixed", part("text/plain", FACT), part("text/plain", MORE))).removesuffix(
            b"--=mixed--\n"
        ),
        NOTHING,
    ),
    Case(
        "invitation.eml",
        lambda: mail(
            multipart(
                "alternative",
                part("text/plain", FACT),
                part("text/calendar", f"BEGIN:VEVENT\nSUMMARY:{LAST}\nDTSTART:20240503T100000Z\nEND:VEVENT"),
            )
        ),
        {FACT: "", f"Event: {LAST}": LAST, "Start: 2024-05-03 10:00 UTC": LAST},
    ),
    Case(
        "scanned-letter.eml",
        lambda: mail(multipart("mixed", part("text/plain", FACT), file("letter.pdf", scan("x")))),
        {FACT: "", MORE: "Attachment: letter.pdf"},
        recognize=lambda _page, _number: read_as(MORE),
    ),
    Case(
        "many-recipients.eml",
        lambda: mail(part("text/plain", FACT), f"To: {', '.join(f'ada{n}@example.org' for n in range(400))}\n{HEAD}"),
        {FACT: "", "ada399@example.org": ""},
    ),
    Case(
        "saved.mht",
        lambda: mail(
            multipart("related", part("text/html", f"<h1>Lamp</h1><p>{FACT}"), part("text/html", f"<p>{MORE}"))
        ),
        {FACT: "Lamp", MORE: "Lamp"},
    ),
]
