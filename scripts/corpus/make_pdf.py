"""Generate the PDF of the demo corpus from its Markdown source, with the same bytes every time."""

import re
from datetime import UTC, datetime
from pathlib import Path

from fpdf import FPDF
from fpdf.enums import TableBordersLayout, TextEmphasis
from fpdf.fonts import FontFace

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("lamp_changer_handbook.md")
TARGET = ROOT / "corpus" / "manuals" / "lamp-changer-lc-12.pdf"

LINE_HEIGHT = 6.0  # millimetres
LAST_HEADING = 240.0  # a heading below this, in millimetres, goes to the next page
LAST_TABLE = 190.0  # a table below this goes to the next page, so it is not split


class Handbook(FPDF):  # type: ignore[misc]  # fpdf2 is left out of the type check
    """A page layout with a running head and a page number, as readers of PDF files have to handle."""

    def header(self) -> None:
        """Print the short title at the top of each page but the first."""
        if self.page_no() > 1:
            self.set_font("Helvetica", size=8)
            self.cell(w=0, text="LC-12 handbook, issue 5", align="R")
            self.ln(12)

    def footer(self) -> None:
        """Print the page number."""
        self.set_y(-15)
        self.set_font("Helvetica", size=8)
        self.cell(w=0, text=f"Page {self.page_no()}", align="C")


def write_table(pdf: Handbook, rows: list[list[str]]) -> None:
    """Lay out a table whose columns are as wide as their longest cells."""
    widths = tuple(max(len(cell) for cell in column) + 3 for column in zip(*rows, strict=True))
    heading = FontFace(emphasis=TextEmphasis.B)
    with pdf.table(
        rows,
        col_widths=widths,
        text_align="LEFT",
        line_height=LINE_HEIGHT,
        headings_style=heading,
        borders_layout=TableBordersLayout.HORIZONTAL_LINES,
    ):
        pass


def write_block(pdf: Handbook, block: str) -> None:
    """Lay out one Markdown block: a heading, a table, a list or a paragraph."""
    if block.startswith("#"):
        marks, _, title = block.partition(" ")
        if pdf.get_y() > LAST_HEADING:
            pdf.add_page()
        pdf.set_font("Helvetica", style="B", size=22 if marks == "#" else 14)
        pdf.multi_cell(w=0, h=10, text=title, align="L", new_x="LMARGIN", new_y="NEXT")
    elif block.startswith("|"):
        lines = [line for line in block.splitlines() if not re.fullmatch(r"[|\- ]+", line)]
        if pdf.get_y() > LAST_TABLE:
            pdf.add_page()
        pdf.set_font("Helvetica", size=11)
        write_table(pdf, [[cell.strip() for cell in line.strip("|").split("|")] for line in lines])
    else:
        pdf.set_font("Helvetica", size=11)
        for item in re.split(r"\n(?=- |\d\. )", block):
            text = re.sub(r"^- ", "\u00b7 ", " ".join(item.split()))
            pdf.multi_cell(w=0, h=LINE_HEIGHT, text=text, align="L", new_x="LMARGIN", new_y="NEXT")
    pdf.ln(3)


def handbook_bytes() -> bytes:
    """Lay out the handbook, with a fixed date and no compression, because the output of zlib differs by version."""
    pdf = Handbook(format="A4")
    pdf.set_creation_date(datetime(2024, 10, 2, 8, 0, tzinfo=UTC))
    pdf.set_compression(False)
    pdf.set_producer("scripts/make_corpus_pdf.py")  # its first name, which the bytes of the PDF keep
    pdf.set_title("Lamp changer LC-12: keeper's handbook")
    pdf.set_author("Lantern and Tide Cooperative")
    pdf.set_margins(22, 20)
    pdf.set_auto_page_break(True, margin=22)
    pdf.add_page()
    for block in SOURCE.read_text(encoding="utf-8").strip().split("\n\n"):
        write_block(pdf, block)
    return bytes(pdf.output())


if __name__ == "__main__":
    TARGET.write_bytes(handbook_bytes())
    print(TARGET.relative_to(ROOT))
