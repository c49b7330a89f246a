"""Write a BERT, RoBERTa or ModernBERT model (bge, gte, granite, Ettin) as an ONNX graph."""

from typing import Any

import numpy as np

from local_rag.model_records import InstalledModel
from local_rag.models.onnx.graph import Graph

_THETA = {"full_attention": 160_000.0, "sliding_attention": 10_000.0}
_OLD_NAMES = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}


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


class ModernBertGraph(Graph):
    """The graph of an embedder or cross-encoder of the type modernbert.

    Most of its layers attend only to tokens nearby, with rotary positions of their own; the others attend to all.
    """

    unused = ("head.", "decoder.", "classifier.")  # for other tasks, where the one that scores has not used them

    def __init__(self, model: InstalledModel) -> None:
        super().__init__(model)
        # Who saved the model decides how the names of its tensors begin.
        bare = any(name.startswith("embeddings.") for name in self._tensors)
        self._prefix = "" if bare else "model."
        self._epsilon = float(self._config.get("norm_eps", 1e-5))
        self._heads = int(self._config["num_attention_heads"])

    def wanted(self) -> dict[str, tuple[Any, ...]]:
        """Return the values that settings of the model may have."""
        own = {"hidden_activation": ("gelu", None), "classifier_activation": ("gelu", None)}
        return {**super().wanted(), **own}

    def transformer(self) -> str:
        """Add the transformer; return the name of the hidden states."""
        at, kinds = f"{self._prefix}embeddings.", self._kinds()
        words = self._weight("words", self._take(f"{at}tok_embeddings.weight"))
        hidden = self.normalise(self._add("Gather", words, "input_ids"), f"{at}norm", self._epsilon)
        start = self._weight("start", np.array([0], np.int64))
        rotations = {kind: (start, *self._rotation(kind)) for kind in sorted(set(kinds))}
        near = self._near() if "sliding_attention" in kinds else ""
        for number, kind in enumerate(kinds):
            nearby = near if kind == "sliding_attention" else ""
            hidden = self._layer(hidden, f"{self._prefix}layers.{number}.", rotations[kind], nearby, first=number == 0)
        return self.normalise(hidden, f"{self._prefix}final_norm", self._epsilon)

    def classifier(self, hidden: str) -> str:
        """Add the classifier of a cross-encoder."""
        pooled = self.pool(hidden, str(self._config.get("classifier_pooling", "cls")))
        pooled = self._add("Gelu", self.dense(pooled, "head.dense"))
        scores = self.dense(self.normalise(pooled, "head.norm", self._epsilon), "classifier")
        if self._width != 1:
            raise self._unknown(f"gives {self._width} scores instead of one")
        return scores

    def _kinds(self) -> list[str]:
        """Return for each layer whether it attends to all tokens or to those nearby."""
        if kinds := self._config.get("layer_types"):
            if not set(kinds) <= set(_THETA):
                raise self._unknown(f"has the layers {', '.join(sorted(set(kinds)))}")
            return list(map(str, kinds))
        every = int(self._config.get("global_attn_every_n_layers", 3))
        layers = range(int(self._config["num_hidden_layers"]))
        return ["sliding_attention" if number % every else "full_attention" for number in layers]

    def _rotation(self, kind: str) -> tuple[str, str]:
        """Add the cosines and sines of the positions of a kind of layers."""
        settings = (self._config.get("rope_parameters") or {}).get(kind) or {}
        if settings.get("rope_type", "default") != "default":
            raise self._unknown(f"rotates positions as {settings['rope_type']}")
        theta = settings.get("rope_theta") or self._config.get(_OLD_NAMES[kind]) or _THETA[kind]
        size = int(self._config["hidden_size"]) // self._heads
        speeds = 1 / float(theta) ** (np.arange(0, size, 2) / size)
        angles = np.arange(self._model.context_length)[:, None] * speeds
        cosines, sines = (table.astype(np.float32) for table in (np.cos(angles), np.sin(angles)))
        return self._weight(f"{kind}.cos", cosines), self._weight(f"{kind}.sin", sines)

    def _near(self) -> str:
        """Add what keeps tokens from attending to those far away, shape (1, 1, length, length)."""
        half = int(self._config.get("local_attention", 128)) // 2
        numbers = np.arange(self._model.context_length)
        zero = self._weight("at_0", np.array([0], np.int64))
        places = self._add("Slice", self._weight("places", numbers), zero, self._length())
        columns, rows = (
            self._add("Unsqueeze", places, self._weight(f"axes_{axis}", np.array([0, 1, axis], np.int64)))
            for axis in (2, 3)
        )
        distance = self._add("Abs", self._add("Sub", rows, columns))
        far = self._add("Greater", distance, self._weight("half", np.array(half, np.int64)))
        values = (self._weight(name, np.array(value, np.float32)) for name, value in (("never", -1e9), ("freely", 0.0)))
        return self._add("Where", far, *values)

    def _layer(self, hidden: str, at: str, rotation: tuple[str, ...], near: str, *, first: bool) -> str:
        """Add one transformer layer, which normalises what it reads; the embeddings are normalised already."""
        width = int(self._config["hidden_size"])
        read = hidden if first else self.normalise(hidden, f"{at}attn_norm", self._epsilon)
        query, key, value = self._split(self.dense(read, f"{at}attn.Wqkv"), f"{at}attn.", 3, width)
        query, key = (self._add("RotaryEmbedding", one, *rotation, domain="com.microsoft") for one in (query, key))
        bias = ["", "", near] if near else []
        heads = self._heads
        found = self._add("MultiHeadAttention", query, key, value, *bias, num_heads=heads, domain="com.microsoft")
        hidden = self._add("Add", hidden, self.dense(found, f"{at}attn.Wo"))
        read = self.dense(self.normalise(hidden, f"{at}mlp_norm", self._epsilon), f"{at}mlp.Wi")
        inner, gate = self._split(read, f"{at}mlp.", 2, self._width // 2)
        found = self.dense(self._add("Mul", self._add("Gelu", inner), gate), f"{at}mlp.Wo")
        return self._add("Add", hidden, found)
