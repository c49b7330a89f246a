"""Install the bundle in this file's folder; `sh install.sh` finds a Python for it. Uses only the standard library.

A version is unpacked under a hidden name, renamed, tested, and then made current by renaming a link. If the process is
killed at any point, the previous version still runs, and the next installation removes the leftovers.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __package__:
    from local_rag.bundle import archive, verify
    from local_rag.bundle import prefix as layout
else:  # in the bundle's folder, without the package
    import importlib.util

    sys.dont_write_bytecode = True  # Python's cache files would not belong to the bundle

    def _load(name: str) -> Any:
        found = importlib.util.spec_from_file_location(name, Path(__file__).resolve().with_name(f"{name}.py"))
        assert found is not None
        assert found.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        return module

    archive = _load("archive")
    verify = _load("verify")
    layout = _load("prefix")
BundleError = archive.BundleError

_SPARE = 64 * 1024 * 1024  # for files that are not members
Step = Callable[[str], None]


def install(
    folder: Path,
    prefix: Path,
    *,
    key: Path | None = None,
    require_signature: bool = False,
    step: Step = lambda _text: None,
    free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
    self_test: bool = True,
) -> dict[str, Any]:
    """Check a bundle, unpack it beside the installed versions, test it, and switch to it; return the receipt."""
    step("checking the bundle")
    checked = verify.check(folder, key, require_signature)
    if not checked["ok"]:
        raise BundleError(checked["kind"], verify.as_text(checked).replace("\n", "; "))
    manifest = checked["manifest"]
    with _prefix(prefix):
        _require_space(manifest, prefix, free)
        versions = prefix / "versions"
        for left in versions.glob(".*.tmp"):
            shutil.rmtree(left)
        final, staging = versions / manifest["id"], versions / f".{manifest['id']}.tmp"
        try:
            if final.exists():  # only models and the library may be missing
                _unpack(folder, manifest, prefix, None, step)
            else:
                staging.mkdir(parents=True)
                _unpack(folder, manifest, prefix, staging, step)
                _finish(manifest, prefix, staging, checked)
                step("renaming the version to its final name")
                os.sync()
                staging.rename(final)
        finally:
            layout.remove(staging)
        if self_test:
            step("testing without network")
            try:
                tested = _self_test(final, prefix, manifest)
            except BundleError:
                if layout.current(prefix) != manifest["id"]:
                    layout.remove(final)
                raise
        step("switching to the new version")
        layout.switch(prefix, manifest["id"])
        step("removing versions before the previous one")
        kept = {layout.current(prefix), layout.current(prefix, "previous")}
        for old in versions.iterdir():
            if old.name not in kept:
                layout.remove(old)
    receipt: dict[str, Any] = json.loads((final / layout.RECEIPT).read_text())
    return receipt | {"self_test": tested if self_test else None, "command": str(prefix / "bin" / "local-rag")}


@contextmanager
def _prefix(prefix: Path) -> Iterator[None]:
    """Create and lock the folder to install into; remove it afterwards if it was new and is still empty."""
    made = not prefix.exists()
    prefix.mkdir(parents=True, exist_ok=True)
    with layout.lock(prefix):
        try:
            yield
        finally:
            if made and not any(path.name != ".lock" for path in prefix.iterdir()):
                shutil.rmtree(prefix)


def _require_space(manifest: dict[str, Any], prefix: Path, free: Callable[[Path], int]) -> None:
    """Raise BundleError if the disk has no space for the unpacked packages, the largest wheel and missing models."""
    needed = _SPARE + int(manifest["unpacked_bytes"])
    needed += max((member["bytes"] for member in manifest["members"] if member["kind"] == "wheel"), default=0)
    for member in manifest["members"]:
        if member["kind"] in ("model", "library") and not _exists(prefix, manifest, member):
            needed += member["bytes"]
    if (found := free(prefix)) < needed:
        text = f"The installation needs {needed / 1e6:,.0f} MB in {prefix}, but only {found / 1e6:,.0f} MB are free"
        raise BundleError("disk", f"{text}; free some space or choose another folder with --prefix.")
    missing = [
        model["path"]
        for model in manifest.get("needs_models", ())
        if not _exists(prefix, manifest, {**model, "kind": "model"})
    ]
    if missing:
        text = f"The bundle contains no models, and {missing[0]} is missing or different in {prefix}"
        raise BundleError("platform", f"{text}; install a bundle with models first.")


def _target(prefix: Path, manifest: dict[str, Any], member: dict[str, Any]) -> Path:
    """Return the path of a model or of a library's file."""
    if member["kind"] == "model":
        return prefix / str(member["path"])
    name = str(manifest["library"]["name"])
    return prefix / "libraries" / name / str(member["path"]).partition("/")[2]


