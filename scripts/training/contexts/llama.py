"""Llama in plain PyTorch with all weights trained, as the 4-bit numbers (Q4_0) that llama.cpp will compute with.

Each step sees the weights rounded, and the gradient of a rounded weight moves the weight itself ("straight through").
The embedding and the output stay as they are in the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from local_rag.models.embedder import is_half_faster
from scripts.training.answers.gguf_weights import Config, Weights

_ROTATED = ("attn_q", "attn_k")
_JOINED = {"attn_qkv": ("attn_q", "attn_k", "attn_v"), "ffn_up_gate": ("ffn_gate", "ffn_up")}
_NORMS = ("attn_norm", "ffn_norm")
_ALONE = ("attn_output", "ffn_down")
_BLOCK = 32  # numbers that share a scale
COMPUTED = torch.bfloat16 if is_half_faster() else torch.float32


def rounded(weight: torch.Tensor) -> torch.Tensor:
    """Return a matrix as Q4_0 holds it: sixteen steps for each 32 numbers of a row."""
    groups = weight.view(-1, _BLOCK)
    highest, lowest = groups.amax(1, keepdim=True), groups.amin(1, keepdim=True)
    largest = torch.where(highest >= -lowest, highest, lowest)
    scale = (largest / -8).half().float()
    inverse = torch.where(largest == 0, 0.0, -8 / largest)
    steps = (groups * inverse).add_(8.5).floor_().clamp_(0, 15).sub_(8)
    return steps.mul_(scale).view_as(weight).to(COMPUTED)


@dataclass(frozen=True, slots=True)
class View:
    """Tokens `first` to `end` that look at those from `begin` to `last`; `mask` is added to what they see.

    Attention of PyTorch takes twice the time on a CPU, most of it for what a document may not see of another.
    """

    first: int
    end: int
    begin: int
    last: int
    mask: torch.Tensor

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Return what the tokens take from those that they look at, shape (heads, tokens, size)."""
        asked, keys = query[:, self.first : self.end], key[:, self.begin : self.last]
        scores = torch.baddbmm(self.mask[None], asked, keys.transpose(1, 2), alpha=query.shape[-1] ** -0.5)
        return scores.softmax(-1) @ value[:, self.begin : self.last]


class Block(nn.Module):
    """Attention and a gated feed-forward layer; `weights` are the matrices that are trained, in float32."""

    def __init__(self, weights: Weights, number: int, config: Config) -> None:
        super().__init__()
        self._heads, self._key_value_heads, self._epsilon = config.heads, config.key_value_heads, config.epsilon
        self.names = (*_JOINED, *_ALONE)
        self.weights, self.norms = nn.ParameterDict(), nn.ParameterDict()
        for name in self.names:
            parts = [_unpermuted(weights, f"blk.{number}.{part}", config) for part in _JOINED.get(name, (name,))]
            self.weights[name] = nn.Parameter(torch.from_numpy(np.concatenate(parts)))
        for name in _NORMS:
            self.norms[name] = nn.Parameter(torch.from_numpy(weights.tensor(f"blk.{number}.{name}.weight")))
        self.used: dict[str, torch.Tensor] = {}

    def round(self) -> None:
        """Take the rounded weights for the next steps."""
        self.used = {name: rounded(self.weights[name].detach()).requires_grad_() for name in self.names}

    def collect(self) -> None:
        """Give the gradients of the rounded weights to the weights."""
        for name in self.names:
            gradient = self.used[name].grad
            self.weights[name].grad = None if gradient is None else gradient.float()

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, views: Sequence[View]) -> torch.Tensor:
        """Return the hidden states after the block, shape (length, width)."""
        length, width = x.shape
        size = width // self._heads
        normed = _normed(x, self.norms["attn_norm"], self._epsilon)
        joined = functional.linear(normed, self.used["attn_qkv"]).view(length, -1, size).transpose(0, 1)
        query, key, value = torch.split(joined, [self._heads, self._key_value_heads, self._key_value_heads])
        query, key = _rotated(query, cosine, sine), _rotated(key, cosine, sine)
        shared = self._heads // self._key_value_heads
        key, value = key.repeat_interleave(shared, 0), value.repeat_interleave(shared, 0)
        attended = torch.cat([one.attend(query, key, value) for one in views], 1)
        x = x + functional.linear(attended.transpose(0, 1).reshape(length, width), self.used["attn_output"])
        normed = _normed(x, self.norms["ffn_norm"], self._epsilon)
        gate, up = functional.linear(normed, self.used["ffn_up_gate"]).chunk(2, -1)
        return x + functional.linear(functional.silu(gate) * up, self.used["ffn_down"])


