"""Pack a bundle: gather its files, compute its size, write the parts, sign them, rehearse the installation.

Its archive is one uncompressed tar in parts; the same members give the same bytes. `tarfile` does not write it: its
headers differ between versions of Python, and it writes sizes and paths in records that `archive.py` would have to
accept too.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from local_rag.bundle import archive, packing_list, verify, wheels
from local_rag.bundle.approval import documents_for_approval
from local_rag.bundle.archive import BLOCK, CHUNK, BundleError
from local_rag.bundle.packing_list import Item, a_sentence, copy_for_bundle, item_of
from local_rag.bundle.prefix import last_line, run
from local_rag.files import extra_command, flush, folder_bytes
from local_rag.keys import key_of
from local_rag.llama.probe import run_probe
from local_rag.machine import free_bytes
from local_rag.models.models_folder import default_models_directory
from local_rag.models.registry import ModelEntry, load_registry

Step = Callable[[str], None]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_ORDER = ("python", "sbom", "licence", "wheel", "model", "library")
_MOST_PARTS = 999  # their numbers have three digits
_REHEARSED = 200 * 1024**2  # for what the self-test writes, and the installer's own reserve
_UNPACKS_TO = 4  # the unpacked size of an interpreter, in sizes of its archive
# llama.cpp's names of processor features and Linux's.
_FEATURES = {
    **{name: name.lower() for name in ("SSSE3", "AVX", "AVX2", "FMA", "F16C", "BMI2", "AVX512_VNNI", "AVX512_BF16")},
    **{"SSE3": "pni", "AVX512": "avx512f", "AVX512_VBMI": "avx512vbmi"},
}
# Runs in another process, because a closed network cannot be opened again.
_SEALED = (
    "import os, sys; from local_rag.offline import close; close(); os.execvpe(sys.argv[1], sys.argv[1:], os.environ)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The options of `local-rag bundle create`."""

    output: Path
    profile: str
    cache: Path
    library: Path | None = None
    models: bool = True
    part_bytes: int = 3900 * 1024**2
    glibc: str = ""
    python: Path | None = None
    sign: Path | None = None
    llama: Literal["portable", "installed"] = "portable"
    extras: tuple[str, ...] = ()


