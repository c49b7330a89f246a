"""What shaped an index, and the words in which another shape is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag.errors import LibraryError
from local_rag.indexing.fingerprint import differences, make_fingerprint, require_compatible
from local_rag.model_records import InstalledModel
from local_rag.settings import resolve_settings

EMBEDDER = InstalledModel(name="minilm", role="embed", path=Path("e"), identity="e", context_length=256)
WRITER = InstalledModel(name="smollm", role="context", path=Path("c"), identity="c", context_length=8192)
SETTINGS = resolve_settings(Path("nowhere"))
MADE = make_fingerprint(SETTINGS, EMBEDDER, WRITER)


def test_the_same_is_not_different() -> None:
    assert differences(MADE, make_fingerprint(SETTINGS, EMBEDDER, WRITER)) == []
    require_compatible({"fingerprint": MADE}, SETTINGS, EMBEDDER)


def test_a_question_needs_no_context_model() -> None:
    assert differences(MADE, make_fingerprint(SETTINGS, EMBEDDER, None)) == []


def test_what_an_older_version_did_not_write_is_not_compared() -> None:
    assert differences({}, MADE) == []


@pytest.mark.parametrize(
    ("wanted", "difference"),
    [
        (
            make_fingerprint(SETTINGS, replace(EMBEDDER, name="bge", identity="x"), WRITER),
            "embedder (minilm then, bge now)",
        ),
        (make_fingerprint(SETTINGS, replace(EMBEDDER, identity="x"), WRITER), "the files of minilm"),
        (
            make_fingerprint(SETTINGS, EMBEDDER, replace(WRITER, name="qwen", identity="x")),
            "context model (smollm then, qwen now)",
        ),
        (
            make_fingerprint(SETTINGS.model_copy(update={"context": "headings"}), EMBEDDER, WRITER),
            "contexts (auto then, headings now)",
        ),
        (
            make_fingerprint(SETTINGS.model_copy(update={"chunker": "fixed"}), EMBEDDER, WRITER),
            "chunker (auto then, fixed now)",
        ),
        (
            make_fingerprint(SETTINGS.model_copy(update={"chunk_tokens": 64}), EMBEDDER, WRITER),
            "chunk size (default then, 64 now)",
        ),
        (
            make_fingerprint(SETTINGS.model_copy(update={"overlap": 9}), EMBEDDER, WRITER),
            "overlap (default then, 9 now)",
        ),
        ({**MADE, "prompt": 1}, "the prompt for contexts"),
        ({**MADE, "keyword_tokens": 1}, "how this version of local-rag builds its indexes"),
    ],
)
def test_each_difference_is_named(wanted: dict[str, Any], difference: str) -> None:
    (found,) = differences(MADE, wanted)
    assert found.removeprefix("the ") == difference.removeprefix("the ")


def test_an_index_made_otherwise_is_refused_and_one_only_built_otherwise_is_not() -> None:
    with pytest.raises(LibraryError, match=r"different settings \(the files of minilm\).*`local-rag index`"):
        require_compatible({"fingerprint": MADE}, SETTINGS, replace(EMBEDDER, identity="x"))
    require_compatible({"fingerprint": {**MADE, "keyword_tokens": 1}}, SETTINGS, EMBEDDER)
