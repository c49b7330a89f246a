"""Look into a model: a GGUF file, or a folder with safetensors, an ONNX file or a GGUF file."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from local_rag.errors import ModelError
from local_rag.model_records import InstalledModel, Role

Format = Literal["gguf", "sentence-transformers", "cross-encoder"]

# Generators are GGUF files; embedders and rerankers are folders, whose weights may be a GGUF file too.
MODEL_FORMATS: Mapping[Role, tuple[Format, ...]] = MappingProxyType(
    {
        "context": ("gguf",),
        "answer": ("gguf",),
        "embed": ("sentence-transformers", "gguf"),
        "rerank": ("cross-encoder", "gguf"),
    }
)
GENERATORS: frozenset[Role] = frozenset({"context", "answer"})
TOKENIZER_FILE = "tokenizer.json"
ONNX_FILE = "model.onnx"
_MAKERS_ONNX_FILE = f"onnx/{ONNX_FILE}"  # where makers of models on the hub put it: the transformer alone
# What sentence-transformers calls the poolings that we know, now and in older folders.
_POOLINGS = {"cls": "cls", "mean": "mean", "lasttoken": "lasttoken", "cls_token": "cls", "mean_tokens": "mean"}
# Loading a pickle can run any code in it.
PICKLES = frozenset({".bin", ".pt", ".pth", ".pkl", ".ckpt"})
_SAMPLE_BYTES = 1024 * 1024


def resolve_path(path: Path, role: Role) -> InstalledModel:
    """Describe the model in a file or folder; raise ModelError if it is none for the role."""
    if path.suffix.lower() in PICKLES:
        raise ModelError(
            f"{path} may be a pickle, which can run code when it is loaded;"
            " choose a GGUF file or a folder with safetensors."
        )
    if role in GENERATORS:
        if path.is_dir():
            raise ModelError(f"{path} is a folder, but the {role} model must be a GGUF file; pass the file.")
        return _installed(require_gguf(path, f"the {role} model"), role, [path], context_length=0)
    if not path.is_dir():
        raise ModelError(
            f"{path} is a file, but the {role} model must be a folder with safetensors, or with a GGUF file and its"
            f" {TOKENIZER_FILE}; pass the folder."
        )
    own = _read_json(path / "config_sentence_transformers.json")
    prompts = own.get("prompts", {})
    prefixes = {"query_prefix": prompts.get("query", ""), "passage_prefix": prompts.get("document", "")}
    if has_gguf(path):
        weights = gguf_in(path)
        if not (path / TOKENIZER_FILE).is_file():
            raise ModelError(
                f"{path} does not contain the {TOKENIZER_FILE} of {weights.name}; copy it there from the model's"
                " original."
            )
        length = _context_length(path, _read_json(path / "config.json"))
        return _installed(path, role, [weights], context_length=length, **prefixes)
    modules = _read_json(path / "modules.json")
    folders = [path / module["path"] for module in modules] if modules else [path]
    config = _read_json(folders[0] / "config.json")
    is_classifier = any(name.endswith("ForSequenceClassification") for name in config.get("architectures", ()))
    reranks = is_classifier or own.get("model_type") == "CrossEncoder"  # a head may follow the transformer
    if not config or reranks != (role == "rerank"):
        raise ModelError(
            f"{path} does not contain a {MODEL_FORMATS[role][0]} model, which the {role} model must be; choose another"
            " folder or a model of `local-rag models list`."
        )
    length = _context_length(folders[0], config)
    return _installed(path, role, _weights(path, folders), context_length=length, **prefixes)


def _installed(path: Path, role: Role, weights: Sequence[Path], **use: Any) -> InstalledModel:
    return InstalledModel(name=str(path), role=role, path=path, identity=_sample_identity(weights), **use)


def has_gguf(folder: Path) -> bool:
    """Return whether the weights of an embedder or reranker are a GGUF file, and not safetensors."""
    return any(folder.glob("*.gguf")) and not any(folder.glob("*.safetensors"))


def gguf_in(folder: Path) -> Path:
    """Return the one GGUF file in a folder; raise ModelError if there are several."""
    found = sorted(folder.glob("*.gguf"))
    if len(found) != 1:
        raise ModelError(f"{folder} must contain one GGUF file, not {len(found)}; move the others away.")
    return found[0]


def require_gguf(path: Path, what: str) -> Path:
    """Return the path of a GGUF file; raise ModelError if it is another file."""
    with path.open("rb") as handle:
        if handle.read(4) != b"GGUF":
            raise ModelError(f"{path} is not a GGUF file, which {what} must be; convert it or choose another.")
    return path


def onnx_file(model: InstalledModel) -> Path | None:
    """Return the ONNX file that runs an embedder or reader: the one in its folder, or its maker's if that is enough.

    The maker's is not if more modules follow the transformer than a pooling that we know and a normalisation.
    """
    whole, makers = model.path / ONNX_FILE, model.path / _MAKERS_ONNX_FILE
    if whole.is_file() or not makers.is_file():
        return whole if whole.is_file() else None
    embeds = model.role == "embed"
    enough = model.pooling or pooling_of(model.path) if embeds else not (model.path / "modules.json").is_file()
    return makers if enough else None


def pooling_of(folder: Path) -> str | None:
    """Return how an embedder pools the vectors of its tokens; None if in another way, or if other modules follow."""
    modules = {str(one["type"]).rpartition(".")[2]: one["path"] for one in _read_json(folder / "modules.json") or ()}
    if not modules.keys() <= {"Transformer", "Pooling", "Normalize"}:
        return None
    settings = _read_json(folder / modules["Pooling"] / "config.json") if "Pooling" in modules else {}
    modes = {name.removeprefix("pooling_mode_") for name, on in settings.items() if on is True and "mode" in name}
    modes |= {str(settings["pooling_mode"])} if "pooling_mode" in settings else set()
    if settings.get("include_prompt") is False or len(modes) > 1:
        return None
    return _POOLINGS.get(modes.pop()) if modes else "mean"


def _weights(path: Path, folders: Sequence[Path]) -> list[Path]:
    """Return the weight files in the folders; raise ModelError if a folder has only pickled weights."""
    weights = list[Path]()
    if not [file for folder in folders for file in folder.glob("*.safetensors")]:
        weights = [file for file in (path / ONNX_FILE, path / _MAKERS_ONNX_FILE) if file.is_file()][:1]
    if weights:
        return weights
    for folder in folders:
        found = sorted(folder.glob("*.safetensors"))
        if not found and any(file.suffix in PICKLES for file in folder.glob("*")):
            raise ModelError(
                f"{folder} contains its weights only as a pickle, which can run code when it is loaded;"
                " convert them to safetensors."
            )
        weights += found
    if not weights:
        raise ModelError(f"{path} does not contain weights (*.safetensors); choose a complete model folder.")
    return weights


def _context_length(folder: Path, config: Mapping[str, Any]) -> int:
    """Return the context length in tokens, determined as sentence-transformers does."""
    own = _read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    tokenizer = _read_json(folder / "tokenizer_config.json").get("model_max_length")
    positions = config.get("max_position_embeddings")
    if positions and "roberta" in str(config.get("model_type")):  # its positions start after the padding token's
        positions -= int(config.get("pad_token_id", 1)) + 1
    limits = [own] if own else [tokenizer, positions]
    return min((int(limit) for limit in limits if limit), default=512)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged ({error}); download the model's folder again.") from error


def _sample_identity(weights: Sequence[Path]) -> str:
    """Hash the size and both ends of each weight file, independently of the file names."""
    digests = []
    for path in weights:
        size = path.stat().st_size
        with path.open("rb") as handle:
            head = handle.read(_SAMPLE_BYTES)
            handle.seek(max(0, size - _SAMPLE_BYTES))
            digests.append(hashlib.sha256(b"%d:" % size + head + handle.read()).digest())
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()
