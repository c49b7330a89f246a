"""Footnotes, endnotes and comments are read where their signs stand, in every format that has them."""

from pathlib import Path

import pytest

from local_rag.document_records import Document
from local_rag.reading.read import parse
from local_rag.reading.relations import relations_of
from tests.support.office_files import book, open_document
from tests.support.word_files import item, level, lists, paragraph, run, sign, word_file

CLAUSE, NOTE = "Dogs are welcome in the Bothy.", "Assistance dogs are welcome everywhere."
READ = f"{CLAUSE} (Note: {NOTE})"
OTHER = "It has long been so, and whoever comes is asked to keep the rules that hang at the door."


def read(name: str, data: str | bytes) -> Document:
    return parse(Path(name), data if isinstance(data, bytes) else data.encode())


def of_word(body: str, **notes: str) -> str:
    return read("a.docx", word_file(body, notes={kind: paragraph(text) for kind, text in notes.items()})).text


def html(body: str) -> str:
    return f"<html><body>{body}</body></html>"


FORMATS = {
    "pandoc.html": html(
        f'<h1>Rules</h1><p>{CLAUSE}<a href="#fn1" class="footnote-ref" id="fnref1" role="doc-noteref"><sup>1</sup></a> '
        f'{OTHER}</p><section role="doc-endnotes"><hr><ol><li id="fn1"><p>{NOTE}<a href="#fnref1" '
        'role="doc-backlink">\u21a9\ufe0e</a></p></li></ol></section>'
    ),
    "word.html": html(
        f'<h1>Rules</h1><p>{CLAUSE}<a href="#_ftn1" name="_ftnref1"><span><sup>[1]</sup></span></a> {OTHER}</p><hr>'
        f'<div id="ftn1"><p><a href="#_ftnref1" name="_ftn1"><sup>[1]</sup></a> {NOTE}</p></div>'
    ),
    "sphinx.html": html(
        f'<h1>Rules</h1><p>{CLAUSE} <a class="footnote-reference brackets" href="#id2" id="id1">[1]</a> {OTHER}</p>'
        f'<aside class="footnote" id="id2"><span class="label"><a href="#id1">1</a></span><p>{NOTE}</p></aside>'
    ),
    "kramdown.html": html(
        f'<h1>Rules</h1><p>{CLAUSE}<sup id="fnref:1"><a href="#fn:1">1</a></sup> {OTHER}</p><div class="footnotes"><ol>'
        f'<li id="fn:1"><p>{NOTE} <a href="#fnref:1">\u21a9</a></p></li></ol></div>'
    ),
    "hidden.xhtml": html(
        f'<h1>Rules</h1><p>{CLAUSE}<a epub:type="noteref" href="#n1">*</a> {OTHER}</p>'
        f'<aside epub:type="footnote" id="n1" hidden><p>{NOTE}</p></aside>'
    ),
    "notes.md": f"# Rules\n\n{CLAUSE}[^dog] {OTHER}\n\n[^dog]: Assistance dogs are\n    welcome everywhere.\n",
    "notes.rtf": r"{\rtf1\ansi " + CLAUSE + r"{\super\chftn{\footnote\pard\plain {\super\chftn } Assistance dogs "
    r"are\par welcome everywhere.\par}} " + OTHER + r"\par}",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_a_note_stands_behind_its_clause(name: str) -> None:
    text = read(name, FORMATS[name]).text
    assert READ in text
    assert text.count("Assistance") == 1
    assert text.rstrip("-\n ").endswith(OTHER), "nothing is left of it at the end"
    assert not {"\u21a9", "[1]", "[^dog]"} & set(text.split())


def test_the_notes_of_word_stand_behind_their_clause_whatever_their_kind() -> None:
    for kind, label in (("footnote", "Note"), ("endnote", "Note"), ("comment", "Comment")):
        text = of_word(paragraph(run(CLAUSE) + sign(kind) + run(" Bye.")), **{kind: NOTE})
        assert text == f"{CLAUSE} ({label}: {NOTE}) Bye."


def test_a_note_in_the_middle_of_a_sentence_stands_there() -> None:
    text = of_word(
        paragraph(run("Dogs") + sign("footnote") + run(" may come.")), footnote="Small 2nd ones in 90 boats."
    )
    assert text == "Dogs (Note: Small 2nd ones in 90 boats.) may come."


def test_a_note_in_a_numbered_clause_stands_in_it() -> None:
    body = item("Dogs", 1) + item(CLAUSE, 1, 1).replace("</w:p>", f"{sign('footnote')}</w:p>")
    data = word_file(body, numbering=lists(level(0, "%1.") + level(1, "%1.%2")), notes={"footnote": paragraph(NOTE)})
    assert read("a.docx", data).text == f"1. Dogs\n   1.1 {READ}"


def test_a_clause_whose_list_goes_on_behind_a_table_has_no_sign_of_another_list() -> None:
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("Fee", "Day"))
    table = f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>"
    body = item("Fees", 1) + item("Is paid.", 1, 1) + table + item("Is late.", 1, 1) + item("Is gone.", 1, 1)
    text = read("a.docx", word_file(body, numbering=lists(level(0, "%1.") + level(1, "%1.%2")))).text
    assert [line for line in text.split("\n") if line.startswith(("1", "*", " "))] == [
        "1. Fees", "   1.1 Is paid.", "1.2 Is late.", "1.3 Is gone."
    ]  # fmt: skip


