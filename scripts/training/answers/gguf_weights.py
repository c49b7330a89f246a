"""Read what a Qwen2 or Llama model is from its GGUF file, and its quantized weights as float32."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np


@dataclass(frozen=True, slots=True)
class Config:
    """The dimensions of a model."""

    blocks: int
    width: int
    heads: int
    key_value_heads: int
    epsilon: float
    rope_base: float


class Weights:
    """The tensors of a GGUF file by name; they are dequantized when asked for."""

    def __init__(self, path: Path, kind: str = "qwen2") -> None:
        self._reader = gguf.GGUFReader(path)
        self.architecture = str(_field(self._reader, "general.architecture"))
        if self.architecture != kind:
            raise ValueError(f"{path} is a model of the kind {self.architecture}; only {kind} can be trained here.")
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}

    @property
    def config(self) -> Config:
        """Return the dimensions, with what llama.cpp takes for a field that is absent."""

        def field(name: str, default: Any = None) -> Any:
            return _field(self._reader, f"{self.architecture}.{name}", default)

        heads = field("attention.head_count")
        return Config(
            blocks=field("block_count"),
            width=field("embedding_length"),
            heads=heads,
            key_value_heads=field("attention.head_count_kv", heads),
            epsilon=field("attention.layer_norm_rms_epsilon"),
            rope_base=field("rope.freq_base", 10_000.0),
        )

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return a tensor, or only some of its rows, as float32."""
        found = self._tensors[name]
        data = found.data if rows is None else found.data[rows]
        return np.array(gguf.quants.dequantize(data, found.tensor_type), dtype=np.float32)


def end_token(path: Path) -> int:
    """Return the token that ends the model's turn."""
    return int(_field(gguf.GGUFReader(path), "tokenizer.ggml.eos_token_id"))


def _field(reader: gguf.GGUFReader, name: str, default: Any = None) -> Any:
    found = reader.fields.get(name)
    return default if found is None else found.contents()
