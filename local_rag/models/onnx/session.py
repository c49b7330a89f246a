"""Find and run the ONNX copy of a pulled model, without torch."""

import contextlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError
from local_rag.files import file_sha256
from local_rag.keys import key_of
from local_rag.machine import physical_cores
from local_rag.model_records import InstalledModel
from local_rag.models.models_folder import default_models_directory, packed_models
from local_rag.models.own_models import has_gguf

ONNX_FILE = "model.onnx"  # in the folder of a model that needs no copy
OPTIMIZED = ".optimized.onnx"  # the suffix of a file whose graph is already optimized
COPY_FILE = "copy.json"
_FOLDER = ".onnx"
_COPY_VERSION = 2  # of the code that makes copies


def needs_copy(model: InstalledModel) -> bool:
    """Return whether an embedder or reranker runs from an ONNX copy of it."""
    return not (model.path / ONNX_FILE).is_file() and not has_gguf(model.path)


def copy_folder(model: InstalledModel) -> Path:
    """Return the folder of a model's ONNX copy, whether it exists or not; one from a bundle is used first."""
    key = key_of(_COPY_VERSION, model.identity, model.role, model.pooling, model.int8, model.context_length)
    packed = packed_models() / _FOLDER / key[:16]
    return packed if packed.is_dir() else default_models_directory() / _FOLDER / key[:16]


def find_copy(model: InstalledModel) -> Path | None:
    """Return the ONNX file to use for a model, or None if there is no copy that is as good as the model."""
    folder = copy_folder(model)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads((folder / COPY_FILE).read_bytes())
        path = folder / Path(found["file"]).name  # never a file elsewhere
        if found["file"] and path.stat().st_size == found["bytes"]:
            return path
    return None


def damaged_onnx_copies(models_directory: Path) -> list[Path]:
    """Hash the copies and return the folders of those that no longer match their checksums."""
    damaged = []
    for receipt in sorted((models_directory / _FOLDER).glob(f"*/{COPY_FILE}")):
        try:
            found = json.loads(receipt.read_bytes())
            intact = not found["file"] or file_sha256(receipt.parent / found["file"]) == found["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            intact = False
        damaged += [] if intact else [receipt.parent]
    return damaged


class OnnxSession:
    """Run an ONNX file on the CPU on texts or pairs of texts: one per run, one thread per run, one run per core.

    Without batches nothing is padded and no thread waits for another, which measured faster. Because int8 activations
    have one scale per run, the output for a text also does not depend on the texts that run with it.
    """

    def __init__(self, path: Path, tokenizer: Any) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime reads it at import
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # only errors, which are also raised
        if path.name.endswith(OPTIMIZED):
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001  the classes that onnxruntime raises have no common name
            raise ModelError(
                f"Cannot load the model {path} ({error}); check it with `local-rag models verify`."
            ) from None
        self._names = [one.name for one in self._session.get_inputs()]  # some models have no token types
        self._tokenizer = tokenizer
        self._threads = ThreadPoolExecutor(physical_cores())

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the model's outputs."""
        return tuple(one.name for one in self._session.get_outputs())

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[tuple[Any, list[np.ndarray]]]:
        """Return the encoding of each text or pair, and the outputs for it, without the batch dimension."""
        encodings = self._tokenizer.encode_batch(texts)
        return list(zip(encodings, self._threads.map(self._run, encodings), strict=True))

    def _run(self, encoding: Any) -> list[np.ndarray]:
        known = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
        known["token_type_ids"] = encoding.type_ids
        inputs = {name: np.array([known[name]], dtype=np.int64) for name in self._names}
        return [output[0] for output in self._session.run(None, inputs)]
