"""What documents say of themselves: read from every format that says it, bounded, and never trusted."""

import hashlib
import io
import json
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
from docx import Document as Docx
from fpdf import FPDF
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook  # type: ignore[import-untyped]
from pptx import Presentation

from local_rag.document_records import UNKNOWN, Provenance
from local_rag.files import SCRAPE_STATE
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.provenance import (
    MAX_AUTHOR,
    MAX_TAG,
    MAX_TAGS,
    MAX_URL,
    make_provenance,
    office_provenance,
    pdf_provenance,
    provenance_of_fields,
)
from local_rag.reading.read import parse
from local_rag.reading.split import Splitting
from tests.support.office_files import open_document, saved

FRONT_MATTER = """---
url: https://example.org/leave
title: Leave
date: 2024-05-01
author: [Ada Byron, {name: Grace Hopper}]
tags: [policy, paid leave]
---

Everybody has 30 days.
"""
LEAVE = Provenance("https://example.org/leave", "2024-05-01", "Ada Byron, Grace Hopper", ("policy", "paid leave"))
LONG_URL = "https://example.org/" + "a" * MAX_URL


def read(name: str, data: bytes | str) -> Provenance:
    return parse(Path(name), data.encode() if isinstance(data, str) else data).provenance


def test_front_matter_of_markdown() -> None:
    assert read("leave.md", FRONT_MATTER) == LEAVE
    assert read("leave.txt", FRONT_MATTER) == UNKNOWN, "text has no front matter"
    assert read("plain.md", "Everybody has 30 days.") == UNKNOWN


def test_provenance_survives_the_reading_process(tmp_path: Path, splitting: Splitting) -> None:
    (tmp_path / "leave.md").write_text(FRONT_MATTER)
    with IsolatedReader(splitting) as reader:
        assert reader.read(tmp_path / "leave.md").document.provenance == LEAVE


def test_invalid_yaml_in_front_matter_keeps_its_plain_lines() -> None:
    said = read("a.md", "---\ntitle: a: b\ndate: 2024-13-45\nauthor: Ada\nurl: https://example.org\n---\n\ntext\n")
    assert said == Provenance("https://example.org", "", "Ada")


def test_fields_of_other_names() -> None:
    fields = {"Source": "see below", "link": "http://example.org/a", "published": "May 3, 2021", "by": "Ada"}
    assert provenance_of_fields(fields | {"Keywords": "one; two, one"}) == Provenance(
        "http://example.org/a", "2021-05-03", "Ada", ("one", "two")
    )


def test_pdf() -> None:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica")
    pdf.cell(text="Everybody has 30 days.")
    pdf.set_author("Ada Byron")
    pdf.set_keywords("policy, leave")
    pdf.set_creation_date(datetime(2023, 4, 5, 6, 7))
    assert read("a.pdf", bytes(pdf.output())) == Provenance("", "2023-04-05", "Ada Byron", ("policy", "leave"))


def test_office() -> None:
    document, slides, book = Docx(), Presentation(), Workbook()
    document.add_paragraph("Everybody has 30 days.")
    slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "Leave"
    book.active["A1"] = "Leave"
    for file in (document, slides):
        properties = file.core_properties
        properties.author, properties.created, properties.keywords = "Ada", datetime(2022, 1, 2), "a, b"
    book.properties.creator, book.properties.created, book.properties.keywords = "Ada", datetime(2022, 1, 2), "a, b"
    for file, suffix in ((document, "docx"), (slides, "pptx"), (book, "xlsx")):
        target = io.BytesIO()
        file.save(target)
        assert read(f"a.{suffix}", target.getvalue()) == Provenance("", "2022-01-02", "Ada", ("a", "b")), suffix


@pytest.mark.parametrize(
    "author",
    [
        *("(anonymous)", "<unknown>", "python-docx", "openpyxl", "Apache POI", "Microsoft Office User", "LibreOffice"),
        *("Microsoft\u00ae Word 2019", "Acrobat PDFMaker 11", "wkhtmltopdf 0.12.5", "OpenOffice.org 3.1", "Writer"),
        *("Unknown", "Administrator", "root", "user", "User1", "Windows User", "PDFCreator", "Mozilla/5.0 (X11)"),
        *("SomeTool 4.2.1", "N/A", "-", "Adobe InDesign CS6", "https://tool.example", "LibreOffice 7.4", "docx4j"),
    ],
)
def test_a_program_or_account_is_no_author(author: str) -> None:
    assert make_provenance(author=author).author == ""
    assert make_provenance(author=["Ada Byron", author]).author == "Ada Byron"


