"""Open a model to generate text: see that it works here, load it, and free it in the end."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.model import LlamaModel
from local_rag.llama.probe import require_working


def default_settings(_model: LlamaModel) -> EngineSettings:
    """Return the settings of a model that was not fitted to this machine."""
    return EngineSettings()


@contextmanager
def open_engine(
    path: Path,
    *,
    context_tokens: Callable[[int, int], int],
    settings: Callable[[LlamaModel], EngineSettings] = default_settings,
) -> Iterator[SharedPrefixEngine]:
    """Open an engine over a GGUF file; raise ModelError where llama.cpp cannot decode with it on this machine.

    `context_tokens` says how many KV cells it needs, from the model's context length and the sequences at a time.
    """
    require_working(path)
    with LlamaModel(path) as model:
        chosen = settings(model)
        room = context_tokens(model.context_length, chosen.sequences)
        with closing(SharedPrefixEngine(model, context_tokens=room, settings=chosen)) as engine:
            yield engine


def open_vocabulary(path: Path) -> LlamaModel:
    """Load a model's vocabulary without its weights; a context manager."""
    return LlamaModel(path, vocabulary_only=True)
