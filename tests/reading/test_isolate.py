"""The reading process: whatever a document holds, it costs one file at most, and the run little."""

from pathlib import Path

import pytest

from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import Splitting

SLIDES = "---\n" + "".join(f"# Slide {i}\n\ntext {i}\n\n---\n\n" for i in range(200))
HEADINGS = "---\n" + "# A\n\n" * 200
RULES = "---\n# Holidays\n\n30 days.\n\n## Requests\n\nNote: exceptions.\n\n---\n\n# Travel\n\nSecond class.\n"


@pytest.mark.parametrize("text", [SLIDES, HEADINGS, RULES])
def test_rules_and_headings_are_read_whole_and_at_once(text: str, tmp_path: Path, splitting: Splitting) -> None:
    (tmp_path / "slides.md").write_text(text)
    with IsolatedReader(splitting, seconds=30) as reader:
        read = reader.read(tmp_path / "slides.md")
    assert read.document.text == text
    assert " ".join(chunk.text for chunk in read.chunks).split() == text.split()
