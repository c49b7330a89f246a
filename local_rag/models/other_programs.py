"""Find models that other programs have on this machine: Ollama, LM Studio, llama.cpp and the cache of the Hub.

Their files are used in place: never copied, never changed, and never trusted by their names.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from local_rag.models.registry import ModelEntry, ModelFile

_UNFINISHED = ("-partial", ".incomplete", ".part", ".tmp", ".downloadInProgress")  # downloads of these programs
_MOST_FILES = 200_000  # of a folder, so a link to a whole disk does not take forever


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder in which another program keeps models."""

    program: str
    folder: Path


def model_folders(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> list[ModelFolder]:
    """Return the folders of other programs that exist, where their own variables or their defaults put them."""
    home = home or Path.home()
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    ollama = Path(environment.get("OLLAMA_MODELS") or home / ".ollama/models")
    hub = Path(environment.get("HF_HOME") or cache / "huggingface") / "hub"
    hub = Path(environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or hub)
    llama = [Path(environment["LLAMA_CACHE"])] if environment.get("LLAMA_CACHE") else [cache / "llama.cpp"]
    candidates = [
        ModelFolder("Ollama", ollama.expanduser() / "blobs"),
        ModelFolder("Hugging Face cache", hub.expanduser()),
        ModelFolder("LM Studio", home / ".lmstudio/models"),
        ModelFolder("LM Studio", home / ".cache/lm-studio/models"),
        *[ModelFolder("llama.cpp", folder.expanduser()) for folder in (*llama, home / "Library/Caches/llama.cpp")],
    ]
    return [place for place in candidates if place.folder.is_dir()]


def files_of(path: Path) -> Iterator[Path]:
    """Yield a file, or the regular files below a folder, without following links to folders."""
    if path.is_file():
        yield path
    seen = 0
    for root, _, names in os.walk(path):
        for name in sorted(names):
            if (seen := seen + 1) > _MOST_FILES:
                return
            with suppress(OSError):
                if (file := Path(root) / name).is_file():
                    yield file


def match(paths: Iterable[Path], entries: Iterable[ModelEntry], hashed: Callable[[Path], str]) -> dict[ModelFile, Path]:
    """Find files of models by their hash, whatever they are called; hash only files of the right size."""
    sizes: dict[int, set[ModelFile]] = defaultdict(set)
    for file in (file for entry in entries for file in entry.files):
        sizes[file.bytes].add(file)
    found: dict[ModelFile, Path] = {}
    for path in paths:
        with suppress(OSError):  # unreadable, or gone meanwhile
            if wanted := [file for file in sizes.get(path.stat().st_size, ()) if file not in found]:
                digest = hashed(path)
                found |= {file: path for file in wanted if file.sha256 == digest}
    return found


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model of the registry, or part of it, among the files of another program."""

    entry: ModelEntry
    program: str
    weights: Path
    missing: tuple[str, ...]


def find_models(
    folders: Sequence[ModelFolder], entries: Sequence[ModelEntry], hashed: Callable[[Path], str]
) -> list[FoundModel]:
    """Return the registry models whose weights another program has."""
    entries, found = [entry for entry in entries if entry.sources], []
    for place in folders:
        files = match(files_of(place.folder), entries, hashed)
        for entry in entries:
            if entry.weights in files:
                missing = tuple(file.name for file in entry.files if file not in files)
                found.append(FoundModel(entry, place.program, files[entry.weights], missing))
    return found


def other_gguf_files(folders: Sequence[ModelFolder], known: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the program and path of each GGUF file that is no model of the registry."""
    seen = {_inode(path) for path in known}
    for place in folders:
        for path in files_of(place.folder):
            with suppress(OSError):
                if path.name.endswith(_UNFINISHED) or (inode := _inode(path)) in seen:
                    continue
                seen.add(inode)
                with path.open("rb") as handle:
                    if handle.read(4) == b"GGUF":
                        yield place.program, path


def _inode(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
