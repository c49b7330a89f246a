"""Gather the wheels of a bundle: pinned packages from the index, llama.cpp for any processor, the program.

Downloaded and built wheels stay in the user's cache folder, so the same input gives the same bytes. Their compiled
files (ELF, 64 bits, little-endian) say which versions of the system's libraries they need.
"""

import base64
import csv
import hashlib
import os
import re
import shlex
import struct
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from local_rag.bundle.archive import BundleError
from local_rag.bundle.prefix import run
from local_rag.bundle.verify import numbers
from local_rag.files import constraints, file_sha256, package_key, pinned_versions

EXTRAS = ("code", "serve")  # always packed; `--extra` adds others
LLAMA, PROGRAM = "llama-cpp-python", "local-rag"
# Without OpenMP, because a machine may lack its library; measured to be as fast, also beside a busy program.
PORTABLE = "-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON -DGGML_OPENMP=OFF"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date in a zip
_EPOCH_SECONDS = "315532800"
# For the build file of llama-cpp-python, and again for ggml below it, because that file sets the second switch back.
# A library for llama.cpp's own programs would take half of the time. The path of the build takes room in each library
# that once named it, so the bytes would depend on its length.
_CMAKE = """\
set(LLAMA_BUILD_COMMON OFF)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_PROJECT_ggml_INCLUDE ${CMAKE_CURRENT_LIST_FILE})
"""
_OF_BUILDER = "lib/pkgconfig/"
_BUILD_TOOLS = ("scikit-build-core", "cmake", "ninja")
_CHECKOUT = Path(__file__).parents[2]


def pins() -> dict[str, str]:
    """Return the pinned version of every package."""
    if not (found := pinned_versions()):
        raise BundleError("platform", "The list of pinned versions is missing; reinstall local-rag.")
    return found


def known_extras() -> list[str]:
    """Return the extras that `--extra` can add."""
    checkout = _CHECKOUT / "pyproject.toml"
    if checkout.is_file():
        found = list(tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]["optional-dependencies"])
    else:
        found = _distribution(PROGRAM).metadata.get_all("Provides-Extra") or []
    return sorted(set(found) - {*EXTRAS, "dev", "bundle", "cluster-test"})


def missing_packages(extras: Sequence[str]) -> list[str]:
    """Return the packages of extras that are not installed, whose own requirements are therefore unknown."""
    from packaging.requirements import Requirement

    if unknown := set(extras) - set(known_extras()):
        text = f"Unknown extra {', '.join(sorted(unknown))}"
        raise BundleError("platform", f"{text}; choose from {', '.join(known_extras())}.")
    wanted = [Requirement(line) for line in _requirements(PROGRAM, extras)]
    names = [one.name for one in wanted if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras)]
    return sorted(package_key(name) for name in names if not _has(name))


def needed_packages(extras: Sequence[str] = ()) -> dict[str, str]:
    """Return the pinned versions of the program's direct and indirect requirements."""
    from packaging.requirements import Requirement

    pinned, found, waiting = pins(), dict[str, str](), [(PROGRAM, frozenset((*EXTRAS, *extras)))]
    seen = set(waiting)
    while waiting:
        name, chosen = waiting.pop()
        for line in _requirements(name, extras):
            wanted = Requirement(line)
            key = package_key(wanted.name)
            if not any(wanted.marker is None or wanted.marker.evaluate({"extra": extra}) for extra in ("", *chosen)):
                continue
            found[key] = pinned.get(key) or _distribution(key).version  # torch requires a package that is not pinned
            if (one := (key, frozenset(wanted.extras))) not in seen:
                seen.add(one)
                waiting.append(one)
    return dict(sorted(found.items()))


def _requirements(name: str, packed: Iterable[str]) -> Sequence[str]:
    """Return a package's requirements; for the program those of its checkout, which may be newer."""
    checkout = _CHECKOUT / "pyproject.toml"
    if name != PROGRAM or not checkout.is_file():
        return _distribution(name).requires or ()
    project = tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]
    return [
        *project["dependencies"],
        *(line for extra in {*EXTRAS, *packed} for line in project["optional-dependencies"][extra]),
    ]


