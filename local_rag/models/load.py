"""Load embedders and rerankers from their ONNX copies, which need no torch, or from the original files."""

from collections.abc import Callable

from local_rag.model_records import InstalledModel
from local_rag.models.embedder import Embedder, OnnxEmbedder, SentenceEmbedder
from local_rag.models.onnx.copy import make_copy
from local_rag.models.onnx.session import ONNX_FILE, find_copy, needs_copy
from local_rag.models.reader import OnnxReader, Reader, RerankerReader
from local_rag.models.registry import ModelEntry, resolve
from local_rag.models.reranker import CrossEncoderReranker, OnnxReranker


def make_onnx_copies(entry: ModelEntry, note: Callable[[str], None]) -> None:
    """Make the ONNX copies of a registry model now, so the first question does not wait for them."""
    for role in entry.roles:
        if role in ("embed", "rerank") and entry.sources:
            model = resolve(entry.name, role)
            if needs_copy(model) and find_copy(model) is None:
                note(f"Making an ONNX copy of {entry.name}, about half a minute ...")
                make_copy(model)


def load_embedder(model: InstalledModel) -> Embedder:
    """Load an embedder; if it is no ONNX file, make its copy first unless that was tried, which takes a while."""
    path = model.path / ONNX_FILE
    copy = path if path.is_file() else make_copy(model)
    return OnnxEmbedder(model, copy) if copy else SentenceEmbedder(model)


def load_reader(model: InstalledModel) -> Reader:
    """Load a reader, or a cross-encoder as one, directly if it is already an ONNX file."""
    path = model.path / ONNX_FILE
    copy = path if path.is_file() else make_copy(model)
    if copy is None:
        return RerankerReader(CrossEncoderReranker(model))
    reranker = OnnxReranker(model, copy)
    if reranker.session.outputs == OnnxReader.OUTPUTS:
        return OnnxReader(model, copy, reranker.session)
    return RerankerReader(reranker)
