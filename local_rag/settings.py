"""The settings of a library, resolved once from flags, environment variables, its settings file and defaults."""

import os
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from local_rag.document_records import Chunker
from local_rag.errors import LibraryError, nearest
from local_rag.files import SETTINGS_FILE
from local_rag.model_names import MODEL_SETTINGS, parts_of
from local_rag.model_records import InstalledModel
from local_rag.passage_records import ContextMode, WrittenForm

# The library remembers the settings that shape its index, so `search` and `ask` do not need the flags of `index`.
# Only the user permits these, in the environment or in a file of the user's own: whoever made a library did not.
_USERS_OWN = ("answer_hosts",)
MOST_WARM_MINUTES = 24 * 60  # a library that others have made may keep no process for longer
_CONTEXTS = ("context", "context_form")
REMEMBERED = ("profile", "embed_model", "context_model", "chunker", "chunk_tokens", "overlap", *_CONTEXTS)


@dataclass(frozen=True, slots=True)
class Retention:
    """What of the questions asked, and of what answers them, may be written to a file.

    Whatever writes some of it asks here, so that with the setting `history` off nothing of it reaches any file; only
    the audit log has a setting of its own. `conversations` stands for conversations and for questions that are to
    become part of an evaluation, `caches` for answers and the vectors of questions, `counts` for numbers of questions.
    """

    conversations: bool
    caches: bool
    counts: bool
    audit: bool


