"""Load the models that read questions: from their ONNX copies, which need no torch, or as they were pulled."""

from collections.abc import Callable

from local_rag.models.embedder import Embedder, OnnxEmbedder, SentenceEmbedder
from local_rag.models.onnx import find_copy
from local_rag.models.onnx_copy import make_copy
from local_rag.models.registry import ModelEntry, resolve
from local_rag.models.reranker import ONNX_FILE, CrossEncoderReranker, OnnxReranker, Reranker
from local_rag.records import InstalledModel


def prepare(entry: ModelEntry, note: Callable[[str], None]) -> None:
    """Make the copies that a model of the registry is run as, so that the first question need not wait for them."""
    for role in entry.roles:
        if role in ("embed", "rerank") and entry.source is not None:
            model = resolve(entry.name, role)
            if find_copy(model) is None:
                note(f"Making the copy of {entry.name} that is run, about half a minute ...")
                make_copy(model)


def load_embedder(model: InstalledModel) -> Embedder:
    """Load an embedder; its copy is made first where that was not tried yet, which takes some twenty seconds."""
    copy = make_copy(model)
    return OnnxEmbedder(model, copy) if copy else SentenceEmbedder(model)


def load_reranker(model: InstalledModel) -> Reranker:
    """Load a reranker, as it is where it comes in ONNX form."""
    path = model.path / ONNX_FILE
    copy = path if path.is_file() else make_copy(model)
    return OnnxReranker(model, copy) if copy else CrossEncoderReranker(model)
