"""The checks of `doctor` as pure functions of facts, and the order in which they run.

Each names the command that fixes the problem. This module imports nothing that an incomplete installation may lack.
"""

import importlib.util
import platform
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path
from typing import Any, Literal

from local_rag.files import in_checkout, package_key, pinned_versions

Severity = Literal["ok", "warning", "failed"]

REBUILD = "rm -r .venv && scripts/setup.sh"
_PROGRAM_BYTES = 1500 * 1000**2  # Python, torch, the KV cache and the indexes, without the weights
# The names of processor features in llama.cpp and in Linux.
_FEATURES = {"AVX2": "avx2", "FMA": "fma", "F16C": "f16c", "AVX512": "avx512f", "AVX512_VNNI": "avx512_vnni"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check; `remedy` is a command, empty if nothing is wrong."""

    name: str
    severity: Severity
    message: str
    remedy: str = ""


def check_platform(system: str, machine: str) -> CheckResult:
    """Require a supported system."""
    if system == "Windows":
        return CheckResult("platform", "failed", "Linux and macOS are supported, Windows is not", "wsl --install")
    if system not in {"Linux", "Darwin"}:
        message = f"Linux and macOS are supported, {system} is untested"
        return CheckResult("platform", "warning", message, "scripts/test.sh")
    return CheckResult("platform", "ok", f"{'macOS' if system == 'Darwin' else system} {machine}")


def check_python(found: tuple[int, ...]) -> CheckResult:
    """Require a supported version of Python."""
    text = ".".join(map(str, found))
    if found < (3, 11):
        return CheckResult("Python", "failed", f"{text} is older than 3.11", "PYTHON=python3.11 scripts/setup.sh")
    return CheckResult("Python", "ok", text)


def check_packages(
    found: Mapping[str, str | None], pinned: Mapping[str, str], *, in_checkout: bool = True
) -> CheckResult:
    """Require every package, at its pinned version if the pins are known."""

    def remedy(names: Sequence[str]) -> str:
        if in_checkout:
            return "scripts/setup.sh"
        wanted = (f"{name}=={pinned[name]}" if name in pinned else name for name in names)
        return shlex.join([sys.executable, "-m", "pip", "install", *wanted])

    if missing := [name for name, version in found.items() if version is None]:
        return CheckResult("packages", "failed", f"missing: {', '.join(missing)}", remedy(missing))
    other = {
        name: f"{name} {version} instead of {pinned[name]}"
        for name, version in found.items()
        if version is not None and pinned.get(name, version) != version.partition("+")[0]  # 2.13.0+cpu is 2.13.0
    }
    if other:
        return CheckResult("packages", "warning", f"not as pinned: {', '.join(other.values())}", remedy([*other]))
    return CheckResult("packages", "ok", f"{len(found)} installed" + (", as pinned" if pinned else ""))


def check_extras(missing: Sequence[str]) -> CheckResult:
    """Name the extras that are not installed; what needs one says so when it is used."""
    if missing:
        message = f"not installed: {', '.join(missing)}; a command that needs one says how to install it"
        return CheckResult("extras", "ok", message)
    return CheckResult("extras", "ok", "all installed")


def check_llama(
    build: str | None, printed: str, processor: str, flags: Sequence[str], problem: str | None
) -> CheckResult:
    """Compare the features that llama.cpp was built for with those of the processor."""
    if problem:
        return CheckResult("llama.cpp", "failed", problem, REBUILD)
    used = re.findall(r"(?<!\w)(\w++) = 1", printed)
    unused = [name for name, flag in _FEATURES.items() if flag in flags and name not in used]
    message = f"llama-cpp-python {build} with {' '.join(used)}; {processor}"
    if unused:
        return CheckResult("llama.cpp", "warning", f"{message} also has {' '.join(unused)}", REBUILD)
    return CheckResult("llama.cpp", "ok", message)


def check_offline(ways: Sequence[str], left_open: Sequence[str] = ()) -> CheckResult:
    """Require that no data can leave the machine; name what cannot be closed."""
    if ways:
        message = f"data could leave this machine through {', '.join(ways)}"
        return CheckResult("offline", "failed", message, "scripts/setup.sh")
    return CheckResult("offline", "ok", "; ".join(["connections and name look-ups are refused", *left_open]))


def check_bundle(receipt: Mapping[str, Any], differences: Sequence[str]) -> CheckResult:
    """Name the bundle in the receipt of this installation, and require that nothing differs from its manifest."""
    message = f"{receipt['id']} (profile {receipt['profile']}) from {receipt['bundle']}, {receipt['signature']}"
    if differences:
        others = f" and {len(differences) - 3:,} more" if len(differences) > 3 else ""  # noqa: PLR2004
        message += f"; differs from its manifest: {', '.join(differences[:3])}{others}"
        return CheckResult("bundle", "failed", message, "sh install.sh, in the folder of the bundle")
    return CheckResult(
        "bundle", "ok", f"{message}; {len(receipt['packages'])} packages, nothing differs from its manifest"
    )


def check_cluster(machines: Sequence[str]) -> CheckResult:
    """Say what restricts the connections of a cluster, and what does not."""
    message = (
        f"Python's sockets reach {', '.join(machines)} and no other machine; no filter can restrict native "
        "code (Ray, gRPC) to addresses, so follow the rules of docs/scale.md"
    )
    return CheckResult("cluster", "warning", message, "local-rag cluster check")


def check_cores(cores: int) -> CheckResult:
    """Warn of a single core, which text generation shares with everything else."""
    if cores < 2:  # noqa: PLR2004
        message = "one physical core: contexts will take long"
        return CheckResult("cores", "warning", message, "local-rag index --context headings")
    return CheckResult("cores", "ok", f"{cores} physical cores")


def memory_needed(weights: Mapping[str, int]) -> int:
    """Estimate the memory of `ask` or `index` in bytes: one text generator at a time, with embedder and reranker."""
    generator = max(weights.get("context", 0), weights.get("answer", 0))
    return generator + weights.get("embed", 0) + weights.get("rerank", 0) + _PROGRAM_BYTES


def check_memory(profile: str, needed: int, total: int, free: int) -> CheckResult:
    """Compare the memory, in bytes, with the needs of the profile."""
    message = f"the profile {profile} needs about {needed / 1e9:.1f} GB; {free / 1e9:.1f} of {total / 1e9:.1f} GB free"
    if total < needed:
        smaller = "tiny" if profile == "starter" else "starter"
        return CheckResult("memory", "failed", message, f"local-rag index --profile {smaller}")
    if free < needed:
        return CheckResult("memory", "warning", f"{message}, so close other programs", "free -h")
    return CheckResult("memory", "ok", message)


def check_disk(folder: Path, free: int, needed: int) -> CheckResult:
    """Require disk space, in bytes, for what is still to be written to a folder."""
    message = f"{free / 1e9:.1f} GB free in {folder}"
    if free < needed:
        message += f", {needed / 1e9:.1f} GB needed"
        return CheckResult("disk", "failed" if free < needed / 10 else "warning", message, f"df -h {folder.parent}")
    return CheckResult("disk", "ok", message)


def check_model(name: str, roles: Sequence[str], damage: str, remedy: str, *, hashed: bool = False) -> CheckResult:
    """Require a model to be installed and to match the registry."""
    title = f"{' and '.join(roles)} model"
    if damage:
        return CheckResult(title, "failed", damage, remedy)
    verified = "SHA-256 verified" if hashed else "your own, so there is no SHA-256 to compare"
    return CheckResult(title, "ok", f"{name}, {verified}")


def check_engine(name: str, problem: str, *, tells_odds: bool = False) -> CheckResult:
    """Report whether an engine that already runs can be asked, and what it cannot do."""
    if problem:
        return CheckResult("answer engine", "failed", problem, "local-rag models list --found")
    message = f"{name} answers; local-rag cannot let its prompts share their beginning, which costs time"
    if tells_odds:
        return CheckResult("answer engine", "ok", message)
    message += ", and it does not tell how probable its words are, so numbers and names alone decide what is answered"
    return CheckResult("answer engine", "warning", message, "local-rag models list")


def check_decoding(name: str, problem: str | None, speed: str = "") -> CheckResult:
    """Report whether llama.cpp decodes with a model on this machine, with what, and how fast."""
    if problem:
        return CheckResult("decoding", "failed", problem, REBUILD)
    return CheckResult("decoding", "ok", f"llama.cpp decodes with {name}" + (f" on {speed}" if speed else ""))


def check_privacy(folder: Path, mode: int) -> CheckResult:
    """Require that no other user can read a library."""
    if stat.S_IMODE(mode) & 0o077:
        message = f"{folder} may be read by other users (mode {stat.S_IMODE(mode):o})"
        return CheckResult("library", "warning", message, f"chmod 700 {folder}")
    return CheckResult("library", "ok", f"{folder} is private to its user")


def check_file_system(folder: Path, kind: str, is_network: bool) -> CheckResult:
    """Warn of a network file system, which is slower and locks less reliably."""
    if is_network:
        message = f"{folder} is on a network file system ({kind}): one machine at a time may write to it"
        return CheckResult("file system", "warning", message, "local-rag index --library A_LOCAL_FOLDER")
    return CheckResult("file system", "ok", kind or "local")


def check_integrity(folder: Path, complaints: Sequence[str]) -> CheckResult:
    """Require an undamaged store and an undamaged index."""
    if complaints:
        return CheckResult("integrity", "failed", "; ".join(complaints), f"local-rag repair --library {folder}")
    return CheckResult("integrity", "ok", "the store and the index are whole")


def check_fingerprint(changes: Sequence[str], *, searchable: bool = False) -> CheckResult:
    """Require that the index was built with the present settings and models."""
    if changes:
        message = f"the index was built with different settings ({', '.join(changes)})"
        return CheckResult("fingerprint", "warning" if searchable else "failed", message, "local-rag index")
    return CheckResult("fingerprint", "ok", "the index was built with these settings and models")


_FOR_DEVELOPERS = ("dev", "cluster-test")


def diagnose(folder: Path, **settings: str | None) -> Iterator[CheckResult]:
    """Run every check for a library and its profile, or the named profile; yield each result when it is known."""
    yield (system := check_platform(platform.system(), platform.machine()))
    yield check_python(sys.version_info[:3])
    yield (packages := check_packages(*_packages(), in_checkout=in_checkout()))
    yield check_extras(missing_extras())
    if "failed" in {system.severity, packages.severity}:
        return
    # Not at the top: the rest of the program may import a missing package.
    from local_rag.maintenance.diagnosis import diagnose_installation

    yield from diagnose_installation(folder, open_ways(), **settings)


def _packages() -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the versions of the required packages, and the pinned versions."""
    names = [_name(line) for line in requires("local-rag") or () if "extra ==" not in line]
    modules: dict[str, list[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            modules.setdefault(package_key(distribution), []).append(module)
    return {package_key(name): _version(name, modules) for name in names}, pinned_versions()


def missing_extras(required: Sequence[str] | None = None) -> list[str]:
    """Return the extras of which a package is not installed; by default those in the metadata of local-rag."""
    found = list[str]()
    for line in requires("local-rag") or () if required is None else required:
        extra = re.search(r"extra == ['\"]([^'\"]+)", line)
        if extra and extra[1] not in (*_FOR_DEVELOPERS, *found) and _version(_name(line), {}) is None:
            found.append(extra[1])
    return found


def _name(requirement: str) -> str:
    return re.split(r"[\s\[;<>=!~(]", requirement)[0]


def _version(name: str, modules: Mapping[str, list[str]]) -> str | None:
    try:
        found = version(name)
    except PackageNotFoundError:
        return None
    holds = modules.get(package_key(name), [])
    return found if not holds or any(importlib.util.find_spec(module) for module in holds) else None


def open_ways() -> list[str]:
    """Close the network in another process, as each command does in its own; return what remains open."""
    command = [sys.executable, "-P", "-m", "local_rag.offline"]
    # Inherit the files that the parent process left open: one may be a socket.
    done = subprocess.run(command, capture_output=True, text=True, check=False, close_fds=False)
    return [*done.stdout.splitlines(), *done.stderr.splitlines()[-1:]]
