"""Export a trained reader to ONNX with three outputs, in float32 and in int8, and compare the two.

Prints for some held-out examples how often both rank the same passage first, and the mean difference of each output.
"""

import shutil
from pathlib import Path

import click
import numpy as np
import torch

from local_rag.models.registry import default_models_directory
from scripts.training.compare_readers import Model
from scripts.training.export_reranker import quantize
from scripts.training.reader_model import TorchReader, load_start
from scripts.training.train_reader import Example, read_examples

EXAMPLES = 60
OUTPUTS = ("relevance", "answers", "tokens")


def export(model: TorchReader, path: Path) -> None:
    """Write a float32 ONNX model that takes any batch and any length."""
    names = ["input_ids", "attention_mask", "token_type_ids"]
    batch, length = torch.export.Dim("batch", min=1, max=4096), torch.export.Dim("length", min=2, max=512)
    torch.onnx.export(
        model.eval(),
        tuple(torch.ones((2, 24), dtype=torch.long) for _ in names),
        path,
        input_names=names,
        output_names=list(OUTPUTS),
        dynamic_shapes=tuple({0: batch, 1: length} for _ in names),
        dynamo=True,
        external_data=False,
    )


def compared(full: Model, small: Model, examples: list[Example]) -> str:
    """Say how much the outputs of both models differ."""
    same, differences = 0, {name: list[float]() for name in OUTPUTS}
    for example in examples:
        firsts = []
        for model in (full, small):
            found = [model.run(example["question"], one["text"])[1] for one in example["passages"]]
            firsts.append(found)
        for one, other in zip(*firsts, strict=True):
            for name, value, approximate in zip(OUTPUTS, one, other, strict=True):
                differences[name].append(float(np.abs(value - approximate).mean()))
        ranked = [max(range(len(found)), key=lambda i: float(found[i][0])) for found in firsts]
        same += ranked[0] == ranked[1]
    means = ", ".join(f"{name} {np.mean(values):.3f}" for name, values in differences.items())
    return f"the same first passage for {same} of {len(examples)}; mean difference of logits: {means}"


@click.command()
@click.argument("trained", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--examples", "examples_path", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--output", type=click.Path(path_type=Path), required=True, help="Gets int8/ and float32/.")
def main(trained: Path, examples_path: Path, output: Path) -> None:
    model = load_start()
    model.load_state_dict(torch.load(trained, weights_only=True))
    full, small = output / "float32", output / "int8"
    for folder in (full, small):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(default_models_directory() / "all-minilm-l6-v2" / "tokenizer.json", folder)
    export(model, full / "model.onnx")
    quantize(full / "model.onnx", small / "model.onnx")
    _, held_out = read_examples(examples_path)
    ranked = [example for example in held_out if len(example["passages"]) > 1][:EXAMPLES]
    click.echo(compared(Model(full / "model.onnx"), Model(small / "model.onnx"), ranked))
    click.echo(f"{small / 'model.onnx'}: {(small / 'model.onnx').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
