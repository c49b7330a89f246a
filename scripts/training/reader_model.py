"""The reader in torch: one encoder, three outputs, started from the weights of the reranker before it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

from local_rag.models.onnx import ONNX_FILE
from local_rag.models.registry import default_models_directory
from local_rag.models.reranker import OnnxReranker
from local_rag.records import InstalledModel

LENGTH = 192  # tokens of question and passage together
_RERANKER = "minilm-l6-reranker"  # where training starts, and the teacher; no profile uses it any more
_EMBEDDER = "all-minilm-l6-v2"  # its embeddings are those of the reranker, which was trained with them frozen


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
    """Return the weights and biases of the linear layers, and the layer norms, of the int8 reranker."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    maker = {output: node for node in graph.node for output in node.output}
    found = {name: value for name, value in stored.items() if "LayerNorm" in name}
    for node in graph.node:
        biases = [name for name in node.input if name.endswith(".bias")]
        if node.op_type != "Add" or not biases:
            continue
        source = maker[next(name for name in node.input if name not in biases)]
        while source.op_type in {"Mul", "Cast"}:
            source = maker[source.input[0]]
        name = source.input[1].removesuffix("_quantized").removesuffix("_Q8")
        if source.op_type == "MatMulNBits":
            blocks = (stored[f"{name}_Q8"].astype(np.float32) - 128) * stored[f"{name}_scales"][:, :, None]
            weight = blocks.reshape(len(blocks), -1)
        else:
            weight = (stored[f"{name}_quantized"].astype(np.float32) * stored[f"{name}_scale"]).T
        found[biases[0]] = stored[biases[0]]
        found[biases[0].removesuffix("bias") + "weight"] = weight
    return {name.removeprefix("model."): torch.tensor(value) for name, value in found.items()}


def half_precision() -> bool:
    """Return whether this CPU computes in bfloat16; one that does not takes 15 times as long to emulate it."""
    return torch.cpu._is_avx512_bf16_supported()


def load_start(attention: str = "eager" if half_precision() else "sdpa") -> TorchReader:
    """Load the reader with the weights of the reranker and two new outputs.

    Of both kinds of attention the faster one on this CPU is the default.
    """
    torch.manual_seed(0)
    bert = AutoModel.from_pretrained(
        default_models_directory() / _EMBEDDER,
        attn_implementation=attention,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = TorchReader(bert)
    weights = dequantized(default_models_directory() / _RERANKER / ONNX_FILE)
    _, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected, unexpected
    with torch.no_grad():
        for head in (model.answers, model.tokens):
            head.weight.mul_(0.1)
            head.bias.fill_(-2.0)  # most passages and tokens answer nothing
    return model


def load_teacher() -> OnnxReranker:
    """Load the reranker that teaches the order of passages and of sentences."""
    folder = default_models_directory() / _RERANKER
    model = InstalledModel(name=_RERANKER, role="rerank", path=folder, identity="", context_length=256)
    return OnnxReranker(model, folder / ONNX_FILE)


def load_tokenizer() -> Tokenizer:
    """Load the tokenizer, which cuts passages, never questions."""
    tokenizer = Tokenizer.from_file(str(default_models_directory() / _EMBEDDER / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LENGTH, strategy="only_second")
    return tokenizer


def token_labels(offsets: list[tuple[int, int]], sequence: list[int | None], spans: list[list[int]]) -> list[int]:
    """Return for each token 1 or 0, or -1 if it is no part of the passage."""
    return [
        -1 if part != 1 else int(any(start < b and a < end for a, b in spans))
        for (start, end), part in zip(offsets, sequence, strict=True)
    ]