@pytest.mark.parametrize(
    "author",
    [
        *("Ada Byron", "The People Office", "Test Laboratory", "User Support Team", "Words Worth", "Adobe Systems"),
        *("Apache Software Foundation", "Rooter, Ida", "Ada Byron <ada@example.org>", "Root Cause Group", "O. Writer"),
    ],
)
def test_a_person_or_an_office_is_an_author(author: str) -> None:
    assert make_provenance(author=author).author == author


def test_the_author_and_the_date_of_a_template_are_not_those_of_the_document() -> None:
    document, slides = Docx(), Presentation()
    document.add_paragraph("Everybody has 30 days.")
    slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "Leave"
    assert read("a.docx", saved(document.save)) == UNKNOWN
    assert read("a.pptx", saved(slides.save)) == UNKNOWN
    for file, name in ((document, "a.docx"), (slides, "a.pptx")):
        file.core_properties.modified = datetime(2024, 5, 6)
        assert read(name, saved(file.save)).date == "2024-05-06", "edited since"


def test_the_date_of_a_document_that_a_program_wrote_is_kept() -> None:
    book = Workbook()
    book.active["A1"] = "Leave"
    book.properties.created = datetime(2024, 5, 6)
    assert read("a.xlsx", saved(book.save)) == Provenance("", "2024-05-06")


@pytest.mark.parametrize(
    ("created", "date"), [("1970-01-01T00:00:00", "2024-05-06"), ("2023-04-05T06:07:08", "2023-04-05")]
)
def test_the_first_day_of_a_calendar_is_no_date(created: str, date: str) -> None:
    meta = f"<meta:creation-date>{created}</meta:creation-date><dc:date>2024-05-06</dc:date>"
    assert read("a.odt", open_document("text", "<text:p>30 days.</text:p>", meta=meta)).date == date


@pytest.mark.parametrize(
    "properties",
    [b"", b"<a", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"<a>" + b" " * 70_000 + b"</a>", None],
)
def test_invalid_properties_of_an_office_file_are_ignored(properties: bytes | None) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("docProps/core.xml" if properties is not None else "other", properties or b"")
    assert office_provenance(target.getvalue()) == UNKNOWN
    assert office_provenance(b"no archive") == UNKNOWN


def test_mail() -> None:
    mail = "From: Ada Byron <ada@example.org>\nDate: Thu, 02 May 2024 10:11:12 +0200\nSubject: Leave\n\n30 days.\n"
    assert read("a.eml", mail) == Provenance("", "2024-05-02", "Ada Byron <ada@example.org>")


def test_web_page() -> None:
    page = """<html><head><title>Leave</title><link rel="canonical" href="https://example.org/leave">
    <meta name="author" content="Ada"><meta property="article:published_time" content="2024-05-01T08:00:00Z">
    <meta name="keywords" content="policy, leave"></head><body><main><h1>Leave</h1><p>30 days.</p></main></body></html>
    """
    assert read("a.html", page) == Provenance("https://example.org/leave", "2024-05-01", "Ada", ("policy", "leave"))


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2024-05-01", "2024-05-01"),
        ("2024-5-1 at noon", "2024-05-01"),
        ("2024/05/01", "2024-05-01"),
        ("D:20240501120000+01'00'", "2024-05-01"),
        ("D:20240501", "2024-05-01"),
        ("1 May 2024", "2024-05-01"),
        ("01.05.2024", "2024-05-01"),
        ("Wed, 01 May 2024 10:00:00 GMT", "2024-05-01"),
        (datetime(2024, 5, 1, 23, 59), "2024-05-01"),
        ("2024-13-45", ""),
        ("2024", ""),
        ("D:2024", ""),
        ("20240501123", ""),
        ("yesterday", ""),
        (2024, ""),
        (["2024-05-01"], ""),
    ],
)
def test_dates(written: object, date: str) -> None:
    assert make_provenance(date=written).date == date


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("2026-03-10 partners meeting.txt", "2026-03-10"),
        ("minutes_2026_03_10.md", "2026-03-10"),
        ("Minutes 2026 03 10.csv", "2026-03-10"),
        ("IMG_20260310_1015.html", "2026-03-10"),
        ("2026-03-10 minutes, corrected 2026-04-02.md", "2026-04-02"),
        ("2026-13-10.txt", ""),
        ("2026-02-30 minutes.txt", ""),
        ("2026-0310.txt", ""),
        ("order 1202603109.txt", ""),
        ("KL 18991230.txt", ""),
        ("leave policy 2026.md", ""),
    ],
)
def test_the_name_of_a_file_dates_a_document_that_states_no_date(name: str, date: str) -> None:
    assert read(name, "Day;Room\n1;Garden\n").date == date