def _exists(prefix: Path, manifest: dict[str, Any], member: dict[str, Any]) -> bool:
    """Return whether a model with the same hash, or any library of the same name, is already installed."""
    target = _target(prefix, manifest, member)
    if member["kind"] == "library":
        return (prefix / "libraries" / str(manifest["library"]["name"])).exists()
    return target.is_file() and target.stat().st_size == member["bytes"] and layout.sha256(target) == member["sha256"]


def _unpack(folder: Path, manifest: dict[str, Any], prefix: Path, staging: Path | None, step: Step) -> None:
    """Stream the parts once; write every member and compare it with the manifest again."""
    wanted = {member["path"]: member for member in manifest["members"]}
    parts = sorted(path for path in folder.iterdir() if path.suffix[1:].isdigit() and ".tar." in path.name)
    stream = archive.Stream(parts)
    library = prefix / "libraries" / str((manifest.get("library") or {}).get("name", ""))
    library_staging = library.with_name(f".{library.name}.tmp")
    if manifest.get("library"):
        layout.remove(library_staging)
    seen = ""
    for name, _size, read in archive.members(stream):
        member = wanted.get(name, {"path": name, "kind": "manifest", "sha256": None})
        if (kind := member["kind"]) != seen:
            step(f"unpacking: {kind}")
            seen = kind
        if kind == "model" and not _exists(prefix, manifest, member):
            layout.record(prefix, "models", name, member["sha256"])
            _write(_target(prefix, manifest, member), read, member)
        elif kind == "library" and not library.exists():
            file = _target(prefix, manifest, member).relative_to(prefix).as_posix()
            layout.record(prefix, "libraries", file, member["sha256"])
            _write(library_staging / name.partition("/")[2], read, member)
        elif kind not in ("model", "library") and staging is not None:
            _write_member(staging, read, member, manifest["platform"]["python"])
    stream.close()
    if manifest.get("library") and library_staging.exists():
        library_staging.chmod(0o700)
        library_staging.rename(library)


def _write_member(staging: Path, read: Callable[[], Iterator[bytes]], member: dict[str, Any], python: str) -> None:
    """Write a member of a version; unpack wheels and interpreters."""
    if member["kind"] not in ("wheel", "python"):
        _write(staging / member["path"], read, member)
        return
    packed = staging / "packed"
    _write(packed, read, member)
    if member["kind"] == "wheel":
        _unpack_wheel(packed, staging, python)
    else:
        _unpack_python(packed, staging / "python")
    packed.unlink()


def _write(path: Path, read: Callable[[], Iterator[bytes]], member: dict[str, Any]) -> None:
    """Write a file under a hidden name, compare it with the manifest, and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    digest = hashlib.sha256()
    with temporary.open("wb") as file:
        for block in read():
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if member["sha256"] not in (None, digest.hexdigest()):
        temporary.unlink()
        raise BundleError("integrity", f"{path.name} changed during the installation; copy the bundle again.")
    temporary.replace(path)


def _unpack_wheel(path: Path, staging: Path, python: str) -> None:
    """Unpack a wheel's packages and data where this version of Python finds them; skip commands and headers."""
    packages = staging / "lib" / f"python{python}" / "site-packages"
    with zipfile.ZipFile(path) as wheel:
        for member in wheel.infolist():
            pieces = member.filename.split("/")
            if member.filename.startswith("/") or ".." in pieces or "\\" in member.filename:
                raise BundleError("integrity", f"A wheel contains the unsafe path {member.filename!a}.")
            if member.is_dir():
                continue
            target = packages
            if pieces[0].endswith(".data"):
                where, pieces = pieces[1], pieces[2:]
                if where in ("scripts", "headers"):
                    continue
                target = staging if where == "data" else packages
            file = target.joinpath(*pieces)
            file.parent.mkdir(parents=True, exist_ok=True)
            with wheel.open(member) as source, file.open("wb") as out:
                shutil.copyfileobj(source, out, 1024 * 1024)
            if member.external_attr >> 16 & 0o111:
                file.chmod(0o755)