class Llama(nn.Module):
    """The model; call `round` before the first step and after each."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.config = config = weights.config
        self.embed = torch.from_numpy(weights.tensor("token_embd.weight")).to(COMPUTED)
        held = "output.weight" in weights
        self.out = torch.from_numpy(weights.tensor("output.weight")).to(COMPUTED) if held else self.embed
        self.norm = nn.Parameter(torch.from_numpy(weights.tensor("output_norm.weight")))
        self.layers = [Block(weights, number, config) for number in range(config.blocks)]
        self.blocks = nn.ModuleList(self.layers)
        size = config.width // config.heads
        self._frequencies = config.rope_base ** (-torch.arange(0, size, 2).float() / size)

    def round(self) -> None:
        """Take the rounded weights for the next steps."""
        for block in self.layers:
            block.round()

    def collect(self) -> None:
        """Give the gradients of the rounded weights to the weights."""
        for block in self.layers:
            block.collect()

    def forward(self, tokens: torch.Tensor, places: torch.Tensor, views: Sequence[View]) -> torch.Tensor:
        """Return the hidden states of tokens at their places, which all of the views together cover in order."""
        x = functional.embedding(tokens, self.embed)
        angles = places.float()[:, None] * self._frequencies
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.layers:
            x = block(x, cosine, sine, views)
        return _normed(x, self.norm, self.config.epsilon)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token in float32."""
        return functional.linear(hidden, self.out).float()


def save_model(model: Llama, source: Path, path: Path) -> None:
    """Write the model as a GGUF file with the vocabulary and the embedding of its source."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in ("general.architecture", "general.file_type"):
            of = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=of)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    trained = {"output_norm.weight": model.norm.detach().numpy()}
    for number, block in enumerate(model.layers):
        trained |= {f"blk.{number}.{name}": values for name, values in _separate(block, model.config).items()}
    for tensor in reader.tensors:
        values = trained.get(tensor.name)
        if values is None:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        elif values.ndim == 1:
            writer.add_tensor(tensor.name, values)
        else:
            kind = gguf.GGMLQuantizationType.Q4_0
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _separate(block: Block, config: Config) -> dict[str, np.ndarray]:
    """Return the tensors of a block under their names in the file, rows in the order of llama.cpp."""
    found = {f"{name}.weight": block.norms[name].detach().numpy() for name in _NORMS}
    sizes = {"attn_q": config.width, "attn_k": config.width * config.key_value_heads // config.heads}
    for name in block.names:
        values, start = block.weights[name].detach().numpy(), 0
        parts = _JOINED.get(name, (name,))
        for part in parts:
            rows = sizes.get(part, (len(values) - start) // (len(parts) - parts.index(part)))
            held = values[start : start + rows]
            start += rows
            found[f"{part}.weight"] = _turned(held, config, back=True) if part in _ROTATED else held
    return found


def _unpermuted(weights: Weights, name: str, config: Config) -> np.ndarray:
    values = weights.tensor(f"{name}.weight")
    return _turned(values, config, back=False) if name.rpartition(".")[2] in _ROTATED else values


def _turned(values: np.ndarray, config: Config, *, back: bool) -> np.ndarray:
    """Move the rows that are turned together: llama.cpp has them side by side, this model half a head apart."""
    size = config.width // config.heads
    shape = (-1, 2, size // 2, values.shape[1]) if back else (-1, size // 2, 2, values.shape[1])
    return np.ascontiguousarray(values.reshape(shape).swapaxes(1, 2).reshape(values.shape))


def _normed(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    return functional.rms_norm(x.float(), (x.shape[-1],), weight, epsilon).to(x.dtype)


def _rotated(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)