def test_the_date_that_a_document_states_is_kept_and_that_of_a_template_is_not() -> None:
    assert read("2026-03-10 leave.md", FRONT_MATTER).date == "2024-05-01"
    document = Docx()
    document.add_paragraph("Everybody has 30 days.")
    assert read("2026-03-10 leave.docx", saved(document.save)).date == "2026-03-10"


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "/a", "https://", "http://a b", "https://a\n.org", "ftp://a.org", "http://[", 7, LONG_URL],
)
def test_other_than_web_addresses_are_dropped(url: object) -> None:
    assert make_provenance(url=url).url == ""


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50) | st.just("x" * 5000),
    lambda inner: st.lists(inner, max_size=60) | st.dictionaries(st.sampled_from(["name", "a"]), inner, max_size=2),
    max_leaves=80,
)


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
@pytest.mark.slow
def test_provenance_is_bounded_and_on_one_line(url: object, date: object, author: object, tags: object) -> None:
    said = make_provenance(url=url, date=date, author=author, tags=tags)
    assert len(said.url) <= MAX_URL
    assert len(said.date) in {0, 10}
    assert len(said.author) <= MAX_AUTHOR
    assert len(said.tags) <= MAX_TAGS
    assert all(0 < len(tag) <= MAX_TAG for tag in said.tags)
    assert not any(set(text) & set("\n\r\0") for text in (said.url, said.date, said.author, *said.tags))


def test_endless_lists_and_numbers_cost_nothing() -> None:
    said = make_provenance(author=10**9000, tags=[str(number) for number in range(100_000)])
    assert said.author == ""
    assert len(said.tags) == MAX_TAGS


def test_a_scraped_pdf_is_cited_with_its_address(tmp_path: Path) -> None:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica")
    pdf.cell(text="Everybody has 30 days.")
    data, path, url = bytes(pdf.output()), tmp_path / "example.org" / "leave.pdf", "https://example.org/leave.pdf"
    entry = {"file": "example.org/leave.pdf", "sha256": hashlib.sha256(data).hexdigest()}
    state = tmp_path / SCRAPE_STATE
    assert parse(path, data).provenance.url == ""
    state.write_text(json.dumps({"https://example.org/": {"file": "example.org/index.md", "sha256": ""}, url: entry}))
    assert parse(path, data).provenance.url == url
    assert parse(path, data.replace(b"PDF-1.3", b"PDF-1.4")).provenance.url == "", "another file than was scraped"
    for place, damaged in enumerate(("{", "[]", '{"a": 1}', json.dumps({"javascript:x": entry}), "[" * 100_000)):
        state.write_text(damaged + " " * place)
        assert parse(path, data).provenance.url == ""


def test_the_day_that_a_program_writes_to_make_the_same_pdf_each_time_is_no_date() -> None:
    fixed = "D:20000101000000+00'00'"
    assert pdf_provenance({"CreationDate": fixed}).date == ""
    assert pdf_provenance({"CreationDate": fixed, "ModDate": "D:20240501120000Z"}).date == "2024-05-01"
    assert pdf_provenance({"CreationDate": "D:20000102000000Z"}).date == "2000-01-02"


def test_tags_of_org_and_tags_parted_by_spaces() -> None:
    org = "#+FILETAGS: :rope:chain:\n* Due :winch:\nAt 10:30: call\n"
    assert parse(Path("a.org"), org.encode()).provenance.tags == ("rope", "chain", "winch")
    for said, tags in (("rope chain", ("rope", "chain")), ("paid leave, rope", ("paid leave", "rope"))):
        assert parse(Path("a.md"), f"---\ntags: {said}\n---\nx\n".encode()).provenance.tags == tags
