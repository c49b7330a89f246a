"""Scanned pages: which of them wait for OCR, what is kept of those that it has read, and how well they are read."""

import io
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from local_rag.errors import ReadError
from local_rag.reading.converters.images import pdf_of_image
from local_rag.reading.converters.pdf import convert_pdf
from local_rag.reading.converters.pdf_page import Cell, Line, RecognizedPage
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.ocr import Box, PageReader, engine, lines_of_boxes
from local_rag.reading.read import parse
from local_rag.reading.split import Splitting

SCANNED = "The boat to Alke leaves at seven."


def scan(*pages: str | None, dpi: int = 150) -> bytes:
    """Make a PDF whose pages are images of text, blank ones where it is None; text after a `=` stays text."""
    import pypdfium2
    from fpdf import FPDF

    drawn, scanned = FPDF(), FPDF(unit="pt")
    for text in pages:
        drawn.add_page()
        drawn.set_font("times", size=12)
        drawn.multi_cell(0, 6, text or " ")
    for text, page in zip(pages, pypdfium2.PdfDocument(bytes(drawn.output())), strict=True):
        width, height = page.get_size()
        scanned.add_page(format=(width, height))
        if text and text.startswith("="):
            scanned.set_font("times", size=12)
            scanned.multi_cell(0, 14, text[1:])
        elif text:
            image = io.BytesIO()
            page.render(scale=dpi / 72).to_pil().convert("L").save(image, "PNG")
            scanned.image(image, 0, 0, width, height)
    return bytes(scanned.output())


def read_as(text: str, confidence: float = 0.9) -> RecognizedPage:
    return RecognizedPage(
        tuple(Line((Cell(line, 50, 300),), 700 - 15 * n, 12) for n, line in enumerate(text.split("\n"))), confidence
    )


def test_scanned_pages_wait_for_ocr_and_blank_ones_do_not() -> None:
    converted = convert_pdf(scan("=Words", SCANNED, None, SCANNED))
    assert converted.notes == ("2 of 4 pages wait for OCR, the extra `ocr`",)
    assert converted.waiting == 2
    assert converted.ocr == ()
    with pytest.raises(ReadError, match=r"no text layer: 1 of 1 pages waits for OCR") as error:
        convert_pdf(scan(SCANNED))
    assert error.value.waiting == 1


def test_pages_with_text_are_never_given_to_ocr() -> None:
    asked = []

    def recognize(_page: Any, number: int) -> RecognizedPage:
        asked.append(number)
        return read_as("Scanned words\nof the page")

    converted = convert_pdf(scan("=Words", SCANNED, "=More words", None), recognize)
    assert asked == [1]
    first_lines = [converted.text[start:].split("\n")[0] for start in converted.pages]
    assert first_lines == ["Words", "Scanned words of the page", "More words", ""]
    assert converted.ocr == ((converted.pages[1], converted.pages[2], 0.9),)
    assert (converted.waiting, converted.notes) == (0, ())


def test_a_page_without_text_is_not_read_by_ocr() -> None:
    with pytest.raises(ReadError, match="contains no text"):
        convert_pdf(scan(SCANNED), lambda _page, _number: RecognizedPage((), 0.0))


def image(kind: str, *texts: str) -> bytes:
    """Return an image with words on each of its pages."""
    pages = [Image.new("L", (400, 60), "white") for _ in texts]
    for page, text in zip(pages, texts, strict=True):
        ImageDraw.Draw(page).text((10, 20), text)
    made = io.BytesIO()
    pages[0].save(made, kind, **({"save_all": True, "append_images": pages[1:]} if pages[1:] else {}))
    return made.getvalue()


def mail_with(**files: bytes) -> bytes:
    message = EmailMessage()
    message["Subject"] = "Scans"
    message.set_content("Here they are.")
    for name, data in files.items():
        stem, _, suffix = name.rpartition("_")
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=f"{stem}.{suffix}")
    return message.as_bytes()


def test_attached_scans_and_images_are_read_by_ocr_and_the_rest_of_the_mail_is_not() -> None:
    asked: list[int] = []

    def recognize(_page: Any, number: int) -> RecognizedPage:
        asked.append(number)
        return read_as(f"Scanned words {len(asked)}", 0.5 + 0.1 * len(asked))

    inner = mail_with(inner_png=image("PNG", "x"))
    data = mail_with(
        scan_pdf=scan(SCANNED, "=Text"), photo_JPG=image("JPEG", "x"), fax_tiff=image("TIFF", "x", "y"), old_eml=inner
    )
    document = parse(Path("a.eml"), data, recognize=recognize)
    assert len(set(asked)) == 5, "each page has a number of its own"
    assert [document.text[start:end].strip() for start, end, _ in document.ocr] == [
        f"Scanned words {n}" for n in range(1, 6)
    ]
    assert [confidence for *_, confidence in document.ocr] == pytest.approx([0.6, 0.7, 0.8, 0.9, 1.0])
    assert (document.waiting, document.notes) == (0, ())
    titles = [heading.title for heading in document.headings]
    assert titles == [
        "Attachment: scan.pdf",
        "Attachment: photo.JPG",
        "Attachment: fax.tiff",
        "Attachment: old.eml",
        "Attachment: inner.png",
    ]