@dataclass(slots=True)
class BundleContents:
    """The files of a bundle, and the models and packages that they come from."""

    packing: Packing
    items: list[Item] = field(default_factory=list)
    entries: list[ModelEntry] = field(default_factory=list)
    wheels: dict[str, Item] = field(default_factory=dict)
    needed_models: list[Item] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return the numbers and sizes of the files."""
        kinds = {
            kind: {"files": len(some), "bytes": sum(item.bytes for item in some)}
            for kind in dict.fromkeys(item.kind for item in self.items)
            if (some := [item for item in self.items if item.kind == kind])
        }
        return {
            "profile": self.packing.profile,
            "bytes": sum(item.bytes for item in self.items),
            "kinds": kinds,
            "estimated": sorted(name for name, item in self.wheels.items() if item.source is None),
            "output": str(self.packing.output),
        }


def gather(packing: Packing, temporary: Path, step: Step, *, fetching: bool) -> BundleContents:
    """Gather the files of a bundle; without `fetching`, download nothing and estimate the sizes of missing files."""
    if packing.output.exists() and (not packing.output.is_dir() or any(packing.output.iterdir())):
        raise BundleError("disk", f"{packing.output} exists and is not an empty folder; choose another --output.")
    contents, folder = BundleContents(packing), default_models_directory()
    contents.entries = [load_registry().models[name] for name in packing_list.models_of(packing.profile)]
    step("hashing the models")
    for entry in contents.entries:
        contents.needed_models += packing_list.model_items(entry, folder)
    needs_torch = [entry.name for entry in contents.entries if entry.needs_sentence_transformers]
    if needs_torch and "sentence-transformers" not in packing.extras:
        text = f"{needs_torch[0]} needs the extra sentence-transformers"
        raise BundleError("platform", f"{text}; pack it with `--extra sentence-transformers`.")
    if missing := wheels.missing_packages(packing.extras):
        text = f"The extra {', '.join(packing.extras)} needs {', '.join(missing)}, which is not installed here"
        raise BundleError("platform", f"{text}; run `{extra_command(','.join(packing.extras))}`.")
    _gather_wheels(contents, temporary, step, fetching=fetching)
    contents.items += list(contents.wheels.values())
    if packing.models:
        contents.items += contents.needed_models
    if packing.python:
        require_interpreter(packing.python)
        name = re.sub(r"[^A-Za-z0-9._+-]", "-", packing.python.name).lstrip(".-") or "python.tar"
        contents.items.append(item_of(f"python/{name}", "python", packing.python))
    if packing.library:
        step("copying the library")
        copy_for_bundle(packing.library, temporary / "library", packing.profile)
        copy = temporary / "library"
        files = sorted(path for path in copy.rglob("*") if path.is_file())
        contents.items += [item_of(f"library/{path.relative_to(copy).as_posix()}", "library", path) for path in files]
    if fetching:
        models = contents.entries if packing.models else []
        interpreter = next((item for item in contents.items if item.kind == "python"), None)
        contents.items += documents_for_approval(contents.wheels, models, interpreter)
    contents.items.sort(key=lambda item: (_ORDER.index(item.kind), item.path))
    return contents


def _gather_wheels(contents: BundleContents, temporary: Path, step: Step, *, fetching: bool) -> None:
    packing = contents.packing
    packages = wheels.needed_packages(packing.extras)
    llama = packages.pop(wheels.LLAMA)
    tags = wheels.glibc_tags(packing.glibc) if packing.glibc else []
    cache = packing.cache / "wheels"
    kept = packing.cache / f"llama-{llama}-{PYTHON}-glibc{packing.glibc or 'here'}-{key_of(wheels.PORTABLE)[:8]}"
    if not fetching:
        known = wheels.find_wheels(packages, cache, tags)
        known |= dict.fromkeys([wheels.LLAMA], path) if (path := next(kept.glob("*.whl"), None)) else {}
        for name in (*packages, wheels.LLAMA, wheels.PROGRAM):
            path = known.get(name)
            size = path.stat().st_size if path else wheels.installed_bytes(name) // 2
            if name == wheels.PROGRAM:
                size = folder_bytes(Path(__file__).parents[1])
            contents.wheels[name] = Item(f"wheels/{path.name if path else name}", "wheel", path, size)
        return
    step("gathering the wheels")
    found = wheels.fetch(packages, cache, tags)
    if packing.llama == "installed":
        found[wheels.LLAMA] = wheels.wheel_of_installed(wheels.LLAMA, temporary / "llama")
    else:
        step("building llama.cpp for all processors, which takes ten minutes or more the first time")
        compiler = wheels.zig_compiler(packing.glibc, temporary / "zig") if packing.glibc else {}
        found[wheels.LLAMA] = wheels.build_llama(llama, kept, compiler)
    (temporary / "program").mkdir()
    found[wheels.PROGRAM] = wheels.program_wheel(temporary / "program")
    contents.wheels = {name: item_of(f"wheels/{path.name}", "wheel", path) for name, path in sorted(found.items())}


def pack(contents: BundleContents, step: Step) -> dict[str, Any]:
    """Write, sign and rehearse a bundle in a temporary folder; rename the folder if everything worked."""
    packing = contents.packing
    total = sum(item.bytes for item in contents.items)
    if total * 1.01 / packing.part_bytes > _MOST_PARTS:
        text = f"The bundle would have over {_MOST_PARTS} parts of {packing.part_bytes:,} bytes"
        raise BundleError("disk", f"{text}; choose a larger --part-size.")
    packing.output.parent.mkdir(parents=True, exist_ok=True)
    manifest = make_manifest(contents)
    _require_space(packing, total, int(manifest["unpacked_bytes"]))
    staging = packing.output.with_name(f".{packing.output.name}.tmp")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        step("writing the parts")
        write_bundle(contents, manifest, staging)
        if packing.sign:
            sign(staging / verify.SUMS, packing.sign)
        step("rehearsing: installing from the parts without network and asking a question")
        tested = _rehearse(contents, staging)
        for path in staging.iterdir():
            flush(path)
        if packing.output.exists():
            packing.output.rmdir()
        staging.rename(packing.output)
        flush(packing.output.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    parts = sorted(path.name for path in packing.output.iterdir() if ".tar." in path.name)
    return {"id": manifest["id"], "output": str(packing.output), "parts": parts, "bytes": total, "rehearsal": tested}


def _require_space(packing: Packing, total: int, unpacked: int) -> None:
    packing.cache.mkdir(parents=True, exist_ok=True)
    rehearsed = total + unpacked + _REHEARSED
    needs = [(packing.output.parent, "the bundle", int(total * 1.01), "another --output")]
    needs.append((packing.cache, "its rehearsal", rehearsed, "another disk with XDG_CACHE_HOME"))
    if packing.output.parent.stat().st_dev == packing.cache.stat().st_dev:
        needs = [(packing.output.parent, "the bundle with its rehearsal", int(total * 1.01) + rehearsed, needs[0][3])]
    for folder, what, needed, other in needs:
        if (free := free_bytes(folder)) < needed:
            text = f"{what.capitalize()} needs {needed / 1e6:,.0f} MB, but {folder} has {free / 1e6:,.0f} MB free"
            raise BundleError("disk", f"{text}; free some space or choose {other}.")


def _rehearse(contents: BundleContents, bundle: Path) -> dict[str, Any]:
    """Rehearse in the cache folder, because the bundle may be on a disk without links; remove what was left there."""
    folder = contents.packing.cache / "rehearsals"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    models = () if contents.packing.models else contents.needed_models
    try:
        present = {one.sha256: one.source for one in models if isinstance(one.source, Path)}
        library = contents.packing.library
        asked = (packing_list.library_name(library), a_sentence(library)) if library else None
        return rehearse(bundle, present, folder, asked)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_manifest(contents: BundleContents) -> dict[str, Any]:
    """Return the manifest: the bundle's members, version and requirements."""
    packing = contents.packing
    paths = {name: item.source for name, item in contents.wheels.items() if isinstance(item.source, Path)}
    needs = wheels.system_needs(paths)
    if packing.glibc and verify.numbers(needs.glibc) > verify.numbers(packing.glibc):
        text = f"{needs.glibc_needed_by} needs glibc {needs.glibc}, which is later than --glibc {packing.glibc}"
        raise BundleError("platform", f"{text}; leave out --glibc or use another wheel.")
    kinds = wheels.variants(paths[wheels.LLAMA])
    packages = list(paths.values())
    unpacked = sum(map(wheels.unpacked_bytes, packages)) + sum(
        item.bytes * _UNPACKS_TO for item in contents.items if item.kind == "python"
    )
    interpreter = next((item.path for item in contents.items if item.kind == "python"), None)
    library = packing.library and {"name": packing_list.library_name(packing.library)}
    return {
        "format": archive.FORMAT,
        "id": packing_list.bundle_id(version("local-rag"), contents.items),
        "version": version("local-rag"),
        "commit": wheels.commit(),
        "committed": wheels.committed(),
        "profile": packing.profile,
        "platform": {
            "system": platform.system(),
            "machine": platform.machine(),
            "python": PYTHON,
            "interpreter": interpreter,
            "glibc": needs.glibc,
            "glibc_needed_by": needs.glibc_needed_by,
            "macos": wheels.macos_version(packages),
            "processor_flags": [] if kinds else _flags_used(),
            "library_versions": list(needs.library_versions),
        },
        "llama_variants": kinds,
        "needs_models": [] if packing.models else [item.as_member() for item in contents.needed_models],
        "library": library,
        "unpacked_bytes": unpacked,
        "members": [item.as_member() for item in contents.items],
    }


