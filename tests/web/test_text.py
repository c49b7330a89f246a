"""Marking passages and rendering answers, on texts of any kind."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.retrieval.highlights import marks
from local_rag.web.views.answer_html import show_answer

PASSAGE = "The harbour is old. The boat leaves at seven.\nTickets cost nothing; dogs are welcome."
SIGNS = "ab1 .\n!?[]()`*_-<>&\"'#\u2022,|:\\\u3010\u3011"
TEXTS = st.text(st.sampled_from(SIGNS) | st.characters(codec="utf-8"), max_size=200)


def marked(text: str, question: str, kind: str, quoted: Sequence[tuple[int, int]] = ()) -> list[str]:
    return [text[one.start : one.end] for one in marks(text, question, quoted) if one.kind == kind]


def test_the_best_sentence_and_the_words_asked_for_are_marked() -> None:
    assert marked(PASSAGE, "When do boats leave?", "best") == ["The boat leaves at seven."]
    assert marked(PASSAGE, "When do boats leave?", "term") == ["boat", "leaves"]


def test_what_is_quoted_is_marked_in_the_place_of_the_best_sentence() -> None:
    start = PASSAGE.index("dogs")
    quoted = [(0, 19), (start, len(PASSAGE))]
    assert marked(PASSAGE, "When do boats leave?", "best", quoted) == ["The harbour is old.", "dogs are welcome."]
    assert not marked(PASSAGE, "zebras", "best")


def test_answers_have_lists_code_and_citations() -> None:
    shown = show_answer("Two things [1, 2]:\n- **one** [2]\n- `two` [9]\n\n3. first\n```\n<b>\n```\nend", [1, 2])
    assert shown == (
        f"<p>Two things {cite(1)} {cite(2)}:</p>\n"
        f"<ul>\n<li><strong>one</strong> {cite(2)}</li>\n<li><code>two</code> [9]</li>\n</ul>\n"
        "<ol>\n<li>first</li>\n</ol>\n<pre><code>&lt;b&gt;\n</code></pre>\n<p>end</p>"
    )


def cite(number: int) -> str:
    return f'<a class="cite" href="#source-{number}" aria-label="source {number}">[{number}]</a>'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a [1][2]", f"<p>a {cite(1)}{cite(2)}</p>"),
        ("a [1,2]", f"<p>a {cite(1)} {cite(2)}</p>"),
        ("a [1-3]", f"<p>a {cite(1)} {cite(2)} {cite(3)}</p>"),
        ("a \u30102\u3011.", f"<p>a {cite(2)}.</p>"),
        ("a [7] [1-999] [1, 7]", "<p>a [7] [1-999] [1, 7]</p>"),
        ("## Leave [1]", f"<p>Leave {cite(1)}</p>"),
        ("Yes.\n\n## Leave [1]", f"<p>Yes.</p>\n<h3>Leave {cite(1)}</h3>"),
        ("now ~~4~~ 5 [1]", f"<p>now <s>4</s> 5 {cite(1)}</p>"),
        ("*a* and __b__", "<p><em>a</em> and <strong>b</strong></p>"),
        ("- a\n  - b", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>"),
        ("[site](http://x) ![i](http://x) <http://x> http://x", None),
        ("<b>x</b> &amp; <!-- c -->", "<p>&lt;b&gt;x&lt;/b&gt; &amp;amp; &lt;!-- c --&gt;</p>"),
    ],
)
def test_the_markdown_that_models_write_is_shown(text: str, shown: str | None) -> None:
    made = str(show_answer(text, [1, 2, 3]))
    assert made == shown if shown else "href" not in made
    table = show_answer("| country | weeks |\n| --- | ---: |\n| Ireland | 26 [1] |", [1])
    assert "<th>weeks</th>" in table
    assert f"<td>26 {cite(1)}</td>" in table


OURS = re.compile(
    r"</?(?:p|ul|ol|li|pre|code|strong|em|s|h3|hr|br|blockquote|table|thead|tbody|tr|th|td)>"
    r'|<a class="cite" href="#source-\d+" aria-label="source \d+">|</a>'
)


@given(TEXTS)
def test_nothing_of_an_answer_becomes_markup(text: str) -> None:
    left = OURS.sub("", str(show_answer(text, range(1, 10))))
    assert "<" not in left
    assert ">" not in left
    assert '"' not in left
