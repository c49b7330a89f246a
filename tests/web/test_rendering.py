"""Rendering text of documents, on texts of any kind: nothing is lost, and nothing becomes markup."""

import html
import re
import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.catalogue.contents import WholeDocument
from local_rag.passage_records import Passage
from local_rag.retrieval.highlights import Mark, MarkKind, marks
from local_rag.text.sentences import unwrapped
from local_rag.text.sheet_rows import names_above
from local_rag.web.views.document_html import TextKind, header_above, kind_of, open_fence, render, show_passage
from local_rag.web.views.document_view import PART, address_of, find_place, view_document

SIGNS = "ab1 .\n\n!?[]()`*_-<>&\"'#\u2022,|:\\~=+"
LINES = r"""
# a b
> quote
- item
  - deeper
3. third
| a | b |
| --- | --- |
| 1 | 2 | 3 |
```python
    code
===
Row 2: name: Ada; born: 1815
Row 3: Ada; born: x; name: y; name: z; name: w
Row 4: alone
Columns: name; born
**bold
text** here
[a](http://x)
![a](b.png)
<script>alert(1)</script>
\*a\*
~~a~~
a\\
b
> > > > deep
``a`b``
[b]: http://y
""".splitlines()
TEXTS = st.one_of(
    st.text(st.sampled_from(SIGNS) | st.characters(codec="utf-8"), max_size=200),
    st.lists(st.sampled_from(LINES) | st.text(st.sampled_from(SIGNS), max_size=30), max_size=12).map("\n".join),
)
KINDS = st.sampled_from(["markdown", "text", "sheet", "code"])
SPANS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 200), st.sampled_from(["best", "term", "passage"])), max_size=4
)
OURS = re.compile(
    r"</?(?:p|ul|ol|li|pre|code|strong|em|s|h[1-6]|hr|br|blockquote|table|thead|tbody|tr|th|td|div|span|b|mark|details)>"
    r'|<h[1-6] id="line-\d+">|<table class="rows">|<span class="field">|<th scope="(?:row|col)">|<td colspan="\d+">'
    r'|<p class="(?:plain|record|heading)">|<span class="(?:beside|name)">|<li value="\d+">'
    r'|<mark class="(?:passage)? ?(?:best)? ?(?:term)?"(?: id="passage" tabindex="-1")?>'
    r"|<details open>|<summary>Quoted text</summary>"
    r'|<div class="wide" tabindex="0" role="group" aria-label="Table">|<div class="block">|<div dir="auto">'
    r'|<span class="n">\d+</span>'
)


def shown(text: str, kind: TextKind, spans: list[tuple[int, int, MarkKind]]) -> str:
    made = [Mark(min(a, b, len(text)), min(max(a, b), len(text)), kind) for a, b, kind in spans]
    return str(render(text, kind, made, anchor="passage", first_line=7, columns=("born", "name", "name")))


def words(markup: str) -> str:
    """Return the letters and digits that a page shows, and those of the numbers of its lists."""
    markup = re.sub(r"<thead><tr><th></th>.*?</thead>", "", markup)  # names of columns, which the rows repeat
    plain = re.sub(r'<li value="(\d+)">', r"\1", re.sub(r'<span class="n">\d+</span>', "", markup))
    return letters(html.unescape(OURS.sub("", plain)))


def letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text)


@given(TEXTS, KINDS, SPANS)
def test_no_letter_or_digit_is_lost_or_moved(text: str, kind: TextKind, spans: list[tuple[int, int, MarkKind]]) -> None:
    text = re.sub(r"(?m)\b0+(\d{1,9}[.)])", r"\1", text)  # a list counts without zeros
    assert words(shown(text, kind, spans)) == letters(text)


@given(TEXTS, KINDS, SPANS)
def test_nothing_of_a_document_becomes_markup(
    text: str, kind: TextKind, spans: list[tuple[int, int, MarkKind]]
) -> None:
    left = OURS.sub("", shown(text, kind, spans))
    assert "<" not in left
    assert ">" not in left
    assert '"' not in left


PASSAGE = Passage(1, "/a/boat.txt", "Boat", "", "", "", (), None, 1, 1, 0.0)
TABLE = "| place | weeks |\n| --- | --- |\n| Norway | 30 |\n| Ireland | 26 |"


