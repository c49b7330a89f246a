"""Run ONNX models without torch."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError
from local_rag.machine import physical_cores


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
        return self.run_tokens(encoding.ids, encoding.type_ids)

    def run_all(self, sequences: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[np.ndarray]]:
        """Return what `run_tokens` does for each sequence of tokens with their types."""
        if len(sequences) == 1:  # for which no other thread need wake
            return [self.run_tokens(*sequences[0])]
        return list(self._threads.map(lambda one: self.run_tokens(*one), sequences))

    def run_tokens(self, ids: Sequence[int], types: Sequence[int]) -> list[np.ndarray]:
        """Return the outputs for tokens, without the batch dimension."""
        known = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": types}
        inputs = {name: np.array([known[name]], dtype=np.int64) for name in self._names}
        return [output[0] for output in self._session.run(None, inputs)]
