"""Measure with ONNX Runtime how fast this processor multiplies int8 matrices of a model's shapes."""

import os
import time
from typing import Any

import numpy as np

from local_rag.llama.model import LlamaModel
from local_rag.llama.native import native
from local_rag.machine import physical_cores

ROWS, REPEATS = 512, 12


def reading_limit(model: LlamaModel) -> float:
    """Return the tokens per second of prefill if only the multiplications by the weights took time."""
    width, inner = model_shapes(model)
    operations = int8_operations_per_second(width, inner)
    weights = native().llama_model_n_params(model.handle) - width * model.vocabulary_size  # embeddings are looked up
    return float(operations / (2 * weights))


def model_shapes(model: LlamaModel) -> tuple[int, int]:
    """Return the width of a model's layers and of their feed-forward part."""
    architecture = model._field("general.architecture")
    width, inner = (int(model._field(f"{architecture}.{name}_length") or 0) for name in ("embedding", "feed_forward"))
    return width, inner


def int8_operations_per_second(width: int, inner: int) -> float:
    """Return the operations per second for the largest matrix of a layer, with 7-bit weights as without VNNI."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime
    from onnx import TensorProto, helper

    chance = np.random.default_rng(0)
    weights = helper.make_tensor(
        "weights",
        TensorProto.INT8,
        (width, inner),
        chance.integers(-63, 64, (width, inner), dtype=np.int8).tobytes(),
        raw=True,
    )
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["left", "weights"], ["product"])],
        "limit",
        [helper.make_tensor_value_info("left", TensorProto.UINT8, (ROWS, width))],
        [helper.make_tensor_value_info("product", TensorProto.INT32, (ROWS, inner))],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = physical_cores()
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    left = {"left": chance.integers(0, 256, (ROWS, width), dtype=np.uint8)}
    session.run(None, left)
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        session.run(None, left)
        seconds.append(time.perf_counter() - started)
    return 2 * ROWS * width * inner / min(seconds)
