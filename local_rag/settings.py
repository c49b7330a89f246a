"""One frozen Settings object, resolved once from flags, environment, the library's own file and defaults."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from local_rag.errors import LibraryError
from local_rag.files import SETTINGS_FILE
from local_rag.records import ContextMode, InstalledModel

Chunker = Literal["auto", "fixed", "recursive", "markdown", "code"]

# What shapes an index is remembered in the library, so that `search` and `ask` need no flag that `index` was given.
REMEMBERED = ("profile", "embed_model", "context_model", "chunker", "chunk_tokens", "overlap", "context")


class Settings(BaseSettings):
    """Hold every choice a user can make; a model left empty is the profile's."""

    model_config = SettingsConfigDict(frozen=True, env_prefix="LOCAL_RAG_", env_ignore_empty=True, extra="ignore")

    profile: str = Field(default="starter", description="the models to use wherever none is named below")
    context_model: str = Field(
        default="", description="writes contexts: a name of `local-rag models list` or a GGUF file"
    )
    answer_model: str = Field(default="", description="answers: a name of `local-rag models list` or a GGUF file")
    embed_model: str = Field(default="", description="embeds: a name of the list or a sentence-transformers folder")
    rerank_model: str = Field(default="", description="reranks: a name of the list or a cross-encoder folder")
    context: ContextMode = Field(
        default="auto", description="situates a chunk: what sets its document apart, a generated sentence, or less"
    )
    chunker: Chunker = Field(default="auto", description="how documents are split; `auto` goes by the kind of file")
    chunk_tokens: int = Field(
        default=0, ge=0, description="the largest chunk; 0: what the embedder has beside the headings"
    )
    overlap: int = Field(default=0, ge=0, description="tokens that neighbouring chunks share")
    dense_weight: float = Field(default=0.7, ge=0, description="the weight of dense search in fusion")
    keyword_weight: float = Field(default=1.0, ge=0, description="the weight of keyword search in fusion")
    rrf_k: int = Field(default=10, ge=1, description="k of reciprocal rank fusion: rank r counts weight / (k + r)")
    pool: int = Field(default=150, ge=1, description="candidates of each list")
    rerank_candidates: int = Field(default=0, ge=0, description="passages to rerank; 0: as many as fit rerank_seconds")
    rerank_seconds: float = Field(default=3.0, gt=0, description="what reranking may take where rerank_candidates is 0")
    all_candidates: int = Field(default=1000, ge=1, description="candidates of each list of `search --all`")
    passages: int = Field(default=20, ge=1, description="passages kept after reranking")
    answer_cache: bool = Field(
        default=True, description="`serve` keeps answers, and vectors of questions, to give the same again at once"
    )
    history: bool = Field(default=True, description="conversations of `chat` and of the page are kept until forgotten")
    usage_counts: bool = Field(
        default=True, description="`status` counts the questions of the last 30 days, not their words"
    )
    audit_log: bool = Field(default=False, description="`serve` writes who asked what to `audit.jsonl` in the library")
    idle_seconds: float = Field(default=900.0, gt=0, description="after which `serve` frees the models it does not use")
    cluster_address: str = Field(
        default="", description="HOST:PORT of the head of a Ray cluster whose machines index; empty: this machine alone"
    )
    search_engine: str = Field(
        default="", description="`qdrant:https://HOST:PORT/NAME`, which holds the index; empty: the library's folder"
    )
    publish_seconds: float = Field(
        default=600.0,
        gt=0,
        description="from one publish to the next, as contexts come in; more where a publish takes long",
    )


def resolve_settings(folder: Path, remembered: Mapping[str, Any] = MappingProxyType({}), **flags: Any) -> Settings:
    """Resolve the settings of a library; flags that are None were not given.

    Flags win over the environment, that over the user's own `settings.toml`, and that over what is `remembered`.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    path = folder / SETTINGS_FILE

    class LibrarySettings(Settings):
        model_config = ConfigDict(toml_file=path)  # type: ignore[assignment,typeddict-unknown-key]

        @classmethod
        def settings_customise_sources(cls, *_: Any, **sources: Any) -> tuple[PydanticBaseSettingsSource, ...]:
            installed = os.environ.get("LOCAL_RAG_DEFAULT_PROFILE", "")  # set where a bundle was installed
            usual = {"profile": installed} if installed else {}
            kept = InitSettingsSource(
                cls, usual | {name: value for name, value in remembered.items() if name in REMEMBERED}
            )
            return sources["init_settings"], sources["env_settings"], TomlConfigSettingsSource(cls), kept

    try:
        _refuse_unknown(path)
        return LibrarySettings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise LibraryError(
            f"The setting {name} cannot be {first['input']!r} ({first['msg']}); "
            f"correct the flag, the variable LOCAL_RAG_{name.upper()} or {path}."
        ) from None
    except (OSError, ValueError) as error:
        raise LibraryError(f"{path} cannot be read ({error}); correct it or delete it.") from None


def _refuse_unknown(path: Path) -> None:
    """Raise LibraryError for a line of a settings file that names no setting."""
    names = list(tomllib.loads(path.read_text(encoding="utf-8"))) if path.is_file() else []
    for name in names:
        if name not in Settings.model_fields:
            close = difflib.get_close_matches(name, Settings.model_fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "docs/settings.md lists them."
            raise LibraryError(f"{path} names {name!r}, which is no setting; {hint}")


def said_now(**flags: Any) -> frozenset[str]:
    """Name the settings that flags or the environment give, in contrast to what a library remembers."""
    return frozenset(Settings(**{name: value for name, value in flags.items() if value is not None}).model_fields_set)


def index_settings(settings: Settings, *models: InstalledModel | None) -> dict[str, Any]:
    """Return the settings that shape an index, a user's own model by its full path."""
    values = {name: getattr(settings, name) for name in REMEMBERED}
    return values | {f"{model.role}_model": model.name for model in models if model and values[f"{model.role}_model"]}