def test_attached_scans_and_images_wait_for_ocr() -> None:
    data = mail_with(scan_pdf=scan(SCANNED, SCANNED), mixed_pdf=scan("=Text", SCANNED), photo_png=image("PNG", "x"))
    document = parse(Path("a.eml"), data)
    assert document.waiting == 4
    assert document.notes == (
        "the attachment scan.pdf is left out: no text layer: 2 of 2 pages wait for OCR, the extra `ocr`",
        "mixed.pdf: 1 of 2 pages waits for OCR, the extra `ocr`",
        "the attachment photo.png is left out: an image that waits for OCR, the extra `ocr`",
    )


@pytest.mark.parametrize(("data", "reason"), [(b"\x89PNG\r\n", "damaged image"), (b"GIF89a", "damaged image")])
def test_a_damaged_image_is_noted(data: bytes, reason: str) -> None:
    document = parse(Path("a.eml"), mail_with(a_png=data), recognize=lambda _page, _number: read_as("x"))
    assert reason in document.notes[0]


def test_an_image_that_claims_to_be_huge_is_not_opened() -> None:
    header = image("PNG", "x")
    huge = header[:16] + struct.pack(">II", 50_000, 50_000) + header[24:]
    huge = huge[:29] + struct.pack(">I", zlib.crc32(huge[12:29])) + huge[33:]
    with pytest.raises(ReadError, match="too large"):
        pdf_of_image(huge)


def test_only_chunks_with_scanned_text_say_so(splitting: Splitting) -> None:
    body = "The harbour is open all day. " * 40
    data = mail_with(note_txt=body.encode(), scan_png=image("PNG", "x"))
    document = parse(Path("a.eml"), data, recognize=lambda _page, _number: read_as("The ferry is late. " * 30, 0.7))
    chunks = splitting.split(document)
    assert {chunk.ocr for chunk in chunks if "ferry" in chunk.text} == {0.7}
    assert {chunk.ocr for chunk in chunks if "ferry" not in chunk.text} == {None}


def test_pages_that_were_read_are_kept(tmp_path: Path) -> None:
    asked, announced = [], []

    def recognize(page: Any) -> RecognizedPage:
        asked.append(page)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return read_as(f"Page {len(asked)}")

    def read(version: str = "1") -> str:
        reader = PageReader(tmp_path / "abc", lambda: announced.append(1), engine=lambda: version, recognize=recognize)
        return convert_pdf(scan(SCANNED, SCANNED), reader).text

    with pytest.raises(KeyboardInterrupt):
        read()
    assert read().split() == ["Page", "1", "Page", "3"]
    assert read().split() == ["Page", "1", "Page", "3"]
    assert len(asked) == len(announced) == 3
    for file in (tmp_path / "abc").iterdir():
        file.write_text("{")
    assert read().split() == ["Page", "4", "Page", "5"]
    assert read("2").split() == ["Page", "6", "Page", "7"], "another engine reads again"


def boxes(*given: tuple[str, float, float]) -> Sequence[Box]:
    return [Box(text, left, top, left + 5 * len(text), top + 10, 0.9) for text, left, top in given]


def test_boxes_beside_each_other_are_a_line() -> None:
    found = list(
        lines_of_boxes(boxes(("Days", 200, 11), ("Norway", 10, 30), ("Country", 10, 10), ("25", 200, 31)), 100)
    )
    assert [[cell.text for cell in line.cells] for line in found] == [["Country", "Days"], ["Norway", "25"]]
    assert found[0].top > found[1].top


def test_columns_of_prose_are_read_one_after_the_other() -> None:
    left = [(f"the left column, line {number}", 10.0, 12.0 * number) for number in range(6)]
    right = [(f"the right column, line {number}", 300.0, 12.0 * number) for number in range(6)]
    read = [line.text for line in lines_of_boxes(boxes(*right, *left), 100)]
    assert read == [text for text, _, _ in (*left, *right)]


@pytest.mark.skipif(not engine(), reason="needs the extra ocr")
def test_a_scanned_page_is_read_in_the_isolated_process(splitting: Splitting, tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(scan(SCANNED))
    with IsolatedReader(replace(splitting, ocr_folder=tmp_path / "ocr")) as reader:
        read = reader.read(path)
    assert read.document.text == SCANNED
    ((start, end, confidence),) = read.document.ocr
    assert (start, end, read.chunks[0].ocr) == (0, len(SCANNED), confidence)
    assert confidence > 0.9
    (kept,) = (tmp_path / "ocr").iterdir()
    assert kept.name == read.sha256
