"""Gather the facts that `doctor` checks: machine, program, models and library."""

import importlib.util
import platform
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path

from local_rag.files import constraints, in_checkout
from local_rag.maintenance.checks import CheckResult, check_extras, check_packages, check_platform, check_python

_FOR_DEVELOPERS = ("dev", "cluster-test")


def diagnose(folder: Path, *, left_out: Collection[str] = (), **settings: str | None) -> Iterator[CheckResult]:
    """Run every check for a library and its profile, or the named profile; yield each result when it is known.

    `left_out` are packages that this installation does not have on purpose.
    """
    yield (system := check_platform(platform.system(), platform.machine()))
    yield check_python(sys.version_info[:3])
    yield (packages := check_packages(*_packages(left_out), in_checkout=in_checkout()))
    yield check_extras(missing_extras())
    if "failed" in {system.severity, packages.severity}:
        return
    # Not at the top: the rest of the program may import a missing package.
    from local_rag.maintenance.diagnosis import diagnose_installation

    yield from diagnose_installation(folder, open_ways(), **settings)


def _packages(left_out: Collection[str]) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the versions of the required packages, and the pinned versions."""
    names = [_name(line) for line in requires("local-rag") or () if "extra ==" not in line]
    pinned = {}
    if path := constraints():
        lines = path.read_text(encoding="utf-8").splitlines()
        pinned = {_normal(name): pin for name, found, pin in (line.partition("==") for line in lines) if found}
    modules: dict[str, list[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            modules.setdefault(_normal(distribution), []).append(module)
    names = [name for name in names if _normal(name) not in left_out]
    return {_normal(name): _version(name, modules) for name in names}, pinned


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


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _version(name: str, modules: Mapping[str, list[str]]) -> str | None:
    """Return the version of a package, None if it or its modules are missing."""
    try:
        found = version(name)
    except PackageNotFoundError:
        return None
    holds = modules.get(_normal(name), [])
    return found if not holds or any(importlib.util.find_spec(module) for module in holds) else None


def open_ways() -> list[str]:
    """Close the network in another process, as each command does in its own; return what remains open."""
    command = [sys.executable, "-P", "-m", "local_rag.offline"]
    # Inherit the files that the parent process left open: one may be a socket.
    done = subprocess.run(command, capture_output=True, text=True, check=False, close_fds=False)
    return [*done.stdout.splitlines(), *done.stderr.splitlines()[-1:]]
