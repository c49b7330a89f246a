"""What changes the meaning of a text is kept in every format: struck out, hidden, a comment, or not shown."""

import io
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pytest

from local_rag.errors import ReadError
from local_rag.reading.converters.html_styles import apply_styles
from local_rag.reading.converters.runs import Run, write_runs
from local_rag.reading.read import parse, read
from local_rag.reading.relations import relations_of
from local_rag.text.struck import is_struck, strike, without_struck
from tests.support.office_files import open_document


def saved(book: Any) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_runs_that_are_marked_alike_are_written_together() -> None:
    runs = [Run("Rent "), Run("4,0", struck=True), Run("00", struck=True), Run("10", 1, struck=True), Run(" 4,600")]
    assert write_runs(runs) == "Rent ~~4,000¹⁰~~ 4,600"
    assert strike(" one\n\ntwo ") == " ~~one~~\n\n~~two~~ "
    assert without_struck("~~100~~ 120 ~~old~~") == "120"
    assert is_struck("~~a~~ ~~b~~")
    left_out = Counter[str]()
    assert write_runs([Run("Fee "), Run("3", hidden=True), Run("0 ", hidden=True), Run("44")], left_out) == "Fee 44"
    assert left_out == {"hidden word*": 1}
    assert not is_struck("~~a~~ b")


def test_struck_text_of_slides_and_rich_text_and_word_is_marked() -> None:
    import docx
    import pptx

    deck = pptx.Presentation()
    frame = deck.slides.add_slide(deck.slide_layouts[1]).placeholders[1].text_frame
    old, new = frame.paragraphs[0].add_run(), frame.paragraphs[0].add_run()
    old.text, new.text = "300", " 410 crowns"
    old._r.get_or_add_rPr().set("strike", "dblStrike")
    assert "~~300~~ 410 crowns" in parse(Path("a.pptx"), saved(deck)).text
    rich = rb"{\rtf1\ansi Rent {\striked1 4,\b 000}\strike0  4,600\par \strike Old\plain  new\par}"
    assert parse(Path("a.rtf"), rich).text == "Rent ~~4,000~~ 4,600\n~~Old~~ new"
    document = docx.Document()
    style = document.styles.add_style("Gone", 2)
    style.font.strike = True
    paragraph = document.add_paragraph("Pets ")
    paragraph.add_run("allowed", style="Gone")
    paragraph.add_run(" banned").font.double_strike = True
    again = paragraph.add_run(" bikes", style="Gone")
    again.font.strike = False
    table = document.add_table(2, 2)
    table.cell(0, 0).text, table.cell(0, 1).text, table.cell(1, 0).text = "Boat", "Fee", "Skua"
    table.cell(1, 1).paragraphs[0].add_run("85").font.double_strike = True
    text = parse(Path("a.docx"), saved(document)).text
    assert "Pets ~~allowed banned~~ bikes" in text
    assert "| Skua | ~~85~~ |" in text


def test_struck_text_and_comments_of_open_document() -> None:
    line = "<style:text-properties style:text-line-through-style='solid'/>"
    style = f"<style:style style:name='S' style:family='{{}}'>{line}</style:style>"
    body = "<text:p>The rent is <text:span text:style-name='S'>4,000</text:span> 4,600.</text:p>"
    read_text = parse(Path("a.odt"), open_document("text", body, masters=style.format("text")))
    assert read_text.text == "The rent is ~~4,000~~ 4,600."
    cell = "<table:table-cell{}>{}<text:p>{}</text:p></table:table-cell>"
    remark = "<office:annotation><text:p>called twice</text:p></office:annotation>"
    rows = "".join(
        f"<table:table-row{more}>{cell.format('', '', boat)}{cell.format(*paid)}</table:table-row>"
        for more, boat, paid in (
            ("", "Boat", ("", "", "Paid")),
            ("", "Skua", ("", remark, "no")),
            (" table:visibility='filter'", "Tern", (" table:style-name='S'", "", "yes")),
        )
    )
    sheet = parse(
        Path("a.ods"),
        open_document(
            "spreadsheet", f"<table:table table:name='Fees'>{rows}</table:table>", masters=style.format("table-cell")
        ),
    )
    assert "Boat: Skua; Paid: no\n" in sheet.text
    assert "Boat: Tern; Paid: ~~yes~~" in sheet.text
    assert sheet.notes == ("the hidden row 3 is read too", "comment on B2: called twice")


