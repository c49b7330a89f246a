"""Statements are judged by what sentences of documents say in their place."""

from dataclasses import replace

import pytest

from local_rag.verification.verdicts import Difference
from tests.fakes import passage
from tests.verification.looked_up import check

FEES = passage(
    "The harbour fee of Port Lorcan is EUR 1,200 a year. It is due on 5 May 2025, and Anna Berg collects it. "
    "Boats may not be moored at the crane. The water at the pier was -3 \u00b0C in January. "
    "Staff keep the receipts in the office for seven years.",
    path="/d/fees.md",
    title="Annual fees",
)
ROTA = passage(
    "The boat to Torvneset leaves on Fridays. Whoever is late stays ashore.", path="/d/rota.md", title="Boat rota"
)
DOCUMENTS = [FEES, ROTA]


def verdict(text: str) -> str:
    (one,) = check(text, DOCUMENTS)
    return one.verdict


@pytest.mark.parametrize(
    "text",
    [
        "The harbour fee of Port Lorcan is EUR 1,200 a year.",
        "The harbour fee of Port Lorcan is 1200 euro a year.",
        "It is due on May 5, 2025, and Anna Berg collects it.",
        "Anna Berg collects it.",
        "Boats may not be moored at the crane.",
        "Staff keep the receipts in the office for 7 years.",
        "The boat to Torvneset leaves on Fridays (rota.md).",
        "The page says: \u201cWhoever is late stays ashore\u201d.",
        "The page on the Annual fees puts it this way: \u201cAnna Berg collects it\u201d.",
        "The Boat rota says that the boat to Torvneset leaves on Fridays.",
    ],
)
def test_what_documents_say_is_supported(text: str) -> None:
    assert verdict(text) == "supported"


def test_a_file_or_number_in_brackets_that_stands_for_no_document_is_named() -> None:
    (one,) = check("The boat to Torvneset leaves on Fridays (ferry-rota.pdf, p. 2).", DOCUMENTS)
    assert one.verdict == "other document"
    assert one.quotes[0].differs == (Difference("place", "ferry-rota.pdf", "/d/rota.md"),)
    text = "The boat to Torvneset leaves on Fridays [2]."
    assert verdict(text) == "supported", "the list of references may stand elsewhere"
    assert [one.verdict for one in check(f"{text}\n\n[1] fees.md", DOCUMENTS)] == ["other document", "no claim"]
    assert verdict("The boat to Torvneset leaves on Fridays (ports.example.com).") == "supported"


def test_a_quotation_names_the_label_of_its_page() -> None:
    preface = passage("The lamp is lit at dusk by the keeper.", path="/d/log.pdf", line=None, page=4, page_label="iv")
    (one,) = check("The lamp is lit at dusk by the keeper.", [preface])
    assert one.quotes[0].place.location == "/d/log.pdf page iv (4 in the file)"


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        ("The harbour fee of Port Lorcan is EUR 1,300 a year.", Difference("value", "EUR 1,300", "EUR 1,200")),
        ("The harbour fee of Port Lorcan is EUR 1,200 a month.", None),
        ("It is due on 6 May 2025, and Anna Berg collects it.", Difference("value", "6 May 2025", "5 May 2025")),
        ("It is due on 5 May 2025, and Tom Berg collects it.", Difference("name", "Tom", "Anna")),
        ("Boats may be moored at the crane.", Difference("negation", "", "not")),
        ("The water at the pier was 3 \u00b0C in January.", Difference("value", "3 \u00b0C", "-3 \u00b0C")),
        ("Staff keep the receipts in the office for eight years.", Difference("value", "eight years", "seven years")),
    ],
)
def test_what_differs_contradicts_and_is_named_on_both_sides(text: str, difference: Difference | None) -> None:
    (one,) = check(text, DOCUMENTS)
    assert one.verdict == "contradicted"
    assert one.quotes[0].place.path == "/d/fees.md"
    assert difference is None or difference in one.quotes[0].differs


def test_halves_of_two_sentences_are_in_no_document() -> None:
    spliced = "The harbour fee of Port Lorcan is whoever is late stays ashore."
    assert verdict(spliced) == "not in these documents"


def test_what_no_document_is_about_is_not_in_them() -> None:
    assert verdict("Cheese from the moon needs an import licence of the ministry.") == "not in these documents"


def test_quoted_words_that_no_document_has_are_not_there_and_the_closest_is_shown() -> None:
    (one,) = check("It says \u201cwhoever is late swims ashore\u201d.", DOCUMENTS)
    assert one.verdict == "not there"
    assert one.quotes[0].place.text == "Whoever is late stays ashore."


@pytest.mark.parametrize(
    "text",
    [
        "The boat to Torvneset leaves on Fridays (fees.md).",
        "The boat to Torvneset leaves on Fridays [1].\n\n[1] fees.md",
        "According to the Annual fees, the boat to Torvneset leaves on Fridays.",
        "The Annual fees say: \u201cThe boat to Torvneset leaves on Fridays\u201d.",
    ],
)
def test_a_statement_of_another_document_than_it_names_is_told(text: str) -> None:
    assert check(text, DOCUMENTS)[0].verdict == "other document"


def test_another_page_than_the_one_named_is_told() -> None:
    paged = [replace(ROTA, page=4, line=None)]
    assert check("Whoever is late stays ashore (rota.md, p. 4).", paged)[0].verdict == "supported"
    labelled = [replace(ROTA, page=4, page_label="ii", line=None)]
    for page in ("ii", "II", "4"):
        assert check(f"Whoever is late stays ashore (rota.md, p. {page}).", labelled)[0].verdict == "supported"
    (wrong,) = check("Whoever is late stays ashore (rota.md, p. iii).", labelled)
    assert wrong.quotes[0].differs[0].written == "page ii (4 in the file)"
    (wrong,) = check("Whoever is late stays ashore (rota.md, p. 9).", paged)
    assert (wrong.verdict, wrong.quotes[0].differs[0].written) == ("other document", "page 4")


def test_what_only_an_older_version_says_is_superseded() -> None:
    old = passage("The fee for a crane is EUR 90 an hour.", path="/d/crane-2023.md", newest="/d/crane-2025.md")
    new = passage("The fee for a crane is EUR 95 an hour.", path="/d/crane-2025.md", key=2)
    (one,) = check("The fee for a crane is EUR 90 an hour.", [old, new])
    assert (one.verdict, one.quotes[0].newest) == ("superseded", "/d/crane-2025.md")
    assert one.quotes[1].differs == (Difference("value", "EUR 90", "EUR 95"),)
    (same,) = check("The fee for a crane is EUR 95 an hour.", [old, new])
    assert same.verdict == "supported"


def test_the_model_decides_only_what_words_leave_open() -> None:
    asked = list[str]()

    def denies(_quotation: str, statement: str) -> float:
        asked.append(statement)
        return -2.0

    reworded = "Staff burn the receipts in the office for seven years."
    found = check(f"{reworded} Anna Berg collects it. The boat to Torvneset leaves on Mondays.", DOCUMENTS, denies)
    assert asked == [reworded]
    assert found[0].verdict == "contradicted"
    assert check(reworded, DOCUMENTS, lambda *_: 2.0)[0].verdict == "supported"


def test_a_sentence_that_two_passages_share_is_found() -> None:
    first = passage("The east steps are closed from the first frost until", start=0, end=52)
    second = passage("the handrail has been chipped free.", key=2, start=53, end=88)
    said = "The east steps are closed from the first frost until the handrail has been chipped free."
    assert check(said, [first, second])[0].verdict == "supported"
