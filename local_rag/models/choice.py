"""Choose the model for each role: the one named in the settings, else the profile's."""

from collections.abc import Mapping
from typing import Any

from local_rag.errors import LibraryError
from local_rag.models.registry import MODEL_FORMATS, load_registry, resolve
from local_rag.records import InstalledModel, Role
from local_rag.settings import Settings

THRESHOLDS = "answered_log_odds"  # the library setting that stores them


def chosen(settings: Settings) -> dict[Role, str]:
    """Return the name or path of the model for every role that the settings or the profile define."""
    profiles = load_registry().profiles
    if settings.profile not in profiles:
        raise LibraryError(
            f"Unknown profile {settings.profile!r}; choose one of {', '.join(profiles)} with `--profile`."
        )
    names = {
        role: getattr(settings, f"{role}_model") or profiles[settings.profile].get(role, "") for role in MODEL_FORMATS
    }
    return {role: name for role, name in names.items() if name}


def find(settings: Settings, role: Role) -> InstalledModel:
    """Return the installed model for a role; raise ModelError with the command that pulls it if it is missing."""
    return resolve(chosen(settings).get(role, ""), role)


def find_for_index(settings: Settings) -> tuple[InstalledModel, InstalledModel | None]:
    """Return the embedder and, if contexts are generated, the model that writes them."""
    return find(settings, "embed"), find(settings, "context") if settings.context == "llm" else None


def threshold_of(model: InstalledModel, remembered: Mapping[str, Any]) -> float:
    """Return the log odds above which a model answers: calibrated on the library's documents, or the registry's."""
    return float(remembered.get(THRESHOLDS, {}).get(model.identity, model.answered_log_odds))


def with_threshold(model: InstalledModel, remembered: Mapping[str, Any], threshold: float) -> dict[str, Any]:
    """Return the library setting with a model's threshold added to those of other models."""
    return {THRESHOLDS: {**remembered.get(THRESHOLDS, {}), model.identity: threshold}}
