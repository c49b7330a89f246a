"""A passage is named after its document, in the words of the question that the passage lacks."""

from local_rag.answering.prompt import source_text
from local_rag.answering.selection import whole_sources
from local_rag.models.reader import reranked_text
from local_rag.passage_records import Passage
from local_rag.retrieval.document_names import name_documents
from tests.fakes import passage

TITLE = "Service Agreement"
FEE = "The annual fee is EUR 11,200."


def names(question: str, *passages: Passage) -> list[tuple[str, ...]]:
    [named] = name_documents(question, [passages])
    return [one.names for one in named]


def test_the_name_of_a_file_says_whose_agreement_it_is() -> None:
    found = passage(FEE, path="/docs/Norwell_GmbH - Agreement.pdf", title=TITLE, start=900)
    other = passage(FEE, key=2, path="/docs/Norvet.docx", title=TITLE, start=900)
    assert names("What is the annual fee of Norwell GmbH?", found, other) == [("Norwell", "GmbH"), ()]
    assert names("what does norwell cost", found) == [("Norwell",)]
    assert names("Was kostet Norwell im Jahr?", found) == [("Norwell",)]
    assert names("What is the annual fee?", found) == [()]


def test_so_do_the_names_at_the_beginning_of_a_document_and_what_distinguishes_it() -> None:
    beginning = passage("between the Hospital and Norwell Laboratories,\nfor samples.", path="/1.pdf", title=TITLE)
    fee = passage(FEE, key=2, path="/1.pdf", title=TITLE, start=900)
    later = passage("It replaces that of Norwell.", key=3, path="/2.pdf", title=TITLE, start=900)
    told = passage(FEE, key=4, path="/3.pdf", title=TITLE, start=900, terms="Norwell, Kiel, 45 days.")
    question = "What is the fee for samples of Norwell?"
    assert names(question, fee, beginning, later, told) == [("Norwell",), (), (), ("Norwell",)]


def test_a_word_that_is_no_name_names_no_document() -> None:
    beginning = passage("One of Peverell Roofing and two of the board met.", path="/1.md", title="Minutes")
    later = passage("The board adjourned.", key=2, path="/1.md", title="Minutes", start=900)
    assert names("Who got the roof contract, one of the two?", beginning, later) == [(), ()]
    assert names("What was PEVERELL's offer?", beginning, later) == [(), ("Peverell",)]


def test_a_passage_that_says_the_name_itself_needs_none() -> None:
    for one in (
        passage("Norwell is paid EUR 11,200.", path="/Norwell.pdf", title=TITLE),
        passage(FEE, path="/Norwell.pdf", title="Norwell: agreement"),
        passage(FEE, path="/Norwell.pdf", title=TITLE, headings=("Fees of Norwell",)),
    ):
        assert names("What is the fee of Norwell?", one) == [()]


def test_the_model_and_the_reader_are_told() -> None:
    found = passage(FEE, path="/docs/leave 2024.md", title="Leave policy", headings=("Leave policy", "Fees"), start=9)
    [[named]] = name_documents("What was the fee in 2024?", [[found]])
    [source] = whole_sources("?", [[named]])
    assert source_text(source).startswith("Source: 2024: Leave policy > Fees\n")
    assert reranked_text(named) == f"2024\nLeave policy\n{FEE}"
    assert reranked_text(found) == f"Leave policy\n{FEE}"