def installed_bytes(name: str) -> int:
    """Estimate the size of a package that is not downloaded yet from its installed files."""
    return sum(file.size or 0 for file in _distribution(name).files or ())


def find_wheels(packages: Mapping[str, str], folder: Path, tags: Sequence[str] = ()) -> dict[str, Path]:
    """Return the wheels in a folder that fit the packages and this Python, or the given platforms."""
    from packaging.tags import cpython_tags, sys_tags
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    order = [*cpython_tags(platforms=list(tags)), *sys_tags()] if tags else list(sys_tags())
    if tags:
        order = [tag for tag in order if tag.platform == "any" or tag.platform in tags]
    rank = {tag: number for number, tag in reversed(list(enumerate(order)))}
    found: dict[str, tuple[int, Path]] = {}
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, _, known = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        fits = min((rank[tag] for tag in known if tag in rank), default=None)
        best = found.get(name)
        if fits is not None and packages.get(name) == str(version) and (best is None or fits < best[0]):
            found[name] = (fits, path)
    return {name: path for name, (_, path) in sorted(found.items())}


def fetch(packages: Mapping[str, str], folder: Path, tags: Sequence[str] = ()) -> dict[str, Path]:
    """Download the wheels that are missing in the folder; return all wheels, each with a hash of the lock file.

    Raise BundleError for a wheel with another hash. A wheel in the folder that was cut or changed is downloaded again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hashes = locked_hashes()
    for name, path in find_wheels(packages, folder, tags).items():
        if file_sha256(path) not in hashes.get(name, ()) and name in hashes:
            path.unlink()
    missing = packages.keys() - find_wheels(packages, folder, tags).keys()
    wanted = [f"{name}=={packages[name]}" for name in sorted(missing)]
    if wanted:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".", suffix=".tmp") as temporary:
            command = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", temporary]
            python = f"{sys.version_info.major}.{sys.version_info.minor}"
            if tags:
                command += ["--python-version", python, "--implementation", "cp"]
                command += [f"--abi={abi}" for abi in (f"cp{python.replace('.', '')}", "abi3", "none")]
                command += [f"--platform={tag}" for tag in tags]
            _pip([*command, *wanted])
            for name, path in find_wheels(packages, Path(temporary), tags).items():
                if name in hashes and (found_hash := file_sha256(path)) not in hashes[name]:
                    text = f"{path.name} from the index has the SHA-256 {found_hash}, which is not in requirements.lock"
                    raise BundleError("integrity", f"{text}; use an index that has the original file.")
                path.replace(folder / path.name)
    found = find_wheels(packages, folder, tags)
    if absent := sorted(packages.keys() - found.keys()):
        raise BundleError("platform", f"The index has no suitable wheel of {', '.join(absent)}; try another --glibc.")
    return found


def locked_hashes() -> dict[str, set[str]]:
    """Return the SHA-256 of all files of each package, from the lock file; torch is not in it."""
    path = constraints()
    lock = path.with_name("requirements.lock") if path else Path("requirements.lock")
    if not lock.is_file():
        raise BundleError("platform", "requirements.lock, the list of hashes, is missing; reinstall local-rag.")
    found = dict[str, set[str]]()
    for entry in re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8")):
        name, is_entry, _ = entry.partition("==")
        if is_entry:
            found[package_key(name)] = set(re.findall("--hash=sha256:([0-9a-f]{64})", entry))
    return found


def build_llama(version: str, folder: Path, environment: Mapping[str, str]) -> Path:
    """Build llama.cpp for all processors of this architecture, unless a cached build exists."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (built := sorted(folder.glob("llama_cpp_python-*.whl"))):
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            _pip(
                _build_command(version, Path(temporary)),
                {"CMAKE_ARGS": PORTABLE, **_fixed(Path(temporary)), **environment},
            )
            for path in Path(temporary).glob("*.whl"):
                put_in_order(path)
                path.replace(folder / path.name)
        built = sorted(folder.glob("llama_cpp_python-*.whl"))
    return built[-1]