def test_a_hidden_style_hides_all_but_the_runs_that_are_shown() -> None:
    style = "<style:style style:name='{}' style:family='{}'><style:text-properties text:display='{}'/></style:style>"
    styles = (
        style.format("H", "paragraph", "none") + style.format("S", "text", "true") + style.format("T", "text", "none")
    )
    shown = "<text:span text:style-name='S'>shown <text:span text:style-name='T'>not</text:span></text:span>"
    remark = "<office:annotation><text:p>a remark</text:p></office:annotation>"
    body = f"<text:p text:style-name='H'>Old fee {shown}{remark} gone</text:p><text:p>Fee 85</text:p>"
    heading = "<text:h text:style-name='H' text:outline-level='1'>Draft</text:h>"
    listed = f"<text:list><text:list-item>{heading}</text:list-item></text:list>"
    document = parse(Path("a.odt"), open_document("text", heading + body + listed, masters=styles))
    assert document.text == "shown\n\nFee 85"
    assert document.notes == ("9 hidden words are left out",)
    page = b"<style>.old {visibility: hidden} .old .new {visibility: visible}</style><p>Fee</p>"
    page += b"<div class=old>was 30 <span class=new>is 44</span><table><tr><td>30</table></div>"
    paper = parse(Path("a.html"), page)
    assert " ".join(paper.text.split()) == "Fee is 44"
    assert paper.notes == ("3 hidden words are left out",)


def test_struck_rows_of_a_sheet_are_no_data_and_what_it_hides_is_named(tmp_path: Path) -> None:
    import openpyxl
    from openpyxl.cell.rich_text import CellRichText, TextBlock  # type: ignore[import-untyped]
    from openpyxl.cell.text import InlineFont  # type: ignore[import-untyped]
    from openpyxl.styles import Font  # type: ignore[import-untyped]

    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["Order", "Amount", "Limit"], ["A1", 100, 5], ["A2", 200, 5], ["A4", 300, 5], ["A5", 50, 5]):
        sheet.append(row)
    for one in sheet[3]:
        one.font = Font(strike=True)
    sheet["A5"] = CellRichText(TextBlock(InlineFont(strike=True), "A5"), " A6")
    sheet.row_dimensions[4].hidden = sheet.column_dimensions["C"].hidden = True
    book.save(tmp_path / "orders.xlsx")
    document = read(tmp_path / "orders.xlsx")
    assert "Order: ~~A2~~; Amount: ~~200~~" in document.text
    assert "Order: ~~A5~~ A6" in document.text
    assert document.notes == ("the hidden row 4 is read too", "the hidden column C is read too")
    [relation] = relations_of(document)
    assert relation.rows == 3
    assert relation.remarks == (
        "1 row is struck out in the file and left out.",
        "1 row is hidden in the file and used too.",
    )
    assert [one.remarks for one in relation.columns] == [(), (), ("The column *Limit* is hidden in the file.",)]


@pytest.mark.parametrize(
    ("sheet", "shown"),
    [
        (".gone {display:none}", "kept"),
        ("@media screen { .gone {display:none} }", "kept"),
        ("#part > .gone {visibility:hidden !important}", "kept"),
        ("@media print {.gone {display:none}}", "kept old"),
        ("@media (max-width: 9em) {.gone {display:none}}", "kept old"),
        (".gone {display:none} p.gone {display:block}", "kept old"),
        (".gone:hover {display:none} ::before {display:none}", "kept old"),
        ("/* .gone {display:none} */", "kept old"),
        (".gone {text-decoration: red line-through}", "kept ~~old~~"),
        (".gone {display:none", "kept old"),
    ],
)
def test_a_style_sheet_hides_and_strikes_out(sheet: str, shown: str) -> None:
    body = "<div id=part><p>kept</p><p class=gone>old</p></div>"
    page = f"<html><head><style>{sheet}</style></head><body>{body}</body></html>"
    assert " ".join(parse(Path("a.html"), page.encode()).text.split()) == shown


def test_an_own_style_comes_before_that_of_a_sheet() -> None:
    from bs4 import BeautifulSoup

    page = BeautifulSoup("<p class=a style='display:block'>x</p>", "lxml")
    apply_styles(page, ".a {display: none}")
    assert page.p is not None
    assert page.p["style"] == "display:block"


