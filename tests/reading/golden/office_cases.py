"""Word, slides, OpenDocument, rich text and books: text beside the running text, merged cells, deleted text, gaps."""

import io
from collections.abc import Callable
from typing import Any

from tests.reading.golden.case import Case, Cell
from tests.support.office_files import book, open_document, saved

FACT, MORE, LAST = "Employees get 25 days of leave.", "Managers get 30 days.", "Ask the office in Bergen."
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def word(change: Callable[[Any], None]) -> bytes:
    import docx

    document = docx.Document()
    document.add_heading("Leave", 1)
    document.add_paragraph(FACT)
    change(document)
    return saved(document.save)


def with_xml(place: str, *, wrapped: bool = True) -> Callable[[Any], None]:
    """Append raw XML to a new paragraph of a Word document, or to its body."""
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    def change(document: Any) -> None:
        element = parse_xml(place.replace(">", f" {nsdecls('w')}>", 1))
        if wrapped:
            document.add_paragraph("Also:")._p.append(element)
        else:
            document.element.body.insert(2, element)

    return change


def frames(document: Any) -> None:
    document.sections[0].header.paragraphs[0].text = "Contract number 4711."
    document.sections[0].footer.paragraphs[0].text = LAST


def comment(document: Any) -> None:
    document.add_comment(document.add_paragraph(MORE).runs, text=LAST, author="Bo", initials="B")


def picture(document: Any) -> None:
    document.add_picture(io.BytesIO(PIXEL))


def slides(change: Callable[[Any, Any], None]) -> bytes:
    from pptx import Presentation

    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Leave"
    slide.shapes.add_textbox(0, 3_000_000, 9, 9).text_frame.text = FACT
    change(presentation, slide)
    return saved(presentation.save)


def group(_: Any, slide: Any) -> None:
    inner = slide.shapes.add_group_shape().shapes.add_group_shape()
    inner.shapes.add_textbox(0, 4_000_000, 9, 9).text_frame.text = MORE


def speaker(_: Any, slide: Any) -> None:
    slide.notes_slide.notes_text_frame.text = LAST


def cells(_: Any, slide: Any) -> None:
    table = slide.shapes.add_table(2, 2, 0, 5_000_000, 9, 9).table
    for row, values in enumerate((("Country", "Days"), ("Norway", "25"))):
        for column, value in enumerate(values):
            table.cell(row, column).text = value


def cell(text: str) -> str:
    return f"<table:table-cell><text:p>{text}</text:p></table:table-cell>"


def rows(*rows: str) -> str:
    return "".join(f"<table:table-row>{''.join(map(cell, row.split('|')))}</table:table-row>" for row in rows)


def p(text: str) -> str:
    return f"<text:p>{text}</text:p>"


def box(text: str) -> str:
    return f"<draw:frame><draw:text-box>{p(text)}</draw:text-box></draw:frame>"


HEADING = '<text:h text:outline-level="2">Leave</text:h>'
DELETED = (
    "<text:tracked-changes><text:changed-region><text:p>Gone.</text:p></text:changed-region></text:tracked-changes>"
)
NOTE = f"<text:note><text:note-citation>1</text:note-citation><text:note-body>{p(LAST)}</text:note-body></text:note>"
MERGED = (
    "<table:table-row><table:table-cell table:number-rows-spanned='2'><text:p>Norway</text:p></table:table-cell>"
    "<table:table-cell><text:p>Bergen</text:p></table:table-cell></table:table-row><table:table-row>"
    "<table:covered-table-cell/><table:table-cell><text:p>Oslo</text:p></table:table-cell></table:table-row>"
)
EMPTY = (
    "<table:table-row table:number-rows-repeated='1048000'><table:table-cell table:number-columns-repeated='1000'/>"
    "</table:table-row>"
)
TAB = "<table:table table:name='Staff'>"


def rtf(body: str) -> bytes:
    return ("{\\rtf1\\ansi\\ansicpg1250{\\fonttbl{\\f0 Arial;}}\\f0 " + body + "}").encode("ascii")


