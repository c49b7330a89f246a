"""Marking passages and rendering answers, on texts of any kind."""

import re

from hypothesis import given
from hypothesis import strategies as st

from local_rag.retrieval.marking import mark
from local_rag.web.markup import show_answer

PASSAGE = "The harbour is old. The boat leaves at seven.\nTickets cost nothing; dogs are welcome."
TEXTS = st.text(st.sampled_from("ab1 .\n!?[]`*-<>&\"'#\u2022,") | st.characters(codec="utf-8"), max_size=200)


def test_the_best_sentence_and_the_words_asked_for_are_marked() -> None:
    pieces = mark(PASSAGE, "When do boats leave?")
    assert "".join(piece.text for piece in pieces if piece.best) == "The boat leaves at seven."
    assert [piece.text for piece in pieces if piece.term] == ["boat", "leaves"]


def test_what_is_quoted_is_marked_in_the_place_of_the_best_sentence() -> None:
    start = PASSAGE.index("dogs")
    pieces = mark(PASSAGE, "When do boats leave?", [(0, 19), (start, len(PASSAGE))])
    assert [piece.text for piece in pieces if piece.best] == ["The harbour is old.", "dogs are welcome."]
    assert not any(piece.best for piece in mark(PASSAGE, "zebras"))


SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)).map(sorted), max_size=3)


@given(TEXTS, TEXTS, SPANS)
def test_marking_changes_no_text(text: str, question: str, spans: list[list[int]]) -> None:
    quoted = [(min(start, len(text)), min(end, len(text))) for start, end in spans]
    assert "".join(piece.text for piece in mark(text, question, quoted)) == text


def test_answers_have_lists_code_and_citations() -> None:
    shown = show_answer("Two things [1, 2]:\n- **one** [2]\n- `two` [9]\n\n1. first\n```\n<b>\n```\nend", [1, 2])
    assert shown == (
        '<p>Two things <a class="cite" href="#source-1" aria-label="source 1">[1]</a> '
        '<a class="cite" href="#source-2" aria-label="source 2">[2]</a>:</p>\n'
        '<ul><li><strong>one</strong> <a class="cite" href="#source-2" aria-label="source 2">[2]</a></li>'
        "<li><code>two</code> [9]</li></ul>\n<ol><li>first</li></ol>\n<pre><code>&lt;b&gt;</code></pre>\n<p>end</p>"
    )


OURS = re.compile(
    r'</?(?:p|ul|ol|li|pre|code|strong)>|<a class="cite" href="#source-\d+" aria-label="source \d+">|</a>'
)


@given(TEXTS)
def test_nothing_of_an_answer_becomes_markup(text: str) -> None:
    left = OURS.sub("", str(show_answer(text, range(1, 10))))
    assert "<" not in left
    assert ">" not in left
    assert '"' not in left
