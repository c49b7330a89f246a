"""What becomes of each kind of file: text, title, headings, pages; and of the files that cannot be read."""

import io
import re
import zipfile
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.document_records import Document, Heading
from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted
from local_rag.reading.decode import decode
from local_rag.reading.markdown import blank_front_matter, blank_tags, find_headings, title_of
from local_rag.reading.read import as_document, make_document, read
from local_rag.reading.split import Splitting


def read_text(folder: Path, name: str, content: str | bytes) -> Document:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path)


def outline(document: Document) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in document.headings]


def test_notes_are_few_different_short_and_on_one_line() -> None:
    notes = ["a\nb", "a\nb", *(f"image {number}" for number in range(30)), "x" * 999]
    converted = Converted(None, "text", "text", notes=tuple(notes))
    kept = make_document(Path("a.txt"), converted).notes
    assert kept[:2] == ("a b", "image 0")
    assert (len(kept), kept[-1]) == (20, "and 13 more such notes")
    [long] = make_document(Path("a.txt"), replace(converted, notes=("x" * 999,))).notes
    assert len(long) == 200


# Markdown


HANDBOOK = """---
title: "Leave: a guide"
tags: [leave]
---

# Leave *policy*

Ask in {% slack_channel "people-ops" %} or see [travel]({% page "/travel/" %}).
{% image "_img/door.png" "a red door" %}
{% comment %}
# Not a heading
{% endcomment %}<!-- nor
# this -->

Setext `code`
-------------

```liquid
# no heading {% raw %} <!-- kept -->
```

> # quoted

### Deep ###
"""


def test_markdown_keeps_every_line_and_offset(tmp_path: Path) -> None:
    document = read_text(tmp_path, "leave.md", HANDBOOK)
    assert document.title == "Leave: a guide"
    assert (document.kind, document.is_source, document.pages) == ("markdown", True, ())
    assert outline(document) == [(1, "Leave policy"), (2, "Setext code"), (3, "Deep")]
    assert [HANDBOOK[heading.start :].partition("\n")[0] for heading in document.headings] == [
        "# Leave *policy*",
        "Setext `code`",
        "### Deep ###",
    ]
    assert len(document.text) == len(HANDBOOK)
    for original, kept in zip(HANDBOOK, document.text, strict=True):
        assert kept == original or (kept == " " and original != "\n")
    for gone in ("title:", "slack_channel", "/travel/", "door.png", "Not a heading", "nor", "---\n\n#"):
        assert gone not in document.text
    for left in ("people-ops", "a red door", "{% raw %} <!-- kept -->"):
        assert left in document.text


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("a.md", "---\ntitle: Foo: bar\n---\ntext", "Foo: bar"),
        ("a.md", "---\n# note\ndate: 2024-13-45\ntitle: Late\n---\ntext", "Late"),
        ("a.md", "---\ntitle: 2024\n---\n# Other", "2024"),
        ("a.md", "---\ntitle: [a]\n---\nintro\n\n# First", "First"),
        ("a.md", "---\n\njust a rule\n\n---\n## Sub", "Sub"),
        ("a.html", "<title> \n</title><body><h1>Boats</h1>", "Boats"),
        ("travel-guide_2024.md", "no heading", "Travel guide 2024"),
        ("b.txt", "# text", "B"),
        ("c.py", "x = 1", "c.py"),
    ],
)
def test_titles(tmp_path: Path, name: str, content: str, title: str) -> None:
    assert read_text(tmp_path, name, content).title == title


