"""Export a trained reader to int8 ONNX with three outputs: relevance, answers, and a logit for each token.

`compare_readers` measures what the quantization changes: give it both files. The export of PyTorch needs the
package onnxscript, which no extra of this project has: `pip install onnxscript`.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import click
import torch

from local_rag.models.own_models import ONNX_FILE, TOKENIZER_FILE
from scripts.training.reader_model import SHIPPED, TorchReader, load_trained

OUTPUTS = ("relevance", "answers", "tokens")


class Outputs(torch.nn.Module):
    """Return relevance and answers, each of shape (batch, 1), and the logits of tokens, shape (batch, length)."""

    def __init__(self, reader: TorchReader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor) -> Any:
        """Run the reader."""
        relevance, answers, tokens = self.reader(input_ids, attention_mask, token_type_ids)
        return relevance[:, None], answers[:, None], tokens


def export(module: Outputs, path: Path) -> None:
    """Write a float32 ONNX model that takes any batch and any length."""
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tuple(torch.ones((2, 24), dtype=torch.long) for _ in names)
    batch, length = torch.export.Dim("batch", min=1, max=4096), torch.export.Dim("length", min=2, max=512)
    torch.onnx.export(
        module.eval(),
        example,
        path,
        input_names=names,
        output_names=list(OUTPUTS),
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


def quantize_but_narrowing(full: Path, path: Path) -> None:
    """Quantize matrices to int8 with one scale per column, except those with more inputs than outputs."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(full)
    del model.graph.value_info[:]  # the exporter's shapes contradict the quantizer's
    shapes = {weight.name: tuple(weight.dims) for weight in model.graph.initializer}
    narrowing = [
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul" and len(shape := shapes.get(node.input[1], ())) == 2 and shape[0] > shape[1]
    ]
    # Shapes and types behind an operator of onnxruntime's own are unknown to the quantizer.
    types = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(
        model, path, per_channel=True, weight_type=QuantType.QInt8, nodes_to_exclude=narrowing, extra_options=types
    )


def forget_traces(message: Any) -> None:
    """Remove the source locations that the exporter wrote into every node: they contain paths of this machine."""
    for field, value in list(message.ListFields()):
        if field.name in {"doc_string", "metadata_props"}:
            message.ClearField(field.name)
        elif field.message_type is not None:
            for child in [value] if hasattr(value, "ListFields") else value:
                forget_traces(child)


@click.command(help=__doc__)
@click.argument("trained", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), required=True, help="Folder of the model and of full/.")
def main(trained: Path, output: Path) -> None:
    full = output / "full"
    full.mkdir(parents=True, exist_ok=True)
    for folder in (full, output):
        shutil.copy(SHIPPED / TOKENIZER_FILE, folder)
    export(Outputs(load_trained(trained, "eager")), full / ONNX_FILE)
    quantize(full / ONNX_FILE, output / ONNX_FILE)
    click.echo(f"{output / ONNX_FILE}: {(output / ONNX_FILE).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