def beside(text: str) -> str:
    return f'<span class="beside">{text}</span>'


def marked(markup: str) -> list[str]:
    return re.findall(r'<mark class="best[^"]*"[^>]*>(.*?)</mark>', markup)


def best(text: str, words: str) -> list[Mark]:
    return [Mark(text.index(words), text.index(words) + len(words), "best")]


def test_a_sentence_is_marked_across_lines_emphasis_and_cells() -> None:
    text = "The boat *leaves\nat* seven. It waits.\n\n> The last **boat\n> leaves** at ten.\n\n" + TABLE
    shown = str(render(text, "markdown", best(text, "boat *leaves\nat* seven."), anchor="passage"))
    assert "".join(marked(shown)) == "boat leaves at seven."
    assert shown.count('id="passage"') == 1
    assert "<em>" in shown
    assert "".join(marked(str(render(text, "markdown", best(text, "boat\n> leaves** at ten"))))) == "boat leaves at ten"
    row = str(render(text, "markdown", best(text, "| Norway | 30 |")))
    assert re.findall("<td>(.*?)</td>", row)[:2] == [
        '<mark class="best">Norway</mark>',
        '<mark class="best">30</mark>',
    ]


def test_words_of_the_question_are_marked_within_the_sentence() -> None:
    text = "It is old. The boat leaves at seven."
    shown = render(text, "text", marks(text, "When does the boat leave?"))
    assert (
        '<mark class="best term">boat</mark><mark class="best"> </mark><mark class="best term">leaves</mark>' in shown
    )


def test_rows_keep_the_header_that_their_passage_lacks() -> None:
    rows = "| Norway | 30 |\n| Ireland | 26 |"
    shown = str(render(rows, "text", best(rows, "26"), before=header_above(rows, "| place | weeks |")))
    assert re.findall("<th>(.*?)</th>", shown) == ["place", "weeks"]
    assert shown.count("<tr>") == 3
    assert marked(shown) == ["26"]
    assert header_above(TABLE, "") == header_above("text", "| a |") == ""


