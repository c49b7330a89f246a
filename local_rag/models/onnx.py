"""Run models in ONNX form: find the copy of a pulled model, open it, feed it. No torch is needed for that."""

import contextlib
import copy
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
from local_rag.models.registry import default_models_directory
from local_rag.records import InstalledModel

OPTIMIZED = ".optimized.onnx"  # how a file ends whose graph is rewritten already
COPY_FILE = "copy.json"
_FOLDER = ".onnx"
_COPY_VERSION = 1  # of the code that makes copies


def copy_folder(model: InstalledModel) -> Path:
    """Say where the ONNX copy of a model is, if there is one."""
    key = key_of(_COPY_VERSION, model.identity, model.role, model.pooling, model.int8, model.context_length)
    return default_models_directory() / _FOLDER / key[:16]


def find_copy(model: InstalledModel) -> Path | None:
    """Return the ONNX file to use for a model, or None where there is none that is as good as the model."""
    folder = copy_folder(model)
    with contextlib.suppress(OSError, ValueError, KeyError):
        found = json.loads((folder / COPY_FILE).read_bytes())
        path = folder / str(found["file"])
        if found["file"] and path.stat().st_size == found["bytes"]:
            return path
    return None


def damaged_copies(models_directory: Path) -> list[Path]:
    """Hash the copies; name those that are not as they were made."""
    damaged = []
    for told in sorted((models_directory / _FOLDER).glob(f"*/{COPY_FILE}")):
        try:
            found = json.loads(told.read_bytes())
            whole = not found["file"] or file_sha256(told.parent / found["file"]) == found["sha256"]
        except (OSError, ValueError, KeyError):
            whole = False
        damaged += [] if whole else [told.parent]
    return damaged


class Session:
    """Run an ONNX file on the CPU on texts or pairs of them, one thread a run and as many runs at a time as cores.

    With a text a run nothing is padded, and as int8 activations have one scale a run, what comes out does not depend on
    which texts are run with it. That measured faster than batches, and threads that share no run wait for no other.
    """

    def __init__(self, path: Path, tokenizer: Any, max_tokens: int) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when it is imported
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors, which are raised as well
        if path.name.endswith(OPTIMIZED):
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001  the classes that onnxruntime raises have no common name
            raise ModelError(
                f"The model {path} cannot be loaded ({error}); check it with `local-rag models verify`."
            ) from None
        self._names = [one.name for one in self._session.get_inputs()]  # some models take no token types
        self._tokenizer = copy.deepcopy(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._threads = ThreadPoolExecutor(physical_cores())

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[np.ndarray]:
        """Return the output for each text or pair, without the dimension of the batch."""
        return list(self._threads.map(self._run, self._tokenizer.encode_batch(texts)))

    def _run(self, encoding: Any) -> np.ndarray:
        known = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
        known["token_type_ids"] = encoding.type_ids
        inputs = {name: np.array([known[name]], dtype=np.int64) for name in self._names}
        output: np.ndarray = self._session.run(None, inputs)[0][0]
        return output