def _names(value: Any) -> Any:
    """Split names that are separated by commas, as they stand in an environment variable."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


class ClusterSettings(BaseModel):
    """The table `[cluster]`: the machines that do the indexing."""

    model_config = ConfigDict(frozen=True)

    address: str = Field(
        default="",
        description="HOST:PORT of the head of a Ray cluster whose machines do the indexing; empty: this machine",
    )


class SearchEngineSettings(BaseModel):
    """The table `[search_engine]`: the engine that holds the index, and how it is reached."""

    model_config = ConfigDict(frozen=True)

    address: str = Field(
        default="",
        description="the search engine that holds the index, as `qdrant:https://HOST:PORT/NAME`; empty: the library "
        "folder",
    )
    ca: str = Field(
        default="",
        description="a PEM file with the certificates of the authority that signed the search engine's; empty: those "
        "that the system trusts",
    )
    certificate: str = Field(
        default="", description="a PEM file with the certificate that identifies this machine to the search engine"
    )
    key_file: str = Field(
        default="", description="the PEM file with the private key of `search_engine.certificate`, without a password"
    )
    http: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = Field(
        default=(),
        description="the other machines that `search_engine.address` may reach over http; texts and vectors then go "
        "there unencrypted",
    )
    shards: int = Field(
        default=0, ge=0, description="the shards of a collection in the search engine; 0: as the engine is set up"
    )
    replicas: int = Field(
        default=0, ge=0, description="the machines that hold each of these shards; 0: as the engine is set up"
    )


_TABLES: Mapping[str, type[BaseModel]] = {"cluster": ClusterSettings, "search_engine": SearchEngineSettings}


class Settings(BaseSettings):
    """Hold all settings; an empty model name stands for the model of the profile."""

    model_config = SettingsConfigDict(
        frozen=True,
        env_prefix="LOCAL_RAG_",
        env_ignore_empty=True,
        env_nested_delimiter="_",  # LOCAL_RAG_CLUSTER_ADDRESS: the setting `address` in the table `cluster`
        env_nested_max_split=1,
        extra="ignore",
    )

    profile: str = Field(default="starter", description="the set of models to use unless another model is named below")
    context_model: str = Field(
        default="", description="the model that writes contexts: a name from `local-rag models list` or a GGUF file"
    )
    answer_model: str = Field(
        default="",
        description="the model that answers: a name from `local-rag models list` or a GGUF file, either perhaps with "
        "an adapter (`MODEL+ADAPTER.gguf`), or an engine that already runs, as `http://127.0.0.1:11434/v1#MODEL`",
    )
    answer_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = Field(
        default=(),
        description="the other machines whose engine `answer_model` may name; questions and passages are sent there",
    )
    embed_model: str = Field(
        default="", description="the embedder: a name from `local-rag models list` or a sentence-transformers folder"
    )
    rerank_model: str = Field(
        default="", description="the reranker: a name from `local-rag models list` or a cross-encoder folder"
    )
    gpu_layers: int = Field(
        default=-1,
        ge=-1,
        description="the layers of each GGUF model that run on a GPU, if llama.cpp was built for one with "
        "`scripts/setup.sh --gpu`; -1: all, 0: none",
    )
    context: ContextMode = Field(
        default="auto",
        description="the context of a chunk. `auto`: a sentence that the context model writes for each, and what "
        "distinguishes its document from similar ones if it can be confused with another; `headings`: only title and "
        "headings; `none`: nothing",
    )
    context_form: WrittenForm = Field(
        default="questions",
        description="what the context model writes about a chunk. `questions`: the question that it answers, if the "
        "model was trained to ask it, else a sentence; `sentences`: a sentence that situates it in its document. "
        "For sentences, an adapter that was trained for questions alone is left out",
    )
    context_minutes: float = Field(
        default=10.0,
        ge=0,
        description="the most minutes that `index` writes sentences with the context model, once all documents can be "
        "searched; the next run writes the rest, and `serve` while nobody asks; 0: only `index --contexts` writes any",
    )
    chunker: Chunker = Field(default="auto", description="how to split documents; `auto` depends on the type of file")
    chunk_tokens: int = Field(
        default=0, ge=0, description="the maximum length of a chunk; 0: what fits into the embedder with the headings"
    )
    overlap: int = Field(default=0, ge=0, description="the tokens that neighbouring chunks share")
    dense_weight: float = Field(default=0.7, ge=0, description="the weight of dense search in fusion")
    keyword_weight: float = Field(default=1.0, ge=0, description="the weight of keyword search in fusion")
    rrf_k: int = Field(default=10, ge=1, description="k of reciprocal rank fusion: rank r counts weight / (k + r)")
    pool: int = Field(default=150, ge=1, description="the candidates that each search returns")
    rerank_candidates: int = Field(
        default=0,
        ge=0,
        description="the passages to rerank; 0: those that are kept if the model's rank is fused with that of the "
        "search, else as many as fit into rerank_seconds",
    )
    rerank_seconds: float = Field(
        default=3.0, gt=0, description="the time limit for reranking if rerank_candidates is 0"
    )
    all_candidates: int = Field(default=1000, ge=1, description="the candidates of each search with `search --all`")
    find_passages: int = Field(
        default=5000,
        ge=0,
        description="the passages that `ask` reads sentence by sentence to count or list what documents are about, the "
        "nearest first; 0: all that are near, as `find` does",
    )
    no_versions: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = Field(
        default=(),
        description="the documents that are no versions of others although their names and texts are alike: patterns "
        "as for `--in`",
    )
    passages: int = Field(default=20, ge=1, description="the passages to keep after reranking")
    answer_cache: bool = Field(
        default=True, description="`serve` keeps answers and question vectors, and reuses them for the same question"
    )
    history: bool = Field(
        default=True,
        description="`chat` and the web page keep conversations, and every question is recorded, until you delete "
        "them; if off, nothing that is asked or quoted is written to any file except the audit log",
    )
    usage_counts: bool = Field(
        default=True, description="`status` counts the questions of the last 30 days without storing their text"
    )
    audit_log: bool = Field(
        default=False, description="`serve` records who asked what in `audit.jsonl` in the library folder"
    )
    idle_seconds: float = Field(
        default=900.0, gt=0, description="the time after which `serve` unloads models that are not in use"
    )
    keep_warm: float = Field(
        default=5.0,
        ge=0,
        le=MOST_WARM_MINUTES,
        description="the minutes for which a process that `ask`, `search`, `find`, `chat` or `extract` leaves behind "
        "keeps the models loaded after the last question; 0: none is left",
    )
    cluster: ClusterSettings = ClusterSettings()
    search_engine: SearchEngineSettings = SearchEngineSettings()
    publish_seconds: float = Field(
        default=180.0,
        gt=0,
        description="the time between two publishes while contexts are written; longer if a publish itself takes long",
    )

    @property
    def retention(self) -> Retention:
        """Return what may be written to a file."""
        return Retention(
            conversations=self.history,
            caches=self.history and self.answer_cache,
            counts=self.history and self.usage_counts,
            audit=self.audit_log,
        )


class SettingFields(TypedDict, total=False):
    """The settings as keywords, for editors; None stands for a setting that is not given."""

    profile: str | None
    context_model: str | None
    answer_model: str | None
    answer_hosts: str | Sequence[str] | None
    embed_model: str | None
    rerank_model: str | None
    gpu_layers: int | None
    context: str | None  # a ContextMode
    context_form: WrittenForm | None
    context_minutes: float | None
    chunker: Chunker | None
    chunk_tokens: int | None
    overlap: int | None
    dense_weight: float | None
    keyword_weight: float | None
    rrf_k: int | None
    pool: int | None
    rerank_candidates: int | None
    rerank_seconds: float | None
    all_candidates: int | None
    find_passages: int | None
    no_versions: str | Sequence[str] | None
    passages: int | None
    answer_cache: bool | None
    history: bool | None
    usage_counts: bool | None
    audit_log: bool | None
    idle_seconds: float | None
    keep_warm: float | None
    cluster: Mapping[str, Any] | None
    search_engine: Mapping[str, Any] | None
    publish_seconds: float | None


def resolve_settings(folder: Path, remembered: Mapping[str, Any] = MappingProxyType({}), **flags: Any) -> Settings:
    """Resolve the settings of a library; a flag that is None was not given.

    Flags take precedence over the environment, the environment over the `settings.toml` in the library's folder, and
    that over the `remembered` settings. What only the user may permit is taken from the user's own settings file
    instead. Raises LibraryError for an invalid value or an unreadable file, and for a model in the library's folder.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    path = folder / SETTINGS_FILE

    class LibrarySettings(Settings):
        model_config = ConfigDict(toml_file=path)  # type: ignore[assignment,typeddict-unknown-key]

        @classmethod
        def settings_customise_sources(cls, *_: Any, **sources: Any) -> tuple[PydanticBaseSettingsSource, ...]:
            installed = os.environ.get("LOCAL_RAG_DEFAULT_PROFILE", "")  # set by an installed bundle
            defaults = {"profile": installed} if installed else {}
            known = {name: value for name, value in remembered.items() if name in REMEMBERED}
            lowest = InitSettingsSource(cls, defaults | known)
            own = InitSettingsSource(cls, _own_settings())
            return sources["init_settings"], sources["env_settings"], own, _CarriedSource(cls), lowest

    try:
        _refuse_unknown(path)
        resolved = LibrarySettings(**given)
        explicit = explicit_settings(**given)
        for name in MODEL_SETTINGS:
            if name not in explicit:
                _refuse_carried(folder, name, getattr(resolved, name))
        return resolved
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise LibraryError(
            f"The setting {name} cannot be {first['input']!r} ({first['msg']}); "
            f"correct the flag, the variable LOCAL_RAG_{name.upper().replace('.', '_')} or {path}."
        ) from None
    except SettingsError as error:
        raise LibraryError(f"The variables LOCAL_RAG_... cannot be read ({error}); correct that one.") from None
    except RecursionError:
        raise LibraryError(f"{path} cannot be read (it is nested too deeply); correct it or delete it.") from None
    except (OSError, ValueError) as error:
        raise LibraryError(f"{path} cannot be read ({error}); correct it or delete it.") from None


