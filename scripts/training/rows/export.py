"""Export a trained planner to int8 ONNX.

python -m scripts.training.rows.export TRAINED OUTPUT
"""

import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from local_rag.models.own_models import ONNX_FILE
from scripts.training.export_reader import quantize
from scripts.training.reader_model import load_start
from scripts.training.rows.model import TorchPlanner

INPUTS, OUTPUTS = ("input_ids", "attention_mask", "token_type_ids"), ("whole", "tokens")


def main() -> None:
    trained, output = Path(sys.argv[1]), Path(sys.argv[2])
    model = TorchPlanner(load_start().bert)
    model.load_state_dict(torch.load(trained, weights_only=True))
    write_onnx(model, output / ONNX_FILE, OUTPUTS, of_tokens=["tokens"])
    print((output / ONNX_FILE).stat().st_size)


def write_onnx(model: torch.nn.Module, path: Path, outputs: Sequence[str], of_tokens: Sequence[str] = ()) -> None:
    """Write a model in int8; of its outputs, those `of_tokens` are as long as its inputs."""
    example = tuple(torch.ones((1, 24), dtype=torch.long) for _ in INPUTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.eval(),
            example,
            f"{folder}/full.onnx",
            input_names=list(INPUTS),
            output_names=list(outputs),
            dynamic_axes={name: {1: "length"} for name in (*INPUTS, *of_tokens)},
            dynamo=False,
            opset_version=20,
        )
        quantize(Path(folder) / "full.onnx", path)


if __name__ == "__main__":
    main()
