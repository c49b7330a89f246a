"""Make an ONNX copy of a sentence-transformers model, which runs without torch.

The copy is made once, from the pulled safetensors and by our own code (`graph.py`), in another process (`python -m
local_rag.models.onnx.copy`). The same weights give the same bytes on each machine. A model of another architecture gets
no copy: it needs the extra `sentence-transformers`.

Models with `int8` in the registry (recall was measured to be no worse) get a copy with int8 weights. Weights use seven
bits, because eight overflow on processors without VNNI; seven give every processor the same results. The second
matrices of the feed-forward layers stay in float32, because their inputs have outliers.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from local_rag.errors import ModelError
from local_rag.files import file_sha256, write_whole
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import OnnxEmbedder, tokenizer_of
from local_rag.models.onnx.architectures import BertGraph, ModernBertGraph
from local_rag.models.onnx.graph import Graph, UnknownArchitectureError, read_config
from local_rag.models.onnx.session import COPY_FILE, ONNX_FILE, OPTIMIZED, copy_folder, find_copy, needs_copy
from local_rag.models.registry import ModelEntry, resolve
from local_rag.serialization import from_plain, to_line

SIMILAR_COSINE = 0.98  # minimum on average, for the int8 copy
_TEXTS = 200
_SEED = 7
_GRAPHS: dict[str, type[Graph]] = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta"), BertGraph),
    "modernbert": ModernBertGraph,
}


def make_onnx_copies(entry: ModelEntry, note: Callable[[str], None]) -> None:
    """Make the ONNX copies of a registry model now, so the first question does not wait for them."""
    for role in entry.roles:
        if role in ("embed", "rerank") and entry.sources:
            model = resolve(entry.name, role)
            if needs_copy(model) and find_copy(model) is None:
                note(f"Making an ONNX copy of {entry.name}, about half a minute ...")
                make_copy(model)


def onnx_file(model: InstalledModel) -> Path | None:
    """Return the ONNX file of an embedder or reader: its own, or a copy, which is made if that was not tried yet."""
    path = model.path / ONNX_FILE
    return path if path.is_file() else make_copy(model)


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
                command = [sys.executable, "-P", "-m", "local_rag.models.onnx.copy", temporary]
                done = subprocess.run(command, input=to_line(model), capture_output=True, check=False)
                if done.returncode:  # killed, or out of memory or disk space: try again next time
                    return None
                shutil.rmtree(folder, ignore_errors=True)
                Path(temporary).chmod(0o755)  # models may be shared with other users
                Path(temporary).rename(folder)
                Path(temporary).mkdir()  # for TemporaryDirectory to remove
    return find_copy(model)


def _was_refused(folder: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        receipt = json.loads((folder / COPY_FILE).read_bytes())
        return not receipt["file"] and receipt["known"] == sorted(_GRAPHS)
    return False


# The rest runs in the process that makes a copy.


def _make(model: InstalledModel, folder: Path) -> dict[str, Any]:
    """Write the copy into a folder; return its receipt."""
    full, used, int8 = folder / "full.onnx", folder / f"model{OPTIMIZED}", folder / "int8.onnx"
    graph_of(model).write(full)
    precision = "fp32"
    if model.int8:
        quantize_but_narrowing(full, int8, reduce_range=True)
        if _is_similar(model, int8, full):
            int8.replace(full)
            precision = "int8"
        int8.unlink(missing_ok=True)
    if list(folder.glob("*.data")):
        used = full
    else:
        _optimize(full, used)
        full.unlink()
    size, checksum = used.stat().st_size, file_sha256(used)
    return {"file": used.name, "bytes": size, "sha256": checksum, "precision": precision}


def graph_of(model: InstalledModel) -> Graph:
    """Return the graph of a model; raise UnknownArchitectureError if its architecture is none of ours."""
    modules = model.path / "modules.json"
    folder = model.path / read_config(model.path, modules.name)[0]["path"] if modules.is_file() else model.path
    config = read_config(folder)
    if "model_type" not in config:
        raise ModelError(f"{folder / 'config.json'} is damaged: it names no type of model")
    if (kind := config["model_type"]) not in _GRAPHS:
        raise UnknownArchitectureError(f"{model.path} is of the type {kind}")
    return _GRAPHS[kind](model)


def _texts(model: InstalledModel) -> list[str]:
    """Make short and long texts from random tokens of the model's vocabulary."""
    tokenizer, chance = tokenizer_of(model), np.random.default_rng(_SEED)
    lengths = chance.integers(1, min(model.context_length, 256) - 8, _TEXTS)
    return [
        tokenizer.decode(chance.integers(0, tokenizer.get_vocab_size(), length).tolist()) or "x" for length in lengths
    ]


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


def _is_similar(model: InstalledModel, path: Path, full: Path) -> bool:
    """Compare the vectors of two ONNX files of an embedder."""
    found, wanted = (OnnxEmbedder(model, one).embed_passages(_texts(model)) for one in (path, full))
    return bool((found * wanted).sum(axis=1).mean() >= SIMILAR_COSINE)


def _main() -> None:
    model: InstalledModel = from_plain(InstalledModel, json.load(sys.stdin))
    folder = Path(sys.argv[1])
    try:
        receipt = _make(model, folder)
    except UnknownArchitectureError as error:  # it runs without a copy
        receipt = {"file": "", "reason": str(error)[:500], "known": sorted(_GRAPHS)}
    write_whole(folder / COPY_FILE, json.dumps(receipt | {"model": model.name}), durable=True)


if __name__ == "__main__":
    _main()
