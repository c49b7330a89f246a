"""Make floats again of the int8 weights of the shipped reader of questions, to train it further.

    python -m scripts.training.shipped_weights START OUTPUT.pt

START is a folder with the configuration of all-MiniLM-L6-v2; OUTPUT is what `train_questions --weights` goes on from.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from local_rag.models.own_models import ONNX_FILE
from local_rag.understanding.question_reader import SHIPPED
from scripts.training.train_questions import TorchQuestions

_ZERO = 128  # of matrices that are quantized by blocks


def float_weights(
    path: Path, shapes: dict[str, tuple[int, ...]], name_of: Callable[[str], str], prefix: str = ""
) -> dict[str, torch.Tensor]:
    """Return the weights of an exported model under those names that a torch model has, in its shapes.

    `name_of` returns the name of the weight that a node of the graph multiplies by, by the path of the node. Names of
    the graph begin with `prefix`.
    """
    # Imported here because only training has it.
    import onnx

    graph = onnx.load(path).graph
    held = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    found = dict[str, torch.Tensor]()

    def put(name: str, values: np.ndarray) -> None:
        upright = values if values.shape == shapes[name] else values.T  # a head is stored the other way round
        found[name] = torch.from_numpy(np.array(upright, dtype=np.float32))

    def scaled(name: str) -> np.ndarray:
        values, zero = (held[f"{name}_{part}"].astype(np.float32) for part in ("quantized", "zero_point"))
        return np.asarray((values - zero) * held[f"{name}_scale"])

    for name in shapes:
        if (plain := f"{prefix}{name}") in held:
            put(name, held[plain])
        elif f"{plain}_quantized" in held:
            put(name, scaled(plain))
    for node in graph.node:
        name = name_of(node.name.strip("/").split("_MatMul")[0].split("/MatMul")[0].split("/Gemm")[0].replace("/", "."))
        if node.op_type == "MatMulInteger":
            put(name, scaled(node.input[1].removesuffix("_quantized")).T)
        elif node.op_type == "MatMulNBits":
            settings = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            values = held[node.input[1]].astype(np.float32) - _ZERO
            scales = held[node.input[2]].reshape(len(values), -1, 1)
            blocks = values.reshape(len(values), -1, settings["block_size"]) * scales
            put(name, blocks.reshape(len(values), -1)[:, : settings["K"]])
    return found


def shapes_of(model: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a model."""
    return {name: tuple(values.shape) for name, values in model.state_dict().items()}


def _name_of(path: str) -> str:
    path = path.removeprefix("model.")
    return f"{path}.weight" if path.startswith("bert.") else f"heads.{path}.weight"


@click.command(help=__doc__)
@click.argument("start", type=click.Path(exists=True, path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
def main(start: Path, output: Path) -> None:
    model = TorchQuestions(start)
    state: dict[str, Any] = model.state_dict()
    found = float_weights(SHIPPED / ONNX_FILE, shapes_of(model), _name_of, prefix="model.")
    model.load_state_dict(state | found)
    torch.save(model.state_dict(), output)
    click.echo(f"{output}: {len(found)} of {len(state)} weights; the others, of the pooler, are not used")


if __name__ == "__main__":
    main()
