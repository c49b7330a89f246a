"""Make floats again of the int8 weights of the shipped planner, or a mean of several trained ones.

    python -m scripts.training.rows.shipped OUTPUT.pt [TRAINED.pt:0.6 ...]

OUTPUT has the shipped weights, which `train --start` goes on from. With trained weights, each with its share, it has
their mean, in which the shipped ones have the rest. Training further alone forgets what the first data taught.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from local_rag.models.own_models import ONNX_FILE
from local_rag.tables.planner import SHIPPED
from scripts.training.reader_model import load_start
from scripts.training.rows.model import TorchPlanner

_ZERO = 128  # of matrices that are quantized by blocks


def shipped_weights(model: TorchPlanner) -> dict[str, torch.Tensor]:
    """Return the weights of the shipped planner; the pooler, which is not used, is that of the model."""
    import onnx

    graph = onnx.load(SHIPPED / ONNX_FILE).graph
    held = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    state: dict[str, Any] = dict(model.state_dict())

    def put(name: str, values: np.ndarray) -> None:
        upright = values if values.shape == tuple(state[name].shape) else values.T
        state[name] = torch.from_numpy(np.array(upright, dtype=np.float32))

    def scaled(name: str) -> np.ndarray:
        values, zero = (held[f"{name}_{part}"].astype(np.float32) for part in ("quantized", "zero_point"))
        return np.asarray((values - zero) * held[f"{name}_scale"])

    for name in state:
        if name in held:
            put(name, held[name])
        elif f"{name}_quantized" in held:
            put(name, scaled(name))
    for node in graph.node:
        name = _name_of(node.name)
        if node.op_type == "MatMulInteger":
            put(name, scaled(node.input[1].removesuffix("_quantized")).T)
        elif node.op_type == "MatMulNBits":
            settings = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            values = held[node.input[1]].astype(np.float32) - _ZERO
            blocks = values.reshape(len(values), -1, settings["block_size"])
            blocks = blocks * held[node.input[2]].reshape(len(values), -1, 1)
            put(name, blocks.reshape(len(values), -1)[:, : settings["K"]])
    return state


def _name_of(node: str) -> str:
    """Return the name of the weight that a node of the graph multiplies by."""
    path = node.strip("/").split("_MatMul")[0].split("/MatMul")[0].split("/Gemm")[0].replace("/", ".")
    return f"{path.replace('tokens.tokens', 'tokens')}.weight"


def main() -> None:
    output, given = Path(sys.argv[1]), [one.rpartition(":") for one in sys.argv[2:]]
    model = TorchPlanner(load_start().bert)
    shipped, rest = shipped_weights(model), 1 - sum(float(share) for _, _, share in given)
    state = {name: rest * values for name, values in shipped.items()}
    for path, _, share in given:
        for name, values in torch.load(path, weights_only=True).items():
            state[name] = state[name] + float(share) * values
    model.load_state_dict(state)
    torch.save(model.state_dict(), output)


if __name__ == "__main__":
    main()
