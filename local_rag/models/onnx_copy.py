"""Make an ONNX copy of a sentence-transformers model, so questions do not wait until torch is imported.

The copy is made once from the pulled safetensors, in another process (`python -m local_rag.models.onnx_copy`). If its
vectors or scores differ from those of sentence-transformers, it is rejected, and the rejection is stored.

Models with `int8` in the registry (recall was measured to be no worse) get a second copy with int8 weights, made from
the first. Weights use seven bits, because eight overflow on processors without VNNI; seven give every processor the
same results. The second matrices of the feed-forward layers stay in float32, because their inputs have outliers.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from local_rag.errors import ModelError
from local_rag.files import file_sha256, write_whole
from local_rag.models.embedder import OnnxEmbedder, SentenceEmbedder, tokenizer_of
from local_rag.models.onnx import COPY_FILE, OPTIMIZED, copy_folder, find_copy
from local_rag.models.reranker import CrossEncoderReranker, OnnxReranker
from local_rag.records import InstalledModel

SAME_COSINE = 0.9999  # minimum, between the copy's vectors and those of sentence-transformers
SIMILAR_COSINE = 0.98  # minimum on average, for the int8 copy
SAME_SCORE = 0.01  # maximum difference of two raw logits
_TEXTS = 200
_PROTOBUF_LIMIT = 1_500_000_000
_SEED = 7


def make_copy(model: InstalledModel) -> Path | None:
    """Return the ONNX file of a model, making it if that was not tried yet; None if there is no usable copy."""
    folder = copy_folder(model)
    with contextlib.suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / f".{folder.name}.lock"):
            tried = find_copy(model)
            if tried or _was_refused(folder):
                return tried
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".", suffix=".tmp") as temporary:
                command = [sys.executable, "-P", "-m", "local_rag.models.onnx_copy", temporary]
                done = subprocess.run(
                    command, input=json.dumps(asdict(model), default=str), text=True, capture_output=True, check=False
                )
                if done.returncode:  # killed, or out of memory or disk space: try again next time
                    return None
                shutil.rmtree(folder, ignore_errors=True)
                Path(temporary).chmod(0o755)  # models may be shared with other users
                Path(temporary).rename(folder)
                Path(temporary).mkdir()  # for TemporaryDirectory to remove
    return find_copy(model)


def _was_refused(folder: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return not json.loads((folder / COPY_FILE).read_bytes())["file"]
    return False


# The rest runs in the process that makes a copy.


def _make(model: InstalledModel, folder: Path) -> dict[str, Any]:
    """Write the copy into a folder; return its receipt, whose `file` is empty if the copy was rejected."""
    full, used = folder / "full.onnx", folder / f"model{OPTIMIZED}"
    texts = _texts(model)
    export = _export_embedder if model.role == "embed" else _export_reranker
    wanted = export(model, full, texts)
    if not _is_same(model, full, texts, wanted):
        return {"file": "", "reason": "its results differ from those of sentence-transformers"}
    precision = "fp32"
    if model.int8:
        quantize_but_narrowing(full, folder / "int8.onnx", reduce_range=True)
        if _is_similar(model, folder / "int8.onnx", texts, wanted):
            (folder / "int8.onnx").replace(full)
            precision = "int8"
    if full.stat().st_size < _PROTOBUF_LIMIT and not list(folder.glob("*.data")):
        _optimize(full, used)
        full.unlink()
    else:
        used = full
    (folder / "int8.onnx").unlink(missing_ok=True)
    size, checksum = used.stat().st_size, file_sha256(used)
    return {"file": used.name, "bytes": size, "sha256": checksum, "precision": precision}


def _texts(model: InstalledModel) -> list[str]:
    """Make short and long texts from random tokens of the model's vocabulary."""
    tokenizer, chance = tokenizer_of(model), np.random.default_rng(_SEED)
    lengths = chance.integers(1, min(model.context_length, 256) - 8, _TEXTS)
    return [
        tokenizer.decode(chance.integers(0, tokenizer.get_vocab_size(), length).tolist()) or "x" for length in lengths
    ]


