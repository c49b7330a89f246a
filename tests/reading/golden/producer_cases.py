"""What some programs write otherwise than most: classes that raise, lists to choose from, missing parts, other spans."""
# ruff: noqa: E501, RUF001  the lines of files, in other scripts

import io

from tests.reading.golden.case import Case, Cell
from tests.reading.golden.fidelity_cases import FACT, LAST, mark
from tests.support.office_files import book, saved
from tests.support.pdf_files import at, pdf_file
from tests.support.word_files import item, level, lists, paragraph, run, word_file


def form_field(inner: str, kind: str) -> str:
    begin = f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{inner}</w:ffData></w:fldChar></w:r>'
    return f"{begin}<w:r><w:instrText> {kind} </w:instrText></w:r>{mark('separate')}{mark('end')}"


def drawing(inner: str, described: str = "") -> str:
    return f'<w:r><w:drawing><wp:inline><wp:docPr id="1" name="x" descr="{described}"/>{inner}</wp:inline></w:drawing></w:r>'


PORTS = '<w:listEntry w:val="North"/><w:listEntry w:val="South"/>'
BLIP = '<pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:blipFill><a:blip r:embed="none"/></pic:blipFill></pic:pic>'
WORD = [
    Case("chosen.docx", lambda: word_file(
        paragraph(run("Pier: ") + form_field(f'<w:ddList><w:result w:val="1"/>{PORTS}</w:ddList>', "FORMDROPDOWN"))
        + paragraph(run("Berth: ") + form_field(f"<w:ddList>{PORTS}</w:ddList>", "FORMDROPDOWN") + run(" now."))
    ), {"Pier: South": "", "Berth: North now.": ""}),
    Case("sections-of-articles.docx", lambda: word_file(
        item("Boats", 1) + item("Hulls", 1, 1) + item("Fees", 1) + item(FACT, 1, 1), numbering=lists(
            level(0, "Article %1.", "upperRoman") + level(1, "Section %1.%2", "decimalZero", "<w:isLgl/>")
        ),
    ), {"Article I. Boats": "", "Section 1.01 Hulls": "", "Article II. Fees": "", f"Section 2.01 {FACT}": ""}),
    Case("missing-parts.docx", lambda: word_file(
        paragraph(run(FACT) + '<w:r><w:footnoteReference w:id="9"/></w:r><w:r><w:commentReference w:id="8"/></w:r>')
        + paragraph(drawing(f"<a:graphic><a:graphicData>{BLIP}</a:graphicData></a:graphic>") + run(LAST))
        + paragraph('<w:hyperlink r:id="gone">' + run("The rules.") + "</w:hyperlink>")
    ), {FACT: "", LAST: "", "The rules.": ""}, noted={"footnoteReference": "1 footnote that the file does not contain is left out"}),
    Case("described-shape.docx", lambda: word_file(paragraph(run("See ") + drawing("<a:graphic/>", "A plan of the quay."))),
         {"A plan of the quay.": ""}),
    Case("large-letter.docx", lambda: word_file(
        paragraph("O", '<w:framePr w:dropCap="drop" w:lines="3"/>') + paragraph("nce the ferry left.")
    ), {"Once the ferry left.": ""}),
    Case("raised-and-slanted.docx", lambda: word_file(paragraph(
        run("10") + run("-1", '<w:vertAlign w:val="superscript"/>') + run("2", '<w:i/><w:vertAlign w:val="superscript"/>')
    )), {"10⁻¹²": ""}),
]  # fmt: skip


def sheet_with_box() -> bytes:
    import xlsxwriter  # type: ignore[import-untyped]

    buffer = io.BytesIO()
    workbook = xlsxwriter.Workbook(buffer)
    sheet = workbook.add_worksheet("Fees")
    sheet.write_row(0, 0, ["Boat", "Fee"])
    sheet.write(1, 0, "Skiff")
    sheet.write_rich_string(1, 1, "4,500", workbook.add_format({"font_script": 1}), "2", " crowns")
    sheet.write_rich_string(2, 0, "H", workbook.add_format({"font_script": 2}), "2", "O tank")
    sheet.write(2, 1, 0.00001)
    sheet.insert_textbox(5, 0, FACT)
    workbook.close()
    return buffer.getvalue()


