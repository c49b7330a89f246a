"""The reader in torch: one encoder with three outputs, started from the int8 weights of the shipped one."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

from local_rag.models.embedder import is_half_faster
from local_rag.models.own_models import ONNX_FILE, TOKENIZER_FILE

SHIPPED = Path(__file__).resolve().parents[2] / "models" / "minilm-l6-reader"
LENGTH = 256  # tokens of question and passage together


class TorchReader(torch.nn.Module):
    """Return the relevance and the answers logit of each pair, and a logit for each token."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        self.bert = bert
        width = bert.config.hidden_size
        self.classifier = torch.nn.Linear(width, 1)
        self.answers = torch.nn.Linear(width, 1)
        self.tokens = torch.nn.Linear(width, 1)
        # In the last layer each token has the verdict on the whole passage in it, so the marks learn from all layers.
        self.layers = torch.nn.Parameter(torch.zeros(bert.config.num_hidden_layers + 1))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor) -> Any:
        """Run the encoder once; the pooled output serves both logits of a pair.

        Logits of tokens are summed layer by layer, which is faster than mixing the layers first.
        """
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        out = self.bert(**given, output_hidden_states=True)
        heads = self.layers.softmax(0)[:, None] * self.tokens.weight
        parts = [hidden @ head[:, None] for hidden, head in zip(out.hidden_states, heads, strict=True)]
        tokens = sum(parts[1:], parts[0])[:, :, 0] + self.tokens.bias
        pooled = out.pooler_output
        return self.classifier(pooled)[:, 0], self.answers(pooled)[:, 0], tokens


def dequantized(path: Path) -> dict[str, torch.Tensor]:
    """Return the weights of a reader that export_reader wrote, as float32, by their names in TorchReader."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    maker = {output: number for number, node in enumerate(graph.node) for output in node.output}

    def weight(name: str) -> Any:
        """Return a matrix as it stands in the graph: inputs in rows, except of one in blocks."""
        if f"{name}_Q8" in stored:
            blocks = (stored[f"{name}_Q8"].astype(np.float32) - 128) * stored[f"{name}_scales"][:, :, None]
            return blocks.reshape(len(blocks), -1)
        zero = stored[f"{name}_zero_point"].astype(np.float32)
        return (stored[f"{name}_quantized"] - zero) * stored[f"{name}_scale"]

    found = {name: value for name, value in stored.items() if "LayerNorm" in name}
    for name in stored:
        if name.endswith("_embeddings.weight_quantized"):
            found[name.removesuffix("_quantized")] = weight(name.removesuffix("_quantized"))
    for node in graph.node:
        bias = next((name for name in node.input if name.endswith(".bias")), "")
        if node.op_type != "Add" or not bias or bias.endswith("tokens.bias"):
            continue
        source = graph.node[maker[next(name for name in node.input if name != bias)]]
        while source.op_type in {"Mul", "Cast"}:
            source = graph.node[maker[source.input[0]]]
        matrix = source.input[1].removesuffix("_quantized").removesuffix("_Q8")
        found[bias] = stored[bias]
        found[f"{bias.removesuffix('bias')}weight"] = weight(matrix) if f"{matrix}_Q8" in stored else weight(matrix).T
    # One head for each layer, of its hidden states; they come in the order in which these are made.
    heads = [node for node in graph.node if node.op_type == "MatMulNBits" and len(stored[node.input[1]]) == 1]
    heads.sort(key=lambda node: maker[node.input[0]])
    matrix = np.concatenate([weight(node.input[1].removesuffix("_Q8")) for node in heads])
    prefix = next(name for name in stored if name.endswith("tokens.bias")).removesuffix("tokens.bias")
    found |= {f"{prefix}{name}": value for name, value in _of_heads(matrix).items()}
    found[f"{prefix}tokens.bias"] = stored[f"{prefix}tokens.bias"]
    return {name.removeprefix(prefix): torch.tensor(np.ascontiguousarray(value)) for name, value in found.items()}


def _of_heads(matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Split the heads of the layers, shape (layers, width), into what they share and the share of each layer."""
    shares = matrix @ np.linalg.svd(matrix, full_matrices=False)[2][0]
    shares = shares / shares.sum()
    return {"layers": np.log(shares), "tokens.weight": (shares @ matrix / (shares @ shares))[None]}


def half_precision() -> bool:
    """Return whether this processor computes faster in bfloat16; one that does not takes 15 times as long."""
    return is_half_faster()


def load_start(path: Path = SHIPPED / ONNX_FILE) -> TorchReader:
    """Load a reader from its ONNX file, by default the shipped one."""
    model = _new(fastest_attention())
    model.load_state_dict(dequantized(path))
    return model


def load_trained(path: Path, attention: str | None = None) -> TorchReader:
    """Load a reader from the weights that train_reader wrote."""
    model = _new(attention or fastest_attention())
    model.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    return model


def fastest_attention() -> str:
    """Return which of both kinds of attention is faster on this machine."""
    return "eager" if half_precision() and not torch.cuda.is_available() else "sdpa"


def _new(attention: str) -> TorchReader:
    config = BertConfig(
        hidden_size=384,
        num_hidden_layers=6,
        intermediate_size=1536,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation=attention,
    )
    return TorchReader(BertModel(config))


def load_tokenizer() -> Tokenizer:
    """Load the tokenizer, which cuts passages, never questions."""
    tokenizer = Tokenizer.from_file(str(SHIPPED / TOKENIZER_FILE))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LENGTH, strategy="only_second")
    return tokenizer


def token_labels(offsets: list[tuple[int, int]], sequence: list[int | None], spans: list[list[int]]) -> list[int]:
    """Return for each token 1 or 0, or -1 if it is no part of the passage."""
    return [
        -1 if part != 1 else int(any(start < b and a < end for a, b in spans))
        for (start, end), part in zip(offsets, sequence, strict=True)
    ]