def _flags_used() -> list[str]:
    printed, _ = run_probe()
    used = set(re.findall(r"(?<!\w)(\w++) = 1", printed))
    return sorted(flag for feature, flag in _FEATURES.items() if feature in used)


def write_bundle(contents: BundleContents, manifest: dict[str, Any], folder: Path) -> None:
    """Write the parts, the tools beside them, and the list of all their hashes."""
    text = json.dumps(manifest, indent=1, sort_keys=True).encode()
    first = item_of(archive.MANIFEST, "sbom", text)
    members = (
        (item.path, item.bytes, item.sha256, lambda source=item.source: read_source(source))
        for item in (first, *contents.items)
    )
    name = f"local-rag-{manifest['version']}-{manifest['profile']}"
    sums = write_parts(members, folder, name, contents.packing.part_bytes)
    for tool in verify.TOOLS:
        data = (Path(__file__).parent / tool).read_text(encoding="utf-8")
        if tool == "install.sh":
            packed = {item.path: item.sha256 for item in contents.items if item.kind == "python"}
            archive_path = manifest["platform"]["interpreter"] or "''"
            data = data.replace("@PYTHON@", PYTHON).replace("@ARCHIVE@", archive_path)
            data = data.replace("@SHA256@", packed.get(archive_path, "''"))
        (folder / tool).write_text(data, encoding="utf-8")
        sums[tool] = item_of(tool, "sbom", data.encode()).sha256
    (folder / verify.SUMS).write_text("".join(f"{sums[one]}  {one}\n" for one in sorted(sums)))


