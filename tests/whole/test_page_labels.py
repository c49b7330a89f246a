"""A page of a PDF is called by the label that stands on it, wherever it is named; its number leads to it."""

from pathlib import Path

import pytest

from local_rag import Library
from local_rag.answer_records import TableSource
from local_rag.asking import Filters
from local_rag.digests.output import place_as_dict
from local_rag.digests.statements import text_of_indexed
from local_rag.display import passage_as_dict
from local_rag.passage_records import path_of
from local_rag.web.views.document_view import view_document
from tests.fakes import QUICK

PREFACE, CHANNEL = "Preface of the pilot book", "The channel of Brekk is 7.3 metres deep."


def pilot_book(path: Path) -> None:
    """Write a PDF of two pages i and ii, and two pages 1 and 2."""
    from fpdf import FPDF

    pdf = FPDF()
    pdf.set_font("helvetica", size=12)
    for number, text in enumerate((PREFACE, "Thanks to Maud Ness", CHANNEL, "The channel of Aldra is shallow.")):
        pdf.add_page(label_style="R" if number < 2 else "D", label_start=1 + number % 2)
        pdf.multi_cell(0, text=text, new_x="LMARGIN", new_y="NEXT")
    pdf.output(str(path))


@pytest.fixture
def library(tmp_path: Path) -> Library:
    (tmp_path / "documents").mkdir()
    pilot_book(tmp_path / "documents" / "pilot.pdf")
    library = Library(tmp_path / "library", parts=QUICK, profile="tiny", context="headings")
    library.index([tmp_path / "documents"])
    return library


def test_a_passage_names_the_label_and_keeps_the_number(library: Library, tmp_path: Path) -> None:
    with library:
        found = next(one for one in library.search("channel of Brekk", rerank=False) if one.text == CHANNEL)
        assert found.location == f"{tmp_path}/documents/pilot.pdf page 1 (3 in the file)"
        shown = passage_as_dict(found)
        assert (shown["page"], shown["page_label"]) == (3, "1")
        pasted = Filters(within=("documents/pilot.pdf page 1 (3 in the file)",))
        assert library.search("channel", filters=pasted, rerank=False), "a place is a path for a filter"


def test_the_page_of_a_document_and_its_quotations_name_labels(library: Library) -> None:
    with library:
        (location,) = library.documents.locate(library.search("Brekk", rerank=False)[:1])
        document = library.documents.get(location.document or 0)
        view = view_document(document, page=3)
        text = text_of_indexed(document, "text")
    assert view.page == 3
    assert dict(view.pages) == {1: "I", 2: "II", 3: "1", 4: "2"}
    at = document.text.index(CHANNEL)
    place = place_as_dict(text.place(at, at + len(CHANNEL)), str)
    assert (place["page"], place["page_label"]) == (3, "1")
    assert str(place["location"]).endswith("pilot.pdf page 1 (3 in the file)")


def test_a_table_and_its_rows_stand_on_the_labelled_page() -> None:
    assert TableSource("a.pdf", "A", "t", page=3, page_label="A-1").place == "page A-1 (3 in the file)"
    assert TableSource("a.pdf", "A", "t", page=3).place == "page 3"


@pytest.mark.parametrize(
    "place",
    [
        ":12",
        ":12-14",
        " page 3",
        " page 3, read by OCR, 97 % sure",
        " page iv (4 in the file)",
        " page Annex 1 (4 in the file), read by OCR, 97 % sure",
    ],
)
def test_the_path_of_a_place_is_known(place: str) -> None:
    for path in ("/d/a.pdf", "/d/the page of x/a page b.pdf", "/d/a (4 in the file).md"):
        assert path_of(f"{path}{place}") == path
