"""The fingerprint of everything that shapes an index: kept in its manifest and compared before each search."""

from collections.abc import Mapping
from typing import Any

from local_rag.errors import LibraryError
from local_rag.index.protocol import index_recipe
from local_rag.index.scoring import KeywordTuning
from local_rag.index.vector_index import VectorTuning
from local_rag.indexing.distinction import APART
from local_rag.indexing.situating_prompts import PROMPT
from local_rag.indexing.vectors import embedder_identity
from local_rag.keys import key_of
from local_rag.model_records import InstalledModel
from local_rag.settings import Settings


def make_fingerprint(
    settings: Settings, embed_model: InstalledModel, context_model: InstalledModel | None
) -> dict[str, Any]:
    """Name everything that shapes chunks, contexts, vectors and both indexes (`keyword_tokens`)."""
    return {
        "embedder": embedder_identity(embed_model),
        "embedder_name": embed_model.name,
        "keyword_tokens": index_recipe(KeywordTuning(), VectorTuning()),
        "context_model": context_model.identity if context_model else "",
        "context_model_name": context_model.name if context_model else "",
        "prompt": key_of(APART, PROMPT) if settings.context == "auto" else 0,
        **{name: getattr(settings, name) for name in ("chunker", "chunk_tokens", "overlap", "context")},
    }


def differences(made: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Say how two fingerprints differ; values that one of them lacks are not compared."""
    found = []

    def differ(name: str) -> bool:
        return name in made and name in wanted and made[name] != wanted[name]

    for name, title in (("embedder", "embedder"), ("context_model", "context model")):
        if differ(name) and wanted[name] and made[name]:
            before, after = made[f"{name}_name"], wanted[f"{name}_name"]
            found.append(f"the {title} ({before} then, {after} now)" if before != after else f"the files of {before}")
    for name, title in (
        ("context", "contexts"),
        ("chunker", "chunker"),
        ("chunk_tokens", "chunk size"),
        ("overlap", "overlap"),
    ):
        if differ(name):
            found.append(f"the {title} ({made[name] or 'default'} then, {wanted[name] or 'default'} now)")
    if differ("prompt") and not differ("context"):
        found.append("the prompt for contexts")
    if differ("keyword_tokens"):
        found.append("how this version of local-rag builds its indexes")
    return found


def obstacles(made: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Say which differences make an index unusable; one that another version has built can be searched."""
    return differences({name: value for name, value in made.items() if name != "keyword_tokens"}, wanted)


def require_compatible(manifest: Mapping[str, Any], settings: Settings, embed_model: InstalledModel) -> None:
    """Raise LibraryError if an index was built with other settings or another embedder; say what differs."""
    if changes := obstacles(manifest["fingerprint"], make_fingerprint(settings, embed_model, None)):
        raise LibraryError(
            f"The index was built with different settings ({', '.join(changes)}); drop the flags or LOCAL_RAG_ "
            "variables that differ, or run `local-rag index` with them, which rebuilds only the affected parts."
        )
