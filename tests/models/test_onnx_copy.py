"""ONNX copies: the same vectors and scores as sentence-transformers gives, and the same bytes from the same weights."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from local_rag.cli.main import cli
from local_rag.errors import ModelError
from local_rag.llama.models_in_use import load_embedder, load_reader
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import OnnxEmbedder, SentenceEmbedder
from local_rag.models.onnx.copy import make_copy
from local_rag.models.onnx.session import COPY_FILE, copy_folder, damaged_onnx_copies, find_copy
from local_rag.models.reader import CrossEncoderReader, OnnxReader
from local_rag.models.registry import resolve
from tests.support.checkpoints import save_bert, save_leaf, save_xlm_roberta

pytestmark = pytest.mark.slow
SAME_COSINE = 0.9999  # minimum, between the copy's vectors and those of sentence-transformers
SAME_SCORE = 0.01  # maximum difference of two raw logits
TEXTS = ["the tide", "a b c d e", "tide " * 200, "x", "the tide, the tide: the tide."]


def resolve_path(name: str) -> Path:
    return Path(__file__).parents[2] / "models" / name


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a BERT and an XLM-RoBERTa, and in `.onnx` the copies for all uses that the tests make of them."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name, save in (("bert", save_bert), ("xlm", save_xlm_roberta)):
        (folder / name).mkdir()
        save(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_RAG_MODELS", str(folder))
        for model in (embedder(folder / "bert"), embedder(folder / "bert", pooling="mean"), reranker(folder / "xlm")):
            assert find_copy(model) is None
            assert make_copy(model) is not None
    return folder


@pytest.fixture
def models(checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models with their copies, in a folder of the test's own."""
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path / "models"))
    return Path(shutil.copytree(checkpoints, tmp_path / "models"))


def embedder(folder: Path, **fields: object) -> InstalledModel:
    use = {"query_prefix": "the: ", "pooling": "cls", "context_length": 64, "identity": "id"} | fields
    return InstalledModel(name="bge", role="embed", path=folder, **use)  # type: ignore[arg-type]


def reranker(folder: Path) -> InstalledModel:
    return InstalledModel(name="own", role="rerank", path=folder, identity="id", context_length=128)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_copy_of_an_embedder_gives_the_same_vectors(models: Path, pooling: str) -> None:
    model = embedder(models / "bert", pooling=pooling)
    copied, reference = load_embedder(model), SentenceEmbedder(model, half=False)
    assert isinstance(copied, OnnxEmbedder)
    same = (copied.embed_passages(TEXTS) * reference.embed_passages(TEXTS)).sum(axis=1)
    assert same.min() >= SAME_COSINE
    assert copied.embed_query("tide") @ reference.embed_query("tide") >= SAME_COSINE
    assert copied.embed_query("tide") @ copied.embed_passages(["tide"])[0] < SAME_COSINE, "the prefix is for queries"


def test_an_embedder_of_ones_own_with_a_layer_after_pooling_has_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    model = resolve(str(save_leaf(tmp_path / "leaf")), "embed")
    copied, reference = load_embedder(model), SentenceEmbedder(model, half=False)
    assert isinstance(copied, OnnxEmbedder)
    vectors = copied.embed_passages(TEXTS)
    assert vectors.shape == (len(TEXTS), 64)
    assert (vectors * reference.embed_passages(TEXTS)).sum(axis=1).min() >= SAME_COSINE
    assert copied.embed_query("tide") @ reference.embed_passages(["the: tide"])[0] >= SAME_COSINE
    assert min(vectors[0] @ vectors[1:].T) < 0.99, "vectors so alike would prove nothing"


def test_a_copy_of_a_reranker_gives_the_same_scores(models: Path) -> None:
    model = reranker(models / "xlm")
    copied = load_reader(model)
    assert isinstance(copied, OnnxReader)
    texts = ["the boat leaves at seven", "leave is long", "a " * 300, "tide"]
    scores = [one.relevance for one in CrossEncoderReader(model, half=False).score("when", texts)]
    assert np.abs(np.array([one.relevance for one in copied.score("when", texts)]) - scores).max() <= SAME_SCORE
    assert max(scores) - min(scores) > 0.2, "scores so alike would prove nothing"


