"""Add models from files that were carried over: the hash of a file decides to which model it belongs."""

import os
import shutil
import stat
from pathlib import Path

from local_rag.errors import ModelError
from local_rag.files import file_sha256
from local_rag.models.other_programs import files_of, match
from local_rag.models.registry import ModelEntry, ModelFile, Registry
from local_rag.models.sources.pull import is_intact, only_pull, place, require_space


def add(path: Path, registry: Registry, *, models_directory: Path) -> list[tuple[ModelEntry, tuple[str, ...]]]:
    """Take the files of registry models from a file or folder; return each model with the files it still lacks.

    A model is only begun with its weights: small files such as vocabularies belong to several models. Raise ModelError
    if there is no file of a model of the registry.
    """
    found = match(files_of(path), registry.models.values(), file_sha256)
    added = []
    with only_pull(models_directory):
        for entry in registry.models.values():
            folder = entry.folder(models_directory)
            if not entry.sources or not any(file in found for file in entry.files):
                continue
            if entry.weights not in found and not is_intact(folder / entry.weights.name, entry.weights):
                continue
            lacking = [file for file in entry.files if not is_intact(folder / file.name, file)]
            for file in lacking:
                if file in found:
                    _take(found[file], file, entry, models_directory)
            added.append((entry, tuple(file.name for file in lacking if file not in found)))
    if not added:
        digest = f" (SHA-256 {file_sha256(path)})" if path.is_file() else ""
        raise ModelError(
            f"{path}{digest} holds no weights of a model of `local-rag models list`; your own GGUF file or model folder"
            " needs not be added: give its path instead of a name, as in `--answer-model PATH`."
        )
    return added


def _take(path: Path, file: ModelFile, entry: ModelEntry, models_directory: Path) -> None:
    """Link or copy a file into a model's folder, and check what arrived; what others could change later is copied."""
    partial = models_directory / ".partial" / entry.name
    partial.mkdir(parents=True, exist_ok=True)
    taken = partial / file.sha256
    taken.unlink(missing_ok=True)
    try:
        if not _is_ones_own(path):
            raise PermissionError
        os.link(path.resolve(), taken)  # on the same disk: no second copy, and the original may be deleted
    except OSError:
        require_space(entry, file.bytes, partial)
        shutil.copyfile(path, taken)
    if file_sha256(taken) != file.sha256:
        taken.unlink()
        raise ModelError(f"{path} changed while it was added; run the same command again.")
    place(taken, entry.folder(models_directory) / file.name)
    shutil.rmtree(partial)


def _is_ones_own(path: Path) -> bool:
    """Return whether only this user may write to a file."""
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