def put_in_order(path: Path) -> None:
    """Write a wheel again with its files and its RECORD sorted, which the build lists as the disk happens to.

    Files for pkg-config are left out: they name the folder in which the wheel was built, and nothing here needs them.
    """
    with zipfile.ZipFile(path) as wheel:
        members = sorted(wheel.infolist(), key=lambda one: one.filename)
        kept = [one for one in members if not one.filename.startswith(_OF_BUILDER)]
        contents = {one.filename: (wheel.read(one), one.external_attr >> 16 & 0o777) for one in kept}
    with zipfile.ZipFile(path, "w") as out:
        for file, (data, mode) in contents.items():
            lines = [data]
            if file.endswith(".dist-info/RECORD"):
                rows = data.splitlines(keepends=True)
                lines = sorted(row for row in rows if not row.startswith(_OF_BUILDER.encode()))
            _add(out, file, b"".join(lines), mode)


def _build_command(version: str, folder: Path) -> list[str]:
    """Unpack the sources of llama-cpp-python, compared with the lock file, and return the arguments that build them."""
    hashes = " ".join(f"--hash=sha256:{one}" for one in sorted(locked_hashes()[LLAMA]))
    (folder / "llama.txt").write_text(f"{LLAMA}=={version} {hashes}\n")
    # Only of this package: the tools that build it would otherwise be built from their sources, too.
    command = ["download", "--quiet", "--no-deps", "--no-binary", LLAMA, "--require-hashes"]
    _pip([*command, "--dest", str(folder), "--requirement", str(folder / "llama.txt")])
    with tarfile.open(next(folder.glob("llama_cpp_python-*.tar.gz"))) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    sources = next((folder / "unpacked").iterdir()).rename(folder / "sources")
    command = ["wheel", "--quiet", "--no-cache-dir", "--no-deps", "--wheel-dir", str(folder)]
    return [*command, f"--config-settings=build-dir={folder / 'build'}", str(sources)]


def _fixed(folder: Path) -> dict[str, str]:
    """Return the environment in which the same sources give the same bytes: no path, no date, pinned build tools."""
    pinned = pins()
    lines = [f"{name}=={pinned[name]}\n" for name in _BUILD_TOOLS if name in pinned]
    (folder / "build-tools.txt").write_text("".join(lines))
    same = f"-ffile-prefix-map={folder}=."  # the path of the sources is in the text of assertions
    tools = str(folder / "build-tools.txt")
    (folder / "llama.cmake").write_text(_CMAKE)
    return {
        "SKBUILD_CMAKE_DEFINE": f"CMAKE_PROJECT_llama_cpp_INCLUDE={folder / 'llama.cmake'}",
        "CFLAGS": same,
        "CXXFLAGS": same,
        "SOURCE_DATE_EPOCH": _EPOCH_SECONDS,
        "PIP_CONSTRAINT": tools,  # for pip before 25.3
        "PIP_BUILD_CONSTRAINT": tools,
    }


def program_wheel(folder: Path) -> Path:
    """Build the program's wheel from its checkout, or pack the installed program."""
    if not (_CHECKOUT / "pyproject.toml").is_file():
        return wheel_of_installed(PROGRAM, folder)
    here = ["--no-build-isolation"] if _has("hatchling") else []
    _pip(
        ["wheel", "--quiet", "--no-deps", *here, "--wheel-dir", str(folder), str(_CHECKOUT)],
        {"SOURCE_DATE_EPOCH": _EPOCH_SECONDS},
    )
    return next(folder.glob("local_rag-*.whl"))


