"""Exports of Evernote are read note by note."""

import base64
from pathlib import Path

import pytest

from local_rag.document_records import Document
from local_rag.errors import ReadError
from local_rag.reading.read import parse

DTD = '<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">'


def note(title: str, body: str, more: str = "") -> str:
    enml = f'<?xml version="1.0"?><!DOCTYPE en-note SYSTEM "http://e.example/enml2.dtd"><en-note>{body}</en-note>'
    content = f"<content><![CDATA[{enml}]]></content><created>20230730T205204Z</created>"
    return f"<note><title>{title}</title>{content}{more}</note>"


def export(*notes: str, declared: str = DTD) -> Document:
    text = f'<?xml version="1.0" encoding="UTF-8"?>{declared}<en-export>{"".join(notes)}</en-export>'
    return parse(Path("harbour-notes.enex"), text.encode())


def attached(data: bytes, name: str) -> str:
    written = base64.b64encode(data).decode()
    named = f"<resource-attributes><file-name>{name}</file-name></resource-attributes>"
    return f"<resource><data>{written}</data>{named}</resource>"


def test_each_note_has_its_title_day_and_tags() -> None:
    body = "<h1>Load</h1><div>It lifts 12 t.</div><table><tr><td>Day</td></tr><tr><td>Mon</td></tr></table>"
    document = export(
        note("Crane &amp; hoist", body, "<tag>harbour</tag><tag>crane</tag>"), note("Pilot", "<div>Ring twice</div>")
    )
    assert "Crane & hoist\n\nCreated: 2023-07-30\nTags: harbour, crane\n\n# Load\n\nIt lifts 12 t." in document.text
    assert document.text.endswith("Pilot\n\nCreated: 2023-07-30\n\nRing twice")
    assert [(one.level, one.title) for one in document.headings] == [(1, "Crane & hoist"), (2, "Load"), (1, "Pilot")]
    assert (document.title, document.provenance.tags) == ("Harbour notes", ("harbour", "crane"))
    assert len(document.tables) == 1


def test_names_of_characters_and_signs_within_attributes_are_read() -> None:
    boxes = '<ul style="--en-todo:true;"><li style="--en-checked:true;"><div>Paid</div></li>'
    boxes += '<li style="--en-checked:false;"><div>Booked</div></li></ul>'
    hidden = (
        '<en-crypt hint="a > b" cipher="AES">U2VjcmV0</en-crypt><en-media alt="A > picture"/><en-todo title="a>b"/>Oil'
    )
    document = export(note("Entr&eacute;e&nbsp;fees &amp; more", boxes + hidden, "<tag>Caf&eacute;</tag>"))
    assert (document.title, document.provenance.tags) == ("Entr\u00e9e fees & more", ("Caf\u00e9",))
    assert all(said in document.text for said in ("[x] Paid", "[ ] Booked", "[ ] Oil"))
    assert not any(said in document.text for said in ("U2Vj", "picture", 'b"'))
    assert any("encrypted part" in one for one in document.notes)


def test_a_single_note_tells_who_wrote_it_when() -> None:
    source = "<note-attributes><author>Ann Berg</author><source-url>https://e.example/x</source-url></note-attributes>"
    document = export(note("Crane", "<div>It lifts 12 t.</div>", source))
    said = document.provenance
    assert (document.title, said.date, said.author, said.url) == (
        "Crane",
        "2023-07-30",
        "Ann Berg",
        "https://e.example/x",
    )


def test_boxes_tasks_and_files_are_read_and_what_is_encrypted_is_told() -> None:
    boxes = '<div><en-todo checked="true"/>Oil it</div><div><en-todo/>Paint it</div><en-media hash="a"/>'
    task = "<task><title>Call Per</title><taskStatus>completed</taskStatus></task>"
    document = export(note("Crane", f"{boxes}<en-crypt>MDAw</en-crypt>", task + attached(b"4 metres.", "survey.txt")))
    for said in ("[x] Oil it", "[ ] Paint it", "- [x] Call Per", "Attachment: survey.txt\n\n4 metres."):
        assert said in document.text
    assert "MDAw" not in document.text
    assert document.notes == ("1 encrypted part is left out",)


def test_a_large_file_in_a_note_does_not_hide_the_note() -> None:
    document = export(note("Crane", "<div>It lifts 12 t.</div>", attached(bytes(9_000_000), "a.bin")))
    assert "It lifts 12 t." in document.text
    assert document.notes == ("the attachment a.bin is left out: program, not a document",)


def test_entities_are_neither_opened_nor_multiplied(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("s3cret")
    grown = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    declared = f'<!DOCTYPE x [<!ENTITY e0 "grown ">{grown}<!ENTITY f SYSTEM "{(tmp_path / "secret.txt").as_uri()}">]>'
    plain = "<note><title>Crane</title><content>It lifts 12 t. {}</content></note>"
    for named in ("&e2;", "&f;"):
        text = export(plain.format(named), declared=declared).text
        assert "It lifts 12 t." in text
        assert "s3cret" not in text
        assert "grown" not in text
    for hostile in (plain.format("&e9;"), '<note x="&e9;"><title>Crane</title></note>'):
        with pytest.raises(ReadError, match="damaged ENEX"):
            export(hostile, declared=declared)


def test_what_is_no_export_is_said() -> None:
    with pytest.raises(ReadError, match="not an export of Evernote"):
        parse(Path("a.enex"), b"<html/>")
    with pytest.raises(ReadError, match="damaged ENEX"):
        parse(Path("a.enex"), b"<en-export><note>")
