"""Address books: each card is read apart, by its name."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from local_rag.document_records import Document
from local_rag.reading.converters.contacts import convert_contacts
from local_rag.reading.read import parse

RUTH = """BEGIN:VCARD
VERSION:3.0
N:Brandt;Ruth;;;
FN:Ruth Brandt
ORG:Brandt & Oake;Artists
TITLE:Agent
TEL;TYPE=WORK,VOICE:0117 496 0132
item1.EMAIL;TYPE=INTERNET:ruth@brandt.example
item1.X-ABLabel:office
ADR;TYPE=HOME:;;1 Quay Road;Dunmarrow;;DM1 2AB;UK
BDAY:19800102
PHOTO;ENCODING=b;TYPE=JPEG:MIICajCCAdOgAwIBAgICBEUwDQYJKoZIhvcNAQEEBQAwdzELMAkGA1UE=
NOTE:assistant: Callum\\, not on
  Thursdays\\nring twice
END:VCARD
"""
OLD = """BEGIN:VCARD
VERSION:2.1
N:Roche;Sylvie
TEL;CELL;PREF:+33 5 55 01 23 45
NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:R=C3=A9gisseuse =
g=C3=A9n=C3=A9rale
END:VCARD
"""


def cards(text: str) -> Document:
    return parse(Path("contacts.vcf"), text.encode())


def test_signs_are_read_as_the_program_wrote_them() -> None:
    card = (
        "BEGIN:VCARD\nVERSION:2.1\nFN;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:Max M=FCller\n"
        "TITLE;CHARSET=NO-SUCH;ENCODING=QUOTED-PRINTABLE:Caf=C3=A9\nNOTE:C:\\\\new\\\\notes\nEND:VCARD\n"
    )
    text = cards(card).text
    assert "Contact: Max Müller" in text
    assert "Title: Café" in text
    assert "Note: C:\\new\\notes" in text


def test_each_card_is_a_section_below_its_name() -> None:
    found = cards(RUTH + OLD)
    assert [one.title for one in found.headings] == ["Ruth Brandt", "Sylvie Roche"]
    assert found.text.splitlines() == [
        "# Ruth Brandt",
        "",
        "Contact: Ruth Brandt",
        "Organisation: Brandt & Oake, Artists",
        "Title: Agent",
        "Phone (work): 0117 496 0132",
        "Email: ruth@brandt.example",
        "Address (home): 1 Quay Road, Dunmarrow, DM1 2AB, UK",
        "Birthday: 1980-01-02",
        "Note: assistant: Callum, not on Thursdays",
        "ring twice",
        "",
        "# Sylvie Roche",
        "",
        "Contact: Sylvie Roche",
        "Phone (mobile): +33 5 55 01 23 45",
        "Note: R\u00e9gisseuse g\u00e9n\u00e9rale",
    ]


def test_a_card_without_a_name_has_that_of_what_it_says_and_a_file_without_cards_is_text() -> None:
    lines = cards("BEGIN:VCARD\nORG:Harbour Office;Pilots\nTEL;VALUE=uri:tel:+47-22\nEND:VCARD\n").text.splitlines()
    name = "Harbour Office, Pilots"
    assert lines == [f"# {name}", "", f"Contact: {name}", f"Organisation: {name}", "Phone: +47-22"]
    assert cards("Just a note.\n").text.strip() == "Just a note."
    assert "Ann" in cards("BEGIN:VCARD\nFN:Ann\nTEL:1\n").text, "a file may be cut off"


@given(
    st.lists(
        st.sampled_from(
            ["BEGIN:VCARD", "END:VCARD", "FN:A", "TEL;;=:1", "N:;;", "NOTE;ENCODING=QUOTED-PRINTABLE:=", "=", " x", ""]
        )
    )
)
def test_no_address_book_is_too_odd(lines: list[str]) -> None:
    assert convert_contacts("\n".join(lines).encode()).text is not None