def test_a_copy_is_made_once_and_again_if_it_is_damaged(models: Path) -> None:
    model = embedder(models / "bert")
    path = make_copy(model)
    assert path is not None
    written = path.stat().st_mtime_ns
    assert make_copy(model) == path
    assert path.stat().st_mtime_ns == written
    path.write_bytes(path.read_bytes()[:-1])
    assert find_copy(model) is None
    assert make_copy(model) == path
    assert isinstance(load_embedder(model), OnnxEmbedder)


def test_damaged_copies_are_found_by_their_hash_and_deleted(models: Path) -> None:
    model = embedder(models / "bert")
    path = make_copy(model)
    assert path is not None
    assert damaged_onnx_copies(models) == []
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert find_copy(model) == path, "as large as it was"
    assert damaged_onnx_copies(models) == [path.parent]
    (models / "smollm2-135m-instruct").symlink_to(resolve_path("smollm2-135m-instruct"))
    result = CliRunner().invoke(cli, ["models", "verify", "smollm2-135m-instruct"])
    assert f"{path.parent}: damaged, so it was deleted" in result.stdout
    assert find_copy(model) is None, "it is made again when it is needed"


def test_copies_are_the_same_bytes_wherever_they_are_made(models: Path) -> None:
    for model in (embedder(models / "bert"), reranker(models / "xlm")):
        path = make_copy(model)
        assert path is not None
        before = path.read_bytes()
        shutil.rmtree(path.parent)
        shutil.move(model.path, models / "elsewhere")
        assert make_copy(replace(model, path=models / "elsewhere")) == path
        assert path.read_bytes() == before
        shutil.move(models / "elsewhere", model.path)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "mpnet"},
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"num_hidden_layers": 1},  # the weights of the second are then unknown
        {"is_decoder": True},
    ],
)
def test_a_model_of_another_architecture_gets_no_copy_and_is_not_tried_again(
    models: Path, change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = models / "bert" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    model = embedder(models / "bert", identity="other")
    assert make_copy(model) is None
    receipt = json.loads((copy_folder(model) / COPY_FILE).read_text())
    assert receipt["file"] == ""
    assert str(models / "bert") in receipt["reason"]
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelError, match=r"needs the extra sentence-transformers.*pip install"):
        load_embedder(model)


def test_a_damaged_model_is_not_stored_as_one_without_a_copy(models: Path) -> None:
    shutil.rmtree(models / ".onnx")
    model = embedder(models / "bert")
    config = (models / "bert" / "config.json").read_text()
    (models / "bert" / "config.json").write_text("{}")
    assert make_copy(model) is None
    (models / "bert" / "config.json").write_text(config)
    assert make_copy(model) is not None
    assert [path.name for path in (models / ".onnx").iterdir() if path.is_dir()] == [copy_folder(model).name]


def test_the_int8_copy_of_minilm_is_similar_and_independent_of_other_texts(
    embed_model: InstalledModel,
) -> None:
    path = make_copy(embed_model)
    assert path is not None
    assert json.loads((path.parent / COPY_FILE).read_bytes())["precision"] == "int8"
    copied, reference = OnnxEmbedder(embed_model, path), SentenceEmbedder(embed_model, half=False)
    texts = ["The ferry leaves at seven.", "def connect(host): ...", "Parents in Norway share 49 weeks. " * 8]
    vectors = copied.embed_passages(texts)
    assert (vectors * reference.embed_passages(texts)).sum(axis=1).min() > 0.98
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(copied.embed_passages([text])[0], vector)


def test_the_models_of_the_starter_profile_have_copies() -> None:
    assert find_copy(resolve("all-minilm-l6-v2", "embed")) is not None, "made when they are pulled"


@pytest.mark.parametrize("receipt", [b"", b"\xff\xfe", b"[]", b"{}", b'{"file": 3}', b'{"file": ["a"], "bytes": 1}'])
def test_a_receipt_that_cannot_be_read_vouches_for_no_copy(receipt: bytes, models: Path) -> None:
    model = embedder(models / "bert")
    (copy_folder(model) / COPY_FILE).write_bytes(receipt)
    assert find_copy(model) is None
    assert damaged_onnx_copies(models) == [copy_folder(model)]


def test_a_receipt_names_no_file_of_another_folder(models: Path, tmp_path: Path) -> None:
    model, other = embedder(models / "bert"), tmp_path / "other.onnx"
    other.write_bytes(b"of somebody else")
    (copy_folder(model) / COPY_FILE).write_text(json.dumps({"file": str(other), "bytes": other.stat().st_size}))
    assert find_copy(model) is None