def test_struck_cells_and_lists_of_pages_are_marked() -> None:
    page = b"<table><tr><th>To</th><th>Fare</th></tr><tr><td>Brekk</td><td><s>30</s> 44</td></tr></table>"
    page += b"<del><p>Old</p></del>"
    text = parse(Path("a.html"), page).text
    assert "| Brekk | ~~30~~ 44 |" in text
    assert "~~Old~~" in text


def test_code_that_a_table_lays_out_keeps_its_lines() -> None:
    code = b"<tr><td class=gutter><pre>1<br>2</pre></td><td><pre>pump --start<br>pump --stop</pre></td></tr>"
    page = b"<h1>Setup</h1><p>Run this:</p><table>" + code + b"</table>"
    text = parse(Path("a.html"), page).text
    assert "pump --start\npump --stop\n" in text
    assert "1" not in text


def test_remarks_of_obsidian_are_comments_and_tags_stand_in_the_text() -> None:
    note = "# Log\n\nIt lifts 12 t. %%or 9 t%% Paid 5%% or 6.\n\n%%\n14 t\n%%\n\n```\n%%code%% #no\n```\n\n"
    note += "Due. #harbour/crane (#late) #12 a#b\n"
    document = parse(Path("a.md"), note.encode())
    assert "9 t" not in document.text
    assert "14 t" not in document.text
    assert "Paid 5%% or 6." in document.text
    assert "%%code%%" in document.text
    assert document.text.count("\n") == note.count("\n")
    assert document.provenance.tags == ("harbour/crane", "late")


def test_a_note_that_pops_up_is_read() -> None:
    page = b"<p>Built in 1871<a epub:type='noteref' href='#n'>1</a>.</p>"
    page += b"<aside epub:type='footnote' id='n' hidden><p>1. Or 1873.</p></aside>"
    assert "(Note: Or 1873.)" in parse(Path("a.xhtml"), page).text


def test_a_canvas_is_the_texts_of_its_cards() -> None:
    nodes = b'[{"y": 9, "text": "second"}, {"y": 1, "text": "**first**"}, {"file": "a.md"}]'
    canvas = b'{"nodes": ' + nodes + b', "edges": [{"label": "then"}]}'
    assert parse(Path("a.canvas"), canvas).text == "a.md\n\n**first**\n\nsecond\n\nthen"


def test_tags_strike_out_in_markdown_but_not_in_code() -> None:
    text = parse(Path("a.md"), b"The toll is <s>70</s> <DEL class=x>75</DEL> 80.\n\n`<s>code</s>`\n").text
    assert "~~70~~ ~~75~~ 80" in text
    assert "`<s>code</s>`" in text


def test_remarks_of_obsidian_go_over_lines_and_stand_in_lists() -> None:
    note = "Lift 12 t. %%or\n9 t%% Done.\n\n- Crane\n\n  %%\n  14 t\n  %%\n\n[//]: # (16 t)\n\nFrom 5%% to 7%%.\n"
    text = parse(Path("a.md"), note.encode()).text
    assert not any(said in text for said in ("9 t", "14 t", "16 t"))
    assert "Done." in text
    assert "5%% to 7%%" in text
    assert text.count("\n") == note.count("\n")


def test_a_file_within_the_text_is_left_out() -> None:
    picture = "data:image/png;base64," + "iVBORw0K" * 50
    assert parse(Path("a.md"), f"![Quay map]({picture}) Berth 9\n".encode()).text.strip() == (
        "![Quay map](data:image/png;base64,) Berth 9"
    )


