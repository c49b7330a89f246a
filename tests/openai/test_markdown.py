"""What clients of the endpoint show of an answer: text of documents never acts as Markdown."""

from local_rag.answering.lists import answer_of
from local_rag.openai.markdown import answer_as_markdown
from local_rag.records import Found, FoundPlace
from tests.fakes import passage


def test_a_list_of_documents_is_markdown_but_no_line_of_a_document_is() -> None:
    one = passage("The ![crane](http://elsewhere/x.png) *fell*.", path="/d/a.md", title="A <b>")
    found = Found("q", "documents", 'contain the word "crane"', 1, (FoundPlace(one, 2),), notes=("Only a part.",))

    text = answer_as_markdown(answer_of(found, 0.1), lambda path: str(path).removeprefix("/d/"))

    assert text == (
        '1 document that contains the word "crane":\n\n'
        "- A \\<b\\> (2 times): \u201cThe \\!\\[crane\\]\\(http://elsewhere/x.png\\) \\*fell\\*.\u201d [1]\n\n"
        "Only a part.\n\nSources:\n\n- [1] A \\<b\\>, a.md:1"
    )
