"""The starter models on the demo corpus; run by scripts/integration_test.sh."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.answering.compose import REFUSAL

pytestmark = pytest.mark.integration
CORPUS = Path(__file__).parents[3] / "corpus"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    library = Library(tmp_path_factory.mktemp("starter") / "lib", profile="starter", context_minutes=9)
    library.index([CORPUS / "benefits"], contexts=True)
    yield library
    library.close()


def test_contexts_are_generated_and_share_the_document(library: Library) -> None:
    found = library.search("parental leave", top=50)
    generated = [passage for passage in found if passage.context_by == "model"]
    assert len(generated) > 0.8 * len(found)
    report = library.index(contexts=True)
    assert (report.contexts, report.published) == ({}, False)


def test_look_alikes_are_told_apart(library: Library) -> None:
    for country in ("Norway", "Ireland"):
        (passage,) = library.search(f"How many weeks of leave does the parent who gives birth get in {country}?", top=1)
        assert country in passage.title


def test_answers_with_a_citation_of_the_right_document(library: Library) -> None:
    answer = library.ask("How many weeks of paid leave does the parent who gives birth get in Ireland?")
    assert answer.answered
    assert "26" in answer.text
    assert any(citation.passage.path.endswith("parental-leave-ireland.md") for citation in answer.citations)


def test_refuses_what_no_document_holds(library: Library) -> None:
    answer = library.ask("How do I bake rye bread?")
    assert (answer.text, answer.answered, answer.citations) == (REFUSAL, False, ())
