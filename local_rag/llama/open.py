"""Open a model to generate text: check that it works on this machine, load it, and free it at the end."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.model import LlamaModel
from local_rag.llama.probe import require_working


def default_settings(_model: LlamaModel) -> EngineSettings:
    """Return the settings of a model that was not tuned to this machine."""
    return EngineSettings()


@contextmanager
def open_engine(
    path: Path,
    *,
    context_tokens: Callable[[int, int], int],
    settings: Callable[[LlamaModel], EngineSettings] = default_settings,
) -> Iterator[SharedPrefixEngine]:
    """Open an engine over a GGUF file; raise ModelError if llama.cpp cannot decode with it on this machine.

    `context_tokens` computes the number of KV cells from the model's context length and the concurrent sequences.
    """
    require_working(path)
    with LlamaModel(path) as model:
        chosen = settings(model)
        cells = context_tokens(model.context_length, chosen.sequences)
        with closing(SharedPrefixEngine(model, context_tokens=cells, settings=chosen)) as engine:
            yield engine


def open_vocabulary(path: Path) -> LlamaModel:
    """Load a model's vocabulary without its weights, as a context manager."""
    return LlamaModel(path, vocabulary_only=True)