def _export_embedder(model: InstalledModel, path: Path, texts: Sequence[str]) -> np.ndarray:
    """Export an embedder with its pooling; return the texts' vectors from sentence-transformers."""
    import torch

    embedder = SentenceEmbedder(model, half=False)
    inputs = sorted(embedder.model.tokenize(["text"]).keys() & {"input_ids", "attention_mask", "token_type_ids"})

    class Vectors(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *values: torch.Tensor) -> Any:
            return self.inner(dict(zip(inputs, values, strict=True)))["sentence_embedding"]

    _export(Vectors(embedder.model), inputs, path)
    return embedder.embed_passages(texts)


def _export_reranker(model: InstalledModel, path: Path, texts: Sequence[str]) -> np.ndarray:
    """Export a cross-encoder; return sentence-transformers' logits of the first text paired with each text."""
    import torch

    reranker = CrossEncoderReranker(model, half=False)
    inner = reranker.model.model
    inputs = sorted(reranker.model.tokenizer("text").keys() & {"input_ids", "attention_mask", "token_type_ids"})

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *values: torch.Tensor) -> Any:
            return self.inner(**dict(zip(inputs, values, strict=True))).logits

    _export(Logits(), inputs, path)
    return np.array(reranker.score(texts[0], texts))


def _export(module: Any, inputs: Sequence[str], path: Path) -> None:
    """Write a float32 ONNX model that accepts texts of any length."""
    import torch

    example = tuple(torch.ones((2, 24), dtype=torch.long) for _ in inputs)
    batch, length = torch.export.Dim("batch", min=1, max=4096), torch.export.Dim("length", min=2, max=8192)
    large = sum(weight.numel() * 4 for weight in module.parameters()) > _PROTOBUF_LIMIT
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            example,
            path,
            input_names=list(inputs),
            output_names=["output"],
            dynamic_shapes=(tuple({0: batch, 1: length} for _ in inputs),),
            dynamo=True,
            external_data=large,
            verbose=False,
        )


def quantize_but_narrowing(full: Path, path: Path, **options: Any) -> None:
    """Quantize matrices to int8 with one scale per column, except those with more inputs than outputs."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(full)
    del model.graph.value_info[:]  # the exporter's shapes contradict the quantizer's
    shapes = {weight.name: tuple(weight.dims) for weight in model.graph.initializer}
    narrowing = [
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul" and len(shape := shapes.get(node.input[1], ())) == 2 and shape[0] > shape[1]  # noqa: PLR2004
    ]
    # Shapes and types behind an operator of onnxruntime's own are unknown to the quantizer.
    options |= {"nodes_to_exclude": narrowing, "extra_options": {"DefaultTensorType": onnx.TensorProto.FLOAT}}
    quantize_dynamic(model, path, per_channel=True, weight_type=QuantType.QInt8, **options)


def _optimize(path: Path, optimized: Path) -> None:
    """Write the graph as onnxruntime optimizes it at load time, except optimizations for this processor only."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(optimized)
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _is_same(model: InstalledModel, path: Path, texts: Sequence[str], wanted: np.ndarray) -> bool:
    found = _results(model, path, texts)
    if model.role == "rerank":
        return bool(np.abs(found - wanted).max() <= SAME_SCORE)
    return bool((found * wanted).sum(axis=1).min() >= SAME_COSINE)


def _is_similar(model: InstalledModel, path: Path, texts: Sequence[str], wanted: np.ndarray) -> bool:
    return bool((_results(model, path, texts) * wanted).sum(axis=1).mean() >= SIMILAR_COSINE)


def _results(model: InstalledModel, path: Path, texts: Sequence[str]) -> np.ndarray:
    """Return the output of an ONNX file for the texts."""
    if model.role == "rerank":
        return np.array(OnnxReranker(model, path).score(texts[0], texts))
    return OnnxEmbedder(model, path).embed_passages(texts)


def _main() -> None:
    fields = json.load(sys.stdin)
    model = InstalledModel(**fields | {"path": Path(fields["path"])})
    folder = Path(sys.argv[1])
    try:
        receipt = _make(model, folder)
    except (MemoryError, OSError, ModelError):
        raise
    except Exception as error:  # noqa: BLE001  a model that torch cannot export runs without a copy
        receipt = {"file": "", "reason": f"{type(error).__name__}: {error}"[:500]}
    if not receipt["file"]:
        for path in folder.iterdir():
            path.unlink()
    write_whole(folder / COPY_FILE, json.dumps(receipt | {"model": model.name}), durable=True)


if __name__ == "__main__":
    _main()