def wheel_of_installed(name: str, folder: Path) -> Path:
    """Pack an installed package as a wheel; raise BundleError if its files changed after the installation."""
    found = _distribution(name)
    wheel = found.read_text("WHEEL") or ""
    tags = re.findall(r"^Tag: (\S+)$", wheel, re.MULTILINE)
    rows = [row for row in csv.reader((found.read_text("RECORD") or "").splitlines()) if row and _is_packed(row[0])]
    if not tags or not rows:
        raise BundleError("platform", f"{name} is not installed as a wheel; install it with pip.")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace('-', '_')}-{found.version}-{tags[0]}.whl"
    records = []
    with zipfile.ZipFile(path, "w") as out:
        for file, recorded, _ in sorted(rows):
            if file.endswith("/RECORD"):
                own = file
                continue
            source = Path(str(found.locate_file(file)))
            data = source.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            if recorded and recorded != f"sha256={digest}":
                raise BundleError("integrity", f"{source} changed after its installation; install {name} again.")
            _add(out, file, data, 0o755 if os.access(source, os.X_OK) else 0o644)
            records.append(f"{file},sha256={digest},{len(data)}")
        _add(out, own, "\n".join([*records, f"{own},,", ""]).encode(), 0o644)
    return path


def _is_packed(file: str) -> bool:
    """Return whether a file was in the wheel; exclude pip's own files and files outside of the packages."""
    generated = file.endswith((".pyc", "/INSTALLER", "/REQUESTED", "/direct_url.json"))
    return not generated and not file.startswith(("../", "/"))


def _add(out: zipfile.ZipFile, file: str, data: bytes, mode: int) -> None:
    info = zipfile.ZipInfo(file, _EPOCH)
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
    out.writestr(info, data, compresslevel=6)


def unpacked_bytes(path: Path) -> int:
    """Return the size of an installed wheel."""
    with zipfile.ZipFile(path) as wheel:
        return sum(member.file_size for member in wheel.infolist())


def variants(path: Path) -> list[str]:
    """Return the processors that a llama.cpp wheel has kernels for; none if it was built for a single one."""
    with zipfile.ZipFile(path) as wheel:
        found = (re.search(r"libggml-cpu-(\w+)\.so$", name) for name in wheel.namelist())
        return sorted({one[1] for one in found if one})


def glibc_tags(glibc: str) -> list[str]:
    """Return the platforms whose wheels run with a version of glibc, newest first."""
    machine = os.uname().machine
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(int(glibc.partition(".")[2]), 4, -1)]
    old = {"manylinux2014": 17, "manylinux2010": 12, "manylinux1": 5}
    return tags + [f"{name}_{machine}" for name, minor in old.items() if f"manylinux_2_{minor}_{machine}" in tags]


def macos_version(paths: Iterable[Path]) -> str:
    """Return the highest version of macOS that wheels need by their tags; empty elsewhere."""
    found = (re.search(r"-macosx_(\d+)_(\d+)_", path.name) for path in paths)
    versions = [(int(one[1]), int(one[2])) for one in found if one]
    return "{}.{}".format(*max(versions)) if versions else ""


def commit() -> str:
    """Return the commit of the checkout, with `-changed` if tracked files differ from it; empty without one."""
    head, changed = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    return head + ("-changed" if changed else "") if head and changed is not None else ""


def committed() -> int:
    """Return when the commit of the checkout was made, in seconds since 1970; 0 without a checkout."""
    return int(_git("show", "--no-patch", "--format=%ct", "HEAD") or 0)


def _git(*arguments: str) -> str | None:
    if not (_CHECKOUT / "pyproject.toml").is_file():
        return None
    try:
        done = run(["git", "-C", _CHECKOUT, *arguments])
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()


def zig_compiler(glibc: str, folder: Path) -> dict[str, str]:
    """Write compiler commands for an older glibc with zig; return them as environment variables."""
    if not _has("ziglang"):
        text = f"Compiling llama.cpp for glibc {glibc} needs zig, which is not installed"
        raise BundleError("platform", f"{text}; run `pip install ziglang` or leave out --glibc.")
    folder.mkdir(parents=True, exist_ok=True)
    # Call the program directly, because Python does not find the package while pip builds a wheel.
    zig, target = _distribution("ziglang").locate_file("ziglang/zig"), f"{os.uname().machine}-linux-gnu.{glibc}"
    for name in ("cc", "c++"):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(str(zig))} {name} -target {target} "$@"\n')
        program.chmod(0o755)
    return {"CC": str(folder / "cc"), "CXX": str(folder / "c++")}


