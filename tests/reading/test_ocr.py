"""Scanned pages: which of them wait for OCR, what is kept of those that it has read, and how well they are read."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag.errors import ReadError
from local_rag.reading.converters.pdf import convert_pdf
from local_rag.reading.converters.pdf_page import Cell, Line
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.ocr import Box, PageReader, RecognizedPage, engine, lines_of_boxes
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
    assert (converted.ocr, converted.waiting, converted.notes) == (((2, 0.9),), 0, ())


def test_a_page_without_text_is_not_read_by_ocr() -> None:
    with pytest.raises(ReadError, match="contains no text"):
        convert_pdf(scan(SCANNED), lambda _page, _number: RecognizedPage((), 0.0))


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
    ((page, confidence),) = read.document.ocr
    assert (page, read.chunks[0].ocr) == (1, confidence)
    assert confidence > 0.9
    (kept,) = (tmp_path / "ocr").iterdir()
    assert kept.name == read.sha256
