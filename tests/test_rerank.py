"""The cross-encoder path, with a tiny randomly initialised XLM-RoBERTa that the test saves."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import ModelError
from local_rag.models import resolve
from local_rag.records import InstalledModel, Passage
from local_rag.rerank import CrossEncoderReranker
from local_rag.search import rerank_passages
from tests.checkpoints import save_xlm_roberta

TEXTS = ["the boat leaves at seven", "leave is long", "a " * 300, "tide"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_xlm_roberta(tmp_path_factory.mktemp("reranker"))


def test_scores_are_the_raw_logits_of_the_pairs(folder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    reranker = CrossEncoderReranker(InstalledModel("own", "rerank", folder, "id", 128))
    scores = reranker.score("when", TEXTS)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    for text, score in zip(TEXTS, scores, strict=True):
        inputs = tokenizer("when", text, truncation=True, max_length=128, return_tensors="pt")
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=reranker._half):
            expected = model(**inputs).logits.item()
        assert abs(score - expected) < 0.05
    assert max(scores) - min(scores) > 0.2, "texts so alike would prove nothing"


def test_nothing_to_score(folder: Path) -> None:
    assert CrossEncoderReranker(InstalledModel("own", "rerank", folder, "id", 128)).score("when", []) == []


def test_a_damaged_reranker_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="local-rag models pull"):
        CrossEncoderReranker(InstalledModel("own", "rerank", tmp_path, "id", 128))


class ByLength:
    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        return [float(len(text)) for text in texts]


def test_passages_are_ordered_by_score_and_keep_the_story_of_their_ranks() -> None:
    passages = [
        Passage(key, "a.md", "", text, "", "", (), None, 1, 1, 0.1) for key, text in enumerate(["aa", "a", "aaa", "bb"])
    ]
    ranked = rerank_passages("when", passages, ByLength())
    assert [passage.chunk_id for passage in ranked] == [2, 0, 3, 1]
    assert [passage.hits[-1].rank for passage in ranked] == [1, 2, 3, 4]
    assert ranked[0].score == 3.0


@pytest.mark.usefixtures("fake_embedder")
def test_a_library_reranks_with_a_users_own_cross_encoder(folder: Path, documents: Path) -> None:
    library = Library("lib", profile="tiny", context="headings", rerank_model=str(folder))
    library.index([documents])
    assert library.reranks
    ranked = library.search("boat harbour", top=3)
    assert [passage.hits[-1].list_name for passage in ranked] == ["rerank"] * 3
    scores = [passage.score for passage in ranked]
    assert scores == sorted(scores, reverse=True)
    fused = library.search("boat harbour", top=3, rerank=False)
    assert fused[0].hits[-1].list_name == "fused"
    assert resolve(str(folder), "rerank").path == folder