CHAPTER = "<html><body><h1>{}</h1><p>{}</p></body></html>"
CASES = [
    Case("frames.docx", lambda: word(frames), {"Contract number 4711.": "", FACT: "Leave", LAST: "Leave"}),
    Case("comment.docx", lambda: word(comment), {FACT: "Leave", MORE: "Leave", LAST: "Leave"}),
    Case(
        "inserted.docx",
        lambda: word(with_xml(f"<w:ins><w:r><w:t>{MORE}</w:t></w:r></w:ins>")),
        {FACT: "Leave", MORE: "Leave"},
    ),
    Case(
        "deleted.docx",
        lambda: word(with_xml("<w:del><w:r><w:delText>Gone.</w:delText></w:r></w:del>")),
        {FACT: "Leave"},
        absent=("Gone.",),
    ),
    Case(
        "content-control.docx",
        lambda: word(
            with_xml(
                f"<w:sdt><w:sdtContent><w:p><w:r><w:t>{MORE}</w:t></w:r></w:p></w:sdtContent></w:sdt>", wrapped=False
            )
        ),
        {FACT: "Leave", MORE: "Leave"},
    ),
    Case(
        "text-box.docx",
        lambda: word(
            with_xml(
                '<w:r><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox><w:txbxContent>'
                f"<w:p><w:r><w:t>{MORE}</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
            )
        ),
        {FACT: "Leave", MORE: "Leave"},
    ),
    Case(
        "picture.docx", lambda: word(picture), {FACT: "Leave"}, noted={"the picture": "1 image without a description"}
    ),
    Case("group.pptx", lambda: slides(group), {FACT: "Leave", MORE: "Leave"}),
    Case("speaker.pptx", lambda: slides(speaker), {FACT: "Leave", LAST: "Leave"}),
    Case("cells.pptx", lambda: slides(cells), {FACT: "Leave"}, (Cell("25", "Days", "Norway"),)),
    Case(
        "deleted.odt", lambda: open_document("text", f"{DELETED}{HEADING}{p(FACT)}"), {FACT: "Leave"}, absent=("Gone.",)
    ),
    Case(
        "note.odt",
        lambda: open_document("text", HEADING + p(f"{FACT}{NOTE}<text:s text:c='3'/>{MORE}")),
        {FACT: "Leave", MORE: "Leave", LAST: "Leave"},
    ),
    Case(
        "lists.odt",
        lambda: open_document(
            "text",
            f"{HEADING}<text:list><text:list-item>{p(FACT)}<text:list><text:list-item>{p(MORE)}</text:list-item></text:list></text:list-item></text:list><text:section>{p(LAST)}</text:section>",
        ),
        {FACT: "Leave", MORE: "Leave", LAST: "Leave"},
    ),
    Case(
        "frames.odt",
        lambda: open_document(
            "text",
            f"{HEADING}<text:p>Box:<draw:frame><draw:text-box>{p(FACT)}</draw:text-box></draw:frame></text:p><text:p><draw:frame><draw:image/></draw:frame></text:p>",
            masters=f"<style:master-page><style:header>{p(MORE)}</style:header></style:master-page>",
        ),
        {MORE: "", FACT: "Leave"},
        noted={"the picture": "1 image without a description"},
    ),
    Case(
        "merged.odt",
        lambda: open_document("text", HEADING + "<table:table>" + rows("Country|Town") + MERGED + "</table:table>"),
        {},
        (Cell("Norway", "Country", "Oslo"), Cell("Oslo", "Town")),
    ),
    Case(
        "cells.ods",
        lambda: open_document(
            "spreadsheet",
            TAB
            + rows("Name|Born", "Ada|1815")
            + EMPTY
            + "</table:table>"
            + TAB.replace("Staff", "Towns")
            + rows("Town|People", "Oslo|700000")
            + "</table:table>",
        ),
        {},
        (Cell("1815", "Born", "Ada"), Cell("700000", "People", "Oslo")),
    ),
    Case(
        "merged.ods",
        lambda: open_document("spreadsheet", TAB + rows("Country|Town") + MERGED + "</table:table>"),
        {},
        (Cell("Norway", "Country", "Oslo"), Cell("Bergen", "Town")),
    ),
    Case(
        "slides.odp",
        lambda: open_document(
            "presentation",
            f"<draw:page>{box(FACT)}<draw:frame presentation:class='title'><draw:text-box>{p('Leave')}</draw:text-box>"
            f"</draw:frame><presentation:notes>{box(LAST)}</presentation:notes></draw:page>",
        ),
        {FACT: "Leave", LAST: "Leave"},
    ),
    Case(
        "styles.rtf",
        lambda: rtf(
            r"{\stylesheet{\s1 heading 1;}}\pard\s1 Leave\par\pard "
            + FACT
            + r"\par\pard\outlinelevel1 Managers\par\pard "
            + MORE
        ),
        {FACT: "Leave", MORE: "Managers"},
    ),
    Case(
        "merged.rtf",
        lambda: rtf(
            r"\trowd\cellx1\cellx2 Country\cell Days\cell\row\trowd\clvmgf\cellx1\cellx2 Norway\cell 25\cell\row"
            r"\trowd\clvmrg\cellx1\cellx2 \cell 30\cell\row\pard " + LAST
        ),
        {LAST: ""},
        (Cell("25", "Days", "Norway"), Cell("30", "Days", "Norway"), Cell("Norway", "Country")),
    ),
    Case(
        "escaped.rtf",
        lambda: rtf(r"Za\'bf\'f3\'b3\'e6 g\u281?\'9cl\u261?. \par " + FACT),
        {"Zażółć gęślą.": "", FACT: ""},
    ),
    Case(
        "beside.rtf",
        lambda: rtf(r"{\header " + MORE + r"\par}" + FACT + r"{\footnote " + LAST + r"}{\pict 00ff}\par"),
        {FACT: "", MORE: "", LAST: ""},
        noted={"the picture": "1 image is left out"},
    ),
    Case(
        "gap.epub",
        lambda: book({"a": CHAPTER.format("Leave", FACT), "b": CHAPTER.format("More", MORE)}, "a gone b"),
        {FACT: "Leave", MORE: "More"},
        noted={"a chapter": "the chapter gone.xhtml is missing"},
    ),
    Case(
        "out-of-order.epub",
        lambda: book(
            {"b": CHAPTER.format("More", MORE), "a": CHAPTER.format("Leave", FACT + " <a href='b.xhtml'>More</a>")},
            "a b",
        ),
        {FACT: "Leave", MORE: "More"},
        absent=("b.xhtml",),
    ),
]
