"""Measure how many words of scanned pages OCR reads right: pages drawn from known text, at 150 and at 300 dpi.

    python -m scripts.benchmarks scans [--pages 20] [--output FILE]

The text is that of `corpus/`, in three fonts. It needs the extra `ocr`.
"""

import argparse
import difflib
import io
import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from local_rag.reading.ocr import engine, recognize

_WORDS = 330  # on a page
_FONTS = (("helvetica", 11, 6), ("times", 10, 5), ("courier", 11, 6))  # name, size, height of a line
_DOTS = (150, 300)


def known_pages(count: int) -> Iterator[tuple[list[str], bytes]]:
    """Yield the words of each page and a PDF with them."""
    from fpdf import FPDF

    texts = (path.read_text(encoding="utf-8") for path in sorted(Path("corpus").rglob("*.md")))
    words = re.sub(r"[#*_`|\[\]<>]+|-{2,}", " ", " ".join(texts)).encode("latin-1", "ignore").decode("latin-1").split()
    for number in range(count):
        name, size, height = _FONTS[number % len(_FONTS)]
        mine = words[number * _WORDS : (number + 1) * _WORDS]
        pdf = FPDF()
        pdf.add_page()
        pdf.set_font(name, size=size)
        pdf.multi_cell(0, height, " ".join(mine), align="L")
        yield mine, bytes(pdf.output())


def scanned(drawn: bytes, dots: int) -> Any:
    """Return the page as an image in a PDF, as a scanner makes it."""
    import pypdfium2
    from fpdf import FPDF

    page = pypdfium2.PdfDocument(drawn)[0]
    width, height = page.get_size()
    image, scan = io.BytesIO(), FPDF(unit="pt")
    page.render(scale=dots / 72).to_pil().convert("L").save(image, "PNG")
    scan.add_page(format=(width, height))
    scan.image(image, 0, 0, width, height)
    return pypdfium2.PdfDocument(bytes(scan.output()))[0]


def share_right(words: Sequence[str], read: Sequence[str]) -> float:
    """Return the share of the words that were read, each exactly and in its place."""
    blocks = difflib.SequenceMatcher(None, words, read, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(words)


def main() -> None:
    """Measure and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    figures = {}
    for dots in _DOTS:
        shares, seconds = [], 0.0
        for words, drawn in known_pages(arguments.pages):
            page = scanned(drawn, dots)
            started = time.perf_counter()
            read = recognize(page)
            seconds += time.perf_counter() - started
            shares.append(share_right(words, " ".join(line.text for line in read.lines).split()))
        figures[f"{dots} dpi"] = {
            "words_right": round(sum(shares) / len(shares), 4),
            "worst_page": round(min(shares), 4),
            "seconds_per_page": round(seconds / len(shares), 1),
        }
        print(f"{dots} dpi: {figures[f'{dots} dpi']}", flush=True)
    if arguments.output:
        said = {"engine": engine(), "pages": arguments.pages, "figures": figures}
        arguments.output.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
