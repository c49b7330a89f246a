"""Write a BERT or RoBERTa model as an ONNX graph, straight from its safetensors: the same weights give the same bytes.

The graph takes texts without padding, as `OnnxSession` runs them, so it needs no attention mask. It returns the pooled
vector of an embedder (not normalised), or the logit of a cross-encoder. A model built in another way, in whatever
detail, is an UnknownArchitectureError: every tensor must be known, and every setting one that the graph respects.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError
from local_rag.records import InstalledModel

_OPSET = 20
_IR_VERSION = 10
_PROTOBUF_LIMIT = 1_500_000_000
# Tensors without a use here: numbers of positions, and heads for other tasks.
_UNUSED = ("position_ids", "pooler.", "lm_head.", "cls.")
_FAMILIES = {"bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta."}


def write_graph(model: InstalledModel, path: Path) -> None:
    """Write the graph of an embedder or a cross-encoder in float32; large weights go into a file beside it."""
    import onnx

    folder, pooling = _transformer(model)
    graph = _Graph(model, folder, pooling)
    proto = graph.build()
    if graph.bytes > _PROTOBUF_LIMIT:
        data = f"{path.name}.data"
        onnx.save_model(proto, path, save_as_external_data=True, all_tensors_to_one_file=True, location=data)
    else:
        path.write_bytes(proto.SerializeToString(deterministic=True))


def _transformer(model: InstalledModel) -> tuple[Path, str]:
    """Return the folder of the weights and the pooling, `cls` or `mean`; a cross-encoder has none."""
    if model.role == "rerank":
        return model.path, ""
    modules = _read(model.path / "modules.json") if (model.path / "modules.json").is_file() else []
    kinds = [str(one["type"]).rpartition(".")[2] for one in modules]
    if kinds not in ([], ["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise UnknownArchitectureError(f"{model.path} has the modules {', '.join(kinds)}")
    folder = model.path / modules[0]["path"] if modules else model.path
    if model.pooling:
        return folder, str(model.pooling)
    settings = _read(model.path / modules[1]["path"] / "config.json") if modules else {"pooling_mode_mean_tokens": True}
    if settings.get("include_prompt") is False:
        raise UnknownArchitectureError(f"{model.path} does not pool its prompt")
    modes = {
        name.removeprefix("pooling_mode_") for name, on in settings.items() if on is True and "pooling_mode" in name
    }
    modes |= {str(settings["pooling_mode"])} if "pooling_mode" in settings else set()
    if len(modes) != 1 or not (mode := modes.pop()).startswith(("cls", "mean")) or "sqrt" in mode:
        raise UnknownArchitectureError(f"{model.path} has an unknown pooling")
    return folder, mode.partition("_")[0]


class UnknownArchitectureError(ModelError):
    """The model is none that this module can write as a graph."""


class _Graph:
    """Collect the nodes and weights of a graph; names of tensors are those of transformers."""

    def __init__(self, model: InstalledModel, folder: Path, pooling: str) -> None:
        self._model, self._pooling = model, pooling
        self._config = config = _read(folder / "config.json")
        self._family = str(config.get("model_type"))
        wanted = {"hidden_act": ("gelu",), "position_embedding_type": ("absolute", None), "is_decoder": (False, None)}
        wanted |= {"add_cross_attention": (False, None), "rope_scaling": (None,), "quantization_config": (None,)}
        odd = [name for name, values in wanted.items() if config.get(name) not in values]
        if "model_type" not in config:
            raise ModelError(f"{folder / 'config.json'} is damaged: it names no type of model")
        if self._family not in _FAMILIES or odd:
            text = f"{model.path} is of the type {self._family}{' with another ' if odd else ''}{', '.join(odd)}"
            raise UnknownArchitectureError(text)
        self._tensors = dict(_tensors(folder))
        # Who saved the model decides how the names of its tensors begin.
        bare = any(name.startswith("embeddings.") for name in self._tensors)
        self._prefix = "" if bare else _FAMILIES[self._family]
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self.bytes = 0

    def build(self) -> Any:
        """Return the model's protocol buffer."""
        from onnx import TensorProto, helper

        inputs = ["input_ids", *(["token_type_ids"] if self._has_types() else [])]
        hidden = self._embeddings(f"{self._prefix}embeddings.")
        for number in range(int(self._config["num_hidden_layers"])):
            hidden = self._layer(hidden, f"{self._prefix}encoder.layer.{number}.")
        output = self._head(hidden)
        left = [one for one in self._tensors if not any(part in one for part in _UNUSED)]
        if left:
            raise UnknownArchitectureError(f"{self._model.path} has the unknown weights {', '.join(left[:3])}")
        ids = [helper.make_tensor_value_info(one, TensorProto.INT64, ["batch", "length"]) for one in inputs]
        result = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", None])]
        graph = helper.make_graph(self._nodes, "local-rag", ids, result, self._weights)
        versions = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=_IR_VERSION, producer_name="local-rag")

    def _has_types(self) -> bool:
        return self._model.role == "rerank" and self._family == "bert"

    def _take(self, name: str) -> np.ndarray:
        if (tensor := self._tensors.pop(name, None)) is None:
            raise ModelError(f"{self._model.path} lacks the weights {name}")
        return tensor.astype(np.float32)

    def _weight(self, name: str, value: np.ndarray) -> str:
        from onnx import numpy_helper

        self._weights.append(numpy_helper.from_array(np.array(value, order="C"), name))
        self.bytes += value.nbytes
        return name

    def _add(self, kind: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node; return the name of its first output."""
        from onnx import helper

        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, outputs or [name], name=name, **attributes))
        return outputs[0] if outputs else name

    def _embeddings(self, at: str) -> str:
        words = self._weight("words", self._take(f"{at}word_embeddings.weight"))
        positions = self._take(f"{at}position_embeddings.weight")
        if self._family != "bert":  # its first positions stand for padding
            positions = positions[int(self._config.get("pad_token_id", 1)) + 1 :]
        types = self._take(f"{at}token_type_embeddings.weight")
        if not self._has_types():
            positions = positions + types[0]
        zero, one, two = (self._weight(f"at_{n}", np.array([n], np.int64)) for n in range(3))
        shape = self._add("Shape", "input_ids")
        length = self._add("Slice", shape, one, two)
        table = self._weight("positions", positions)
        hidden = self._add("Add", self._add("Gather", words, "input_ids"), self._add("Slice", table, zero, length))
        if self._has_types():
            hidden = self._add("Add", hidden, self._add("Gather", self._weight("types", types), "token_type_ids"))
        return self._normalise(hidden, f"{at}LayerNorm")

    def _layer(self, hidden: str, at: str) -> str:
        """Add one transformer layer; the three projections are one matrix product."""
        own = f"{at}attention.self."
        parts = [
            (self._take(f"{own}{one}.weight"), self._take(f"{own}{one}.bias")) for one in ("query", "key", "value")
        ]
        matrix, bias = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        projected = self._linear(hidden, f"{own}projections", matrix, bias)
        width = len(bias) // 3
        sizes = self._weight(f"{own}sizes", np.array([width] * 3, np.int64))
        names = [f"{own}{one}" for one in ("q", "k", "v")]
        self._add("Split", projected, sizes, outputs=names, axis=-1)
        heads = int(self._config["num_attention_heads"])
        found = self._add("MultiHeadAttention", *names, num_heads=heads, domain="com.microsoft")
        found = self._dense(found, f"{at}attention.output.dense")
        hidden = self._normalise(self._add("Add", found, hidden), f"{at}attention.output.LayerNorm")
        inner = self._add("Gelu", self._dense(hidden, f"{at}intermediate.dense"))
        found = self._dense(inner, f"{at}output.dense")
        return self._normalise(self._add("Add", found, hidden), f"{at}output.LayerNorm")

    def _head(self, hidden: str) -> str:
        """Add the pooling of an embedder, or the classifier of a cross-encoder."""
        if self._pooling == "mean":
            axes = self._weight("axes", np.array([1], np.int64))
            return self._add("ReduceMean", hidden, axes, outputs=["output"], keepdims=0)
        first = self._add("Gather", hidden, self._weight("first", np.array(0, np.int64)), axis=1)
        if self._model.role == "embed":
            return self._add("Identity", first, outputs=["output"])
        dense = f"{_FAMILIES['bert']}pooler.dense" if self._family == "bert" else "classifier.dense"
        last = "classifier" if self._family == "bert" else "classifier.out_proj"
        first = self._add("Tanh", self._dense(first, dense))
        scorer = self._take(f"{last}.weight")
        if len(scorer) != 1:
            raise UnknownArchitectureError(f"{self._model.path} gives {len(scorer)} scores instead of one")
        matrix = self._weight(f"{last}.weight", scorer.T)
        bias = self._weight(f"{last}.bias", self._take(f"{last}.bias"))
        return self._add("Gemm", first, matrix, bias, outputs=["output"])

    def _dense(self, hidden: str, at: str) -> str:
        return self._linear(hidden, at, self._take(f"{at}.weight"), self._take(f"{at}.bias"))

    def _linear(self, hidden: str, at: str, matrix: np.ndarray, bias: np.ndarray) -> str:
        product = self._add("MatMul", hidden, self._weight(f"{at}.weight", matrix.T))
        return self._add("Add", product, self._weight(f"{at}.bias", bias))

    def _normalise(self, hidden: str, at: str) -> str:
        weight = self._weight(f"{at}.weight", self._take(f"{at}.weight"))
        bias = self._weight(f"{at}.bias", self._take(f"{at}.bias"))
        epsilon = float(self._config.get("layer_norm_eps", 1e-12))
        return self._add("LayerNormalization", hidden, weight, bias, axis=-1, epsilon=epsilon)


def _tensors(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Read all safetensors of a folder; bfloat16 is refused, because NumPy lacks it."""
    from safetensors import SafetensorError, safe_open

    with ExitStack() as stack:
        for path in sorted(folder.glob("*.safetensors")):
            try:
                file = stack.enter_context(safe_open(path, framework="np"))
                for name in sorted(file.keys()):
                    yield name, file.get_tensor(name)
            except TypeError as error:
                raise UnknownArchitectureError(f"{path} has weights of another type ({error})") from None
            except SafetensorError as error:
                raise ModelError(f"{path} cannot be read ({error})") from None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is missing or damaged ({error})") from None
