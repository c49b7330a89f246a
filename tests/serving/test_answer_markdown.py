"""What clients that show Markdown see of an answer: text of documents and models as it is, and what belongs to it."""

import random
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from local_rag.answer_records import Answer, Citation, Found, FoundPlace, Quote, SentenceSupport, Written
from local_rag.answering.pipeline import answer_of
from local_rag.serving.answer_markdown import AnswerPieces, answer_as_markdown, escaped
from tests.fakes import passage

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKUP = [
    *"\\`*_{}[]()<>#+-=.!|~&;:/\"' \t\n\u00a01xXÄ中", "\n", "  ", "\n\n", "---", "***", "~~~", "```", "&amp;", "&#35;",
    "<b>", "<!--", "](x)", "[a]: b\n", "![", "1. ", "- ", "# ", "> ", "| - |", "===", "https://a.b", "word", "__", "**",
]  # fmt: skip


def shown(markdown: str) -> str:
    """Return the text that Markdown shows; fail if it holds any element but paragraphs and ends of lines."""
    lines = list[str]()
    for token in MARKDOWN.parse(markdown):
        if token.type == "inline":
            kinds = {child.type for child in token.children or ()}
            assert kinds <= {"text", "hardbreak"}, (kinds, markdown)
            lines += "".join(child.content or "\n" for child in token.children or ()).split("\n")
        else:
            assert token.type in {"paragraph_open", "paragraph_close"}, (token.type, markdown)
    return words("\n".join(lines))


def words(text: str) -> str:
    """Return the lines of a text that have any words, with one blank between these."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))


def pieces_of_markup(seed: int) -> list[str]:
    chosen = random.Random(seed)
    return [chosen.choice(MARKUP) for _ in range(chosen.randrange(1, 14))]


def test_no_text_acts_as_markdown_and_none_is_lost() -> None:
    for seed in range(8000):
        text = "".join(pieces_of_markup(seed))
        assert shown(escaped(text)) == words(text), text


@pytest.mark.parametrize(
    "text",
    [
        "O-24225 in orders_2024_export.xlsx (page 3), see [1].",
        "5 * 3 = 15, ~5 km, AT&T, a < b > c; C:\\data, C# and C++, 1.5 or #7: 50 % [2][3]",
        "https://example.org/a_b?c=d&e=f",
        "The word! (really) {so} \"it\" 'is' | that -- and + more...",
    ],
)
def test_what_markdown_takes_for_text_anyway_has_no_backslashes(text: str) -> None:
    assert escaped(text) == text


def test_lines_stay_lines_and_items_look_like_items() -> None:
    assert escaped("Do this:\n1. Stop\n  - Wait \n\n# Go") == (
        "Do this:  \n1.\u00a0Stop  \n\u00a0\u00a0- Wait\n\n#\u00a0Go"
    )


def answered(text: str, support: tuple[SentenceSupport, ...] = ()) -> Answer:
    one = passage(
        "## 2. Term\n\nEither party may *terminate*\nwith six months notice.", path="/d/Contracts/v2.docx", line=None
    )
    quote = Quote(one.text[12:], 1, 12, len(one.text))
    return replace(
        Answer("What is the notice?", text, "answered", (Citation(1, one),), (quote,), probability=0.7), support=support
    )


BELOW = (
    "\n\nProbably right; read the quotation.\n\nSources:\n\n"
    '- [1] Contracts/v2.docx, "2. Term"\n\n'
    '  > "Either party may *terminate\\*  \n  > \u00a0with six months notice."'
)


def name(path: object) -> str:
    return str(path).removeprefix("/d/")


def test_below_an_answer_stand_remarks_and_each_place_with_its_quotation() -> None:
    support = (SentenceSupport("It costs <b>26</b>.", False, ("26",), (1,)),)
    text = answer_as_markdown(answered("Six months. [1]", support=support), name, ["/d/Contracts/v2.docx"])
    assert text.startswith("Six months. [1]\n\nProbably right")
    assert "\n\nNot in what it cites: 26, in \u201cIt costs \\<b>26\\</b>.\u201d\n\n" in text
    assert "\n\nChanged or gone since it was indexed: Contracts/v2.docx.\n\nSources:" in text


def told(answer: Answer, *pieces: Written) -> tuple[str, str]:
    """Return what is told while an answer is written, and at its end."""
    telling = AnswerPieces(name)
    return "".join(map(telling.add, pieces)), telling.end(answer, ())


def test_pieces_are_told_as_they_come_and_make_up_the_whole() -> None:
    answer = answered("Six *months*, <b> AT&amp;T. [1]")
    early, late = told(
        answer, *(Written(piece) for piece in ("Six", " *mon", "ths*, ", "<", "b> AT&a", "mp;T.", " [1]"))
    )
    assert early == "Six *months\\*, \\<b> AT\\&amp;T"
    assert early + late == answer_as_markdown(answer, name)
    assert late == f". [1]{BELOW}"


def test_however_a_text_is_cut_its_pieces_are_that_of_the_whole() -> None:
    for seed in range(2000):
        pieces = pieces_of_markup(seed)
        answer = Answer("?", "".join(pieces), "answered")
        assert "".join(told(answer, *map(Written, pieces))) == answer_as_markdown(answer), pieces


def test_told_text_that_is_replaced_is_corrected_and_what_stands_follows() -> None:
    answer = answered("Six months. [1]")
    early, late = told(answer, Written("Six months. [1]"), Written(" And a bonus"), Written(answer.text, replaces=True))
    assert early == "Six months. [1] And a bonus"
    assert late.startswith("\n\nCorrection: the text above did not pass the check")
    assert late.endswith(f" This stands:\n\n{answer_as_markdown(answer, name)}")


def test_replaced_text_of_which_nothing_was_told_needs_no_correction() -> None:
    answer = answered("Six months. [1]")
    early, late = told(answer, Written("Nine"), Written(answer.text, replaces=True))
    assert early + late == answer_as_markdown(answer, name)


def test_a_list_of_documents_is_markdown_but_no_line_of_a_document_is() -> None:
    one = passage("The ![crane](http://elsewhere/x.png) *fell*.", path="/d/a.md", title="A <b>")
    found = Found("q", "documents", 'contain the word "crane"', 1, (FoundPlace(one, 2),), notes=("Only a part.",))
    assert answer_as_markdown(answer_of(found), name) == (
        '1 document that contains the word "crane":\n\n'
        "- A \\<b> (2 times): \u201cThe ![crane\\](http://elsewhere/x.png) *fell\\*.\u201d [1]\n\n"
        "Only a part.\n\nSources:\n\n- [1] a.md:1"
    )


def test_a_refusal_names_what_came_closest_with_its_words() -> None:
    close = passage("Zebras <i>rest</i> at night.", path="/d/zoo.md", title="Zoo")
    answer = Answer("Do zebras sleep?", "The documents do not answer this question.", "refused", closest=(close,))
    assert answer_as_markdown(answer, name) == (
        'The documents do not answer this question.\n\nClosest:\n\n- zoo.md:1\n\n  > "Zebras \\<i>rest\\</i> at night."'
    )
