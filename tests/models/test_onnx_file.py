"""Models that ONNX Runtime runs: the shipped embedder, and files of makers, which give what PyTorch gives."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from local_rag.errors import ModelError
from local_rag.llama.models_in_use import load_embedder, load_reader
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import OnnxEmbedder, SentenceEmbedder
from local_rag.models.own_models import ONNX_FILE, onnx_file
from local_rag.models.reader import CrossEncoderReader, OnnxReader
from local_rag.models.registry import resolve
from tests.support.checkpoints import add_makers_onnx, save_bert, save_ettin, save_leaf, save_xlm_roberta, with_pooling

SAME_COSINE = 0.9999  # minimum, between vectors of an ONNX file and those of sentence-transformers
SAME_SCORE = 0.01  # maximum difference of two raw logits
TEXTS = ["the tide", "a b c d e", "tide " * 200, "x", "the tide, the tide: the tide."]
GOLDEN = Path(__file__).parent / "golden"
ENGLISH = [
    "The ferry leaves at seven.",
    "def connect(host): ...",
    "Parents in Norway share 49 weeks. " * 40,  # more than it reads
    "x",
]


def test_the_shipped_embedder_gives_the_vectors_of_the_copies_that_were_made_at_the_pull(
    embed_model: InstalledModel,
) -> None:
    embedder = load_embedder(embed_model)
    assert isinstance(embedder, OnnxEmbedder)
    vectors, wanted = embedder.embed_passages(ENGLISH), np.load(GOLDEN / "all-minilm-l6-v2.npy")
    assert (vectors * wanted).sum(axis=1).min() > 0.99999
    assert (wanted @ wanted.T)[~np.eye(len(ENGLISH), dtype=bool)].max() < 0.5, "vectors so alike would prove nothing"
    for text, vector in zip(ENGLISH, vectors, strict=True):
        assert np.array_equal(embedder.embed_passages([text])[0], vector), "whatever runs with it"


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_an_own_folder_with_its_makers_file_runs_without_torch(tmp_path: Path, pooling: str) -> None:
    (tmp_path / "bert").mkdir()
    model = resolve(str(add_makers_onnx(with_pooling(save_bert(tmp_path / "bert"), pooling))), "embed")
    ours, theirs = load_embedder(model), SentenceEmbedder(model, half=False)
    assert isinstance(ours, OnnxEmbedder)
    found, wanted = ours.embed_passages(TEXTS), theirs.embed_passages(TEXTS)
    assert (found * wanted).sum(axis=1).min() >= SAME_COSINE
    assert min(wanted[0] @ wanted[1:].T) < 0.99, "vectors so alike would prove nothing"


@pytest.mark.slow
def test_a_makers_file_of_a_reranker_gives_the_same_scores(tmp_path: Path) -> None:
    model = resolve(str(add_makers_onnx(save_xlm_roberta(tmp_path))), "rerank")
    ours, texts = load_reader(model), ["the boat leaves at seven", "leave is long", "a " * 300, "tide"]
    assert isinstance(ours, OnnxReader)
    wanted = [one.relevance for one in CrossEncoderReader(model, half=False).score("when", texts)]
    assert np.abs(np.array([one.relevance for one in ours.score("when", texts)]) - wanted).max() <= SAME_SCORE
    assert max(wanted) - min(wanted) > 0.2, "scores so alike would prove nothing"


@pytest.mark.slow
def test_a_makers_file_is_not_enough_where_modules_follow_the_pooling(tmp_path: Path) -> None:
    leaf, ettin = save_leaf(tmp_path / "leaf"), save_ettin(tmp_path)
    for folder in (leaf, ettin):
        (folder / "onnx").mkdir()
        (folder / "onnx" / ONNX_FILE).write_bytes(b"of the transformer alone")
    embedder = load_embedder(resolve(str(leaf), "embed"))
    assert embedder.embed_passages(["tide"]).shape == (1, 64)
    assert isinstance(load_reader(resolve(str(ettin), "rerank")), CrossEncoderReader)


@pytest.mark.parametrize(
    ("settings", "enough"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, True),
        ({"pooling_mode": "lasttoken", "include_prompt": True}, True),
        ({"pooling_mode": "mean", "include_prompt": False}, False),
        ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, False),
        ({"pooling_mode": "weightedmean"}, False),
    ],
)
def test_a_makers_file_needs_a_pooling_that_we_know(tmp_path: Path, settings: dict[str, object], enough: bool) -> None:
    for name in ("onnx", "1_Pooling"):
        (tmp_path / name).mkdir()
    (tmp_path / "onnx" / ONNX_FILE).write_bytes(b"onnx")
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertModel"]}))
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    model = resolve(str(tmp_path), "embed")  # a folder without safetensors
    assert onnx_file(model) == (tmp_path / "onnx" / ONNX_FILE if enough else None)
    shutil.copy(tmp_path / "onnx" / ONNX_FILE, tmp_path)
    assert onnx_file(model) == tmp_path / ONNX_FILE, "the whole model, by its owner"


@pytest.mark.slow
def test_a_model_without_an_onnx_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = resolve(str(save_xlm_roberta(tmp_path)), "rerank")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelError, match=r"no ONNX file, so it needs the extra sentence-transformers.*pip install"):
        load_reader(model)
