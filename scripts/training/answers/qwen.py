"""Qwen2 in plain PyTorch with a LoRA on every linear layer, and the adapter that llama.cpp loads."""

import math
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from scripts.training.answers.gguf_weights import Config, Weights

LINEAR = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


class Linear(nn.Module):
    """A frozen linear layer, and the product of two small matrices that is trained."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, rank: int, alpha: float) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)
        after, before = weight.shape
        bound = 1 / math.sqrt(before)
        self.a = nn.Parameter(torch.empty(rank, before, device=weight.device).uniform_(-bound, bound))
        self.b = nn.Parameter(torch.zeros(after, rank, device=weight.device))  # so that it changes nothing at first
        self._scale = alpha / rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply both."""
        added = functional.linear(functional.linear(x, self.a.to(x.dtype)), self.b.to(x.dtype))
        return functional.linear(x, self.weight, self.bias) + self._scale * added


class Norm(nn.Module):
    """Divide by the root of the mean square, in float32."""

    weight: torch.Tensor

    def __init__(self, weight: torch.Tensor, epsilon: float) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self._epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply it to the last dimension."""
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self._epsilon)).to(x.dtype) * self.weight


class Block(nn.Module):
    """Attention and a gated feed-forward layer."""

    attn_q: Linear
    attn_k: Linear
    attn_v: Linear
    attn_output: Linear
    ffn_gate: Linear
    ffn_up: Linear
    ffn_down: Linear

    def __init__(self, tensors: dict[str, torch.Tensor], config: Config, rank: int, alpha: float) -> None:
        super().__init__()
        self._heads, self._key_value_heads = config.heads, config.key_value_heads
        self.attn_norm = Norm(tensors["attn_norm.weight"], config.epsilon)
        self.ffn_norm = Norm(tensors["ffn_norm.weight"], config.epsilon)
        for name in LINEAR:
            setattr(self, name, Linear(tensors[f"{name}.weight"], tensors.get(f"{name}.bias"), rank, alpha))

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        """Return the hidden states after the block, shape (batch, length, width)."""
        batch, length, width = x.shape
        normed = self.attn_norm(x)
        query, key, value = (
            layer(normed).view(batch, length, heads, -1).transpose(1, 2)
            for layer, heads in (
                (self.attn_q, self._heads),
                (self.attn_k, self._key_value_heads),
                (self.attn_v, self._key_value_heads),
            )
        )
        query, key = rotated(query, cosine, sine), rotated(key, cosine, sine)
        shared = self._heads // self._key_value_heads
        key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attn_output(attended.transpose(1, 2).reshape(batch, length, width))
        normed = self.ffn_norm(x)
        added: torch.Tensor = self.ffn_down(functional.silu(self.ffn_gate(normed)) * self.ffn_up(normed))
        return x + added


def rotated(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Turn queries or keys by their positions: each number of the first half with its partner in the second."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class Qwen(nn.Module):
    """The model; with `rows`, token number i is row i of these, and no other token exists."""

    def __init__(
        self,
        weights: Weights,
        *,
        rank: int,
        alpha: float,
        rows: np.ndarray | None = None,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        config = weights.config

        def load(name: str, rows: np.ndarray | None = None) -> torch.Tensor:
            return torch.from_numpy(weights.tensor(name, rows)).to(device=device, dtype=dtype)

        self.embed = load("token_embd.weight", rows)
        self.out = load("output.weight", rows) if "output.weight" in weights else self.embed
        self.norm = Norm(load("output_norm.weight"), config.epsilon)
        blocks = []
        for number in range(config.blocks):
            names = [f"{name}.{kind}" for name in (*LINEAR, "attn_norm", "ffn_norm") for kind in ("weight", "bias")]
            held = {name: load(f"blk.{number}.{name}") for name in names if f"blk.{number}.{name}" in weights}
            blocks.append(Block(held, config, rank, alpha))
        self.blocks = nn.ModuleList(blocks)
        size = config.width // config.heads
        self._frequencies = config.rope_base ** (-torch.arange(0, size, 2, device=device).float() / size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the hidden states, shape (batch, length, width), of tokens, shape (batch, length)."""
        x = functional.embedding(tokens, self.embed)
        angles = torch.arange(tokens.shape[1], device=tokens.device).float()[:, None] * self._frequencies
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cosine, sine)
        return self.norm(x)  # type: ignore[no-any-return]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token in float32."""
        return functional.linear(hidden, self.out).float()


def save_adapter(model: Qwen, path: Path, alpha: float) -> None:
    """Write what was trained, in float16, as the GGUF file that llama.cpp loads."""
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for number, block in enumerate(model.blocks):
        for name in LINEAR:
            layer: Linear = getattr(block, name)
            for part, matrix in (("a", layer.a), ("b", layer.b)):
                values = matrix.detach().cpu().numpy().astype(np.float16)
                writer.add_tensor(f"blk.{number}.{name}.weight.lora_{part}", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def load_adapter(model: Qwen, path: Path, alpha: float) -> None:
    """Begin with an adapter of llama.cpp; raise ValueError if its rank is another."""
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    weight = float(reader.fields["adapter.lora.alpha"].contents()) / alpha
    for number, block in enumerate(model.blocks):
        for name in LINEAR:
            layer: Linear = getattr(block, name)
            for part, matrix, scale in (("a", layer.a, 1.0), ("b", layer.b, weight)):
                found = tensors[f"blk.{number}.{name}.weight.lora_{part}"]
                values = torch.from_numpy(gguf.quants.dequantize(found.data, found.tensor_type).copy())
                if values.shape != matrix.shape:
                    rank, wanted = min(values.shape), min(matrix.shape)
                    raise ValueError(f"{path} has rank {rank}, not {wanted}; give --rank {rank}.")
                matrix.data.copy_(scale * values)
