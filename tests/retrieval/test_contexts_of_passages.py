"""A passage has the context that its index was made with, and no other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag import Library
from tests.fakes import QUICK, FakeReader

QUESTION = "parental leave weeks boat harbour"


@pytest.mark.parametrize("context", ["headings", "none"])
def test_contexts_of_an_earlier_run_are_not_shown(documents: Path, context: str) -> None:
    parts = replace(QUICK, load_reader=lambda _model: FakeReader(lambda _question, text: float(len(text))))

    def contexts(**settings: Any) -> set[str]:
        with Library("lib", parts=parts, profile="tiny", rerank_model="minilm-l6-reader", **settings) as library:
            library.index([documents])
            return {f"{passage.context} {passage.context_by}" for passage in library.search(QUESTION)}

    assert any("This chunk belongs to part" in found for found in contexts(context="auto", context_minutes=9))
    assert contexts(context=context) == {" None"}
    assert any("This chunk belongs to part" in found for found in contexts(context="auto", context_minutes=9))
