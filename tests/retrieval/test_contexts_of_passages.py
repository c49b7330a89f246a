"""A passage has the context that its index was made with, and no other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag import Library
from tests.fakes import QUICK, FakeReranker

QUESTION = "parental leave weeks boat harbour"


@pytest.mark.parametrize("context", ["headings", "none"])
def test_contexts_of_an_earlier_run_are_not_shown(documents: Path, context: str) -> None:
    read: list[str] = []

    def score(_question: str, text: str) -> float:
        read.append(text)
        return float(len(text))

    parts = replace(QUICK, load_reranker=lambda _model: FakeReranker(score))

    def contexts(**settings: Any) -> set[str]:
        with Library("lib", parts=parts, profile="tiny", rerank_model="minilm-l6-reranker", **settings) as library:
            library.index([documents])
            read.clear()
            return {f"{passage.context} {passage.context_by}" for passage in library.search(QUESTION)}

    assert any("This chunk belongs to part" in found for found in contexts(context="llm"))
    assert any("This chunk belongs to part" in text for text in read)
    assert contexts(context=context) == {" None"}
    assert read
    assert not any("This chunk belongs to part" in text for text in read)
    assert any("This chunk belongs to part" in found for found in contexts(context="llm"))
