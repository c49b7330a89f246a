"""The golden set: small realistic files, each with one kind of damaged or unusual structure, are read completely."""

import pytest

from tests.reading.golden import (
    fidelity_cases,
    mail_cases,
    markup_cases,
    office_cases,
    page_cases,
    pdf_cases,
    plain_cases,
    producer_cases,
    table_cases,
)
from tests.reading.golden.case import Case, Cell, problems

CASES: list[Case] = [
    *page_cases.CASES,
    *mail_cases.CASES,
    *office_cases.CASES,
    *markup_cases.CASES,
    *plain_cases.CASES,
    *table_cases.CASES,
    *pdf_cases.CASES,
    *fidelity_cases.CASES,
    *producer_cases.CASES,
]


FORMATS = {
    "documents": "docx odt rtf",
    "mail": "eml mht",
    "pages": "htm html xhtml",
    "PDF": "pdf",
    "sheets": "csv ods xlsx",
    "texts": "adoc markdown md org rst srt tex txt vtt",
}


@pytest.mark.parametrize("suffixes", FORMATS.values(), ids=FORMATS)
def test_there_are_ten_kinds_of_damage_for_each_format(suffixes: str) -> None:
    assert sum(case.name.rpartition(".")[2] in suffixes.split() for case in CASES) >= 10


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_sentence_and_cell_is_in_the_document_or_in_a_note(case: Case) -> None:
    assert problems(case) == []


def test_names_tell_the_files_apart() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_check_sees_what_is_lost_misplaced_or_invented() -> None:
    text = b"# One\n\nAlpha beta.\n\n# Two\n\n| Name | Age |\n| --- | --- |\n| Ada | 36 |\n"
    right = Case("a.md", lambda: text, {"Alpha beta.": "One"}, (Cell("36", "Age", "Ada"), Cell("Ada", "Name")))
    assert problems(right) == []
    wrong = Case(
        "a.md",
        lambda: text,
        {"Alpha beta.": "Two", "Gamma.": "One"},
        (Cell("36", "Name", "Ada"), Cell("37", "Age")),
        {"a chart": "1 chart is left out"},
        ("Ada",),
    )
    assert len(problems(wrong)) == 6
