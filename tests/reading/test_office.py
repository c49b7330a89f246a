"""Word, PowerPoint and books: what stands beside the running text is read too, and what cannot be read is noted."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_rag.reading.read import parse
from tests.support.office_files import open_document

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def test_page_headers_footers_comments_text_boxes_and_notes_of_word_are_read() -> None:
    import docx
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    document = docx.Document()
    section = document.sections[0]
    section.header.paragraphs[0].text = "Contract no. 4711"
    section.footer.paragraphs[0].text = "valid until 2027"
    section.different_first_page_header_footer = True
    section.first_page_footer.paragraphs[0].text = "12"
    document.add_heading("Leave policy", 1)
    paragraph = document.add_paragraph("Employees get 25 days.")
    document.add_comment(paragraph.runs, text="Ask Ada first.", author="Bo", initials="B")
    box = parse_xml(
        f'<w:r {nsdecls("w")}><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:shape><v:textbox><w:txbxContent>'
        "<w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
    )
    document.add_paragraph("Beside:")._p.append(box)
    math = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    formula = parse_xml(
        f"<m:oMath {math}><m:r><m:t>E=m</m:t></m:r><m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t>"
        "</m:r></m:sup></m:sSup><m:r><m:t>+</m:t></m:r><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r>"
        "<m:t>2</m:t></m:r></m:den></m:f></m:oMath>"
    )
    document.add_paragraph("Energy")._p.append(formula)
    document.add_picture(io.BytesIO(PIXEL))
    read = parse(Path("a.docx"), saved(document.save))
    lines = [line for line in read.text.split("\n") if line]
    assert (lines[0], lines[-1]) == ("Contract no. 4711", "valid until 2027")
    assert [heading.title for heading in read.headings] == ["Leave policy"]
    for part in ("Employees get 25 days.", "Ask Ada first.", "In a box", "Energy E=mc²+(a+b)/2"):
        assert part in read.text
    assert read.notes == ("1 image without a description is left out",)


def test_slides_keep_tables_charts_groups_and_descriptions_and_note_images() -> None:
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Budget\v2025"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, Inches(2), Inches(1), Inches(1)).text_frame.text = "In a group"
    data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = ["North", "South"]
    data.add_series("Sales", (1.5, None))
    size = (Inches(1), Inches(3), Inches(4), Inches(3))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *size, data)
    table = slide.shapes.add_table(2, 2, *size).table
    for row, cells in enumerate((("Item", "Cost | net"), ("Rent", "100"))):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    described, plain = (slide.shapes.add_picture(io.BytesIO(PIXEL), 0, Inches(7)) for _ in range(2))
    described._element.nvPicPr.cNvPr.set("descr", "a red door")
    plain._element.nvPicPr.cNvPr.set("descr", "")
    read = parse(Path("a.pptx"), saved(presentation.save))
    for part in (
        "# Budget 2025",
        "In a group",
        "| North | 1.5 |",
        "| South |  |",
        "Sales",
        "| Rent | 100 |",
        "a red door",
    ):
        assert part in read.text
    assert read.notes == ("1 image without a description is left out",)


def test_hidden_slides_and_sheets_are_read_and_noted() -> None:
    from openpyxl import Workbook  # type: ignore[import-untyped]
    from pptx import Presentation

    presentation = Presentation()
    for number in range(3):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = f"Slide {number}"
        slide._element.set("show", "01"[number == 1])
    workbook = Workbook()
    workbook.active.append(["Name", "Ada"])
    hidden = workbook.create_sheet("Costs")
    hidden.append(["Rent", "100"])
    hidden.sheet_state = "hidden"
    style = "<style:style style:name='no' style:family='{0}'><style:{0}-properties {1}/></style:style>"
    frame = "<draw:frame><draw:text-box><text:p>Rent</text:p></draw:text-box></draw:frame>"
    page = f"<draw:page draw:style-name='{{}}'>{frame}</draw:page>"
    slides = page.format("no") + page.format("other")
    sheet = "<table:table table:name='A' table:style-name='no'><table:table-row>"
    sheet += "<table:table-cell><text:p>Rent</text:p></table:table-cell></table:table-row></table:table>"
    for name, data, text, note in (
        ("a.pptx", saved(presentation.save), "# Slide 2", "2 hidden slides are read too"),
        ("a.xlsx", saved(workbook.save), "Rent; 100", "the hidden sheet Costs is read too"),
        (
            "a.odp",
            open_document(
                "presentation", slides, masters=style.format("drawing-page", "presentation:visibility='hidden'")
            ),
            "Rent",
            "1 hidden slide is read too",
        ),
        (
            "a.ods",
            open_document("spreadsheet", sheet, masters=style.format("table", "table:display='false'")),
            "Rent",
            "1 hidden sheet is read too",
        ),
    ):
        read = parse(Path(name), data)
        assert text in read.text
        assert read.notes == (note,)


def book(chapters: dict[str, str], spine: str) -> bytes:
    items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in spine.split())
    refs = "".join(f'<itemref idref="{name}"/>' for name in spine.split())
    members: dict[str, Any] = {
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="x/c.opf"/></rootfiles></container>',
        "x/c.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<metadata><dc:title>The Sea</dc:title><dc:creator>Ada</dc:creator><dc:creator>Bo</dc:creator>"
        "<dc:date>2020-05-01</dc:date><dc:description>About tides.</dc:description></metadata>"
        f"<manifest>{items}</manifest><spine>{refs}</spine></package>",
        **{f"x/{name}.xhtml": text for name, text in chapters.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text if isinstance(text, bytes) else text.encode())
    return buffer.getvalue()


def test_books_have_no_addresses_and_say_which_chapter_is_missing() -> None:
    chapter = "<html><body><nav>menu</nav><h1>{}</h1><p>Łódź, see <a href='b.xhtml'>there</a>.</p><img/></body></html>"
    data = book({"a": chapter.format("One"), "b": chapter.format("Two")}, "a gone b")
    read = parse(Path("a.epub"), data)
    assert read.title == "The Sea"
    assert (read.provenance.author, read.provenance.date) == ("Ada, Bo", "2020-05-01")
    assert [heading.title for heading in read.headings] == ["One", "Two"]
    assert read.text.split("\n\n")[:3] == ["About tides.", "# One", "Łódź, see there."]
    assert "xhtml" not in read.text
    assert "Title:" not in read.text
    assert read.notes == ("the chapter gone.xhtml is missing", "2 images without a description are left out")