def sign(path: Path, key: Path) -> None:
    """Sign the list of hashes with an OpenSSH key."""
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", verify.NAMESPACE, str(path)]
    try:
        done = run(command)
    except OSError:
        raise BundleError("signature", "ssh-keygen is not installed; install OpenSSH 8.1 or later to sign.") from None
    if done.returncode:
        reason = last_line(done)
        raise BundleError("signature", f"ssh-keygen cannot sign with {key} ({reason}); choose a readable private key.")


def require_interpreter(path: Path) -> None:
    """Raise BundleError if an archive does not contain Python of the running version, which the wheels need."""
    try:
        with tarfile.open(path) as packed:
            names = packed.getnames()
    except (OSError, tarfile.TarError) as error:
        text = f"{path} is not an archive of a Python interpreter ({error})"
        raise BundleError("platform", f"{text}; choose a .tar.gz with --python.") from None
    if not any(re.fullmatch(rf"(\./)?([^/]+/)?bin/python{re.escape(PYTHON)}", name) for name in names):
        raise BundleError(
            "platform", f"{path} does not contain bin/python{PYTHON}, which the wheels need; choose another --python."
        )


def create(packing: Packing, step: Step, show: Callable[[dict[str, Any]], None], *, dry_run: bool) -> dict[str, Any]:
    """Plan a bundle, show the plan, and pack it unless `dry_run`; return the plan or the result."""
    with tempfile.TemporaryDirectory(prefix="local-rag-bundle-") as temporary:
        contents = gather(packing, Path(temporary), step, fetching=not dry_run)
        show(contents.summary())
        return contents.summary() if dry_run else pack(contents, step)


