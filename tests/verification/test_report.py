"""A checked text is shown as lines, JSON, Markdown with footnotes and Word, and documents are never markup in it."""

import io

import docx
import pytest

from local_rag.asking import require_checkable
from local_rag.errors import QuestionError
from local_rag.serving.answer_markdown import escaped
from local_rag.verification.judge import verify_text
from local_rag.verification.report import verification_as_dict, verification_as_lines, verification_as_markdown
from local_rag.verification.verdicts import Verification
from local_rag.verification.word_report import verification_as_word
from tests.fakes import passage
from tests.verification.looked_up import NO_MODEL, InMemory

TEXT = """# Fees

The harbour fee is EUR 1,300 a year. The boat leaves
on Fridays.

- Nobody knows <b>the colour of the moon</b> here.
"""
DOCUMENTS = InMemory(
    [
        passage(
            "The harbour fee is EUR 1,200 a year, says <i>Anna</i>. The boat leaves on Fridays.",
            path="/d/a_b.md",
            line=3,
        )
    ]
)


@pytest.fixture
def found() -> Verification:
    return verify_text(TEXT, DOCUMENTS, NO_MODEL)


def test_json_lists_the_statements_in_their_order(found: Verification) -> None:
    told = verification_as_dict(found)
    assert [one["verdict"] for one in told["statements"]] == [
        "no claim",
        "contradicted",
        "supported",
        "not in these documents",
    ]
    quote = told["statements"][1]["quotes"][0]
    assert quote["text"] == "The harbour fee is EUR 1,200 a year, says <i>Anna</i>."
    assert (quote["path"], quote["line"], quote["location"]) == ("/d/a_b.md", 3, "/d/a_b.md:3")
    assert quote["differs"] == [{"kind": "value", "said": "EUR 1,300", "written": "EUR 1,200"}]
    assert 0 < told["statements"][1]["probability"] <= 1
    assert told["counts"]["supported"] == 1


def test_lines_mark_what_differs_on_both_sides(found: Verification) -> None:
    lines = "\n".join(verification_as_lines(found))
    assert "The harbour fee is [EUR 1,300] a year." in lines
    assert "\u201cThe harbour fee is [EUR 1,200] a year" in lines
    assert lines.endswith("4 statements: 1 supported, 1 contradicted, 1 not in these documents, 1 no claim.")


def test_markdown_is_the_text_with_footnotes(found: Verification) -> None:
    markdown = verification_as_markdown(found, escaped)
    assert "The boat leaves\non Fridays.[^check-2]" in markdown
    assert "[^check-1]: **contradicted** The harbour fee is **EUR 1,300** a year." in markdown
    assert "\\<i>" in markdown


def test_word_has_a_footnote_for_what_is_supported_and_a_comment_for_the_rest(found: Verification) -> None:
    data = verification_as_word(found)
    opened = docx.Document(io.BytesIO(data))
    assert [one.text for one in opened.paragraphs][:3] == [
        "Fees",
        "The harbour fee is EUR 1,300 a year. The boat leaves on Fridays.",
        "- Nobody knows <b>the colour of the moon</b> here.",
    ]
    style = opened.paragraphs[0].style
    assert style
    assert style.name == "Heading 1"
    comments = [one.text for one in opened.comments]
    assert len(comments) == 2
    assert comments[0].startswith("contradicted: ")
    assert "[EUR 1,200]" in comments[0]
    notes = next(part for part in opened.part.package.iter_parts() if part.partname == "/word/footnotes.xml")
    assert b"The boat leaves on Fridays." in notes.blob
    assert verification_as_word(found) == data


def test_the_rest_is_left_out_once_it_takes_too_long_or_is_stopped() -> None:
    first = verify_text(TEXT, DOCUMENTS, NO_MODEL, stop=lambda: True)
    assert (len(first.statements), first.left_out, first.fails()) == (1, 3, True)
    rest = verify_text(TEXT, DOCUMENTS, NO_MODEL, first=1)
    assert (len(rest.statements), rest.left_out) == (3, 0)


def test_what_fails_may_be_missing() -> None:
    missing = verify_text("Cheese from the moon needs a licence of the ministry.", DOCUMENTS, NO_MODEL)
    assert missing.fails()
    assert not missing.fails(allow_missing=True)
    wrong = verify_text("The harbour fee is EUR 1,300 a year.", DOCUMENTS, NO_MODEL)
    assert wrong.fails(allow_missing=True)


def test_a_text_that_is_empty_or_too_long_is_refused() -> None:
    with pytest.raises(QuestionError, match="is empty"):
        require_checkable(" \n")
    with pytest.raises(QuestionError, match="at most 10 are checked"):
        require_checkable("a" * 11, 10)
    with pytest.raises(QuestionError, match="not UTF-8"):
        require_checkable("\ud800 says so")