def table(shown: str) -> list[list[str]]:
    """Return the texts of the cells of each row of a table, without what is seen only where no header is."""
    shown = re.sub('<span class="field">.*?</span>', "", shown)
    return [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", shown)]


def test_rows_of_a_sheet_are_a_table() -> None:
    rows = "Row 2: name: Ada; born: 2*3*4\nRow 3: name: Bob; ship: a; see: b\nRow 4: Subtotal\nRow 5: ship: c"
    cells = [["2", "Ada", "2*3*4", ""], ["3", "Bob", "", "a; see: b"], ["4", "Subtotal"], ["5", "", "", "c"]]
    shown = str(render(f"Prices\nColumns: name; born; ship\n{rows}\n\n## More\n\nRow 9: alone", "sheet"))
    assert table(shown) == [["", "name", "born", "ship"], *cells]
    assert '<p class="plain">Prices</p>' in shown
    assert '<p class="heading">More</p>' in shown
    assert '<p class="record"><b>Row 9:</b> alone</p>' in shown
    assert table(str(render(rows, "sheet", columns=("name", "born", "ship")))) == [["", "name", "born", "ship"], *cells]
    passage = "Row 2: Lamp; born: 1\nRow 3: Boat; born: 2; see: x"
    assert table(str(render(passage, "sheet"))) == [
        ["", "", "born", "see"], ["2", "Lamp", "1", ""], ["3", "Boat", "2", "x"]
    ]  # fmt: skip
    assert marked(str(render(passage, "sheet", best(passage, "Boat; born: 2")))) == ["Boat", "born: ", "2"]


def test_the_names_above_a_part_of_a_sheet_are_found() -> None:
    text = "Columns: a; b\nRow 2: a: 1\nRow 3: b: 2\n\nColumns: c\nRow 2: c: 1\n\nRow 1: x"
    found = [names_above(text, text.index(row)) for row in ("Row 3", "Row 2: c", "Row 1")]
    assert found == [("a", "b"), ("c",), ()]


def test_the_outline_has_every_heading_and_where_it_stands() -> None:
    text = "# Leave\n\nText.\n\n## 1. Long\n\nText.\n\n```\n# no\n```\n\n## 2. Short\n\nText.\n"
    chunk = replace(PASSAGE, start=0, end=len(text), text=text, headings=("Leave",))
    view = view_document(WholeDocument(1, "/a.docx", "", "same", text, (chunk,)))
    assert [(one.level, one.title, one.anchor) for one in view.outline] == [
        (0, "Leave", "line-1"), (1, "1. Long", "line-5"), (1, "2. Short", "line-13")
    ]  # fmt: skip
    assert all(one.shown and f'id="{one.anchor}"' in view.rendered for one in view.outline)
    assert not any(one.shown for one in view_document(view.document, start=len(text)).outline)
    plain = "Mail\n\nSheet\nText of it.\nEnd\n## Sheet\nText."
    chunks = (replace(PASSAGE, headings=("Sheet",)), replace(PASSAGE, start=20, headings=("Sheet", "Cut in two")))
    view = view_document(WholeDocument(1, "/a.eml", "", "same", plain, chunks))
    found = [(one.level, one.title, one.anchor) for one in view.outline]
    assert found == [(0, "Sheet", "line-3"), (1, "Cut in two", ""), (0, "Sheet", "line-6")]
    assert "##" not in view.rendered


def test_the_outline_of_a_long_document_is_complete() -> None:
    section = "## Part {0}\n\n```\n# not this\n```\n" + "word " * 500 + "\n"
    text = "".join(section.format(number) for number in range(400))
    assert len(text) > 800_000
    outline = view_document(WholeDocument(1, "/a.md", "", "same", text, ())).outline
    assert [one.title for one in outline] == [f"Part {number}" for number in range(400)]


def test_what_is_struck_out_is_shown_so_in_every_kind_of_document() -> None:
    text = "The boat costs ~~4,000~~ 5,000 crowns, not ~1~."
    for kind in ("markdown", "text"):
        assert "costs <s>4,000</s> 5,000 crowns, not ~1~." in render(text, kind)
    rows = render("Columns: boat; price\nRow 2: boat: Anna; price: ~~4000~~\nRow 3: boat: Berta; price: 5000", "sheet")
    assert "<s>4000</s></td>" in rows
    assert marked(str(render(text, "text", best(text, text)))) == [
        "The boat costs ", "<s>4,000</s>", " 5,000 crowns, not ~1~.",
    ]  # fmt: skip
    assert render(text, "code") == f"<pre><code>{text}</code></pre>"


def test_each_line_of_a_slide_is_a_line() -> None:
    text = "# The boat\n\nLeaves at seven\nCarries twelve"
    assert "seven<br>Carries" in show_passage(replace(PASSAGE, path="/a/boat.pptx", text=text), ())
    assert "seven Carries" in show_passage(replace(PASSAGE, path="/a/boat.md", text=text), ())
    slides = WholeDocument(1, "/a/boat.pptx", "Boat", "same", text, (replace(PASSAGE, text=text),))
    assert "seven<br>Carries" in view_document(slides).rendered


def test_wrapped_lines_are_joined_and_others_stay() -> None:
    lines = (
        "The boat leaves the harbour at seven in the morning,",
        "and returns at noon if the swell allows it, or",
        "later.",
    )
    shown = render("\n".join([*lines, "1. One", "2. Two"]), "text")
    assert shown == f'<p class="plain">{" ".join(lines)}\n1. One\n2. Two</p>\n'
    assert "</p>" in render("short\nlines", "text").partition("short\nlines")[2]
    assert "<p>a b</p>" in render("a\nb", "markdown")
    assert "a\nb</p>" in render("a\nb", "text")


def test_each_clause_is_a_line() -> None:
    clauses = ["1.1 Ten a day.", "1.2 It is paid:", "(a) in May, and", "(b) in June.", "1.3 None."]
    in_item = render("1. **Fees**\n   " + "\n   ".join(clauses), "markdown")
    assert in_item.count("<br>") == len(clauses)
    assert [re.sub("<[^>]*>", "", line).strip() for line in in_item.split("<br>")][1:] == clauses
    for text, kind in (
        ("\n\n".join(clauses), "markdown"),
        ("\n".join(clauses), "markdown"),
        ("\n".join(clauses), "text"),
    ):
        shown = render(text, kind)  # type: ignore[arg-type]
        assert [re.sub("<[^>]*>", "", line) for line in re.split(r"<br>|</p>\s*|\n", shown) if line] == clauses
    wrapped = render(
        "In the year of the great storm the harbour has paid for its piers\n1.5 million, and more.", "text"
    )
    assert "piers 1.5 million" in wrapped
    assert "paid 1.5 million" in render("We paid\n1.5 million.", "markdown")


def test_the_part_of_a_text_keeps_the_code_in_which_it_begins() -> None:
    text = "Do:\n\n```sh\nmake\nmake *install*\n```\n\n*Done*"
    inside = text.index("make *")
    assert render(text[inside:], "markdown", before=open_fence(text, inside)) == (
        "<pre><code>make *install*</code></pre>\n<p><em>Done</em></p>\n"
    )
    assert open_fence(text, len(text)) == ""


def test_an_address_is_text_and_the_suffix_says_what_is_markdown() -> None:
    shown = str(render('[site](http://x "t") and ![a bird](bird.png)', "markdown"))
    site, bird = "(http://x &#34;t&#34;)", "(bird.png)"
    assert shown == f"<p>site {beside(site)} and a bird {beside(bird)}</p>\n"
    kinds = [kind_of(name) for name in ("a.md", "/b/c.html", "d.txt", "e.pdf", "f.csv", "g.py", "none")]
    assert kinds == ["markdown", "markdown", "text", "text", "sheet", "code", "text"]


def test_words_that_a_link_leads_to_are_found_where_they_are_now() -> None:
    passage = replace(PASSAGE, start=100, text="It waits. The boat leaves at seven.")
    address = address_of(7, passage, (10, 35))
    place = parse_qs(urlsplit(address).query)["at"][0]
    assert (address[:12], address[-8:]) == ("/document/7?", "#passage")
    for above in (0, 3, 100, 5000):
        text = "x" * above + " " + passage.text
        assert find_place(text, place) == (above + 11, above + 36)
    assert find_place("The boat leaves at eight.", place) is None
    for wrong in ("", "1-2", "9-1-00000000", "0-999999999999-00000000", "1-2-zzzzzzzz"):
        assert find_place(passage.text, wrong) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["big.md", "big.txt", "big.py", "big.pdf"])