def test_a_pointer_of_git_lfs_is_no_document() -> None:
    with pytest.raises(ReadError, match="git lfs pull"):
        parse(Path("a.md"), b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n")


def test_rules_of_a_wide_screen_hold_and_those_of_a_small_one_do_not() -> None:
    sheet = "@media (min-width:600px){.a{display:none}} @media (max-width:600px){.b{display:none}}"
    sheet += " @supports (display:grid){.c{display:none}}"
    page = f"<style>{sheet}</style><p class=a>one</p><p class=b>two</p><p class=c>three</p>"
    assert parse(Path("a.html"), page.encode()).text == "two"


def test_a_relative_link_to_a_sheet_of_an_archive_is_followed() -> None:
    page = '<html><link rel="stylesheet" href="a.css"><p>kept</p><p class="a">gone</p></html>'
    for at, sheet in (("http://x.example/", "http://x.example/a.css"), ("http://x.example/b/c.html", "a.css")):
        parts = (("text/html", at, page), ("text/css", sheet, ".a{display:none}"))
        written = "".join(f"--X\nContent-Type: {kind}\nContent-Location: {at}\n\n{text}\n" for kind, at, text in parts)
        archive = f"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=X\n\n{written}--X--\n"
        assert parse(Path("a.mht"), archive.encode()).text == "kept"


def test_a_numbered_table_of_codes_is_no_code() -> None:
    for cell in ("<td><code>OK</code>", "<td class=postcode>N1 9GU"):
        rows = "".join(f"<tr><td>{number}</td>{cell} {number}</td></tr>" for number in (0, 1))
        text = parse(Path("a.html"), f"<p>Codes:</p><table>{rows}</table>".encode()).text
        assert "```" not in text
        assert "| 1 |" in text


def test_a_struck_title_has_no_signs() -> None:
    for title, shown in (("~~Old rules~~", "Old rules"), ("~~Old~~ New rules", "New rules")):
        assert parse(Path("a.md"), f"# {title}\n\nThe rent is due.".encode()).title == shown


def test_a_table_of_a_line_of_code_in_each_row_is_code() -> None:
    lines = "".join(f"<tr><td data-line-number={n}></td><td class=blob-code>go {n}</td></tr>" for n in (1, 2))
    assert "go 1\ngo 2" in parse(Path("a.html"), f"<p>Run:</p><table>{lines}</table>".encode()).text
    spans = "\n".join(f"<span class=ln>{n}</span><span>go on</span>" for n in (1, 2))
    assert "\n\ngo on\ngo on" in parse(Path("a.html"), f"<p>Run:</p><pre>{spans}</pre>".encode()).text


def test_a_forwarded_mail_is_decoded_from_quoted_printable() -> None:
    head = b"Subject: Fwd\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n--X\n"
    for kind in (b"message/rfc822", b"message/global"):
        part = b"Content-Type: " + kind + b"\nContent-Transfer-Encoding: quoted-printable\n\n"
        mail = head + part + b"Subject: =20Budget\n\n5500=20crowns\n--X--\n"
        assert "5500 crowns" in parse(Path("a.eml"), mail).text


def test_a_progress_bar_is_its_last_state_and_bold_letters_of_a_printer_are_letters() -> None:
    output = '{"output_type": "stream", "text": [" 10%\\r 90%\\r100%\\n"]}'
    cell = f'{{"cell_type": "code", "source": ["f"], "outputs": [{output}]}}'
    assert "10%" not in (text := parse(Path("a.ipynb"), f'{{"cells": [{cell}]}}'.encode()).text)
    assert "100%" in text
    assert parse(Path("a.txt"), b"N\x08NA\x08A of the pump, which is long enough\n").text.startswith("NA of")


def test_rows_without_height_and_columns_without_width_are_hidden() -> None:
    book = openpyxl.Workbook()
    for row in (["Firm", "Bid"], ["Aas", 1], ["Cold", 2]):
        book.active.append(row)
    written, out = io.BytesIO(saved(book)), io.BytesIO()
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            part = source.read(name).replace(b'<row r="3"', b'<row r="3" ht="0" customHeight="1"')
            columns = b'<cols><col min="2" max="2" width="0" customWidth="1"/></cols><sheetData>'
            target.writestr(name, part.replace(b"<sheetData>", columns))
    notes = parse(Path("a.xlsx"), out.getvalue()).notes
    assert notes == ("the hidden row 3 is read too", "the hidden column B is read too")


def test_captions_and_groups_belong_to_their_table() -> None:
    (pumps, guards) = relations_of(
        parse(Path("a.csv"), b"Pumps,,,Guards,\nPump,Flow,,Guard,Years\nP,12,,Ida,4\nQ,7,,Bo,5\nR,3,,Lars,2\n")
    )
    assert (pumps.name, guards.name) == ("Pumps", "Guards")
    group = "<tr><th colspan=2>{}</th></tr><tr><td>a<td>1</tr><tr><td>b<td>2</tr>"
    page = f"<table><tr><th>Crop<th>Sacks</tr>{group.format('Grain')}{group.format('Roots')}</table>"
    (crops,) = relations_of(parse(Path("a.html"), page.encode()))
    assert (crops.rows, crops.columns[0].name) == (4, "Crop")


@pytest.mark.parametrize(
    "note",
    [
        "It lifts %%really 9 t\n\nor 8 t%% 12 t.\n",
        "It lifts 12 t. %%\n9 t\n\n8 t\n%%\n",
        "- It lifts 12 t. %%\n  9 t\n\n  8 t\n  %%\n- Next\n",
    ],
)
def test_remarks_of_obsidian_go_over_paragraphs(note: str) -> None:
    text = parse(Path("a.md"), note.encode()).text
    assert "12 t" in text
    assert not any(said in text for said in ("9 t", "8 t", "%%"))
    assert text.count("\n") == note.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "It prints %%d for a number.\n\nWrite 100%% for a share.\n",
        "Type %% twice.\n\nThen %% again.\n",
        'In a format, "%%" is a sign.\n\nThe fee is 40 euros.\n\nIn a batch file, "%%" also is one.\n',
        'Then write "%%i" there.\n\nThe fee is 40 euros.\n\nA sign is written "%%".\n',
        'printf("%5.1f %%\\n", x);\n\nThe fee is 40 euros.\n\nThen printf("%d%%\\n", y);\n',
        "Dear %%first name,\n\nThe fee is 40 euros. It rose by 5%%.\n",
        "The cell %%time counts.\n\n```\n%%time\nx%%\n```\n",
        "The cell %%time counts.\n\nWrite `50%%` there.\n",
        f"The name %%first stands here.\n\n{'Much more is said. ' * 400}\n\nIt is 50%%\n",
    ],
)
def test_two_signs_of_percent_in_two_paragraphs_hide_nothing(text: str) -> None:
    assert parse(Path("a.md"), text.encode()).text == text


