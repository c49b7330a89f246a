"""Load an adapter (LoRA) for a model; it is freed with the model."""

from pathlib import Path
from typing import Any

from local_rag.errors import ModelError
from local_rag.llama.model import LlamaModel, native


class Adapter:
    """A loaded adapter. One with invocation tokens is activated: it changes only what they and later tokens become."""

    def __init__(self, path: Path, model: LlamaModel) -> None:
        llama = native()
        self.path = path
        self.handle: Any = llama.llama_adapter_lora_init(model.handle, str(path).encode()) if path.is_file() else None
        if not self.handle:
            raise ModelError(f"{path} is no adapter for {model.path.name}; convert the one of this model to GGUF.")
        count = llama.llama_adapter_get_alora_n_invocation_tokens(self.handle)
        tokens = llama.llama_adapter_get_alora_invocation_tokens(self.handle)
        self.invocation: list[int] = [int(tokens[number]) for number in range(count)]

    def invoked_at(self, tokens: list[int]) -> int:
        """Return where the invocation stands last in the tokens; raise ModelError if it does not."""
        length = len(self.invocation)
        for start in range(len(tokens) - length, -1, -1):
            if tokens[start : start + length] == self.invocation:
                return start
        raise ModelError(
            f"The adapter {self.path} is activated by words that the prompt does not have; choose one without them."
        )