def test_the_kind_of_a_text_comes_from_its_suffix_or_from_the_caller() -> None:
    assert [as_document(Path(name), "# A\n").kind for name in ("a.MDX", "a.PY", "a.txt")] == [
        "markdown",
        "code",
        "text",
    ]
    said = as_document(Path("a.txt"), "# A\n", kind="markdown")
    assert (said.kind, said.title, outline(said)) == ("markdown", "A", [(1, "A")])


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nAll of this: stays\n\n---\nend\n",
        "---\n# Holiday rules\n\n30 days.\n\n## Requests\n\nNote: exceptions.\n\n---\n\n# Travel\n",
        "---\n# Holiday rules\n\nNote: exceptions are possible.\n\n---\n\n# Travel\n",
        "---\nNote: exceptions are possible.\nEverybody has 30 days.\n---\n",
        "---\nNote: exceptions are possible.\n\n## Requests\n\n---\n",
        "---\n https://example.org/\n---\n",
        "---\ntitle: never closed\n\ntext\n",
        " ---\ntitle: indented\n---\n",
        "text\n---\ntitle: late\n---\n",
        "---\n---\ntext\n",
        "---\n" + "a: b\n" * 500 + "---\n",
        "---\na: " + "b" * 2**16 + "\n---\n",
    ],
)
def test_text_that_looks_like_front_matter_stays(text: str) -> None:
    assert blank_front_matter(text) == (text, {})


@pytest.mark.parametrize(
    "yaml",
    [
        "title: x",
        "\ntitle: x\n\nlast change: 2024-01-01\n",
        "# note\ntitle: x\n  # indented\n#tag: y",
        "tags:\n- a\n-\n  b\ntitle: x",
        'tags: [\n  a\n]\n"title": x',
        "keywords: >-\n  two\n\n  lines\ntitle: x",
    ],
)
@pytest.mark.parametrize("end", ["---", "... \t"])
def test_front_matter_is_blanked(yaml: str, end: str) -> None:
    text, fields = blank_front_matter(f"--- \n{yaml}\n{end}\n# Page")
    assert title_of(fields) == "x"
    assert text.strip() == "# Page"
    assert len(text) == len(f"--- \n{yaml}\n{end}\n# Page")
    assert text.count("\n") == yaml.count("\n") + 3


def test_a_number_too_large_to_format_is_not_a_title() -> None:
    assert title_of(blank_front_matter(f"---\ntitle: 0x{'f' * 9000}\n---\n")[1]) is None


def test_unclosed_tags_stay_and_cost_no_time() -> None:
    text = "{% open " * 100_000 + "<!-- " * 100_000
    assert blank_tags(text) == text


@given(st.text(alphabet="#{%}<!->`\n \"ab='", max_size=60))
def test_blanking_keeps_length_lines_and_all_other_characters(text: str) -> None:
    blanked = blank_tags(text)
    assert len(blanked) == len(text)
    assert all(kept in (original, " ") for kept, original in zip(blanked, text, strict=True))
    assert blanked.count("\n") == text.count("\n")


@given(st.lists(st.sampled_from(["# A", "## B", "text", "", "```", "C\n===", "- item", "> quote"]), max_size=12))
def test_headings_have_correct_offsets(lines: list[str]) -> None:
    text = "\n".join(lines)
    headings = find_headings(text)
    assert list(headings) == sorted(headings, key=lambda heading: heading.start)
    for heading in headings:
        assert heading.start == 0 or text[heading.start - 1] == "\n"
        assert heading.title in text[heading.start :].split("\n")[0]


@pytest.mark.parametrize("paragraph", ["word " * 61, "two\nlines"])
def test_a_paragraph_above_a_rule_is_text(paragraph: str, tmp_path: Path, splitting: Splitting) -> None:
    document = read_text(tmp_path, "minutes.md", f"# Minutes\n\n{paragraph}\n---\n\nEnd.\n\nShort\n-----\n\nMore.\n")
    assert outline(document) == [(1, "Minutes"), (2, "Short")]
    chunks = splitting.split(document)
    assert paragraph.strip() in "\n".join(chunk.text for chunk in chunks)


LONG = "A boat that " + "leaves at seven " * 500


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", f"# {LONG}\n\ntext"),
        ("a.md", f"---\ntitle: {LONG}\n---\n# {LONG}\n\ntext"),
        ("a.html", f"<html><head><title>{LONG}</title></head><body><h1>{LONG}</h1><p>text</p></body></html>"),
        ("a.ipynb", f'{{"cells": [{{"cell_type": "markdown", "source": ["# {LONG}"]}}], "metadata": {{}}}}'),
        ("a.py", f"class A_{'b' * 5000}:\n    pass\n"),
    ],
)
def test_titles_and_headings_are_cut(name: str, content: str, tmp_path: Path) -> None:
    document = read_text(tmp_path, name, content)
    titles = [document.title, *(heading.title for heading in document.headings)]
    assert len(titles) == 2
    assert all(len(title) <= 200 for title in titles)
    long = titles[1:] if name == "a.py" else titles
    assert all(title.endswith(("seven…", "leaves…", "at…", "b…")) and title[:2] in content for title in long)


