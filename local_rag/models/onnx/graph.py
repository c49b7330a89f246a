"""Write a transformer as an ONNX graph, straight from its safetensors: the same weights give the same bytes.

The graph takes texts without padding, as `OnnxSession` runs them, so it needs no attention mask. It returns the pooled
vector of an embedder (not normalised), or the logit of a cross-encoder. A model built in another way, in whatever
detail, is an UnknownArchitectureError: every tensor must be known, and every setting one that the graph respects.

Here is what all architectures share: weights, nodes, and the modules that follow the transformer. `architectures.py`
has the transformers.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError
from local_rag.model_records import InstalledModel

_OPSET = 20
_IR_VERSION = 10
_PROTOBUF_LIMIT = 1_500_000_000
_AFTER_POOLING = {"Dense", "LayerNorm"}
_ACTIVATIONS = {"Identity": None, "Tanh": "Tanh", "GELU": "Gelu"}  # of PyTorch, with their operators


class UnknownArchitectureError(ModelError):
    """The model is none that can be written as a graph."""


class Graph(ABC):
    """Collect the nodes and weights of a graph; names of tensors are those of transformers."""

    unused: Sequence[str] = ()  # parts of the names of tensors without a use here, such as heads for other tasks

    def __init__(self, model: InstalledModel) -> None:
        self._model = model
        self._modules = _modules(model)
        folder = self._modules[0][1]
        self._config = read_config(folder)
        if odd := [name for name, values in self.wanted().items() if self._config.get(name) not in values]:
            raise self._unknown(f"has another {', '.join(odd)}")
        self._tensors = dict(_tensors(folder))
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._bytes = self._width = 0

    def wanted(self) -> dict[str, tuple[Any, ...]]:
        """Return the values that settings of the model may have."""
        return {"is_decoder": (False, None), "rope_scaling": (None,), "quantization_config": (None,)}

    def write(self, path: Path) -> None:
        """Write the graph in float32; large weights go into a file beside it."""
        import onnx

        proto = self._build()
        if self._bytes > _PROTOBUF_LIMIT:
            data = f"{path.name}.data"
            onnx.save_model(proto, path, save_as_external_data=True, all_tensors_to_one_file=True, location=data)
        else:
            path.write_bytes(proto.SerializeToString(deterministic=True))

    def inputs(self) -> list[str]:
        """Return the names of the inputs."""
        return ["input_ids"]

    @abstractmethod
    def transformer(self) -> str:
        """Add the transformer; return the name of the hidden states, one for each token."""

    @abstractmethod
    def classifier(self, hidden: str) -> str:
        """Add the head of a cross-encoder that is one with its transformer."""

    def _build(self) -> Any:
        from onnx import TensorProto, helper

        hidden = self.transformer()
        whole = self._model.role == "rerank" and len(self._modules) == 1
        output = self._add("Identity", self.classifier(hidden) if whole else self._head(hidden), outputs=["output"])
        left = [one for one in self._tensors if not any(part in one for part in self.unused)]
        if left:
            raise self._unknown(f"has the unknown weights {', '.join(left[:3])}")
        ids = [helper.make_tensor_value_info(one, TensorProto.INT64, ["batch", "length"]) for one in self.inputs()]
        result = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", None])]
        graph = helper.make_graph(self._nodes, "local-rag", ids, result, self._weights)
        versions = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=_IR_VERSION, producer_name="local-rag")

    def _head(self, hidden: str) -> str:
        """Add the pooling and what follows it: an embedder may have more modules, and a cross-encoder scores there."""
        pooled = self.pool(hidden, self._model.pooling or _pooling(self._model, self._modules[1:]))
        for number, (kind, folder) in enumerate(self._modules[2:]):
            self._tensors |= {f"{number}.{name}": tensor for name, tensor in _tensors(folder)}
            if kind == "LayerNorm":
                pooled = self.normalise(pooled, f"{number}.norm", 1e-5)
                continue
            config = read_config(folder, "config.json")
            activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
            if activation not in _ACTIVATIONS or config.get("use_residual"):
                raise self._unknown(f"has an unknown layer in {folder.name}")
            pooled = self.dense(pooled, f"{number}.linear")
            pooled = self._add(operator, pooled) if (operator := _ACTIVATIONS[activation]) else pooled
        if self._model.role == "rerank" and self._width != 1:
            raise self._unknown(f"gives {self._width} scores instead of one")
        return pooled

    def pool(self, hidden: str, pooling: str) -> str:
        """Add a pooling; return the name of the one vector of a text."""
        if pooling == "mean":
            return self._add("ReduceMean", hidden, self._weight("axes", np.array([1], np.int64)), keepdims=0)
        if pooling == "cls":
            return self._add("Gather", hidden, self._weight("first", np.array(0, np.int64)), axis=1)
        raise self._unknown(f"has the pooling {pooling}")

    def dense(self, hidden: str, at: str, matrix: np.ndarray | None = None, bias: np.ndarray | None = None) -> str:
        """Add a linear layer, of the weights with this name or others; the model may have no bias for it."""
        if matrix is None:
            matrix = self._take(f"{at}.weight")
            bias = self._take(f"{at}.bias") if f"{at}.bias" in self._tensors else None
        self._width = len(matrix)
        product = self._add("MatMul", hidden, self._weight(f"{at}.weight", matrix.T))
        return product if bias is None else self._add("Add", product, self._weight(f"{at}.bias", bias))

    def normalise(self, hidden: str, at: str, epsilon: float) -> str:
        """Add a layer normalisation, with or without a bias."""
        names = [f"{at}.weight", *([f"{at}.bias"] if f"{at}.bias" in self._tensors else [])]
        weights = [self._weight(name, self._take(name)) for name in names]
        return self._add("LayerNormalization", hidden, *weights, axis=-1, epsilon=epsilon)

    def _split(self, projected: str, at: str, count: int, width: int) -> list[str]:
        """Add a split of the last dimension into equal parts."""
        sizes = self._weight(f"{at}sizes", np.array([width] * count, np.int64))
        names = [f"{at}part_{number}" for number in range(count)]
        self._add("Split", projected, sizes, outputs=names, axis=-1)
        return names

    def _length(self) -> str:
        """Add the number of tokens, shape (1,)."""
        one, two = (self._weight(f"at_{n}", np.array([n], np.int64)) for n in (1, 2))
        return self._add("Slice", self._add("Shape", "input_ids"), one, two)

    def _take(self, name: str) -> np.ndarray:
        if (tensor := self._tensors.pop(name, None)) is None:
            raise ModelError(f"{self._model.path} lacks the weights {name}")
        return tensor.astype(np.float32)

    def _weight(self, name: str, value: np.ndarray) -> str:
        from onnx import numpy_helper

        self._weights.append(numpy_helper.from_array(np.array(value, order="C"), name))
        self._bytes += value.nbytes
        return name

    def _add(self, kind: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node; return the name of its first output."""
        from onnx import helper

        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, outputs or [name], name=name, **attributes))
        return outputs[0] if outputs else name

    def _unknown(self, what: str) -> UnknownArchitectureError:
        return UnknownArchitectureError(f"{self._model.path}, of the type {self._config.get('model_type')}, {what}")


