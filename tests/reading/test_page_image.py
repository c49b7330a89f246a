"""Pages of a PDF drawn in another process: with the passage marked, and nothing that harms the server."""

import io
from pathlib import Path

import numpy as np
import pytest
from fpdf import FPDF
from PIL import Image

from local_rag.errors import ReadError
from local_rag.reading.page_image import draw_page

SENTENCE = "The lamp changer carries eleven bulbs."


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    made = FPDF()
    made.set_font("helvetica", size=14)
    for text in ("A page of another thing.", SENTENCE):
        made.add_page()
        made.cell(text=text)
    made.output(str(tmp_path / "manual.pdf"))
    return tmp_path / "manual.pdf"


def yellow(data: bytes) -> int:
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    return int(((red > 200) & (green > 180) & (blue < 120)).sum())


@pytest.mark.slow
def test_the_passage_is_marked_on_its_page(pdf: Path) -> None:
    assert yellow(draw_page(pdf, 2, f"Some context.\n{SENTENCE}")) > 500
    assert yellow(draw_page(pdf, 2)) == 0
    assert yellow(draw_page(pdf, 1, SENTENCE)) == 0


@pytest.mark.parametrize("page", [0, 3, 10**9])
def test_a_missing_page_is_reported(pdf: Path, page: int) -> None:
    with pytest.raises(ReadError, match="has no page"):
        draw_page(pdf, page)


def test_a_huge_page_has_few_pixels(tmp_path: Path) -> None:
    made = FPDF(format=(5000, 5000))
    made.add_page()
    made.output(str(tmp_path / "huge.pdf"))
    image = Image.open(io.BytesIO(draw_page(tmp_path / "huge.pdf", 1)))
    assert image.width * image.height <= 4_100_000


def test_a_page_that_cannot_be_drawn_gives_a_reason(tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.7\nnothing")
    for name, reason in (("bad.pdf", "damaged"), ("missing.pdf", "cannot be opened")):
        with pytest.raises(ReadError, match=reason):
            draw_page(tmp_path / name, 1)
    (tmp_path / "link.pdf").symlink_to("/etc/passwd")
    with pytest.raises(ReadError):
        draw_page(tmp_path / "link.pdf", 1)