def test_a_part_of_a_large_document_is_rendered(name: str) -> None:
    text = "word " * 2_000_000 + "\n\n" + "- a line\n" * 4_000_000
    document = WholeDocument(1, name, "big", "same", text, (replace(PASSAGE, start=9_000_000, end=9_000_100, page=1),))
    begun = time.process_time()
    for view in (view_document(document, chunk_id=1), view_document(document, start=40_000_000)):
        assert view.end - view.start <= PART
        assert len(view.rendered) < 1_000_000
    assert time.process_time() - begun < 10


def test_a_wrapped_sentence_is_whole() -> None:
    text = "The year ends in May. A surplus goes first to\nthe sea fund, which pays for boats.\n\n- the sea fund\n"
    (best, *_) = marks(unwrapped(text), "Where does a surplus of the sea fund go?")
    assert text[best.start : best.end] == "A surplus goes first to\nthe sea fund, which pays for boats."
    assert unwrapped("a\n\nb\n- c\n# d\n| e |\nf\n") == "a\n\nb\n- c\n# d\n| e |\nf\n"


def test_a_mail_has_a_line_for_each_field_and_its_quoted_text_is_folded() -> None:
    head = "From: Maria Quist <maria@inishvarra.example> of the light\nTo: Norscot <sales@norscot.example>\nDate: Tue\n"
    text = f"{head}\nIs the oil included?\n\nNorscot wrote:\n> We offer it.\n> Regards\n\nBye\n"
    shown = render(text, "text")
    assert '<span class="name">To:</span> Norscot' in shown
    assert "light\n<" in shown, "a field is not joined with the line above"
    assert shown.count("<details><summary>Quoted text</summary>") == shown.count("</details>") == 1
    assert shown.index("Regards") < shown.index("</details>") < shown.index("Bye")
    at = text.index("We offer")
    assert "<details open>" in render(text, "text", [Mark(at, at + 8, "best")])


def test_the_first_clause_below_a_numbered_heading_has_a_line_of_its_own() -> None:
    shown = render("1. Hire\n   1.1 The boat is hired.\n   1.2 It is blue.\n", "markdown")
    assert "Hire<br>1.1 The boat is hired.<br>1.2 It is blue." in shown
