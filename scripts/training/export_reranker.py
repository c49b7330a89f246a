"""Export the trained reranker to int8 ONNX, and check that its rankings stay the same.

Prints how well both rank the held-out groups, and how often they agree on the first, then writes model.onnx and
tokenizer.json, which is all that the program needs.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

from local_rag.models.onnx import ONNX_FILE
from local_rag.models.onnx_copy import quantize_but_narrowing
from local_rag.models.registry import default_models_directory
from local_rag.models.reranker import OnnxReranker
from local_rag.records import InstalledModel

LENGTH = 256


class Logits(torch.nn.Module):
    """Return the bare logits, shape (batch, 1)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor) -> Any:
        """Run the cross-encoder."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits


def export(module: torch.nn.Module, path: Path, outputs: Sequence[str] = ("logits",)) -> None:
    """Write a float32 ONNX model that takes any batch and any length."""
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tuple(torch.ones((2, 24), dtype=torch.long) for _ in names)
    batch, length = torch.export.Dim("batch", min=1, max=4096), torch.export.Dim("length", min=2, max=512)
    torch.onnx.export(
        module.eval(),
        example,
        path,
        input_names=names,
        output_names=list(outputs),
        dynamic_shapes=tuple({0: batch, 1: length} for _ in names),
        dynamo=True,
        external_data=False,
    )


def quantize(full: Path, quantized: Path) -> None:
    """Write an int8 model: weights with one scale per column, or per 128 inputs if the inputs have outliers.

    The latter are the second matrices of the feed-forward layers, whose inputs also get one scale for 128 values each
    while it runs, where all others get one for all. That halves the error of the scores and costs a tenth of the speed.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when onnxruntime is imported
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantize_but_narrowing(full, quantized)
    blockwise = MatMulNBitsQuantizer(onnx.load(quantized), bits=8, block_size=128, is_symmetric=True, accuracy_level=4)
    blockwise.process()
    forget_traces(blockwise.model.model)
    onnx.save(blockwise.model.model, quantized)


def forget_traces(message: Any) -> None:
    """Remove the source locations that the exporter wrote into every node: they contain paths of this machine."""
    for field, value in list(message.ListFields()):
        if field.name in {"doc_string", "metadata_props"}:
            message.ClearField(field.name)
        elif field.message_type is not None:
            for child in [value] if hasattr(value, "ListFields") else value:
                forget_traces(child)


def agreement(folders: list[Path], groups: list[dict[str, Any]]) -> tuple[list[float], float]:
    """Return the mean reciprocal rank of each folder's model, and how often both rank the same passage first."""
    ranks: list[list[float]] = [[], []]
    same = 0
    models = [
        OnnxReranker(
            InstalledModel(name="trained", role="rerank", path=folder, identity="", context_length=LENGTH),
            folder / ONNX_FILE,
        )
        for folder in folders
    ]
    for group in groups:
        texts = ["\n".join(filter(None, passage)) for passage in (group["positive"], *group["negatives"])]
        scores = [np.array(model.score(group["question"], texts)) for model in models]
        same += int(scores[0].argmax() == scores[1].argmax())
        for found, score in zip(ranks, scores, strict=True):
            found.append(1 / (1 + int((score[1:] >= score[0]).sum())))
    return [sum(found) / len(found) for found in ranks], same / len(groups)


@click.command()
@click.argument("trained", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--groups", "groups_path", type=click.Path(path_type=Path), required=True)
@click.option("--output", type=click.Path(path_type=Path), required=True, help="Folder of the shipped model.")
def main(trained: Path, groups_path: Path, output: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(trained, attn_implementation="eager")
    groups = [json.loads(line) for line in groups_path.read_text(encoding="utf-8").splitlines()]
    held_out = [group for group in groups if group["held_out"]][::8]
    with tempfile.TemporaryDirectory() as temporary:
        full, small = Path(temporary) / "full", Path(temporary) / "int8"
        for folder in (full, small):
            folder.mkdir()
            shutil.copy(default_models_directory() / "all-minilm-l6-v2" / "tokenizer.json", folder)
        export(Logits(model), full / "model.onnx")
        quantize(full / "model.onnx", small / "model.onnx")
        quality, same = agreement([full, small], held_out)
        output.mkdir(parents=True, exist_ok=True)
        for name in ("model.onnx", "tokenizer.json"):
            shutil.copy(small / name, output / name)
    click.echo(
        f"{len(held_out)} held-out groups: MRR {quality[0]:.4f} in float32, {quality[1]:.4f} in int8,"
        f" the same first passage in {100 * same:.1f} %"
    )
    click.echo(f"{output / 'model.onnx'}: {(output / 'model.onnx').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