# Text and code


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Grüße, naïve café", "utf-8"),
        ("Grüße, naïve café", "utf-8-sig"),
        ("Grüße, naïve café", "utf-16"),
        ("Grüße, naïve café", "utf-32"),
        ("Le café est très agréable à l'été, on y mange du pâté “maison”.", "cp1252"),
        ("Привет, как дела? Это обычный русский текст о погоде и природе.", "cp1251"),  # noqa: RUF001
        ("これは日本語のテキストです。とても長い文章を書きます。", "shift_jis"),
    ],
)
def test_encodings(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


CHINESE, JAPANESE = (
    "这是一个关于假期政策的文件。员工每年有三十天的假期。",
    "これは日本語のテキストです。とても長い文章を書きます。",
)
TRADITIONAL, KOREAN = (
    "這是一個關於假期政策的文件。員工每年有三十天的假期。",
    "이것은 휴가 정책에 관한 문서입니다. 직원은 매년 휴가를 받습니다.",
)


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "gb18030"),
        (CHINESE + "\U00020000", "gb18030"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (TRADITIONAL, "big5"),
        (KOREAN, "cp949"),
    ],
)
def test_long_texts_whose_sample_may_end_inside_a_character(text: str, encoding: str, before: str) -> None:
    long = before + text * (1_200_000 // len(text.encode(encoding)))
    assert decode(long.encode(encoding)) == long


def test_newlines_and_damaged_characters() -> None:
    assert decode(b"a\r\nb\rc\n") == "a\nb\nc\n"
    assert decode("aä".encode() * 100 + b"\xff") == "aä" * 100 + "\ufffd", "a damaged byte does not make it Latin-1"
    assert decode(b"x" * 9000 + b"\x00") == "x" * 9000 + "\ufffd"
    assert decode("x\ud800y".encode("utf-16", "surrogatepass")) == "x\ufffdy"


PYTHON = '''"""Module."""

# About Foo.
@decorate
class Foo:
    x = 1

    def bar(self):
        def inner():
            pass

async def baz():
    pass
'''


def test_python_definitions_are_headings(tmp_path: Path) -> None:
    document = read_text(tmp_path, "mod.py", PYTHON)
    assert (document.kind, document.language, document.text) == ("code", "python", PYTHON)
    assert outline(document) == [(1, "class Foo"), (2, "def bar"), (3, "def inner"), (1, "def baz")]
    assert PYTHON[document.headings[0].start :].startswith("# About Foo.\n@decorate")


def test_other_code_has_a_language_and_broken_python_no_headings(tmp_path: Path) -> None:
    assert read_text(tmp_path, "a.RS", "fn main() {}").language == "rust"
    assert read_text(tmp_path, "a.json", "{}").kind == "code"
    assert read_text(tmp_path, "old.py", "print 'x'\nclass A: pass\n").headings == ()
    assert read_text(tmp_path, "warn.py", "x = '\\d'\ndef f(): pass\n").headings == (Heading(1, "def f", 9, 23),)


# HTML

PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>Leave - Acme</title><style>.x{}</style></head><body>
<header><a href="/">Acme</a><nav><ul><li><a href="/a">NAVIGATION</a></li></ul></nav></header>
<MAIN><h1>Parental leave</h1><p>Employees get <b>sixteen</b> weeks; see <a href="/form">the form</a>.</p>
<h2>Who may take it</h2><ul><li>Birth parents</li><li>Adoptive parents<ul><li>snake_case too</li></ul></li></ul>
<h2>Rates</h2><table><tr><th>Year</th><th>Weeks</th></tr><tr><td>2024</td><td>16</td></tr></table>
<pre><code>def f(x):
    return x</code></pre><p>Short.</p></MAIN>
<aside>ASIDE</aside><footer>FOOTER</footer><script>SCRIPT</script></body></html>"""
KEPT = [
    "sixteen",
    "the form",
    "Birth parents",
    "Adoptive parents",
    "snake_case too",
    "| 2024 | 16 |",
    "    return x",
    "Short.",
]
FRAME = ["NAVIGATION", "ASIDE", "FOOTER", "SCRIPT", "/form"]


def test_html_keeps_the_marked_main_content_and_nothing_else(tmp_path: Path) -> None:
    document = read_text(tmp_path, "page.html", PAGE)
    assert (document.title, document.kind, document.is_source) == ("Leave - Acme", "markdown", False)
    assert outline(document) == [(1, "Parental leave"), (2, "Who may take it"), (2, "Rates")]
    assert [part for part in KEPT if part not in document.text] == []
    assert [part for part in FRAME if part in document.text] == []


def test_html_without_marked_content_is_searched_for_it(tmp_path: Path) -> None:
    paragraphs = "".join(
        f"<p>Paragraph {i} tells how the heat pump of house {i} is installed and used.</p>" for i in range(9)
    )
    page = (
        '<html><body><div id="menu"><ul><li><a href="/">MENU</a></li><li><a href="/shop">SHOP</a></li></ul></div>'
        f'<div class="content"><h1>Heat pumps</h1>{paragraphs}<h2>Costs</h2><p>Nine.</p></div>'
        '<div class="footer">IMPRINT <a href="/i">x</a></div></body></html>'
    )
    document = read_text(tmp_path, "blog.html", page)
    assert outline(document) == [(1, "Heat pumps"), (2, "Costs")]
    assert document.title == "Heat pumps"
    assert all(f"house {i} is" in document.text for i in range(9))
    assert "Nine." in document.text
    assert "MENU" not in document.text
    assert "IMPRINT" not in document.text


def test_a_short_or_old_page_loses_nothing(tmp_path: Path) -> None:
    page = "<html><head><meta charset='iso-8859-1'></head><body><h1>Über</h1><p>Größe.</p></body></html>"
    document = read_text(tmp_path, "short.htm", page.encode("latin-1"))
    assert document.text.split() == ["#", "Über", "Größe."]
    deep = read_text(tmp_path, "deep.html", "<div>" * 5000 + "<main>far down</main>" + "</div>" * 5000)
    assert deep.text.strip() == "far down"


# PDF


def make_pdf(path: Path, *pages: str, title: str = "", password: str = "") -> Path:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.set_title(title)
    pdf.set_font("helvetica", size=12)
    if password:
        pdf.set_encryption(owner_password="owner", user_password=password)
    for text in pages:
        pdf.add_page()
        pdf.multi_cell(0, text=text, new_x="LMARGIN", new_y="NEXT")
    pdf.output(str(path))
    return path


def test_pdf_keeps_its_pages(tmp_path: Path) -> None:
    document = read(
        make_pdf(tmp_path / "r.pdf", "Annual report\nAn exam-\nple that goes\non.", "", "Third page", title="Report")
    )
    assert (document.title, document.kind, document.is_source) == ("Report", "text", False)
    assert len(document.pages) == 3
    ends = [*document.pages[1:], len(document.text)]
    texts = [document.text[start:end].strip() for start, end in zip(document.pages, ends, strict=True)]
    assert texts == ["Annual report\nAn example that goes on.", "", "Third page"]
    assert document.notes == (), "a blank page holds nothing to read"
    assert read(make_pdf(tmp_path / "w.pdf", "Whole")).notes == ()


@pytest.mark.parametrize("title", ["", "Microsoft Word - draft.docx", "untitled"])
def test_pdf_without_a_real_title_takes_its_first_line(tmp_path: Path, title: str) -> None:
    assert read(make_pdf(tmp_path / "r.pdf", "", "First line\nmore", title=title)).title == "First line"


# Office files and books


def make_archive(path: Path, members: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def make_docx(path: Path) -> Path:
    import docx

    document = docx.Document()
    document.add_heading("The plan", 0)
    document.add_heading("Goals", 1)
    document.add_paragraph("Ship snake_case * today.")
    table = document.add_table(2, 2)
    for row, cells in zip(table.rows, [("Name", "Age"), ("Ada", "36")], strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.save(str(path))
    return path


def test_docx(tmp_path: Path) -> None:
    document = read(make_docx(tmp_path / "plan.docx"))
    assert (document.title, document.kind, document.is_source) == ("The plan", "markdown", False)
    assert outline(document) == [(1, "The plan"), (1, "Goals")]
    assert "Ship snake_case * today." in document.text
    assert "| Ada | 36 |" in document.text


def test_pptx_slides_are_pages(tmp_path: Path) -> None:
    from pptx import Presentation

    presentation = Presentation()
    for title, body in (("First", "Bullet one\n<!-- Slide number: 3 -->"), ("Second", "Bullet two")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    presentation.slides[0].notes_slide.notes_text_frame.text = "Say hello"
    presentation.save(str(tmp_path / "talk.pptx"))
    document = read(tmp_path / "talk.pptx")
    assert document.title == "First"
    assert len(document.pages) == 2
    first, second = (
        document.text[start:end] for start, end in zip(document.pages, [*document.pages[1:], None], strict=True)
    )
    assert first.split()[:2] == ["#", "First"]
    assert "Say hello" in first
    assert second.split() == ["#", "Second", "Bullet", "two"]


def test_xlsx_rows_name_their_columns(tmp_path: Path) -> None:
    import openpyxl  # type: ignore[import-untyped]

    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Staff"
    for row in (
        ["Staff of 2024"],
        ["Name", "Born", None, "Share"],
        ["Ada", date(1815, 12, 10), None, 2.0],
        [None],
        ["Bob\nJr"],
    ):
        sheet.append(row)
    workbook.create_sheet("Empty")
    workbook.create_sheet("Numbers").append([1, 2])
    workbook.save(tmp_path / "staff.xlsx")
    document = read(tmp_path / "staff.xlsx")
    assert outline(document) == [(2, "Staff"), (2, "Numbers")]
    assert [line for line in document.text.split("\n") if line] == [
        "## Staff",
        "Staff of 2024",
        "Columns: Name; Born; Share",
        "Row 3: Name: Ada; Born: 1815-12-10; Share: 2",
        "Bob Jr",
        "## Numbers",
        "Row 1: 1; 2",
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.csv", 'name,note\nAda,"first, and\nbest"\nBob,\n'),
        ("p.csv", 'name;note\nAda;"first, and\nbest"\nBob;\n'),
        ("p.tsv", 'name\tnote\r\nAda\t"first, and\r\nbest"\r\nBob\t\r\n'),
    ],
)
def test_csv_rows_name_their_columns(tmp_path: Path, name: str, content: str) -> None:
    document = read_text(tmp_path, name, content)
    assert (document.title, document.kind, document.is_source) == ("P", "text", False)
    assert document.text.split("\n") == [
        "Columns: name; note",
        "Row 2: name: Ada; note: first, and best",
        "Row 3: name: Bob",
    ]


CONTAINER = (
    '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)
BOOK = (
    '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf">'
    '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>My book</dc:title></metadata><manifest>'
    '<item id="b" href="b.xhtml"/><item id="a" href="a.xhtml"/></manifest>'
    '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
)
CHAPTER = (
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><h1>{}</h1><p>Text ä.</p></body></html>'
)


def test_epub_chapters_follow_the_spine(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": BOOK}
    chapters: dict[str, str | bytes] = {f"OEBPS/{name}.xhtml": CHAPTER.format(name.upper()) for name in "ab"}
    document = read(make_archive(tmp_path / "b.epub", members | chapters))
    assert document.title == "My book"
    assert outline(document) == [(1, "A"), (1, "B")]
    assert document.text.count("Text ä.") == 2


def test_notebook(tmp_path: Path) -> None:
    cells = (
        '{"cell_type": "markdown", "source": ["# Analysis\\n", "Why."]}, '
        '{"cell_type": "code", "source": ["x = 1"], "outputs": [{"data": {"image/png": "AAAA"}}]}'
    )
    document = read_text(
        tmp_path, "n.ipynb", f'{{"cells": [{cells}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}'
    )
    assert document.title == "Analysis"
    assert "x = 1" in document.text
    assert "AAAA" not in document.text


# What cannot be read


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.md", b"", "empty"),
        ("a.pdf", b" \n ", "empty"),
        ("a.md", b"---\ntitle: x\n---\n<!-- nothing -->\n", "contains no text"),
        ("a.html", b"<html><body><script>x</script></body></html>", "contains no text"),
        ("a.txt", b"\x89PNG\x00\x00", "binary file"),
        ("a", bytes(range(128, 256)) * 20, "encoding"),
        ("a.pdf", b"%PDF-1.4 garbage", "damaged PDF file"),
        ("a.docx", b"PK garbage", "damaged"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0" + b"x" * 600, "encrypted, or in an Office format from before 2007"),
        ("a.ipynb", b"{", "damaged IPYNB file"),
    ],
)
def test_unreadable_files_say_why(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        read_text(tmp_path, name, content)


def test_missing_files_and_folders_are_read_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.md", tmp_path):
        with pytest.raises(ReadError, match="cannot be opened"):
            read(path)


def test_pdf_that_is_encrypted_or_scanned(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="encrypted PDF"):
        read(make_pdf(tmp_path / "e.pdf", "secret", password="x"))
    with pytest.raises(ReadError, match="contains no text"):
        read(make_pdf(tmp_path / "s.pdf", "", ""))


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx", ".epub"])
def test_archives_of_something_else_are_damaged_files(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(ReadError, match=f"damaged {suffix[1:].upper()} file"):
        read(make_archive(tmp_path / f"x{suffix}", {"hello.txt": "hi"}))


def test_zip_bombs_are_refused_before_they_expand(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"expands to 10 MB, probably a zip bomb"):
        read(make_archive(tmp_path / "x.docx", {"word/document.xml": b" " * 10_000_000}))


def test_a_table_whose_text_is_many_times_as_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"contains 5\d\.\d MiB of text, more than the limit of 50\.0 MiB"):
        read_text(tmp_path, "a.csv", "a" * 100_000 + ",b\n" + "1,2\n" * 270_000)


LAUGHS = '<!DOCTYPE x [<!ENTITY a0 "ha">{}]>'.format(
    "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
)


@pytest.mark.parametrize(
    ("make", "member"),
    [("docx", "word/document.xml"), ("xlsx", "xl/worksheets/sheet1.xml"), ("pptx", "ppt/slides/slide1.xml")],
)
@pytest.mark.parametrize("attack", ["laughs", "file"])
@pytest.mark.slow
def test_entities_neither_expand_nor_read_files(tmp_path: Path, make: str, member: str, attack: str) -> None:
    (tmp_path / "secret.txt").write_text("SECRET", "utf-8")
    path = make_office_file(tmp_path, make)
    assert "PLACE" in read(path).text
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        texts = {info.filename: archive.read(info).decode("latin-1") for info in archive.infolist()}
    declaration, body = re.fullmatch(r"(<\?xml.*?\?>)?(.*)", texts[member], re.DOTALL).groups()  # type: ignore[union-attr]
    assert "PLACE" in body
    doctype = (
        LAUGHS if attack == "laughs" else f'<!DOCTYPE x [<!ENTITY a9 SYSTEM "{(tmp_path / "secret.txt").as_uri()}">]>'
    )
    texts[member] = f"{declaration or ''}{doctype}{body.replace('PLACE', '&a9;')}"
    make_archive(path, {name: text.encode("latin-1") for name, text in texts.items()})
    try:
        text = read(path).text
    except ReadError:
        return
    assert len(text) < 1000
    assert "SECRET" not in text


def make_office_file(folder: Path, kind: str) -> Path:
    import docx
    import openpyxl
    from pptx import Presentation

    path = folder / f"x.{kind}"
    if kind == "docx":
        document = docx.Document()
        document.add_paragraph("PLACE and more")
        document.save(str(path))
    elif kind == "xlsx":
        workbook = openpyxl.Workbook()
        workbook.active["A1"] = "PLACE and more"
        workbook.save(path)
    else:
        presentation = Presentation()
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = "PLACE and more"
        presentation.save(str(path))
    return path
