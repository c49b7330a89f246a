"""Open models: check that one works on this machine, load it, and free it at the end.

A GGUF file is run by llama.cpp. ONNX Runtime runs an embedder or reader with an ONNX file,
and sentence-transformers any other.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TypeVar

from local_rag.llama.encoder import LlamaEmbedder, LlamaReader
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.external import ExternalEngine
from local_rag.llama.generator import Generator
from local_rag.llama.model import LlamaModel
from local_rag.llama.native import ALL_LAYERS
from local_rag.llama.probe import require_working
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import Embedder, OnnxEmbedder, SentenceEmbedder
from local_rag.models.engine_address import parse_engine
from local_rag.models.own_models import gguf_in, has_gguf, onnx_file
from local_rag.models.reader import CrossEncoderReader, OnnxReader, Reader

T = TypeVar("T")


@contextmanager
def open_engine(
    path: Path,
    *,
    context_tokens: Callable[[int, int], int],
    settings: Callable[[LlamaModel], EngineSettings] = lambda _model: EngineSettings(),
    gpu_layers: int = ALL_LAYERS,
    adapter: Path | None = None,
) -> Iterator[SharedPrefixEngine]:
    """Open an engine over a GGUF file; raise ModelError if llama.cpp cannot decode with it on this machine.

    `context_tokens` computes the number of KV cells from the model's context length and the concurrent sequences. With
    an `adapter`, the engine uses it for everything.
    """
    require_working(path, gpu_layers)
    with LlamaModel(path, gpu_layers=gpu_layers) as model:
        chosen = settings(model)
        cells = context_tokens(model.context_length, chosen.sequences)
        with (
            closing(SharedPrefixEngine(model, context_tokens=cells, settings=chosen)) as engine,
            engine.adapted(adapter),
        ):
            yield engine


@contextmanager
def open_answer_engine(
    model: InstalledModel,
    *,
    context_tokens: Callable[[int, int], int],
    open_engine: Callable[..., AbstractContextManager[Generator]] = open_engine,
) -> Iterator[Generator]:
    """Open what generates with an answer model: an engine in this process, or the one that already runs elsewhere."""
    if model.engine:
        yield ExternalEngine(parse_engine(model.engine), context_tokens=context_tokens)
        return
    with open_engine(model.path, context_tokens=context_tokens, adapter=model.adapter) as generator:
        yield generator


def load_embedder(model: InstalledModel) -> Embedder:
    """Load an embedder."""
    return _load(model, LlamaEmbedder, OnnxEmbedder, SentenceEmbedder)


def load_reader(model: InstalledModel) -> Reader:
    """Load a reader, or a cross-encoder as one."""
    return _load(model, LlamaReader, OnnxReader, CrossEncoderReader)


def _load(
    model: InstalledModel,
    of_gguf: Callable[[InstalledModel], T],
    of_onnx: Callable[[InstalledModel, Path], T],
    of_weights: Callable[[InstalledModel], T],
) -> T:
    if has_gguf(model.path):
        require_working(gguf_in(model.path), encodes=True)
        return of_gguf(model)
    path = onnx_file(model)
    return of_onnx(model, path) if path else of_weights(model)


def open_vocabulary(path: Path) -> LlamaModel:
    """Load a model's vocabulary without its weights, as a context manager."""
    return LlamaModel(path, vocabulary_only=True)
