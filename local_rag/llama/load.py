"""Load embedders and rerankers: a GGUF file through llama.cpp, others as models/load.py does."""

from local_rag.llama.encoder import LlamaEmbedder, LlamaReranker
from local_rag.llama.probe import require_working
from local_rag.model_records import InstalledModel
from local_rag.models import load
from local_rag.models.embedder import Embedder
from local_rag.models.reader import Reader, RerankerReader
from local_rag.models.registry import gguf_in, has_gguf


def load_embedder(model: InstalledModel) -> Embedder:
    """Load an embedder; raise ModelError if it does not work on this machine."""
    if not has_gguf(model.path):
        return load.load_embedder(model)
    require_working(gguf_in(model.path), encodes=True)
    return LlamaEmbedder(model)


def load_reader(model: InstalledModel) -> Reader:
    """Load a reader, or a cross-encoder as one; raise ModelError if it does not work on this machine."""
    if not has_gguf(model.path):
        return load.load_reader(model)
    require_working(gguf_in(model.path), encodes=True)
    return RerankerReader(LlamaReranker(model))
