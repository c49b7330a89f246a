"""Which questions are about whole documents, and which are not."""

import pytest

from local_rag.digests.digest_answers import digest_question


@pytest.mark.parametrize(
    ("question", "kind", "names"),
    [
        ("What changed between contract-2023.docx and contract-2024.docx?", "changes",
         ("contract-2023.docx", "contract-2024.docx")),
        ("what has changed from the 2023 policy to the 2024 policy", "changes", ("2023 policy", "2024 policy")),
        ("Show me the differences between the old lease and the new lease.", "changes", ("old lease", "new lease")),
        ("Compare lease-v1 with lease-v2", "changes", ("lease-v1", "lease-v2")),
        ("What changed in the travel policy?", "changes of versions", ("travel policy",)),
        ("What changed in the leave policy between 2024 and 2026?", "changes",
         ("leave policy 2024", "leave policy 2026")),
        ("What changed between the two cleaning contracts?", "changes of versions", ("cleaning contracts",)),
        ("What is different between the old and the new lease?", "changes of versions", ("lease",)),
        ("differences between our two leases", "changes of versions", ("leases",)),
        ("What changed between the old lease and the lease of 2026?", "changes", ("old lease", "lease of 2026")),
        ("What is new in the latest version of the handbook?", "changes of versions", ("handbook",)),
        ("Is the notice period still three months?", "changes of a subject",
         ("Is the notice period still three months",)),
        ("Summarise the minutes", "brief", ("minutes",)),
        ("Please summarize this document.", "brief", ()),
        ("What is this about?", "brief", ()),
        ("What are these documents about?", "brief", ()),
        ("What is the travel guide about?", "brief", ("travel guide",)),
        ("Give me a short summary of lease.pdf", "brief", ("lease.pdf",)),
        ("Tell me about the lease", "brief if named so", ("lease",)),
    ],
)  # fmt: skip
def test_a_question_about_whole_documents_is_recognised(question: str, kind: str, names: tuple[str, ...]) -> None:
    found = digest_question(question)
    assert found is not None
    assert (found.kind, found.names) == (kind, names)


@pytest.mark.parametrize(
    "question",
    [
        "How long is parental leave?",
        "What does the contract say about notice?",
        "Who approves changes?",
        "How many reports mention the crane?",
        "What is the boat's timetable?",
        "Why did the harbour close?",
        "x" * 1000,
    ],
)
def test_any_other_question_is_not(question: str) -> None:
    assert digest_question(question) is None