def merged_slide() -> bytes:
    from pptx import Presentation

    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    table = slide.shapes.add_table(3, 2, 0, 0, 2_000_000, 1_000_000).table
    for row, cells in enumerate((("Year", "Boat"), ("2021", "Skiff"), ("", "Yawl"))):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    return saved(presentation.save)


SHEETS = [
    Case("raised-and-box.xlsx", sheet_with_box, {FACT: "Fees"},
         cells=(Cell("4,500² crowns", "Fee", "Skiff"), Cell("0.00001", "Fee", "H₂O tank"))),
    Case("merged.pptx", merged_slide, cells=(Cell("2021", "Year", "Yawl"),)),
    Case("says-delimiter.csv", lambda: b"sep=;\r\nBoat;Fee\r\nSkiff;1,50\r\n", cells=(Cell("1,50", "Fee", "Row 2"),),
         absent=("sep=",)),
]  # fmt: skip


def event(lines: str) -> bytes:
    return f"From: a@x.org\nContent-Type: text/calendar\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n".encode()


FONTS = (
    rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}{\f1\fswiss\fcharset204{\*\fname Arial;}Arial Cyr;}{\f2\fcharset128 Gothic;}}"
    rb"{\f1 \'cd\'e0\'f1\'ee\'f1}. {\f2 \'93\'8c\'8b\'9e}. caf\'e9 {\object{\*\objdata 01}{\result Shown 5.}}\par}"
)
OTHERS = [
    Case("raised-by-class.html", lambda: b"<style>p{margin:0} a.x, .fn { font-size: 70%; vertical-align: super }\n.lo{vertical-align:sub}</style>"
         b"<main><p>4,500<span class='fn'>2</span> crowns, H<span class='lo'>2</span>O</p></main>", {"4,500² crowns, H₂O": ""}),
    Case("raised-by-class.epub", lambda: book(
        {"a": "<html><head><style>.n {vertical-align: super}</style></head><body><h1>Fees</h1><p>4,500<i class='n'>2</i></p></body></html>"}, "a"
    ), {"4,500": "Fees"}, absent=("4,5002",)),
    Case("struck.html", lambda: b"<main><p>Fee <strike>77</strike>88 crowns.</p></main>", {"88 crowns.": ""}, absent=("7788",)),
    Case("filled.html", lambda: b"<main><form>Boat: <input value='Black Guillemot'> <select><option>Low<option selected>High</select>"
         b"<textarea>At gate 9.</textarea><input type=radio checked>Yes<input type=hidden value=secret></form></main>",
         {"Boat: Black Guillemot": "", "High": "", "At gate 9. [x] Yes": ""}, absent=("Low", "secret")),
    Case("limits.html", "<main><p><math><munderover><mo>∑</mo><mi>i</mi><mn>10</mn></munderover><msub><mi>x</mi><mi>i</mi></msub></math></p></main>".encode,
         {"∑ᵢ¹⁰xᵢ": ""}),
    Case("rows-to-the-end.html", lambda: b"<table><tr><th>Year<th>Boat<tbody><tr><td rowspan=0>2022<td>Skiff<tr><td>Yawl<tbody><tr><td>2023<td>Tug</table>",
         cells=(Cell("2022", "Year", "Yawl"), Cell("2023", "Year", "Tug"))),
    Case("fonts-without-charset.rtf", lambda: FONTS, {"Насос. 東京. café Shown 5.": ""}),
    Case("whole-days.eml", lambda: event("SUMMARY:Sea fair\nDTSTART;VALUE=DATE:20240712\nDTEND;VALUE=DATE:20240715\n"
         "RDATE;VALUE=PERIOD:20240801T070000Z/PT2H"), {"End: 2024-07-14": "Sea fair", "Also on: 2024-08-01 07:00 UTC, 2 hours": "Sea fair"}, absent=("2024-07-15",)),
    Case("tags-in-code.md", lambda: b"Text\n\n    indented {% if a %}\n\nA `` span {% if `b` %} `` and {% gone %} here.\n",
         {"indented {% if a %}": "", "{% if `b` %}": ""}, absent=("gone",)),
    Case("broken-range.pdf", lambda: pdf_file([at(50, 780, "The spare part is KQ-") + at(50, 766, "7731 and its range is 10-") + at(50, 752, "20 metres.")]),
         {"The spare part is KQ-7731 and its range is 10-20 metres.": ""}),
]  # fmt: skip
CASES = [*WORD, *SHEETS, *OTHERS]
