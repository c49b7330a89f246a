"""PDFs: sections, columns of numbers, headers of pages, broken words, pages without text."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.reading.golden.case import Case, Cell
from tests.reading.test_ocr import read_as, scan

LONG = "It says how the boats of the harbour are run, and by whom. " * 6


def pdf(draw: Callable[[Any], None], *, pages: int = 1, header: str = "") -> bytes:
    from fpdf import FPDF

    class Pages(FPDF):  # type: ignore[misc]
        def header(self) -> None:
            if header:
                self.set_font("helvetica", size=9)
                self.cell(0, 8, header, new_x="LMARGIN", new_y="NEXT")

    made = Pages()
    for _ in range(pages):
        made.add_page()
        draw(made)
    return bytes(made.output())


def write(made: Any, text: str, size: int = 11) -> None:
    made.set_font("helvetica", size=size)
    made.multi_cell(0, size * 0.55, text, new_x="LMARGIN", new_y="NEXT")


def table(made: Any, rows: Sequence[Sequence[str]]) -> None:
    made.set_font("helvetica", size=10)
    with made.table(first_row_as_headings=False) as drawn:
        for cells in rows:
            row = drawn.row()
            for cell in cells:
                row.cell(cell)


def sections(made: Any) -> None:
    write(made, "Ferry", 22)
    write(made, f"The ferry leaves at seven. {LONG}")
    write(made, "Rules", 16)
    write(made, f"Dogs travel free of charge. {LONG}")


def outlined(made: Any) -> None:
    for title, text in (("Ferry", "The ferry leaves at seven."), ("Rules", "Dogs travel free of charge.")):
        made.set_font("helvetica", size=11)
        made.start_section(title)
        write(made, title)
        write(made, text)


def numbered(made: Any) -> None:
    write(made, f"Part {'abcdef'[made.page_no()]} tells of boats.")
    write(made, LONG)


def in_columns(made: Any) -> None:
    made.set_font("helvetica", size=11)
    with made.text_columns(ncols=2, gutter=12) as columns:
        columns.write(f"{LONG}\n\nThe left column ends with the\nferry to Alke. {LONG * 3}\n\n")
        columns.new_column()
        columns.write(f"{LONG * 2}\n\nThe right column tells of dogs.\n\n{LONG}")


def continued(made: Any) -> None:
    rows = LEAVE if made.page_no() == 1 else [["Sweden", "28", "12"], ["Malta", "24", "9"], ["Spain", "22", "6"]]
    table(made, rows)


def mixed_sizes(made: Any) -> None:
    write(made, "7", 11)
    write(made, "Ferry", 20)
    write(made, f"The ferry leaves at seven. {LONG}")


LEAVE = [["Country", "Days", "Rest"], ["Norway", "25", "10"], ["Ireland", "20", "5"]]
MONEY = [["Item", "2023", "2024"], ["Rent", "100", "120"], ["Food", "", "90"], ["Sum", "1", "2"]]
UNDER = {"The ferry leaves at seven.": "Ferry", "Dogs travel free of charge.": "Rules"}
CASES = [
    Case("sizes.pdf", lambda: pdf(sections), UNDER),
    Case("outline.pdf", lambda: pdf(outlined), UNDER),
    Case(
        "table.pdf",
        lambda: pdf(lambda made: table(made, LEAVE)),
        cells=(Cell("25", "Days", "Norway"), Cell("5", "Rest", "Ireland"), Cell("Ireland", "Country")),
    ),
    Case(
        "years.pdf",
        lambda: pdf(lambda made: table(made, MONEY)),
        cells=(Cell("100", "2023", "Rent"), Cell("90", "2024", "Food")),
    ),
    Case(
        "running.pdf",
        lambda: pdf(numbered, pages=4, header="Contract no. 4711"),
        {"Contract no. 4711": "", "Part b tells of boats.": "", "Part e tells of boats.": ""},
    ),
    Case(
        "two-columns.pdf",
        lambda: pdf(in_columns),
        dict.fromkeys(("The left column ends with the ferry to Alke.", "The right column tells of dogs."), ""),
    ),
    Case(
        "continued-table.pdf",
        lambda: pdf(continued, pages=2),
        cells=(Cell("25", "Days", "Norway"), Cell("28", "Days", "Sweden"), Cell("9", "Rest", "Malta")),
    ),
    Case("number-above-the-title.pdf", lambda: pdf(mixed_sizes), {"The ferry leaves at seven.": "Ferry"}),
    Case(
        "scan.pdf",
        lambda: scan("x", "x"),
        {"The ferry leaves at seven.": "", "Dogs travel free of charge.": ""},
        recognize=lambda _page, number: read_as(("The ferry leaves\nat seven.", "Dogs travel free of charge.")[number]),
    ),
    Case(
        "scanned-appendix.pdf",
        lambda: scan("=The ferry leaves at seven.", "x"),
        {"The ferry leaves at seven.": ""},
        noted={"Dogs travel free of charge.": "1 of 2 pages waits for OCR"},
    ),
    Case(
        "broken-words.pdf",
        lambda: pdf(lambda made: write(made, "Die Pr\u00fcfungs-\n\u00fcbersicht ist f\u00fcr\n\u00c4rzte gemacht.")),
        {"Die Pr\u00fcfungs\u00fcbersicht ist f\u00fcr \u00c4rzte gemacht.": ""},
    ),
]
