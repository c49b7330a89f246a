"""Write a BERT or RoBERTa model as an ONNX graph."""

from typing import Any

import numpy as np

from local_rag.model_records import InstalledModel
from local_rag.models.onnx.graph import Graph


class BertGraph(Graph):
    """The graph of an embedder or cross-encoder of the types bert, roberta and xlm-roberta."""

    unused = ("position_ids", "pooler.", "lm_head.", "cls.")

    def __init__(self, model: InstalledModel) -> None:
        super().__init__(model)
        self._bert = self._config["model_type"] == "bert"
        # Who saved the model decides how the names of its tensors begin.
        bare = any(name.startswith("embeddings.") for name in self._tensors)
        self._prefix = "" if bare else "bert." if self._bert else "roberta."
        self._epsilon = float(self._config.get("layer_norm_eps", 1e-12))

    def wanted(self) -> dict[str, tuple[Any, ...]]:
        """Return the values that settings of the model may have."""
        own = {"hidden_act": ("gelu",), "position_embedding_type": ("absolute", None)}
        return {**super().wanted(), **own, "add_cross_attention": (False, None)}

    def inputs(self) -> list[str]:
        """Return the names of the inputs."""
        return ["input_ids", *(["token_type_ids"] if self._has_types() else [])]

    def transformer(self) -> str:
        """Add the transformer; return the name of the hidden states."""
        hidden = self._embeddings(f"{self._prefix}embeddings.")
        for number in range(int(self._config["num_hidden_layers"])):
            hidden = self._layer(hidden, f"{self._prefix}encoder.layer.{number}.")
        return hidden

    def classifier(self, hidden: str) -> str:
        """Add the classifier of a cross-encoder."""
        first = self.pool(hidden, "cls")
        first = self._add("Tanh", self.dense(first, "bert.pooler.dense" if self._bert else "classifier.dense"))
        scores = self.dense(first, "classifier" if self._bert else "classifier.out_proj")
        if self._width != 1:
            raise self._unknown(f"gives {self._width} scores instead of one")
        return scores

    def _has_types(self) -> bool:
        return self._model.role == "rerank" and self._config["model_type"] == "bert"

    def _embeddings(self, at: str) -> str:
        words = self._weight("words", self._take(f"{at}word_embeddings.weight"))
        positions = self._take(f"{at}position_embeddings.weight")
        if not self._bert:  # its first positions stand for padding
            positions = positions[int(self._config.get("pad_token_id", 1)) + 1 :]
        types = self._take(f"{at}token_type_embeddings.weight")
        if not self._has_types():
            positions = positions + types[0]
        zero = self._weight("at_0", np.array([0], np.int64))
        length = self._length()
        table = self._weight("positions", positions)
        hidden = self._add("Add", self._add("Gather", words, "input_ids"), self._add("Slice", table, zero, length))
        if self._has_types():
            hidden = self._add("Add", hidden, self._add("Gather", self._weight("types", types), "token_type_ids"))
        return self.normalise(hidden, f"{at}LayerNorm", self._epsilon)

    def _layer(self, hidden: str, at: str) -> str:
        """Add one transformer layer; the three projections are one matrix product."""
        own = f"{at}attention.self."
        parts = [
            (self._take(f"{own}{one}.weight"), self._take(f"{own}{one}.bias")) for one in ("query", "key", "value")
        ]
        matrix, bias = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        projected = self.dense(hidden, f"{own}projections", matrix, bias)
        names = self._split(projected, own, 3, len(bias) // 3)
        heads = int(self._config["num_attention_heads"])
        found = self._add("MultiHeadAttention", *names, num_heads=heads, domain="com.microsoft")
        found = self.dense(found, f"{at}attention.output.dense")
        hidden = self.normalise(self._add("Add", found, hidden), f"{at}attention.output.LayerNorm", self._epsilon)
        inner = self._add("Gelu", self.dense(hidden, f"{at}intermediate.dense"))
        found = self.dense(inner, f"{at}output.dense")
        return self.normalise(self._add("Add", found, hidden), f"{at}output.LayerNorm", self._epsilon)
