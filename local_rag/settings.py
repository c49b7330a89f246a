"""One frozen Settings object, resolved once from flags, environment, the library's own file and defaults."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from local_rag.errors import LibraryError
from local_rag.files import write_whole
from local_rag.records import ContextMode, InstalledModel

SETTINGS_FILE = "settings.toml"

Chunker = Literal["auto", "fixed", "recursive", "markdown", "code"]

# What shapes an index is remembered in the library, so that `search` and `ask` need no flag that `index` was given.
REMEMBERED = ("profile", "embed_model", "context_model", "chunker", "chunk_tokens", "overlap", "context")


class Settings(BaseSettings):
    """Hold every choice a user can make; a model left empty is the profile's."""

    model_config = SettingsConfigDict(frozen=True, env_prefix="LOCAL_RAG_", env_ignore_empty=True, extra="ignore")

    profile: str = Field("starter", description="the models to use wherever none is named below")
    context_model: str = Field("", description="writes contexts: a name of `local-rag models list` or a GGUF file")
    answer_model: str = Field("", description="answers: a name of `local-rag models list` or a GGUF file")
    embed_model: str = Field("", description="embeds: a name of the list or a sentence-transformers folder")
    rerank_model: str = Field("", description="reranks: a name of the list or a cross-encoder folder")
    context: ContextMode = Field("llm", description="situates a chunk: headings and a generated sentence, or less")
    chunker: Chunker = Field("auto", description="how documents are split; `auto` goes by the kind of file")
    chunk_tokens: int = Field(0, ge=0, description="the largest chunk; 0: what the embedder has beside the headings")
    overlap: int = Field(0, ge=0, description="tokens that neighbouring chunks share")
    dense_weight: float = Field(0.7, ge=0, description="the weight of dense search in fusion")
    keyword_weight: float = Field(1.0, ge=0, description="the weight of keyword search in fusion")
    rrf_k: int = Field(10, ge=1, description="k of reciprocal rank fusion: rank r counts weight / (k + r)")
    pool: int = Field(150, ge=1, description="candidates of each list")
    rerank_candidates: int = Field(0, ge=0, description="passages to rerank; 0: as many as fit rerank_seconds")
    rerank_seconds: float = Field(3.0, gt=0, description="what reranking may take where rerank_candidates is 0")
    passages: int = Field(20, ge=1, description="passages kept after reranking")
    publish_seconds: float = Field(600.0, gt=0, description="from one publish to the next, as contexts come in")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let flags win over the environment, and that over the library's file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def resolve_settings(folder: Path, **flags: Any) -> Settings:
    """Resolve the settings of a library; flags that are None were not given."""
    given = {name: value for name, value in flags.items() if value is not None}
    path = folder / SETTINGS_FILE

    class LibrarySettings(Settings):
        model_config = ConfigDict(toml_file=path)  # type: ignore[assignment,typeddict-unknown-key]

    try:
        return LibrarySettings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise LibraryError(
            f"The setting {name} cannot be {first['input']!r} ({first['msg']}); "
            f"correct the flag, the variable LOCAL_RAG_{name.upper()} or {path}."
        ) from None
    except ValueError as error:
        raise LibraryError(f"{path} cannot be read ({error}); correct it or delete it.") from None


def said_now(**flags: Any) -> frozenset[str]:
    """Name the settings that flags or the environment give, in contrast to what a library remembers."""
    return frozenset(Settings(**{name: value for name, value in flags.items() if value is not None}).model_fields_set)


def index_settings(settings: Settings, *models: InstalledModel | None) -> dict[str, Any]:
    """Return the settings that shape an index, a user's own model by its full path."""
    values = {name: getattr(settings, name) for name in REMEMBERED}
    return values | {f"{model.role}_model": model.name for model in models if model and values[f"{model.role}_model"]}


def remember_settings(folder: Path, settings: Settings, *models: InstalledModel | None) -> None:
    """Write what shapes the index next to it.

    JSON's strings and numbers are also TOML's.
    """
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in index_settings(settings, *models).items()]
    write_whole(folder / SETTINGS_FILE, "# Written by `local-rag index`.\n" + "".join(lines))
