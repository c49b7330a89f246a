"""Copy a library into a bundle: only if the packed models can use it, and without settings of this machine."""

import json
import tomllib
from contextlib import closing
from pathlib import Path

from local_rag.bundle import plan
from local_rag.bundle.archive import BundleError
from local_rag.errors import LibraryError, ModelError
from local_rag.files import SETTINGS_FILE, folder_bytes
from local_rag.index.generations import Generations
from local_rag.index.segment import read_manifest
from local_rag.indexing.fingerprint import require_compatible
from local_rag.machine import free_bytes
from local_rag.models.choice import chosen, find
from local_rag.settings import resolve_settings
from local_rag.store.connect import remembered_settings
from local_rag.store.database import Store
from local_rag.store.published import copy_library

# Settings that name machines or files of the packer.
_OF_THIS_MACHINE = ("search_engine", "cluster", "answer_hosts", "answer_model", "rerank_model", "gpu_layers")
_SPARE = 16 * 1024 * 1024


def copy_for_bundle(folder: Path, target: Path, profile: str) -> None:
    """Copy a library; raise BundleError if the models of the profile cannot use it, or the disk is too small."""
    require_fit(folder, profile)
    needed = folder_bytes(folder) + _SPARE
    if (free := free_bytes(target.parent)) < needed:
        text = (
            f"The copy of the library needs {needed / 1e6:,.0f} MB, but {target.parent} has {free / 1e6:,.0f} MB free"
        )
        raise BundleError("disk", f"{text}; choose another folder with TMPDIR.")
    try:
        copy_library(folder, target)
    except LibraryError as error:
        raise BundleError("platform", str(error)) from None
    settings = target / SETTINGS_FILE
    if settings.is_file():
        kept = {
            name: value for name, value in tomllib.loads(settings.read_text()).items() if name not in _OF_THIS_MACHINE
        }
        settings.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in kept.items()))


def require_fit(folder: Path, profile: str) -> None:
    """Raise BundleError if a library was made with models that the profile does not contain."""
    packed = plan.models_of(profile)
    try:
        settings = resolve_settings(folder, {"profile": profile} | remembered_settings(folder))
        for role, name in chosen(settings.model_copy(update={"answer_model": "", "rerank_model": ""})).items():
            if name not in packed:
                text = f"The library {folder} uses the {role} model {name}, which is not in the profile {profile}"
                raise BundleError("platform", f"{text}; choose another with --profile, or index the library with it.")
        if live := Generations(folder).live_name():
            manifest = read_manifest(folder / "generations" / live)
            require_compatible(manifest, settings, find(settings, "embed"))
    except (LibraryError, ModelError) as error:
        raise BundleError("platform", f"The library {folder} does not fit the packed models: {error}") from None


def a_sentence(folder: Path) -> str:
    """Return the beginning of a passage of a library, to ask it about; empty if it holds none."""
    with closing(Store(folder)) as store:
        chunk = next(iter(store.chunks()), None)
        return " ".join(store.chunk_text(chunk.id).split()[:12]) if chunk else ""
