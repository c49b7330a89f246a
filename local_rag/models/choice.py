"""Choose the model for each role: the one named in the settings, else the profile's."""

import importlib.util
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from local_rag.errors import LibraryError, ModelError
from local_rag.keys import key_of
from local_rag.model_records import PLAIN_CONTEXT_FORM, Calibration, InstalledModel, Role
from local_rag.models.engine_address import permitted_engine
from local_rag.models.models_folder import default_models_directory
from local_rag.models.own_models import MODEL_FORMATS
from local_rag.models.registry import load_registry, missing_files, resolve
from local_rag.passage_records import WrittenForm
from local_rag.serialization import from_plain
from local_rag.settings import Settings

_GPU_KINDS = ("cuda", "vulkan", "hip", "metal")
_CALIBRATIONS = "calibrations"  # the library setting that stores them


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
    if settings.context_form == "sentences":
        names["context"] = _writer_of_sentences(names["context"])
    return {role: name for role, name in names.items() if name}


def _writer_of_sentences(name: str) -> str:
    """Return a context model, or what it is an adapter for if that was trained for questions only."""
    entry = load_registry().models.get(name)
    return entry.base if entry and entry.base and not entry.sentence_form else name


def with_profile(settings: Settings) -> Settings:
    """Return settings with those of their profile, where nothing else has set them."""
    own = load_registry().settings.get(settings.profile, {})
    return settings.model_copy(update={name: own[name] for name in own.keys() - settings.model_fields_set})


def find(settings: Settings, role: Role) -> InstalledModel:
    """Return the installed model for a role; raise ModelError with the command that pulls it if it is missing."""
    if role == "context":
        return asked_for(settings.context_form, resolve(chosen(settings).get(role, ""), role))
    if role != "answer":
        return resolve(chosen(settings).get(role, ""), role)
    permitted_engine(settings)
    model = resolve(chosen(settings).get(role, ""), role)
    backend = gpu_backend() if settings.gpu_layers != 0 and not model.engine else ""
    return on_backend(model, backend)


def asked_for(form: WrittenForm, model: InstalledModel) -> InstalledModel:
    """Return a context model that is asked for this form; one that was not trained writes sentences in any case."""
    if form == "questions" or model.context_form == PLAIN_CONTEXT_FORM:
        return model
    if model.sentence_form is None:
        raise ModelError(
            f"The context model '{model.name}' was trained to ask questions and writes no sentences; name another with "
            "`--context-model`, or index with `--context-form questions`."
        )
    return replace(model, context_form=model.sentence_form)


def on_backend(model: InstalledModel, backend: str) -> InstalledModel:
    """Return an answer model as another one if a GPU runs it, whose odds differ a little.

    So it has a calibration of its own; until then, that of the registry is used.
    """
    return replace(model, identity=key_of(model.identity, backend)) if backend else model


def gpu_backend(package: Path | None = None) -> str:
    """Return the kind of GPU that llama.cpp was compiled for, or "", by its libraries and without loading them."""
    if package is None:
        spec = importlib.util.find_spec("llama_cpp")
        package = Path(spec.origin).parent if spec and spec.origin else Path()
    found = [one.name for kind in _GPU_KINDS for one in (package / "lib").glob(f"*ggml-{kind}.*")]
    return found[0].partition("ggml-")[2].partition(".")[0] if found else ""


def identity_of(settings: Settings, role: Role) -> str:
    """Return the identity of the model for a role; empty if the profile has none."""
    return find(settings, role).identity if role in chosen(settings) else ""


def find_for_index(settings: Settings) -> tuple[InstalledModel, InstalledModel | None]:
    """Return the embedder and the model that writes sentences; None if none are wanted or it is not pulled."""
    return find(settings, "embed"), find(settings, "context") if writes_sentences(settings) else None


def writes_sentences(settings: Settings) -> bool:
    """Return whether `index` writes sentences: if they are wanted and their model is not still to be pulled."""
    return settings.context == "auto" and "context" in chosen(settings) and not context_model_to_pull(settings)


def context_model_to_pull(settings: Settings) -> str:
    """Return the name of the context model if it is known but not pulled, else an empty text."""
    name, registry = chosen(settings).get("context", ""), load_registry()
    parts = registry.parts(name) if name in registry.models else ()
    return name if any(missing_files(part, default_models_directory()) for part in parts) else ""


def calibration_of(model: InstalledModel, remembered: Mapping[str, Any]) -> Calibration | None:
    """Return the calibration of an answer model on the library's documents, else the one in the registry."""
    own = remembered.get(_CALIBRATIONS, {}).get(model.identity)
    return from_plain(Calibration, own) if own else model.calibration


def with_calibration(model: InstalledModel, remembered: Mapping[str, Any], calibration: Calibration) -> dict[str, Any]:
    """Return the library setting with a model's calibration added to those of other models."""
    fields = {**asdict(calibration), "weights": dict(calibration.weights)}
    return {_CALIBRATIONS: {**remembered.get(_CALIBRATIONS, {}), model.identity: fields}}
