"""What a person may not see takes no part in a verdict, and nothing that is checked is kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking import Filters
from tests.fakes import EMBEDS_QUICKLY

SECRET = "The crane will be sold to a museum in Bergen for EUR 90,000."
OPEN = "The boat to Torvneset leaves on Fridays."


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    for name, text in (("open/rota.md", f"# Boat rota\n\n{OPEN}\n"), ("board/plan.md", f"# Secret plan\n\n{SECRET}\n")):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with Library(tmp_path / "lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings") as opened:
        opened.index([tmp_path / "docs"])
        yield opened


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        SECRET.replace("90,000", "80,000"),
        f"It says: \u201c{SECRET}\u201d",
        f"{OPEN.rstrip('.')} (plan.md).",
        f"According to the Secret plan, {OPEN}",
    ],
)
def test_what_is_not_seen_leaves_no_trace(library: Library, tmp_path: Path, text: str) -> None:
    limited = library.seen_by(Filters(within=("open/**",)))
    with Library(tmp_path / "other", parts=EMBEDS_QUICKLY, profile="tiny", context="headings") as other:
        other.index([tmp_path / "docs" / "open"])
        assert limited.verify(text, model=False) == other.verify(text, model=False)
    assert "plan" not in str(limited.verify(SECRET, model=False).statements[0].quotes)


def test_nothing_that_is_checked_is_kept(library: Library, tmp_path: Path) -> None:
    library.verify(f"{OPEN} {SECRET} Xylographic harbours abound in Mesopotamia.", model=False)
    kept = [path for path in (tmp_path / "lib").rglob("*") if path.is_file() and b"ylographic" in path.read_bytes()]
    assert kept == []


def test_without_a_model_words_that_are_open_are_taken_as_is_likelier(library: Library) -> None:
    told = library.verify("The boat to Torvneset departs on Fridays.")
    assert told.statements[0].verdict in {"supported", "contradicted"}
