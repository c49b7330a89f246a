"""Both rerankers: the shipped one, and a tiny randomly initialised XLM-RoBERTa that the test saves."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking.search import rerank_passages
from local_rag.errors import ModelError
from local_rag.models.registry import resolve
from local_rag.models.reranker import CrossEncoderReranker, OnnxReranker, load_reranker, score_within
from local_rag.records import InstalledModel, Passage
from tests.support.checkpoints import save_xlm_roberta

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


@pytest.fixture(scope="module")
def shipped() -> InstalledModel:
    return resolve("minilm-l6-reranker", "rerank")


@pytest.fixture(scope="module")
def onnx(shipped: InstalledModel) -> OnnxReranker:
    reranker = load_reranker(shipped)
    assert isinstance(reranker, OnnxReranker)
    return reranker


def test_the_shipped_reranker_tells_an_answer_from_a_neighbour(onnx: OnnxReranker) -> None:
    texts = [
        "Sick leave needs a doctor's note from the third day on.",
        "Parents in Norway share 49 weeks of leave at full pay.",
        "The ferry to the island leaves the harbour at seven.",
        "def connect(host, port):\n    return socket.create_connection((host, port))",
    ]
    for question, best in (
        ("How many weeks do parents in Norway get?", 1),
        ("When does the ferry leave?", 2),
        ("How does the code open a connection to a host?", 3),
    ):
        scores = onnx.score(question, texts)
        assert scores.index(max(scores)) == best


def test_a_score_does_not_depend_on_the_other_texts(onnx: OnnxReranker) -> None:
    texts = [f"The boat number {number} leaves. " + "It carries people. " * number for number in range(20)]
    together = onnx.score("when does the boat leave", texts)
    alone = [onnx.score("when does the boat leave", [text])[0] for text in reversed(texts)]
    assert together == pytest.approx(alone[::-1])
    assert max(alone) - min(alone) > 1, "scores so alike would prove nothing"


def test_long_questions_and_texts_are_cut(onnx: OnnxReranker) -> None:
    long = "tide " * 2000
    assert len(onnx.score(long, [long, "", "tide"])) == 3
    assert onnx.score("when", []) == []


@pytest.mark.parametrize("damage", [b"", b"no model at all"])
def test_a_damaged_onnx_file_is_one_sentence(tmp_path: Path, shipped: InstalledModel, damage: bytes) -> None:
    shutil.copy(shipped.path / "tokenizer.json", tmp_path)
    (tmp_path / "model.onnx").write_bytes(damage)
    with pytest.raises(ModelError, match="local-rag models verify"):
        load_reranker(InstalledModel("own", "rerank", tmp_path, "id", 128))


class ByLength:
    fused_weight = 0.0

    def __init__(self, seconds_each: float = 0.0) -> None:
        self.clock, self.seconds_each = 0.0, seconds_each

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.clock += self.seconds_each * len(texts)
        return [float(len(text)) for text in texts]


@pytest.mark.parametrize(("seconds_each", "expected"), [(0.0, 150), (0.019, 150), (0.02, 128), (0.05, 32), (9.0, 16)])
def test_a_slow_machine_reranks_fewer(seconds_each: float, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = ByLength(seconds_each)
    monkeypatch.setattr("local_rag.models.reranker.perf_counter", lambda: reranker.clock)
    scores = score_within(2.9, reranker, "when", ["text"] * 150)
    assert len(scores) == expected
    assert reranker.clock <= max(2.9, 16 * seconds_each)


def passages(*texts: str) -> list[Passage]:
    return [Passage(key, "a.md", "", text, "", "", (), None, 1, 1, 0.1 - key / 100) for key, text in enumerate(texts)]


def test_passages_are_ordered_by_score_and_keep_the_story_of_their_ranks() -> None:
    ranked = rerank_passages("when", passages("aa", "a", "aaa", "bb"), ByLength())
    assert [passage.chunk_id for passage in ranked] == [2, 0, 3, 1]
    assert [passage.hits[-1].rank for passage in ranked] == [1, 2, 3, 4]
    assert ranked[0].score == 3.0


def test_passages_beyond_the_candidates_follow_in_their_order() -> None:
    ranked = rerank_passages("when", passages("a", "aaa", "aaaaa", "aaaa"), ByLength(), candidates=2)
    assert [passage.chunk_id for passage in ranked] == [1, 0, 2, 3]
    assert [len(passage.hits) for passage in ranked] == [1, 1, 0, 0]


def test_a_blend_weighs_both_ranks() -> None:
    reranker = ByLength()
    reranker.fused_weight = 1.0
    texts = ("aaaa", "a", "aaaaa", "aaa")  # ranks 2, 4, 1, 3 by the reranker; 1, 2, 3, 4 fused
    ranked = rerank_passages("when", passages(*texts), reranker)
    expected = {0: 1 / 12 + 1 / 11, 1: 1 / 14 + 1 / 12, 2: 1 / 11 + 1 / 13, 3: 1 / 13 + 1 / 14}
    assert [passage.chunk_id for passage in ranked] == sorted(expected, key=lambda key: -expected[key])
    assert {passage.chunk_id: passage.score for passage in ranked} == pytest.approx(expected)
    reranker.fused_weight = 1000.0
    assert [passage.chunk_id for passage in rerank_passages("when", passages(*texts), reranker)] == [0, 1, 2, 3]


@pytest.mark.usefixtures("fake_embedder")
def test_a_library_reranks_with_a_users_own_cross_encoder(folder: Path, documents: Path) -> None:
    library = Library("lib", profile="tiny", context="headings", rerank_model=str(folder))
    library.index([documents])
    assert library.reranks
    ranked = library.search("boat harbour", top=3)
    assert [passage.hits[-1].list_name for passage in ranked] == ["rerank"] * 3
    scores = [passage.score for passage in ranked]
    assert scores == sorted(scores, reverse=True)
    one = Library("lib", rerank_model=str(folder), rerank_candidates=1).search("boat harbour", top=3)
    assert [passage.hits[-1].list_name for passage in one] == ["rerank", "fused", "fused"]
    fused = library.search("boat harbour", top=3, rerank=False)
    assert fused[0].hits[-1].list_name == "fused"
    assert resolve(str(folder), "rerank").path == folder
