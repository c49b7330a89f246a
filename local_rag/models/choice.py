"""Choose the models: from settings, which may name one for a role, to those of the profile."""

from collections.abc import Mapping
from typing import Any

from local_rag.errors import LibraryError
from local_rag.models.registry import FORMATS, load_registry, resolve
from local_rag.records import InstalledModel, Role
from local_rag.settings import Settings

THRESHOLDS = "answered_log_odds"  # what a library remembers them under


def chosen(settings: Settings) -> dict[Role, str]:
    """Name the model, or the path, for every role that the settings or the profile give one."""
    profiles = load_registry().profiles
    if settings.profile not in profiles:
        raise LibraryError(
            f"There is no profile {settings.profile!r}; choose one of {', '.join(profiles)} with `--profile`."
        )
    names = {role: getattr(settings, f"{role}_model") or profiles[settings.profile].get(role, "") for role in FORMATS}
    return {role: name for role, name in names.items() if name}


def find(settings: Settings, role: Role) -> InstalledModel:
    """Find the model for a role on disk; raise ModelError where there is none, naming the command that pulls it."""
    return resolve(chosen(settings).get(role, ""), role)


def find_for_index(settings: Settings) -> tuple[InstalledModel, InstalledModel | None]:
    """Find the embedder and, where contexts are generated, the model that writes them."""
    return find(settings, "embed"), find(settings, "context") if settings.context == "llm" else None


def threshold_of(model: InstalledModel, remembered: Mapping[str, Any]) -> float:
    """Return the log odds from which on a model answers: as calibrated on a library's documents, or as registered."""
    return float(remembered.get(THRESHOLDS, {}).get(model.identity, model.answered_log_odds))


def with_threshold(model: InstalledModel, remembered: Mapping[str, Any], threshold: float) -> dict[str, Any]:
    """Return what a library has to remember of a threshold beside those of other models."""
    return {THRESHOLDS: {**remembered.get(THRESHOLDS, {}), model.identity: threshold}}
