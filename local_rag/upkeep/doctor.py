"""Check the machine, the program, the models and the library; each check names the command that mends what it finds.

The checks are pure functions of facts; `diagnose` gathers the facts.
"""

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from local_rag.errors import LibraryError, ModelError
from local_rag.llama.probe import REBUILD, probe_model, processor, run_probe
from local_rag.models.registry import FORMATS, ModelEntry, default_models_directory, load_registry, resolve, verify
from local_rag.records import InstalledModel

if TYPE_CHECKING:
    from local_rag.library import Library

Severity = Literal["ok", "warning", "failed"]

_PROGRAM_BYTES = 1500 * 1000**2  # Python, torch, the KV cache and the indexes, beside the weights
_LIBRARY_BYTES = 1000**3
# What llama.cpp calls a feature, and Linux.
_FEATURES = {"AVX2": "avx2", "FMA": "fma", "F16C": "f16c", "AVX512": "avx512f", "AVX512_VNNI": "avx512_vnni"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found; `remedy` is a command, empty where there is nothing to mend."""

    name: str
    severity: Severity
    message: str
    remedy: str = ""


def diagnose(library: Path, **settings: str | None) -> Iterator[CheckResult]:
    """Run every check for a library and its profile, or the profile named; yield each result as it is known."""
    from local_rag.library import Library

    yield check_python(sys.version_info[:3])
    yield check_packages(*_packages())
    printed, problem = run_probe()
    yield check_llama(_version("llama-cpp-python"), printed, _processor_flags(), problem)
    yield check_offline(_open_ways())
    try:
        opened = Library(library, **settings)
        names = opened.model_names()
    except LibraryError as error:
        yield CheckResult("settings", "failed", str(error), f"local-rag index --library {library} --profile starter")
        return
    registry, models_directory = load_registry(), default_models_directory()
    entries = {role: registry.models[name] for role, name in names.items() if name in registry.models}
    needed = memory_needed({role: _weight(name, registry.models) for role, name in names.items()})
    yield check_cores(_cores())
    yield check_memory(opened.settings.profile, needed, *_memory())
    installed: dict[str, InstalledModel] = {}
    absent = 0  # bytes
    for name in dict.fromkeys(names.values()):
        roles = [role for role in FORMATS if names.get(role) == name]
        try:
            model = resolve(name, roles[0], registry=registry)
        except ModelError as error:
            absent += _weight(name, registry.models)
            yield check_model(name, roles, str(error), f"local-rag models pull {name}")
            continue
        entry = entries.get(roles[0])
        damage = verify(entry, models_directory=models_directory) if entry else ()
        remedy = entry.pull_command(models_directory) if entry else "local-rag models list"
        yield check_model(name, roles, "; ".join(damage), remedy, hashed=entry is not None)
        if not damage:
            installed |= dict.fromkeys(roles, model)
            if model.path.is_file():
                yield check_decoding(name, probe_model(model.path))
    for folder, room in ((models_directory, absent), (opened.folder, _LIBRARY_BYTES)):
        yield check_disk(folder, _free(folder), room)
    yield from _check_library(opened, installed)


def check_python(found: tuple[int, ...]) -> CheckResult:
    """Require the oldest Python that the program is written for."""
    text = ".".join(map(str, found))
    if found < (3, 11):
        return CheckResult("Python", "failed", f"{text} is older than 3.11", "PYTHON=python3.11 scripts/setup.sh")
    return CheckResult("Python", "ok", text)


def check_packages(found: Mapping[str, str | None], pinned: Mapping[str, str]) -> CheckResult:
    """Require every package, at its pinned version where the pins are known."""
    remedy = "scripts/setup.sh" if pinned else "pip install --force-reinstall local-rag"
    if missing := [name for name, version in found.items() if version is None]:
        return CheckResult("packages", "failed", f"missing: {', '.join(missing)}", remedy)
    other = [
        f"{name} {version} instead of {pinned[name]}"
        for name, version in found.items()
        if version is not None and pinned.get(name, version) != version.partition("+")[0]  # 2.13.0+cpu is 2.13.0
    ]
    if other:
        return CheckResult("packages", "warning", f"not as pinned: {', '.join(other)}", remedy)
    return CheckResult("packages", "ok", f"{len(found)} installed" + (", as pinned" if pinned else ""))


def check_llama(build: str | None, printed: str, flags: Sequence[str], problem: str | None) -> CheckResult:
    """Compare what llama.cpp was built for with what the processor can do."""
    if problem:
        return CheckResult("llama.cpp", "failed", problem, REBUILD)
    used = re.findall(r"(\w+) = 1", printed)
    unused = [name for name, flag in _FEATURES.items() if flag in flags and name not in used]
    message = f"llama-cpp-python {build} with {' '.join(used)}; {processor()}"
    if unused:
        return CheckResult("llama.cpp", "warning", f"{message} also has {' '.join(unused)}", REBUILD)
    return CheckResult("llama.cpp", "ok", message)


def check_offline(ways: Sequence[str]) -> CheckResult:
    """Require that nothing can leave the machine."""
    if ways := [way for way in ways if way]:
        message = f"something could leave this machine through {', '.join(ways)}"
        return CheckResult("offline", "failed", message, "scripts/setup.sh")
    return CheckResult("offline", "ok", "connections and name look-ups are refused")


def check_cores(cores: int) -> CheckResult:
    """Warn of a single core, on which generating text and everything else take turns."""
    if cores < 2:  # noqa: PLR2004
        message = "one physical core: contexts will take long"
        return CheckResult("cores", "warning", message, "local-rag index --context headings")
    return CheckResult("cores", "ok", f"{cores} physical cores")


def memory_needed(weights: Mapping[str, int]) -> int:
    """Estimate the memory of `ask` or `index` in bytes: one text generator at a time, beside embedder and reranker."""
    generator = max(weights.get("context", 0), weights.get("answer", 0))
    return generator + weights.get("embed", 0) + weights.get("rerank", 0) + _PROGRAM_BYTES


def check_memory(profile: str, needed: int, total: int, free: int) -> CheckResult:
    """Compare memory, in bytes, with what the profile needs."""
    message = f"the profile {profile} needs about {needed / 1e9:.1f} GB; {free / 1e9:.1f} of {total / 1e9:.1f} GB free"
    if total < needed:
        smaller = "tiny" if profile == "starter" else "starter"
        return CheckResult("memory", "failed", message, f"local-rag index --profile {smaller}")
    if free < needed:
        return CheckResult("memory", "warning", f"{message}, so close other programs", "free -h")
    return CheckResult("memory", "ok", message)


def check_disk(folder: Path, free: int, needed: int) -> CheckResult:
    """Require room, in bytes, for what is still to come into a folder."""
    message = f"{free / 1e9:.1f} GB free in {folder}"
    if free < needed:
        message += f", {needed / 1e9:.1f} GB needed"
        return CheckResult("disk", "failed" if free < needed / 10 else "warning", message, f"df -h {folder.parent}")
    return CheckResult("disk", "ok", message)


def check_model(name: str, roles: Sequence[str], damage: str, remedy: str, *, hashed: bool = False) -> CheckResult:
    """Require a model to be there and to be what the registry says."""
    title = f"{' and '.join(roles)} model"
    if damage:
        return CheckResult(title, "failed", damage, remedy)
    verified = "SHA-256 verified" if hashed else "your own, so there is no SHA-256 to compare"
    return CheckResult(title, "ok", f"{name}, {verified}")


def check_decoding(name: str, problem: str | None) -> CheckResult:
    """Report whether llama.cpp decodes with a model on this processor."""
    if problem:
        return CheckResult("decoding", "failed", problem, REBUILD)
    return CheckResult("decoding", "ok", f"llama.cpp decodes with {name}")


def check_privacy(folder: Path, mode: int) -> CheckResult:
    """Require that nobody else can read a library."""
    if stat.S_IMODE(mode) & 0o077:
        message = f"{folder} may be read by other users (mode {stat.S_IMODE(mode):o})"
        return CheckResult("library", "warning", message, f"chmod 700 {folder}")
    return CheckResult("library", "ok", f"{folder} is private to its user")


def check_integrity(folder: Path, complaints: Sequence[str]) -> CheckResult:
    """Require a whole store and a whole index."""
    if complaints:
        return CheckResult("integrity", "failed", "; ".join(complaints), f"local-rag repair --library {folder}")
    return CheckResult("integrity", "ok", "the store and the index are whole")


def check_fingerprint(changes: Sequence[str]) -> CheckResult:
    """Require that the index was made with what the settings name."""
    if changes:
        message = f"the index was made otherwise: {', '.join(changes)}"
        return CheckResult("fingerprint", "failed", message, "local-rag index")
    return CheckResult("fingerprint", "ok", "the index was made with these settings and models")


def _check_library(library: "Library", installed: Mapping[str, InstalledModel]) -> Iterator[CheckResult]:
    from local_rag.indexing.fingerprint import differences, make_fingerprint
    from local_rag.store.database import STORE_FILE, Store
    from local_rag.store.generation import current_generation
    from local_rag.store.maintenance import check_pages, find_damage

    folder = library.folder
    if not (folder / STORE_FILE).exists():
        yield CheckResult("library", "ok", f"none in {folder} yet; `local-rag index FOLDER` makes one")
        return
    yield check_privacy(folder, folder.stat().st_mode)
    complaints, generation = [], None
    try:
        with closing(Store(folder / STORE_FILE)) as store:
            complaints += check_pages(store) or [
                f"{len(keys):,} damaged {name}" for name, keys in find_damage(store).items() if keys
            ]
        generation = current_generation(folder)
        complaints += generation.damage() if generation else []
    except (LibraryError, OSError, sqlite3.Error) as error:
        complaints.append(str(error))
    yield check_integrity(folder, complaints)
    if generation is not None and "embed" in installed:
        wanted = make_fingerprint(library.settings, installed["embed"], installed.get("context"))
        yield check_fingerprint(differences(generation.manifest["fingerprint"], wanted))


def _packages() -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the versions of the packages that the program requires, and the pins of the checkout it runs from."""
    names = [re.split(r"[\s\[;<>=!~(]", line)[0] for line in requires("local-rag") or () if "extra ==" not in line]
    pinned = {}
    constraints = Path(__file__).parents[2] / "constraints.txt"
    with suppress(OSError):
        lines = constraints.read_text(encoding="utf-8").splitlines()
        pinned = {_normal(name): pin for name, found, pin in (line.partition("==") for line in lines) if found}
    return {_normal(name): _version(name) for name in names}, pinned


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor_flags() -> list[str]:
    with suppress(OSError):
        found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        return found[1].split() if found else []
    return []


def _open_ways() -> list[str]:
    """Close the network in another process, as every command does in its own, and return what stayed open."""
    command = [sys.executable, "-P", "-m", "local_rag.offline"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [*done.stdout.split("\n"), *done.stderr.splitlines()[-1:]]


def _cores() -> int:
    from local_rag.llama.model import physical_cores

    return physical_cores()


def _memory() -> tuple[int, int]:
    """Return total and available memory in bytes, no more than a container's limit."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = total
    with suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        free = int(found[1]) * 1024 if found else total
    with suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        total, free = min(total, limit), min(free, limit)
    return total, free


def _free(folder: Path) -> int:
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return shutil.disk_usage(existing).free


def _weight(name: str, models: Mapping[str, ModelEntry]) -> int:
    """Return the size of a model in bytes: a registry entry's, or that of a user's own file or folder."""
    if name in models:
        return models[name].bytes
    path = Path(name).expanduser()
    files = [path] if path.is_file() else path.glob("**/*.safetensors")
    return sum(file.stat().st_size for file in files)
