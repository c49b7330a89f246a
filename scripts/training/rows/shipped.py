"""Make floats again of the int8 weights of the shipped planner, or a mean of several trained ones.

    python -m scripts.training.rows.shipped OUTPUT.pt [TRAINED.pt:0.6 ...]

OUTPUT has the shipped weights, which `train --start` goes on from. With trained weights, each with its share, it has
their mean, in which the shipped ones have the rest. Training further alone forgets what the first data taught.
"""

import sys
from pathlib import Path

import torch

from local_rag.models.own_models import ONNX_FILE
from local_rag.tables.planner import SHIPPED
from scripts.training.reader_model import load_start
from scripts.training.rows.model import TorchPlanner
from scripts.training.shipped_weights import float_weights, shapes_of


def _name_of(path: str) -> str:
    return f"{path.replace('tokens.tokens', 'tokens')}.weight"


def main() -> None:
    output, given = Path(sys.argv[1]), [one.rpartition(":") for one in sys.argv[2:]]
    model = TorchPlanner(load_start().bert)
    shipped = model.state_dict() | float_weights(SHIPPED / ONNX_FILE, shapes_of(model), _name_of)
    rest = 1 - sum(float(share) for _, _, share in given)
    state = {name: rest * values for name, values in shipped.items()}
    for path, _, share in given:
        for name, values in torch.load(path, weights_only=True).items():
            state[name] = state[name] + float(share) * values
    model.load_state_dict(state)
    torch.save(model.state_dict(), output)


if __name__ == "__main__":
    main()
