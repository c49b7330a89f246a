"""Export a trained reader to int8 ONNX with three outputs: relevance, answers, and a logit for each token.

`compare_readers` measures what the quantization changes: give it both files.
"""

import shutil
from pathlib import Path
from typing import Any

import click
import torch

from local_rag.models.onnx import ONNX_FILE
from local_rag.models.registry import TOKENIZER_FILE, default_models_directory
from scripts.training.export_reranker import export, quantize
from scripts.training.reader_model import TorchReader, load_start

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


@click.command()
@click.argument("trained", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), required=True, help="Folder of the model and of full/.")
def main(trained: Path, output: Path) -> None:
    reader = load_start("eager")
    reader.load_state_dict(torch.load(trained, weights_only=True))
    full = output / "full"
    full.mkdir(parents=True, exist_ok=True)
    for folder in (full, output):
        shutil.copy(default_models_directory() / "all-minilm-l6-v2" / TOKENIZER_FILE, folder)
    export(Outputs(reader), full / ONNX_FILE, OUTPUTS)
    quantize(full / ONNX_FILE, output / ONNX_FILE)
    click.echo(f"{output / ONNX_FILE}: {(output / ONNX_FILE).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
