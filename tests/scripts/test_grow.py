"""The library of the benchmark `grow`: varied copies, always the same, with vectors near those of real paragraphs."""

from pathlib import Path

import numpy as np
import pytest

from local_rag.model_records import InstalledModel
from scripts.benchmarks import grow

MODEL = InstalledModel(name="fake", role="embed", path=Path("fake"), identity="fake", context_length=256)


def test_documents_are_varied_copies_of_real_paragraphs(tmp_path: Path) -> None:
    bases = grow.paragraphs()[:4]
    assert all(50 <= len(base.split()) < 95 for base in bases)
    grow.write_documents(tmp_path, 40, bases)
    texts = [path.read_text() for path in sorted(tmp_path.rglob("*.md"))]
    assert [text.count("## Section") for text in texts] == [16, 16, 8]
    words = np.array(sorted({word for base in bases for word in base.split()}))
    assert texts[1] == grow.document(1, 0, 16, bases, words)
    before, after = (grow.document(1, revision, 16, bases, words).split("## ") for revision in (0, 1))
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, *[True] * 15]
    first, copy = texts[0].split("## ")[1].split()[2:], texts[0].split("## ")[5].split()[2:]
    assert first != copy
    assert sum(one == other for one, other in zip(first, copy, strict=True)) > len(first) / 3


def test_vectors_are_near_those_of_the_paragraph_that_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases = np.random.default_rng(0).normal(size=(3, 384)).astype(np.float32)
    bases /= np.linalg.norm(bases, axis=1, keepdims=True)
    np.save(tmp_path / "bases.npy", bases)
    monkeypatch.setenv("GROW_BASES", str(tmp_path / "bases.npy"))
    embedder = grow.JitteringEmbedder(MODEL)
    vectors = embedder.embed_passages(["Page 1 > Section 2.17\nWords.", "Page 1 > Section 2.18\nOthers."])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (vectors @ bases.T).argmax(axis=1).tolist() == [2, 2]
    assert not np.array_equal(*vectors)
    assert np.array_equal(vectors[0], embedder.embed_query("Page 1 > Section 2.17\nWords."))


def test_a_busy_machine_spoils_times_but_not_those_of_the_processor() -> None:
    spoilt = {"index_seconds", "headings_ratio", "search_ms", "filtered_ratio"}
    sound = {"chunks", "index_processor_seconds", "headings_processor_ratio", "search_processor_ms", "index_peak_mb"}
    assert {one for one in spoilt | sound if grow.is_spoilt_by_others(one)} == spoilt