def test_two_signs_of_percent_within_words_hide_nothing() -> None:
    said = ("printf uses %%d and %%s.", "It is x%% and y%%.", "Cut ${x%%.*} and ${y%%/*} off.", "a%%20b c%%20d")
    for one in said:
        assert parse(Path("a.md"), f"{one}\n".encode()).text == f"{one}\n"


def test_numbers_that_lines_of_code_end_with_stay() -> None:
    lines = "\n".join(f"<span>{name}</span> = <span>{n}</span>" for n, name in enumerate(("RED", "BLUE"), 1))
    assert "RED = 1\nBLUE = 2" in parse(Path("a.html"), f"<p>Colours:</p><pre>{lines}</pre>".encode()).text
    bare = "<span>1</span>\n<span>2</span>"
    assert "1\n2" in parse(Path("a.html"), f"<p>It prints:</p><pre>{bare}</pre>".encode()).text


def test_rules_for_other_browsers_hide_nothing() -> None:
    sheet = "@supports (-webkit-touch-callout:none){.a{display:none}} @supports (not (display:grid)){.a{display:none}}"
    assert parse(Path("a.html"), f"<style>{sheet}</style><p class=a>one</p>".encode()).text == "one"


def test_a_forwarded_mail_that_is_not_encoded_keeps_its_parts() -> None:
    inner = "Subject: Budget\nContent-Type: multipart/mixed; boundary=Y\n\n--Y\n\n5500 crowns\n--Y--\n"
    part = f"Content-Type: message/rfc822\nContent-Transfer-Encoding: quoted-printable\n\n{inner}"
    head = "Subject: Fwd\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=X\n\n--X\n"
    assert "5500 crowns" in parse(Path("a.eml"), f"{head}{part}\n--X--\n".encode()).text


def test_a_sheet_holds_for_its_media_and_for_the_page_of_an_archive_that_links_to_it() -> None:
    wide = "<style media='screen and (min-width:9px)'>.b{display:none}</style>"
    page = f"<style media=print>.a{{display:none}}</style>{wide}"
    assert parse(Path("a.html"), f"{page}<p class=a>one</p><p class=b>two</p>".encode()).text == "one"
    links = '<link rel="stylesheet" href="cid:s"><link rel="stylesheet" media="print" href="http://a/p?x&amp;y">'
    said = "".join(f"<p class={name}>{name} is paid</p>" for name in "spo")
    parts = [("text/html", "http://a/", f"<html>{links}{said}</html>")]
    for name, at in (("s", "cid:s"), ("p", "http://a/p?x&y"), ("o", "cid:o")):
        parts.append(("text/css", at, f".{name}{{display:none}}"))
    written = "".join(f"--X\nContent-Type: {kind}\nContent-Location: {at}\n\n{text}\n" for kind, at, text in parts)
    archive = f"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=X\n\n{written}--X--\n"
    text = parse(Path("a.mht"), archive.encode()).text
    assert [name for name in "spo" if f"{name} is paid" in text] == ["p", "o"]