def test_the_note_of_a_heading_stands_below_it() -> None:
    heading = '<w:pStyle w:val="Heading1"/>'
    styles = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    word = word_file(
        paragraph(run("Rules") + sign("footnote"), heading) + paragraph(CLAUSE),
        styles=styles,
        notes={"footnote": paragraph(NOTE)},
    )
    page = html(
        f'<h1>Rules<sup><a href="#n" id="r">1</a></sup></h1><p>{CLAUSE} {OTHER}</p>'
        f'<ol><li id="n">{NOTE} <a href="#r">^</a></li></ol>'
    )
    odt = open_document(
        "text", f'<text:h text:outline-level="1">Rules{odt_note(NOTE)}</text:h><text:p>{CLAUSE}</text:p>'
    )
    rtf = (
        r"{\rtf1{\stylesheet{\s1 heading 1;}}\pard\s1 Rules{\footnote "
        + NOTE
        + r"}\par\pard\plain "
        + CLAUSE
        + r"\par}"
    )
    markdown = f"# Rules[^1]\n\n{CLAUSE}\n\n[^1]: {NOTE}\n"
    files: dict[str, str | bytes] = {"a.docx": word, "a.html": page, "a.odt": odt, "a.rtf": rtf, "a.md": markdown}
    for name, data in files.items():
        document = read(name, data)
        assert [one.title for one in document.headings] == ["Rules"], name
        assert f"(Note: {NOTE})" in document.text, name
        assert document.text.index("Rules") < document.text.index(NOTE) < document.text.index(CLAUSE), name


def odt_note(text: str) -> str:
    body = f"<text:note-body><text:p>{text}</text:p></text:note-body>"
    return f"<text:note><text:note-citation>1</text:note-citation>{body}</text:note>"


def test_the_note_of_a_cell_stands_in_it_and_its_column_stays_one_of_numbers() -> None:
    def cell(inner: str) -> str:
        return f"<w:tc>{paragraph(inner if inner.startswith('<') else run(inner))}</w:tc>"

    rows = [["Boat", run("Fee") + sign("footnote")], ["Alke", "90"], ["Terna", run("75") + sign("endnote")]]
    table = "".join(f"<w:tr>{''.join(map(cell, row))}</w:tr>" for row in rows)
    notes = {"footnote": paragraph("A year."), "endnote": paragraph("In EUR (net).")}
    document = read("a.docx", word_file(f"<w:tbl>{table}</w:tbl>", notes=notes))
    lines = document.text.splitlines()
    assert (lines[0], lines[-1]) == ("| Boat | Fee (Note: A year.) |", "| Terna | 75 (Note: In EUR (net).) |")
    [relation] = relations_of(document)
    assert [(column.name, column.kind) for column in relation.columns] == [("Boat", "text"), ("Fee", "number")]
    markdown = "| Boat | Fee |\n|---|---|\n| Alke | 90 |\n| Terna | 75[^1] |\n\n[^1]: In EUR.\n"
    [relation] = relations_of(read("a.md", markdown))
    assert relation.columns[1].kind == "number"