def _modules(model: InstalledModel) -> list[tuple[str, Path]]:
    """Return the kinds and folders of the modules of a model: the transformer, and what follows it but norms."""
    if not (model.path / "modules.json").is_file():
        return [("Transformer", model.path)]
    listed = read_config(model.path, "modules.json")
    modules = [(str(one["type"]).rpartition(".")[2], model.path / one["path"]) for one in listed]
    if modules[-1][0] == "Normalize":  # vectors are normalised anyway
        modules.pop()
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or not _AFTER_POOLING.issuperset(kinds[2:]):
        raise UnknownArchitectureError(f"{model.path} has the modules {', '.join(kinds)}")
    return modules


def _pooling(model: InstalledModel, modules: Sequence[tuple[str, Path]]) -> str:
    """Return how a model pools: `cls` or `mean`."""
    settings = read_config(modules[0][1]) if modules else {"pooling_mode_mean_tokens": True}
    if settings.get("include_prompt") is False:
        raise UnknownArchitectureError(f"{model.path} does not pool its prompt")
    modes = {
        name.removeprefix("pooling_mode_") for name, on in settings.items() if on is True and "pooling_mode" in name
    }
    modes |= {str(settings["pooling_mode"])} if "pooling_mode" in settings else set()
    if len(modes) != 1 or not (mode := modes.pop()).startswith(("cls", "mean")) or "sqrt" in mode:
        raise UnknownArchitectureError(f"{model.path} has an unknown pooling")
    return mode.partition("_")[0]


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


def read_config(folder: Path, name: str = "config.json") -> Any:
    """Read a file of settings of a model; raise ModelError if it is missing or damaged."""
    try:
        return json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder / name} is missing or damaged ({error})") from None