def own_settings_file() -> Path:
    """Return the file in which a user permits what no library may."""
    from platformdirs import user_config_path

    return user_config_path("local-rag", appauthor=False) / SETTINGS_FILE


def _own_settings() -> dict[str, Any]:
    path = own_settings_file()
    if not path.is_file():
        return {}
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    if others := sorted(set(found) - set(_USERS_OWN)):
        raise LibraryError(f"{path} contains the setting {others[0]!r}; it may only contain {', '.join(_USERS_OWN)}.")
    return found


class _CarriedSource(TomlConfigSettingsSource):
    """The settings in the folder of a library, without those that only the user may permit."""

    def __call__(self) -> dict[str, Any]:
        """Return them."""
        return {name: value for name, value in super().__call__().items() if name not in _USERS_OWN}


def _refuse_carried(folder: Path, setting: str, value: str) -> None:
    """Raise LibraryError if a library names a model file that came with it, or that depends on where one stands."""
    for part in parts_of(value):
        path = Path(part).expanduser()
        is_path = "://" not in part and ("/" in part or path.suffix == ".gguf")
        if is_path and (not path.is_absolute() or path.resolve().is_relative_to(folder.resolve())):
            raise LibraryError(
                f"The settings of the library in {folder} name the model {part!r}, which is not loaded because others "
                f"may have put it there; name it with a flag or with LOCAL_RAG_{setting.upper()} if you trust it."
            )


def _refuse_unknown(path: Path) -> None:
    """Raise LibraryError if a settings file contains an unknown setting."""
    given = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for table, fields in _TABLES.items():
        if isinstance(inside := given.get(table), dict):
            known = [f"{table}.{name}" for name in fields.model_fields]
            _require_known(path, [f"{table}.{name}" for name in inside], known)
    _require_known(path, given, Settings.model_fields)


def _require_known(path: Path, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            hint = nearest(name, known) or "see the list in docs/settings.md."
            raise LibraryError(f"{path} contains the unknown setting {name!r}; {hint}")


def explicit_settings(**flags: Any) -> frozenset[str]:
    """Return the names of the settings that flags or environment variables set, unlike those a library remembers."""
    return frozenset(Settings(**{name: value for name, value in flags.items() if value is not None}).model_fields_set)


def index_settings(settings: Settings, *models: InstalledModel | None) -> dict[str, Any]:
    """Return the settings that shape an index, with a user's own model as its full path."""
    values = {name: getattr(settings, name) for name in REMEMBERED}
    own = [model for model in models if model and Path(model.name).is_absolute()]
    return values | {f"{model.role}_model": model.name for model in own if values[f"{model.role}_model"]}
