"""A question asks for the newest version of a document, unless it or its plan names another one, or compares them."""

from time import process_time

import pytest

from local_rag.plan_records import Plan
from local_rag.retrieval.asked_versions import asked_versions
from local_rag.retrieval.version_families import Version

CONTRACTS = (
    Version(3, "/d/Service Agreement v3.docx", "Service Agreement", "2025-01-01"),
    Version(2, "/d/Service Agreement v2.docx", "Service Agreement", "2024-05-01"),
    Version(1, "/d/Service Agreement v1.docx", "Service Agreement", "2023-02-01"),
)
PRICES = (
    Version(2, "/d/Price list 2025.xlsx", "", "2024-12-01"),
    Version(1, "/d/Price list 2024.xlsx", "", "2023-12-01"),
)
DRAFTS = (
    Version(2, "/d/pump-final.md", "Manual of the pump", "2026-11-26", stated=False),
    Version(1, "/d/pump-draft.md", "Manual of the pump", "2026-11-26", stated=False),
)


STATES = {
    "What did the previous contract say?": "the previous contract",
    "What did the old service agreement say?": "old",
    "What was the notice period before?": "before",
    "What did the first version say?": "first version",
    "What does the draft version say?": "draft version",
}
CHANGES = {
    "What changed between 2023 and 2025?",
    "What is the difference between v1 and v2?",
    "How does it differ from the 2023 one?",
    "Compare it with the contract of 2023",
    "What changed?",
}


def ids(question: str, family: tuple[Version, ...], newest: str = "") -> list[int]:
    plan = Plan("changes" if question in CHANGES else "passages", as_of=STATES.get(question, ""))
    return [one.id for one in asked_versions(question, plan, family, lambda _version: newest)]


@pytest.mark.parametrize(
    ("question", "family", "asked"),
    [
        ("What is the notice period?", CONTRACTS, [3]),
        ("What is the current notice period?", CONTRACTS, [3]),
        ("What was the notice period in 2023?", CONTRACTS, [1]),
        ("What was the notice period on 30 April 2024?", CONTRACTS, [1]),
        ("What was the notice period in June 2024?", CONTRACTS, [2]),
        ("What was the notice period on 2024-05-01?", CONTRACTS, [2]),
        ("What was the notice period in 2019?", CONTRACTS, [3]),
        ("What will the notice period be in 2030?", CONTRACTS, [3]),
        ("What does v1 say about termination?", CONTRACTS, [1]),
        ("What does version 2.0 say about termination?", CONTRACTS, [2]),
        ("What does version 9 say about termination?", CONTRACTS, [3]),
        ("What does service agreement v1.docx say?", CONTRACTS, [1]),
        ("What does the Service Agreement say?", CONTRACTS, [3]),
        ("What did the previous contract say?", CONTRACTS, [2, 1]),
        ("What did the old service agreement say?", CONTRACTS, [2, 1]),
        ("What did the first version say?", CONTRACTS, [2, 1]),
        ("What was the notice period before?", CONTRACTS, [2, 1]),
        ("How old must a signatory be?", CONTRACTS, [3]),
        ("What does it say of my previous employer?", CONTRACTS, [3]),
        ("Are original documents needed?", CONTRACTS, [3]),
        ("What must be done the day before?", CONTRACTS, [3]),
        ("What changed between 2023 and 2025?", CONTRACTS, [3, 1]),
        ("What is the difference between v1 and v2?", CONTRACTS, [2, 1]),
        ("How does it differ from the 2023 one?", CONTRACTS, [3, 1]),
        ("What changed?", CONTRACTS, [3, 2, 1]),
        ("Compare it with the contract of 2023", CONTRACTS, [3, 1]),
        ("Who do I tell when my address changes?", CONTRACTS, [3]),
        ("What does Planner Plus cost in 2024?", PRICES, [1]),
        ("What does Planner Plus cost in 2025?", PRICES, [2]),
        ("What does the draft version say?", DRAFTS, [1]),
        ("What does pump-draft say?", DRAFTS, [1]),
        ("What does the manual say in 2023?", DRAFTS, [2]),
        ("How do I draft a letter?", DRAFTS, [2]),
    ],
)
def test_which_versions_a_question_asks_for(question: str, family: tuple[Version, ...], asked: list[int]) -> None:
    assert ids(question, family) == asked


def test_a_year_that_the_newest_version_speaks_of_is_not_that_of_a_version() -> None:
    policies = (Version(2, "/d/policy new.md", "", "2025-03-01"), Version(1, "/d/policy.md", "", "2022-05-01"))
    assert ids("What was found by the audit of 2023?", policies) == [1]
    assert ids("What was found by the audit of 2023?", policies, "The audit of 2023 found nothing.") == [2]


@pytest.mark.parametrize(
    "words", ["old " * 20_000, "what did " * 20_000, "1 march " * 20_000, "how has " * 20_000, "v1." * 30_000]
)
def test_a_long_question_is_read_in_linear_time(words: str) -> None:
    started = process_time()
    assert ids(words, CONTRACTS)
    assert process_time() - started < 10, "the square of the length would take minutes"
