"""What becomes of a PDF: headings, tables, titles, words broken at the end of a line, lines that every page repeats."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from local_rag.reading.converters.converted import Converted
from local_rag.reading.converters.pdf import convert_pdf, rejoin_words
from local_rag.reading.read import make_document
from local_rag.reading.split import split
from tests.reading.test_split import WORDS
from tests.support.pdf_files import pdf_file, remark

Draw = Callable[[Any], None]


def pdf_of(*pages: Draw, header: str = "", footer: str = "", title: str = "") -> Converted:
    from fpdf import FPDF

    class Pages(FPDF):  # type: ignore[misc]
        def header(self) -> None:
            if header:
                self.set_font("helvetica", size=9)
                self.cell(0, 8, header, new_x="LMARGIN", new_y="NEXT")

        def footer(self) -> None:
            if footer:
                self.set_y(-15)
                self.set_font("helvetica", size=9)
                self.cell(0, 8, footer.format(self.page_no()))

    pdf = Pages()
    if title:
        pdf.set_title(title)
    for draw in pages:
        pdf.add_page()
        draw(pdf)
    return convert_pdf(bytes(pdf.output()))


def text(content: str, size: int = 11, section: str = "", level: int = 0) -> Draw:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=size)
        if section:
            pdf.start_section(section, level=level)
        pdf.multi_cell(0, size * 0.55, content, new_x="LMARGIN", new_y="NEXT")

    return draw


def table(rows: Sequence[Sequence[str]]) -> Draw:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=10)
        with pdf.table(first_row_as_headings=False) as drawn:
            for cells in rows:
                row = drawn.row()
                for cell in cells:
                    row.cell(cell)

    return draw


def page(*parts: Draw) -> Draw:
    def draw(pdf: Any) -> None:
        for part in parts:
            part(pdf)

    return draw


LEAVE = [["Country", "Days", "Carry over"], ["Norway", "25", "10"], ["Ireland", "20", "5"], ["Portugal", "22", "0"]]


def test_headings_come_from_the_outline() -> None:
    converted = pdf_of(
        page(
            text("Part 1: Leave", section="Part 1: Leave"),
            text("You get 25 days."),
            text("Sick leave", section="Sick leave", level=1),
            text("Call us."),
        ),
        page(text("The rest", section="Not on the page"), text("Nothing.")),
    )
    assert converted.headings is not None
    assert [(one.level, one.title) for one in converted.headings] == [
        (1, "Part 1: Leave"),
        (2, "Sick leave"),
        (1, "Not on the page"),
    ]
    assert [converted.text[one.start :].split("\n")[0] for one in converted.headings] == [
        "Part 1: Leave",
        "Sick leave",
        "The rest",
    ]


def test_without_an_outline_large_lines_are_headings() -> None:
    body = text("Text of a part that goes on for a while. " * 8)
    converted = pdf_of(page(text("Staff handbook", 24), text("Leave", 16), body), page(text("Pay", 16), body))
    assert converted.headings is not None
    assert [(one.level, one.title) for one in converted.headings] == [(1, "Staff handbook"), (2, "Leave"), (2, "Pay")]
    chunks = split(make_document(Path("a.pdf"), converted), tokenizer=WORDS, max_tokens=60)
    assert chunks[-1].headings == ("Staff handbook", "Pay")


def test_text_of_one_size_has_no_headings() -> None:
    assert pdf_of(text("One line.\nAnother.")).headings == ()


@pytest.mark.parametrize(
    ("said", "parts", "title"),
    [
        ("", (text("7", 11), text("Real title of it")), "Real title of it"),
        ("12345", (text("3 / 4"), text("Words")), "Words"),
        ("", (text("Preface", 9), text("The sea", 22), text("Text. " * 60)), "The sea"),
        ("Boats", (text("The sea", 22), text("Text. " * 60)), "Boats"),
        ("", (text("12 34"),), None),
    ],
)
def test_a_title_has_words(said: str, parts: tuple[Draw, ...], title: str | None) -> None:
    assert pdf_of(page(*parts), title=said).title == title


def test_columns_of_the_text_are_a_table() -> None:
    converted = pdf_of(
        page(text("Leave by country, as agreed with the unions in May."), table(LEAVE), text("Ask the office."))
    )
    assert "| Country | Days | Carry over |\n| --- | --- | --- |\n| Norway | 25 | 10 |" in converted.text
    assert converted.tables is not None
    assert [one.columns for one in converted.tables] == [("Country", "Days", "Carry over")]
    assert converted.text[converted.tables[0].rows :].startswith("| Norway |")
    assert converted.text.endswith("| Portugal | 22 | 0 |\n\nAsk the office.")


def test_years_above_numbers_and_blank_cells() -> None:
    converted = pdf_of(
        table([["", "2023", "2024"], ["Revenue", "100", "120"], ["Costs", "", "90"], ["Profit", "20", "30"]])
    )
    assert "|  | 2023 | 2024 |" in converted.text
    assert "| Costs |  | 90 |" in converted.text


def test_numbers_without_names_are_rows_without_a_header() -> None:
    converted = pdf_of(table([["Norway", "25", "10"], ["Ireland", "20", "5"], ["Portugal", "22", "0"]]))
    assert converted.tables == ()
    assert converted.text == "| Norway | 25 | 10 |\n| Ireland | 20 | 5 |\n| Portugal | 22 | 0 |"


def test_a_table_that_goes_on_on_the_next_page_keeps_its_header() -> None:
    rows = [[f"Country {number}", str(number), str(number % 7)] for number in range(60)]
    converted = pdf_of(page(text("Leave by country, as agreed."), table([LEAVE[0], *rows])))
    assert len(converted.pages) > 1
    assert converted.tables is not None
    assert {one.columns for one in converted.tables} == {("Country", "Days", "Carry over")}
    chunks = split(make_document(Path("a.pdf"), converted), tokenizer=WORDS, max_tokens=80)
    for chunk in chunks:
        below = chunk.text.startswith("| Country ") and not chunk.text.startswith("| Country |")
        assert (chunk.table_header == "| Country | Days | Carry over |") == below


def test_text_in_two_columns_is_no_table() -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=10)
        for line in range(6):
            for left, side in ((10, "left"), (110, "right")):
                pdf.text(left, 20 + 5 * line, f"Line {line} of the {side} column, which is prose all the way")

    assert "|" not in pdf_of(draw).text


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        (
            "die Pr\u00fcfungs\ufffe\u00fcbersicht und die Gr\u00f6\ufffe\u00dfe",
            "die Pr\u00fcfungs\u00fcbersicht und die Gr\u00f6\u00dfe",
        ),
        ("\u043e\u0442\u043f\u0443\ufffe\u0441\u043a\u0430", "\u043e\u0442\u043f\u0443\u0441\u043a\u0430"),
        ("\u05e9\u05dc\ufffe\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("docu\u00adment", "document"),
        ("Rhine\ufffeMain", "Rhine-Main"),
        ("2020\ufffe21", "2020-21"),
    ],
)
def test_broken_words_are_rejoined_in_any_script(broken: str, whole: str) -> None:
    assert rejoin_words(broken) == whole


def test_lines_are_rejoined_in_any_script() -> None:
    assert pdf_of(text("die Pr\u00fcfungs-\n\u00fcbersicht f\u00fcr\n\u00e4ltere Menschen. Die\n\u00c4rzte")).text == (
        "die Pr\u00fcfungs\u00fcbersicht f\u00fcr \u00e4ltere Menschen. Die\n\u00c4rzte"
    )


def test_what_every_page_repeats_is_kept_once() -> None:
    pages = [text(f"Part {letter}.\nOnly here.") for letter in "abcd"]
    converted = pdf_of(*pages, header="Contract no. 4711", footer="Page {} of 4")
    assert converted.text.count("Contract no. 4711") == 1
    assert converted.text.count("Page ") == 1
    assert [line for line in converted.text.split("\n") if "Part" in line] == [f"Part {letter}." for letter in "abcd"]
    assert converted.text.count("Only here.") >= 1


def test_what_two_pages_share_stays() -> None:
    converted = pdf_of(text("Same line.\nOne."), text("Same line.\nTwo."))
    assert converted.text.count("Same line.") == 2


def test_what_numbers_two_pages_is_kept_once() -> None:
    converted = pdf_of(text("Only one."), text("Only two."), header="Lease, in force", footer="Lease - page {}")
    assert converted.text.count("Lease - page") == 1
    assert converted.text.count("Lease, in force") == 2


LINES = [
    "The parties agree that the vessel Skua",
    "is delivered at Brekk on 4 May 2024 and",
    "that the price of 82,000 crowns is paid",
    "within thirty days. The seller bears the",
    "risk until delivery. The buyer inspects",
    "the vessel within two weeks and tells",
]


def placed(*texts: tuple[float, float, str]) -> Draw:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=11)
        for left, top, one in texts:
            pdf.text(left, top, one)

    return draw


def test_numbers_that_count_lines_are_no_text_and_those_of_a_table_are() -> None:
    deed = [(at, one) for at, one in enumerate(LINES)]
    numbered = placed(
        *((10, 30 + 8 * at, str(at + 1)) for at, _ in deed), *((25, 30 + 8 * at, one) for at, one in deed)
    )
    assert "82,000 crowns is paid within thirty days." in " ".join(pdf_of(numbered).text.split())
    near = placed(*((10, 30 + 8 * at, f"{at + 1} {one}") for at, one in deed))
    assert "82,000 crowns is paid within thirty days." in " ".join(pdf_of(near).text.split())
    items = ["Rope", "Buoy", "Lamp", "Anchor", "Oar"]
    table = [(10, 30 + 8 * at, str(at + 1)) for at in range(5)] + [
        (25, 30 + 8 * at, one) for at, one in enumerate(items)
    ]
    assert "5" in pdf_of(placed(*table)).text


def test_letters_that_are_set_apart_are_words() -> None:
    spaced = "T h e   l o c k   i s   c l o s e d"
    assert "The lock is closed" in pdf_of(placed((20, 30, "Harbour office"), (20, 40, spaced))).text
    assert "a b c" in pdf_of(placed((20, 30, "a b c"))).text


def test_the_letters_of_one_word_are_set_apart_within_a_line() -> None:
    line = "This is  I m p o r t a n t  for all, grades A B C D too."
    assert "This is Important for all, grades A B C D too." in pdf_of(placed((20, 30, "Office"), (20, 40, line))).text


def test_a_turned_line_is_no_title() -> None:
    def draw(pdf: Any) -> None:
        with pdf.rotation(45, 100, 150):
            pdf.set_font("helvetica", size=60)
            pdf.text(60, 150, "DRAFT")
        pdf.set_font("helvetica", size=11)
        for at, one in enumerate(LINES):
            pdf.text(20, 30 + 8 * at, one)

    assert pdf_of(draw).title == LINES[0]


@pytest.mark.parametrize(("state", "shown"), [("OFF", "Price 7,500"), ("ON", "Draft 9,999 Price 7,500")])
def test_text_on_a_layer_that_is_off_is_hidden(state: str, shown: str) -> None:
    drawn = "/OC /L BDC BT /F 12 Tf 72 700 Td (Draft 9,999) Tj ET EMC BT /F 12 Tf 72 660 Td (Price 7,500) Tj ET"
    objects = [
        f"<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[5 0 R]/D<</{state}[5 0 R]>>>>>>",
        "<</Type/Pages/Count 1/Kids[3 0 R]>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 6 0 R"
        "/Resources<</Font<</F 4 0 R>>/Properties<</L 5 0 R>>>>>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        "<</Type/OCG/Name(Old)>>",
        f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream",
    ]
    body = "".join(f"{number} 0 obj\n{one}\nendobj\n" for number, one in enumerate(objects, start=1))
    read = convert_pdf(f"%PDF-1.7\n{body}trailer<</Size 7/Root 1 0 R>>\n%%EOF".encode())  # PDFium finds the objects
    assert " ".join(read.text.split()) == shown
    assert read.notes == (("2 hidden words are left out",) if state == "OFF" else ())


def test_pages_keep_the_labels_that_differ_from_their_numbers() -> None:
    labels = iter([{"label_style": "D"}, {"label_style": "R"}, {"label_prefix": "Page A-", "label_style": "D"}])

    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=11)
        pdf.text(20, 30, f"Channel {pdf.page_no()}")
        pdf.set_page_label(**next(labels), label_start=1)

    read = make_document(Path("a.pdf"), pdf_of(draw, draw, draw))
    assert read.labels == ("", "I", "A-1")
    assert read.notes == ()
    chunks = split(read, tokenizer=WORDS, max_tokens=50)
    assert [(one.page, one.page_label) for one in chunks] == [(1, ""), (2, "I"), (3, "A-1")]
    assert pdf_of(text("Channel"), text("Deep")).labels == ()


def test_a_line_through_a_word_strikes_it_out_and_one_below_it_does_not() -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=12)
        pdf.text(20, 40, "Toll is")
        for left, said, height in ((40, "70", 38.7), (60, "80", 40.7)):
            pdf.text(left, 40, said)
            pdf.line(left, height, left + pdf.get_string_width(said), height)

    assert "~~70~~" in (said := pdf_of(draw).text)
    assert "~~80" not in said


@pytest.mark.parametrize("down", [-3.0, 6.0])
def test_the_edge_of_a_box_strikes_out_no_caption(down: float) -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=12)
        pdf.text(20, 40, "Tariff")
        pdf.rect(19.5, min(38.7, 38.7 + down), pdf.get_string_width("Tariff") + 1, abs(down))

    assert "~~" not in pdf_of(draw).text


@pytest.mark.parametrize(("style", "struck"), [("D", False), ("F", True)])
def test_a_low_frame_strikes_out_nothing_and_a_thick_line_does(style: str, struck: bool) -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=12)
        pdf.text(20, 40, "Tariff")
        pdf.rect(19.5, 38.2, pdf.get_string_width("Tariff") + 1, 0.9, style=style)

    assert ("~~Tariff~~" in pdf_of(draw).text) is struck


@pytest.mark.parametrize(("layer", "told"), [("/OC << /Type /OCG /Name (Old) >>", True), ("", False)])
def test_a_remark_on_a_layer_that_may_be_off_is_told(layer: str, told: bool) -> None:
    mark = remark("Text", 100, 600, "Draft 9,999").replace("/F 4", f"/F 4 {layer}")
    read = convert_pdf(pdf_file(["BT /F1 11 Tf 72 700 Td (Price 7,500) Tj ET"], remarks=[mark]))
    assert read.notes == (("1 remark on a layer, which may be off, is read too",) if told else ())


def test_large_words_across_the_lines_are_neither_title_nor_heading() -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=80)
        pdf.text(20, 60, "SAMPLE")
        pdf.set_font("helvetica", size=11)
        for number in range(8):
            pdf.text(20, 30 + 6 * number, "The rent of the quay is paid in advance.")

    made = pdf_of(draw)
    assert made.title != "SAMPLE"
    assert not made.headings


def test_a_dash_is_not_struck_out_by_a_line_along_it() -> None:
    def draw(pdf: Any) -> None:
        pdf.set_font("helvetica", size=12)
        pdf.text(20, 40, "From - to")
        left = 20 + pdf.get_string_width("From ")
        pdf.line(left, 38.95, left + 2, 38.95)

    assert "~~" not in pdf_of(draw).text


@pytest.mark.parametrize("place", ["drawing", "around", "within"])
@pytest.mark.parametrize(("state", "shown"), [("OFF", "Price 7,500"), ("ON", "Draft 9,999 Price 7,500")])
def test_text_of_a_drawing_on_a_layer_that_is_off_is_hidden(place: str, state: str, shown: str) -> None:
    begin, end = "/OC /L BDC ", " EMC"
    draft = "BT /F 12 Tf 72 700 Td (Draft 9,999) Tj ET"
    within = f"{begin}{draft}{end}" if place == "within" else draft
    drawn = f"{begin}/X Do{end}" if place == "around" else "/X Do"
    drawn += " BT /F 12 Tf 72 660 Td (Price 7,500) Tj ET"
    named = "/Resources<</Font<</F 4 0 R>>/Properties<</L 5 0 R>>/XObject<</X 7 0 R>>>>"
    on_layer = "/OC 5 0 R" if place == "drawing" else ""
    objects = [
        f"<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[5 0 R]/D<</{state}[5 0 R]>>>>>>",
        "<</Type/Pages/Count 1/Kids[3 0 R]>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 6 0 R{named}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        "<</Type/OCG/Name(Old)>>",
        f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream",
        f"<</Type/XObject/Subtype/Form/BBox[0 0 595 842]{on_layer}{named}/Length {len(within)}>>"
        f"stream\n{within}\nendstream",
    ]
    body = "".join(f"{number} 0 obj\n{one}\nendobj\n" for number, one in enumerate(objects, start=1))
    read = convert_pdf(f"%PDF-1.7\n{body}trailer<</Size 8/Root 1 0 R>>\n%%EOF".encode())
    assert " ".join(read.text.split()) == shown


def test_numbers_in_the_right_margin_in_both_and_of_blank_lines_are_no_text() -> None:
    said = "82,000 crowns is paid within thirty days."
    right = placed(
        *((at, 30 + 8 * n, one) for n, line in enumerate(LINES) for at, one in ((25, line), (180, str(n + 1))))
    )
    both = placed(
        *((at, 30 + 8 * n, one) for n, line in enumerate(LINES) for at, one in ((9, str(n)), (25, line), (180, str(n))))
    )
    blank = placed(
        *((10, 30 + 4 * n, str(n + 1)) for n in range(2 * len(LINES))),
        *((25, 30 + 8 * n, line) for n, line in enumerate(LINES)),
        (100, 280, "57"),
    )
    for drawn in (right, both, blank):
        assert said in " ".join(pdf_of(drawn).text.split())
    assert pdf_of(blank).text.split()[-1] == "57"
