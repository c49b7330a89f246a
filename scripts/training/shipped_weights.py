"""Make floats again of the int8 weights of the shipped reader of questions, to train it further.

    python -m scripts.training.shipped_weights START OUTPUT.pt

START is a folder with the configuration of all-MiniLM-L6-v2; OUTPUT is what `train_questions --weights` goes on from.
"""

from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from local_rag.models.own_models import ONNX_FILE
from local_rag.understanding.question_reader import SHIPPED
from scripts.training.train_questions import TorchQuestions

_ZERO = 128  # of matrices that are quantized by blocks
_EMBEDDINGS = ("word", "position", "token_type")


def float_weights(path: Path, names: set[str]) -> dict[str, np.ndarray]:
    """Return the weights of an exported model under those names of a TorchQuestions that it has."""
    # Imported here because only training has it.
    import onnx

    graph = onnx.load(path).graph
    held = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    found = {name.removeprefix("model."): value for name, value in held.items() if name.removeprefix("model.") in names}

    def scaled(name: str) -> np.ndarray:
        values, zero = (held[f"{name}_{part}"].astype(np.float32) for part in ("quantized", "zero_point"))
        return np.asarray((values - zero) * held[f"{name}_scale"])

    for kind in _EMBEDDINGS:
        name = f"bert.embeddings.{kind}_embeddings.weight"
        found[name] = scaled(f"model.{name}")
    for node in graph.node:
        name = _name_of(node.name)
        if node.op_type == "MatMulInteger":
            found[name] = scaled(node.input[1].removesuffix("_quantized")).T
        elif node.op_type == "MatMulNBits":
            settings = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            values = held[node.input[1]].astype(np.float32) - _ZERO
            scales = held[node.input[2]].reshape(len(values), -1, 1)
            blocks = values.reshape(len(values), -1, settings["block_size"]) * scales
            found[name] = blocks.reshape(len(values), -1)[:, : settings["K"]]
    return found


def _name_of(node: str) -> str:
    """Return the name of the weight that a node of the graph multiplies by."""
    path = node.strip("/").removeprefix("model/").split("/MatMul")[0].split("/Gemm")[0].replace("/", ".")
    return f"{path}.weight" if path.startswith("bert.") else f"heads.{path}.weight"


@click.command(help=__doc__)
@click.argument("start", type=click.Path(exists=True, path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
def main(start: Path, output: Path) -> None:
    model = TorchQuestions(start)
    state: dict[str, Any] = model.state_dict()
    found = float_weights(SHIPPED / ONNX_FILE, set(state))
    for name, values in found.items():
        # A head is stored the other way round.
        upright = values.T if values.shape != tuple(state[name].shape) else values
        state[name] = torch.from_numpy(np.array(upright, dtype=np.float32))
    model.load_state_dict(state)
    torch.save(state, output)
    click.echo(f"{output}: {len(found)} of {len(state)} weights; the others, of the pooler, are not used")


if __name__ == "__main__":
    main()
