"""Run models in ONNX form: find the copy of a pulled model, open it, feed it. No torch is needed for that."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.files import file_sha256
from local_rag.keys import key_of
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
    """Run an ONNX file on the CPU, one thread a run; raises what onnxruntime raises.

    With a text a run nothing is padded, and as int8 activations have one scale a run, what comes out does not depend on
    which texts are run with it. That measured faster than batches, and threads that share no run wait for no other.
    """

    def __init__(self, path: Path) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when it is imported
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors, which are raised as well
        if path.name.endswith(OPTIMIZED):
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._names = [one.name for one in self._session.get_inputs()]  # some models take no token types

    def run(self, encoding: Any) -> np.ndarray:
        """Return the output for one text or pair of the tokenizer, without the dimension of the batch."""
        known = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
        known["token_type_ids"] = encoding.type_ids
        inputs = {name: np.array([known[name]], dtype=np.int64) for name in self._names}
        output: np.ndarray = self._session.run(None, inputs)[0][0]
        return output
