"""Questions to begin with: each was asked and answered, and nothing of an erased document is left in them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag.asking import HOST
from local_rag.catalogue.overview import draft_question
from local_rag.library import Library
from local_rag.serving.service import Service
from local_rag.serving.suggested_questions import SuggestedQuestions
from local_rag.store.history_file import HISTORY_FILE
from tests.support import served


@pytest.fixture
def library(tmp_path: Path) -> Path:
    documents = tmp_path / "documents"
    documents.mkdir()
    for name in ("Boats", "Ladders", "Lanterns", "Anchors"):
        text = f"# {name} of the harbour\n\n## Care in winter\n\nThe {name.lower()} are kept dry and counted.\n"
        (documents / f"{name}.md").write_text(text)
    served.index(documents, tmp_path / "lib")
    return tmp_path / "lib"


def found(folder: Path, *, right: bool) -> Iterator[tuple[str, ...]]:
    held = served.worker(folder, served.parts(lambda _prompt: "They are kept dry.", lambda _prompt: right))
    held.start()
    suggested = SuggestedQuestions(Service(held), quiet_seconds=0.0)
    try:
        held.wake()
        served.wait_until(lambda: held.loaded)
        yield suggested.of(HOST)
        served.wait_until(lambda: len(suggested.of(HOST)) == 3 or not right)
        yield suggested.of(HOST)
    finally:
        suggested.close()
        held.close()


def test_what_was_answered_is_suggested_and_goes_with_its_document(library: Path) -> None:
    before, after = found(library, right=True)
    assert before == (), "nobody waits for it"
    assert len(set(after)) == 3
    assert all(one.endswith("about care in winter?") for one in after)
    with Library(library, parts=served.parts()) as opened:
        opened.remove([library.parent / "documents" / "Anchors.md"], erase=True)
    assert b"Anchors" not in (library / HISTORY_FILE).read_bytes()


@pytest.mark.parametrize(
    ("title", "headings", "language", "asked"),
    [
        ("Travel policy", ["Hotels"], "english", "What does “Travel policy” say about hotels?"),
        ("Travel policy", ["How to claim a taxi"], "english", "How do I claim a taxi?"),
        ("FAQ", ["Who pays for lunch?"], "english", "Who pays for lunch?"),
        ("Travel policy", ["Travel policy", "2.1.3", "a/b/c_d.py"], "english", ""),
        ("x_91-2.csv", ["Hotels"], "english", ""),
        ("Lamp changer", ["4.2 Changing a lamp"], "english", "What does “Lamp changer” say about changing a lamp?"),
        ("Reisekosten", ["Hotels"], "german", "Was sagt „Reisekosten“ zum Thema Hotels?"),
        ("Reiser", ["Hotell"], "norwegian", ""),
    ],
)
def test_a_draft_is_a_question_about_a_heading(title: str, headings: list[str], language: str, asked: str) -> None:
    assert draft_question(title, headings, language) == asked
