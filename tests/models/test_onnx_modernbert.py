"""ModernBERT as a graph of ours: the same vectors and scores as transformers gives."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_rag.model_records import InstalledModel
from local_rag.models.embedder import OnnxEmbedder, SentenceEmbedder
from local_rag.models.onnx.copy import graph_of
from local_rag.models.onnx.graph import UnknownArchitectureError
from local_rag.models.reader import CrossEncoderReader, OnnxReader, Reader
from local_rag.models.registry import resolve
from tests.support.checkpoints import save_ettin, save_modernbert

pytestmark = pytest.mark.slow
CLOSE = 1e-4
TEXTS = ["the boat leaves at seven", "leave is long", "a b c d e f g " * 15, "tide", "the tide " * 4]


def scores_of(reader: Reader) -> np.ndarray:
    return np.array([reading.relevance for reading in reader.score("when does it leave", TEXTS)])


def scores(model: InstalledModel, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores by the graph and those by sentence-transformers."""
    graph_of(model).write(path)
    ours, theirs = scores_of(OnnxReader(model, path)), scores_of(CrossEncoderReader(model, half=False))
    assert np.ptp(theirs) > 0.1, "scores so alike would prove nothing"
    return ours, theirs


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("fields", [{}, {"norm_bias": True, "mlp_bias": True, "attention_bias": True}])
def test_vectors_are_those_of_transformers(tmp_path: Path, pooling: Any, fields: dict[str, Any]) -> None:
    save_modernbert(tmp_path, **fields)
    model = InstalledModel(
        name="m", role="embed", path=tmp_path, identity="id", context_length=128, pooling=pooling, query_prefix="x: "
    )
    graph_of(model).write(tmp_path / "graph.onnx")
    ours, theirs = OnnxEmbedder(model, tmp_path / "graph.onnx"), SentenceEmbedder(model, half=False)
    found, wanted = (one.embed_passages(TEXTS) for one in (ours, theirs))
    assert np.abs(found - wanted).max() < CLOSE
    assert np.abs(wanted[0] - wanted[1]).max() > 100 * CLOSE, "vectors so alike would prove nothing"
    assert np.abs(ours.embed_query("tide") - theirs.embed_query("tide")).max() < CLOSE


@pytest.mark.parametrize(
    "fields",
    [
        {"classifier_pooling": "mean"},
        {"classifier_pooling": "cls", "classifier_bias": True},
        {"layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
    ],
)
def test_scores_are_those_of_transformers(tmp_path: Path, fields: dict[str, Any]) -> None:
    model = resolve(str(save_modernbert(tmp_path, "classifier", **fields)), "rerank")
    ours, theirs = scores(model, tmp_path / "graph.onnx")
    assert np.abs(ours - theirs).max() < CLOSE


def test_a_head_of_modules_scores_as_sentence_transformers_does(tmp_path: Path) -> None:
    model = resolve(str(save_ettin(tmp_path)), "rerank")
    ours, theirs = scores(model, tmp_path / "graph.onnx")
    assert np.abs(ours - theirs).max() < CLOSE


@pytest.mark.parametrize(
    "change",
    [
        {"local_attention": 6},
        {"global_attn_every_n_layers": 1, "layer_types": None},
        {"rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}},
    ],
)
def test_each_setting_counts(tmp_path: Path, change: dict[str, Any]) -> None:
    """The other way round: were a setting not read, the graph would be right by chance."""
    model = resolve(str(save_modernbert(tmp_path, "classifier")), "rerank")
    graph_of(model).write(tmp_path / "graph.onnx")
    before = scores_of(OnnxReader(model, tmp_path / "graph.onnx"))
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    graph_of(model).write(tmp_path / "other.onnx")
    after = scores_of(OnnxReader(model, tmp_path / "other.onnx"))
    assert np.abs(after - before).max() > CLOSE


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_activation": "relu"},
        {"num_hidden_layers": 3, "layer_types": None},
        {"layer_types": ["linear_attention"] * 4},
        {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}},
    ],
)
def test_what_the_graph_does_not_respect_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    model = resolve(str(save_modernbert(tmp_path, "classifier")), "rerank")
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    with pytest.raises(UnknownArchitectureError, match=str(tmp_path)):
        graph_of(model).write(tmp_path / "graph.onnx")