def rehearse(
    bundle: Path, models: Mapping[str, Path], folder: Path, library: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Install and test a bundle below a folder; return the result of the self-test, or raise BundleError.

    The environment has a minimal PATH, no pip configuration and an empty home. A bundle without models uses those that
    it was packed with, given by their SHA-256. A library, given by its name and words of it, is searched and asked.
    """
    with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=folder) as temporary:
        prefix, home = Path(temporary) / "prefix", Path(temporary) / "home"
        home.mkdir()
        (prefix / "content").mkdir(parents=True)
        for sha, path in models.items():
            (prefix / "content" / sha).symlink_to(path.resolve())
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": temporary}
        environment["LOCAL_RAG_PYTHON"] = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        command = ["sh", str(bundle / "install.sh"), "--prefix", str(prefix), "--json"]
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        done = _run(command, environment)
        try:
            result = dict(json.loads(done.stdout.strip().splitlines()[-1]))
        except (ValueError, IndexError):
            reason = last_line(done, f"exit code {done.returncode}")
            raise BundleError("self-test", f"The rehearsal failed ({reason}); nothing was packed.") from None
        if not result["ok"]:
            raise BundleError(result["kind"], f"The rehearsal failed: {result['message']}")
        if library and library[1]:
            _ask(prefix, library, environment)
        return dict(result["self_test"])


def _ask(prefix: Path, library: tuple[str, str], environment: Mapping[str, str]) -> None:
    name, words = library
    for command in ("search", "ask"):
        program = [str(prefix / "bin" / "local-rag"), command, words, "--json"]
        done = _run([*program, "--library", str(prefix / "libraries" / name)], environment)
        try:
            found = json.loads(done.stdout)
        except ValueError:
            found = None
        passages = found.get("passages") if isinstance(found, dict) else found
        if done.returncode or not passages:
            reason = last_line(done, "nothing was found")
            text = f"The rehearsal failed: `local-rag {command}` cannot use the packed library ({reason})"
            raise BundleError("self-test", f"{text}; nothing was packed.")


def _run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-P", "-c", _SEALED, *command], env=environment)


_RECORD = 20 * BLOCK  # the length of a tar is a multiple of it
_LONGEST_NAME = 100
_LARGEST_OCTAL = 8**11


class PartWriter:
    """Write bytes into files of a maximum size and hash each file."""

    def __init__(self, folder: Path, name: str, part_bytes: int) -> None:
        self._folder, self._name, self._part_bytes = folder, name, part_bytes
        self.hashes: dict[str, str] = {}
        self.bytes = 0
        self._next()

    def write(self, data: bytes) -> None:
        """Write bytes into as many parts as necessary."""
        while data:
            if self._left == 0:
                self.close()
                self._next()
            taken, data = data[: self._left], data[self._left :]
            self._file.write(taken)
            self._digest.update(taken)
            self._left -= len(taken)
            self.bytes += len(taken)

    def close(self) -> None:
        """Close the last part."""
        self._file.close()
        self.hashes[Path(self._file.name).name] = self._digest.hexdigest()

    def _next(self) -> None:
        self._file = (self._folder / f"{self._name}.tar.{len(self.hashes) + 1:03}").open("xb")
        self._digest, self._left = hashlib.sha256(), self._part_bytes


def write_parts(
    members: Iterable[tuple[str, int, str, Callable[[], Iterator[bytes]]]], folder: Path, name: str, part_bytes: int
) -> dict[str, str]:
    """Write members (path, size, SHA-256, reader) as parts; return the parts' names and hashes.

    Raise BundleError if a member changed after it was hashed.
    """
    with closing(PartWriter(folder, name, part_bytes)) as out:
        for path, size, sha256, read in members:
            out.write(tar_header(path, size))
            digest, written = hashlib.sha256(), 0
            for block in read():
                digest.update(block)
                written += len(block)
                out.write(block)
            if (written, digest.hexdigest()) != (size, sha256):
                raise BundleError("integrity", f"{path} changed while it was packed; run the command again.")
            out.write(bytes(-size % BLOCK))
        out.write(bytes(2 * BLOCK))
        out.write(bytes(-out.bytes % _RECORD))
    return out.hashes


def read_source(source: Path | bytes) -> Iterator[bytes]:
    """Yield the content of a file, or the given bytes."""
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        yield from iter(lambda: file.read(CHUNK), b"")


def tar_header(path: str, size: int, kind: bytes = b"0") -> bytes:
    """Return a regular file's header without owner and date, after an extended header if the path is long."""
    name = path.encode("ascii")
    before = b""
    if len(name) > _LONGEST_NAME:
        record = b" path=" + name + b"\n"
        length = len(record) + len(str(len(record) + 3))
        record = str(length).encode() + record
        before = tar_header("path", len(record), b"x") + record + bytes(-len(record) % BLOCK)
        name = name[-_LONGEST_NAME:].lstrip(b"/")
    digits = b"%011o\0" % size if size < _LARGEST_OCTAL else b"\x80" + size.to_bytes(11, "big")
    begin = [name.ljust(100, b"\0"), b"0000644\0", b"0000000\0" * 2, digits, b"%011o\0" % 0, b" " * 8]
    header = b"".join([*begin, kind, bytes(100), b"ustar\0", b"00", bytes(64), b"0000000\0" * 2, bytes(167)])
    return before + header[:148] + b"%06o\0 " % sum(header) + header[156:]