def _has(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _distribution(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise BundleError(
            "platform", f"{name} is not installed, so its requirements are unknown; install it first."
        ) from None


def _pip(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = run(command, env={**os.environ, **(environment or {})})
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        reason = next((line for line in lines if "ERROR" in line), lines[-1] if lines else "no reason given")
        raise BundleError("platform", f"pip {arguments[0]} failed ({reason.strip()}); check the network and the index.")


_VERSION_NEEDS = 0x6FFFFFFE  # the type of the section .gnu.version_r
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NEED = struct.Struct("<HHIII")
_SYMBOL_VERSION = struct.Struct("<IHHII")
_RELR = "2.36"  # the first glibc that understands compressed relocations
_SYSTEM = ("libstdc++.so", "libgcc_s.so", "libgomp.so")  # compilers' libraries, which a system may lack


def needed_versions(data: bytes) -> set[tuple[str, str]]:
    """Return the libraries and symbol versions, such as libc.so.6 and GLIBC_2.28, that an ELF file needs."""
    if data[:6] != b"\x7fELF\x02\x01":
        return set()
    try:
        header = _HEADER.unpack_from(data)
        offset, size, count = header[6], header[11], header[12]
        sections = [_SECTION.unpack_from(data, offset + number * size) for number in range(count)]
        needed = set[tuple[str, str]]()
        for section in sections:
            if section[1] == _VERSION_NEEDS:
                strings = sections[section[6]][4]
                needed.update(_needs(data, section[4], section[7], strings))
    except (struct.error, IndexError, ValueError) as error:
        raise BundleError("platform", f"Cannot parse a compiled file ({error}).") from error
    return needed


def _needs(data: bytes, offset: int, files: int, strings: int) -> Iterator[tuple[str, str]]:
    """Walk the two levels of .gnu.version_r: files, and the needed versions of each file."""
    for _ in range(files):
        _, versions, file, first, following = _NEED.unpack_from(data, offset)
        entry = offset + first
        for _ in range(versions):
            _, _, _, name, following_entry = _SYMBOL_VERSION.unpack_from(data, entry)
            yield _text(data, strings + file), _text(data, strings + name)
            entry += following_entry
        offset += following


def _text(data: bytes, begin: int) -> str:
    return data[begin : data.index(b"\0", begin)].decode("ascii", "replace")


@dataclass(frozen=True, slots=True)
class SystemNeeds:
    """What compiled files need of the system: the highest glibc, the file that needs it, and libraries' versions."""

    glibc: str = ""
    glibc_needed_by: str = ""
    library_versions: tuple[str, ...] = ()  # such as `libstdc++.so.6 GLIBCXX_3.4.29`, the highest of each kind


def system_needs(wheels: Mapping[str, Path]) -> SystemNeeds:
    """Return what the compiled files in wheels need of the system, besides the libraries that the wheels contain."""
    glibc, needed_by = "", ""
    highest, contained = dict[tuple[str, str], str](), set[str]()
    for name, path in sorted(wheels.items()):
        with zipfile.ZipFile(path) as wheel:
            for member in wheel.namelist():
                if ".so" not in member and "/bin/" not in member:
                    continue
                contained.add(member.rpartition("/")[2])
                for library, symbol in needed_versions(wheel.read(member)):
                    kind, _, version = symbol.partition("_")
                    if not re.fullmatch(r"[0-9.]+", version):
                        if symbol == "GLIBC_ABI_DT_RELR" and numbers(glibc) < numbers(_RELR):
                            glibc, needed_by = _RELR, f"{member} of {name}"
                    elif kind != "GLIBC":
                        if numbers(version) > numbers(highest.get((library, kind), "")):
                            highest[library, kind] = version
                    elif numbers(version) > numbers(glibc):
                        glibc, needed_by = version, f"{member} of {name}"
    lines = (f"{library} {kind}_{version}" for (library, kind), version in highest.items() if library not in contained)
    known = (line for line in lines if line.startswith(_SYSTEM))
    return SystemNeeds(glibc, needed_by, tuple(sorted(known)))
