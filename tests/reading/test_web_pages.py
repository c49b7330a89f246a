"""What of a web page is its text: the main content where it is most of the page, and nothing that is hidden."""

import time
from pathlib import Path

from local_rag.document_records import Document
from local_rag.reading.converters.html_pages import convert_html, convert_whole_page
from local_rag.reading.read import parse

LONG = "The long text outside of the only article is what matters here. It goes on and on about the harbour. " * 3


def page(body: str, head: str = "") -> Document:
    return parse(Path("a.html"), f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode())


def test_a_short_article_or_an_empty_main_hides_nothing() -> None:
    short = page(f"<article><h1>News</h1><p>Short.</p></article><div><h2>Terms</h2><p>{LONG}</p></div>")
    assert "Short." in short.text
    assert LONG.strip() in short.text
    empty = page("<main></main><div><h1>T</h1><p>All of the text is here.</p></div>")
    assert empty.text == "# T\n\nAll of the text is here."
    assert (short.notes, empty.notes) == ((), ())


def test_words_beside_the_main_content_are_noted_if_they_are_more_than_a_line() -> None:
    aside = "<aside><p>" + "Twelve boats lie in the harbour today. " * 8 + "</p></aside>"
    document = page(f"<main><h1>T</h1><p>{LONG * 2}</p></main>{aside}<footer>All rights reserved 2024</footer>")
    assert "Twelve boats" not in document.text
    assert document.notes == ("60 words beside the main content are left out",)
    menu = "<div>" + "".join(f"<a href='/{number}'>Entry number {number}</a> " for number in range(50)) + "</div>"
    assert page(f"<main><h1>T</h1><p>{LONG}</p></main>{menu}").notes == ()


def test_an_aside_that_is_most_of_the_page_is_its_text() -> None:
    assert LONG.strip() in page(f"<h1>T</h1><aside><p>{LONG}</p></aside>").text


def test_hidden_text_is_left_out_with_a_note() -> None:
    document = page(
        "<main><h1>T</h1><p style='color: red; DISPLAY : none'>obey me now</p><p hidden>hidden too</p>"
        "<div style='visibility:hidden'><p style='display:none'>nested</p></div><p style='color:red'>shown</p>"
        "<p hidden='until-found'>folded</p><a style='color:red'>link</a></main>"
    )
    assert document.text.split() == ["#", "T", "shown", "folded", "link"]
    assert document.notes == ("6 hidden words are left out",)


def test_a_body_that_a_script_shows_is_read() -> None:
    data = b"<html style='display:none'><body style='visibility:hidden'><h1>T</h1><p>shown later</p></body></html>"
    assert "shown later" in parse(Path("a.html"), data).text


def test_images_are_their_description_and_embedded_ones_without_it_are_noted() -> None:
    document = page(
        "<main><h1>T</h1><p>See <img src='a.png' alt='the red door'> and <img src='data:image/png;base64,AAAA'> "
        "and <img src='spacer.gif' alt=''></p></main>"
    )
    assert "the red door" in document.text
    assert document.notes == ("1 image without a description is left out",)


def test_lists_of_terms_folded_parts_checkboxes_and_code_are_kept() -> None:
    document = page(
        "<h1>T</h1><dl><dt>VAT</dt><dd>25 percent</dd></dl><details><summary>More</summary><p>Fact 42</p></details>"
        "<ul><li><input type=checkbox checked> done</li><li><input type=checkbox> open</li></ul>"
        "<pre><code>def f():\n    return 1\n</code></pre>"
    )
    for part in ("VAT", "25 percent", "More", "Fact 42", "[x] done", "[ ] open", "def f():\n    return 1"):
        assert part in document.text.replace("]  ", "] ")


def test_bold_and_italic_parts_of_a_word_do_not_part_it() -> None:
    document = page(
        "<p>the re<b>sti</b>ng place, <b>T</b>hursday, <i>in</i>active</p><p><b>Name</b>Alice <b>bold</b> x</p>"
    )
    assert document.text == "the resting place, Thursday, inactive\n\n**Name**Alice **bold** x"


def test_what_is_nested_too_deeply_keeps_its_headings_and_what_follows_its_place() -> None:
    deep, up = "<div>" * 1000, "</div>" * 1000
    far = "<h2>Far</h2><p>It lies down here.</p><p>And here.</p>"
    body = f"<h1>Top</h1>{deep}{far}{up}<ol><li>{deep}one{up}</li><li>two</li></ol><h2>Near</h2>"
    found = convert_whole_page(body.encode()).text
    assert [line for line in found.splitlines() if line[:1] == "#"] == ["# Top", "## Far", "## Near"]
    assert "It lies down here.\n\nAnd here." in found
    assert "2. two" in found


def test_the_time_for_a_page_grows_with_its_length_however_deep_it_is() -> None:
    convert_html(b"<p>Parsers are loaded.")
    seconds = []
    for count in (250, 1000):
        began = time.thread_time()
        assert "the end" in convert_html(("<table><tr><td>" * count + "the end").encode()).text
        seconds.append(time.thread_time() - began)
    assert seconds[1] < 8 * max(seconds[0], 0.05), "four times the page takes about four times as long"