def test_a_hidden_target_of_a_number_is_a_note_and_that_of_a_word_is_none() -> None:
    page = "<p>Built in 1871<a href='#n1'>{}</a> by Per.</p><div id=n1 style='display:none'>Others say 1873.</div>"
    assert "1871 (Note: Others say 1873.) by Per." in read("a.html", page.format("1")).text
    assert "1873" not in read("a.html", page.format("More")).text


def test_notes_stand_in_a_file_outside_the_reading_order() -> None:
    chapter = f'<html><body><p>{CLAUSE}<a epub:type="noteref" href="notes.xhtml#n1">1</a></p></body></html>'
    notes = f'<html><body><aside epub:type="footnote" id="n1" hidden><p>{NOTE}</p></aside><p>Else</p></body></html>'
    text = read("a.epub", book({"rules": chapter, "notes": notes}, "rules")).text
    assert READ in text
    assert "Else" not in text


def test_the_notes_of_a_book_are_found_in_another_chapter() -> None:
    chapter = f'<html><body><h1>Rules</h1><p>{CLAUSE}<a id="r1" href="notes.xhtml#n1">1</a></p></body></html>'
    notes = f'<html><body><h1>Notes</h1><p id="n1"><a href="rules.xhtml#r1">1</a>. {NOTE}</p></body></html>'
    text = read("a.epub", book({"rules": chapter, "notes": notes}, "rules notes")).text
    assert READ in text
    assert text.count("Assistance") == 1
    assert CLAUSE in read("b.epub", book({"rules": chapter, "notes": notes}, "notes rules")).text, "in whatever order"


def test_a_note_with_several_signs_stands_at_each_unless_it_is_long() -> None:
    for text, times in ((NOTE, 2), (NOTE * 10, 1)):
        markdown = f"Dogs[^1] and cats[^1] may come.\n\n[^1]: {text}\n"
        assert read("a.md", markdown).text.count(text) == times
        page = html(
            f'<p>Dogs<a href="#n" id="r">1</a> and cats<a href="#n">1</a> may come. {OTHER}</p>'
            f'<p id="n">{text} <a href="#r">^</a></p>'
        )
        assert read("a.html", page).text.count(text) == times


def test_what_is_no_note_stays_where_it_is() -> None:
    page = html(
        f'<h1 id="top">Rules</h1><p>See <a href="#b">B</a>. {CLAUSE}<sup id="cite_ref-1"><a href="#cite_note-1">[1]</a>'
        f'</sup> {OTHER}</p><h2 id="b">B</h2><p>{OTHER} <a href="#top">up</a></p>'
        '<ol><li id="cite_note-1"><a href="#cite_ref-1">^</a> Smith 2004.</li></ol>'
    )
    text = read("a.html", page).text
    assert "(Note" not in text
    assert text.index(OTHER) < text.index("Smith 2004.")
    markdown = "`[^1]` is code, [^2] has no note.\n\n```\n[^1]: x\n```\n\n[^3]: nobody refers to it\n"
    assert read("a.md", markdown).text == markdown


def test_the_lines_of_markdown_keep_their_numbers() -> None:
    markdown = f"{CLAUSE}[^1]\n\n[^1]: One\n  two.\n\n    Three.\n\nLast line.\n"
    text = read("a.md", markdown).text
    assert text.split("\n").index("Last line.") == markdown.split("\n").index("Last line.")
    assert f"{CLAUSE} (Note: One two. Three.)" in text


def test_the_formulas_and_paragraphs_of_a_note_are_read_in_it() -> None:
    page = html(
        f'<p>{CLAUSE}<sup><a href="#n" id="r">1</a>, <a href="#m" id="q">2</a></sup> {OTHER}</p>'
        '<ul><li id="n"><p>Up to 10<sup>3</sup> kg.</p><p>Or <b>two</b>.</p><a href="#r">^</a></li>'
        '<li id="m">In May.<a href="#q">^</a></li></ul>'
    )
    text = read("a.html", page).text
    assert f"{CLAUSE} (Note: Up to 10\u00b3 kg. Or **two**.) (Note: In May.) {OTHER}" in text
