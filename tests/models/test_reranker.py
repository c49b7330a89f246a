"""Cross-encoders: a tiny randomly initialised XLM-RoBERTa that the test saves."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import ModelError
from local_rag.model_records import InstalledModel
from local_rag.models.reader import CrossEncoderReader, KeepingReader, PassageReading, Reading
from tests.fakes import EMBEDS_QUICKLY
from tests.support.checkpoints import save_xlm_roberta

pytestmark = pytest.mark.slow

TEXTS = ["the boat leaves at seven", "leave is long", "a " * 300, "tide"]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> InstalledModel:
    folder = save_xlm_roberta(tmp_path_factory.mktemp("reranker"))
    return InstalledModel(name="own", role="rerank", path=folder, identity="id", context_length=128)


def test_scores_are_the_raw_logits_of_the_pairs(own: InstalledModel) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    reader = CrossEncoderReader(own)
    scores = [reading.relevance for reading in reader.score("when", TEXTS)]
    tokenizer = AutoTokenizer.from_pretrained(own.path)
    model = AutoModelForSequenceClassification.from_pretrained(own.path).eval()
    for text, score in zip(TEXTS, scores, strict=True):
        inputs = tokenizer("when", text, truncation=True, max_length=128, return_tensors="pt")
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=reader._half):
            expected = model(**inputs).logits.item()
        assert abs(score - expected) < 0.05
    assert max(scores) - min(scores) > 0.2, "texts so alike would prove nothing"


def test_nothing_to_score(own: InstalledModel) -> None:
    assert CrossEncoderReader(own).score("when", []) == []


def test_a_damaged_reranker_is_one_sentence(tmp_path: Path, own: InstalledModel) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="local-rag models pull"):
        CrossEncoderReader(replace(own, path=tmp_path))


def test_how_fast_this_machine_is_is_measured_once(
    own: InstalledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path))
    weights, calls = tmp_path / "model.onnx", list[int]()
    weights.write_bytes(b"weights")

    class BusyReader(KeepingReader):
        def read(self, _question: str, texts: Sequence[str]) -> list[Reading]:
            calls.append(sum(range(200_000)))  # takes some time of the processor
            return [PassageReading(0.0) for _ in texts]

    rate = BusyReader(own, weights).pairs_per_second
    assert rate > 0
    assert BusyReader(own, weights).pairs_per_second == rate
    assert len(calls) == 2
    weights.write_bytes(b"other weights")
    assert BusyReader(own, weights).pairs_per_second > 0
    assert len(calls) == 4


def test_a_library_reranks_with_a_users_own_cross_encoder(own: InstalledModel, documents: Path) -> None:
    library = Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings", rerank_model=str(own.path))
    library.index([documents])
    assert library.retrieval.reranks
    ranked = library.search("boat harbour", top=3)
    assert [passage.hits[-1].list_name for passage in ranked] == ["rerank"] * 3
    scores = [passage.score for passage in ranked]
    assert scores == sorted(scores, reverse=True)
    other = Library("lib", parts=EMBEDS_QUICKLY, rerank_model=str(own.path), rerank_candidates=1)
    ranked = other.search("boat harbour", top=3)
    assert [passage.hits[-1].list_name for passage in ranked] == ["rerank", "fused", "fused"]
    fused = library.search("boat harbour", top=3, rerank=False)
    assert fused[0].hits[-1].list_name == "fused"
    for one in (library, other):
        one.close()