def _unpack_python(path: Path, folder: Path) -> None:
    """Unpack an interpreter; reject files and links outside of the folder."""
    try:
        with tarfile.open(path) as packed:
            packed.extractall(folder, filter="data")
    except tarfile.TarError as error:
        raise BundleError("integrity", f"Cannot unpack the interpreter ({error}); copy the bundle again.") from error


def _finish(manifest: dict[str, Any], prefix: Path, staging: Path, checked: dict[str, Any]) -> None:
    """Make the folder a Python environment: interpreter, launcher, receipt."""
    python, final = manifest["platform"]["python"], prefix / "versions" / manifest["id"]
    base = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    if manifest["platform"].get("interpreter"):
        found = sorted(staging.glob(f"python/bin/python{python}")) + sorted(
            staging.glob(f"python/*/bin/python{python}")
        )
        if not found:
            text = f"The interpreter's archive does not contain python{python}"
            raise BundleError("platform", f"{text}; pack the bundle with another one.")
        base = final / found[0].relative_to(staging)
    (staging / "bin").mkdir(exist_ok=True)
    (staging / "bin" / "python").symlink_to(base)
    (staging / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {python}\n"
    )
    text = layout.LAUNCHER.format(
        prefix=layout.quoted(prefix), id=manifest["id"], profile=layout.quoted(manifest["profile"]), start=layout.START
    )
    layout.write_program(staging / "bin" / "local-rag", text)
    records = sorted((staging / "lib" / f"python{python}" / "site-packages").glob("*.dist-info/RECORD"))
    receipt = {
        "id": manifest["id"],
        "version": manifest["version"],
        "profile": manifest["profile"],
        "prefix": str(prefix),
        "bundle": str(checked["bundle"]),
        "signature": checked["signature"],
        "python": str(base),
        "left_out": manifest.get("left_out", []),
        "packages": {path.parent.name: layout.sha256(path) for path in records},
    }
    (staging / layout.RECEIPT).write_text(json.dumps(receipt, indent=1, sort_keys=True))


def _self_test(version: Path, prefix: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Run the new version's self-test, in a process without network."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOCAL_RAG_"))}
    environment |= {"LOCAL_RAG_MODELS": str(prefix / "models"), "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [version / "bin" / "python", "-P", "-m", "local_rag.bundle.self_test", manifest["profile"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    try:
        result = dict(json.loads(done.stdout))
    except ValueError:
        result = {
            "ok": False,
            "problem": (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1],
        }
    if not result["ok"]:
        raise BundleError("self-test", f"The new version does not work on this machine: {result['problem']}")
    return result


def main() -> int:
    """Install the bundle in this file's folder."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    parser = argparse.ArgumentParser(prog="install.sh", description="Install the bundle in this file's folder.")
    parser.add_argument("--prefix", type=Path, default=Path(data) / "local-rag", help="folder to install into")
    parser.add_argument("--key", type=Path, help="file with the public key that must have signed the bundle")
    parser.add_argument("--require-signature", action="store_true", help="reject an unsigned bundle")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    if given.key and not given.key.is_file():
        parser.error(f"{given.key} does not exist")
    prefix, kind, message = given.prefix.absolute(), "", ""

    def tell(text: str) -> None:
        print(f"{text} ...", file=sys.stderr)

    try:
        folder = Path(__file__).resolve().parent
        receipt = install(folder, prefix, key=given.key, require_signature=given.require_signature, step=tell)
    except BundleError as error:
        kind, message = error.kind, str(error)
    except OSError as error:
        path = error.filename or prefix
        kind = "disk"
        message = f"Cannot write {path} ({error.strerror}); free some space or choose another --prefix."
    if message:
        print(f"Error: {message}", file=sys.stderr)
        if given.json:
            print(json.dumps({"ok": False, "kind": kind, "message": message}))
        return 1
    if given.json:
        print(json.dumps({"ok": True, **receipt}))
    else:
        print(f"Installed {receipt['id']}. Signature: {receipt['signature']}.\nRun {receipt['command']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
