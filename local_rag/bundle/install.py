"""Install the bundle in this file's folder; `sh install.sh` finds a Python for it. Uses only the standard library.

Each part is read once. Its members are hashed while they are written below a hidden name; only if the whole bundle was
in order are the wheels unpacked, and the version gets its name, is tested, and is made current by renaming a link. If
the process is killed at any point, the previous version still runs, and the next installation removes the leftovers.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

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
_STAGING = ".installing.tmp"
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
    take_older: Callable[[str], bool] = lambda _question: False,
) -> dict[str, Any]:
    """Check and unpack a bundle beside the installed versions, test it, and switch to it; return the receipt.

    If this bundle is already installed and nothing differs from its manifest, its version stays as it is. A bundle that
    is older than the version in use is only installed if `take_older` says so.
    """
    tested: dict[str, Any] | None = None
    with _prefix(prefix):
        layout.clean(prefix, models=False)  # the version to come may have them
        versions = prefix / "versions"
        unpacking = _Unpacking(prefix, versions / _STAGING, step, free)
        try:
            step("checking and unpacking the bundle")

            def begin(manifest: dict[str, Any]) -> Callable[[dict[str, Any], Iterator[bytes]], None]:
                _refuse_older(manifest, prefix, take_older)
                return unpacking.begin(manifest)

            checked = verify.check(folder, key, require_signature, begin=begin)
            if not checked["ok"]:
                raise BundleError(checked["kind"], verify.as_text(checked).replace("\n", "; "))
            manifest = checked["manifest"]
            unpacking.finish(checked)
            if self_test:
                step("testing without network")
                tested = _self_test(unpacking.version, prefix, manifest)
            if manifest.get("library"):
                unpacking.place_library(str(manifest["library"]["name"]))
            step("switching to the new version")
            layout.switch(prefix, unpacking.version.name)
            step("removing versions before the previous one")
        finally:
            layout.clean(prefix)
    receipt: dict[str, Any] = json.loads((unpacking.version / layout.RECEIPT).read_text())
    return receipt | {"self_test": tested, "command": str(prefix / "bin" / "local-rag")}


@contextmanager
def _prefix(prefix: Path) -> Iterator[None]:
    """Create and lock the folder to install into; remove it afterwards if it was new and is still empty."""
    made = not prefix.exists()
    prefix.mkdir(parents=True, exist_ok=True)
    with layout.lock(prefix):
        try:
            yield
        finally:
            if made and not any(path.is_file() and path.name != ".lock" for path in prefix.rglob("*")):
                shutil.rmtree(prefix)


def _refuse_older(manifest: dict[str, Any], prefix: Path, take_older: Callable[[str], bool]) -> None:
    """Raise BundleError if a bundle is older than the version in use and nobody wants that.

    An old bundle is signed as well as a new one, so who carries it could bring back faults that were mended since.
    """
    try:
        installed = json.loads((prefix / "versions" / layout.current(prefix) / layout.MANIFEST).read_text())
        if _age(manifest) >= _age(installed):
            return
    except (OSError, ValueError, KeyError, TypeError):  # nothing is installed, or it is damaged
        return
    text = f"The bundle holds {_named(manifest)}, which is older than the installed {_named(installed)}"
    if not take_older(text):
        raise BundleError("older", f"{text}; give --yes to install it all the same.")


def _age(manifest: dict[str, Any]) -> tuple[Any, int]:
    return verify.numbers(manifest["version"]), int(manifest.get("committed", 0))


def _named(manifest: dict[str, Any]) -> str:
    committed = manifest.get("committed", 0)
    day = time.strftime("%Y-%m-%d", time.gmtime(committed)) if committed else "an unknown day"
    return f"{manifest['version']} of {day}"


class _Unpacking:
    """Write the members of a bundle below a hidden name, and make a version of them when all were in order."""

    def __init__(self, prefix: Path, staging: Path, step: Step, free: Callable[[Path], int]) -> None:
        self._prefix, self._staging, self._step, self._free = prefix, staging, step, free
        self._manifest: dict[str, Any] = {}
        self._models: list[dict[str, Any]] = []
        self._present: set[str] = set()  # models that are already in the prefix
        self._is_installed = self._has_library = False
        self._kind = ""
        self.version = prefix / "versions" / _STAGING

    def begin(self, manifest: dict[str, Any]) -> Callable[[dict[str, Any], Iterator[bytes]], None]:
        """Require space and models for a bundle whose manifest was checked; return what takes its members."""
        self._manifest = manifest
        self._models = [one for one in (*manifest["members"], *manifest["needs_models"]) if one["kind"] == "model"]
        for sha in {str(one["sha256"]) for one in self._models}:
            path = self._content(sha)
            if path.is_file() and layout.sha256(path) == sha:
                self._present.add(sha)
        for one in manifest["needs_models"]:
            if one["sha256"] not in self._present:
                text = f"The bundle contains no models, and {one['path']} is missing or different in {self._prefix}"
                raise BundleError("platform", f"{text}; install a bundle with models first.")
        self.version = self._free_folder()
        library = manifest.get("library")
        self._has_library = library is not None and (self._prefix / "libraries" / library["name"]).exists()
        self._require_space()
        self._writing(self._staging, lambda: self._staging.mkdir(parents=True))
        return self.take

    def _free_folder(self) -> Path:
        """Return the folder of the version: where it is installed unchanged, else a new one."""
        path, number = self._prefix / "versions" / str(self._manifest["id"]), 0
        while path.exists():
            if not any(layout.differences(path, models=False)):
                self._is_installed = True
                break
            number += 1
            path = path.with_name(f"{self._manifest['id']}~{number}")
        return path

    def _require_space(self) -> None:
        needed = _SPARE + (0 if self._is_installed else int(self._manifest["unpacked_bytes"]))
        needed += sum(one["bytes"] for one in self._manifest["members"] if self._is_wanted(one))
        if (found := self._free(self._prefix)) < needed:
            text = f"The installation needs {needed / 1e6:,.0f} MB in {self._prefix}, but only {found / 1e6:,.0f} MB"
            raise BundleError("disk", f"{text} are free; free some space or choose another folder with --prefix.")

    def _is_wanted(self, member: dict[str, Any]) -> bool:
        if member["kind"] == "model":
            return member["sha256"] not in self._present
        return not (self._has_library if member["kind"] == "library" else self._is_installed)

    def _content(self, sha: str) -> Path:
        return self._prefix / "content" / sha

    def take(self, member: dict[str, Any], blocks: Iterator[bytes]) -> None:
        """Write a member whose hash is not known to be right yet."""
        if member["kind"] != self._kind:
            self._kind = member["kind"]
            self._step(f"unpacking: {self._kind}")
        if not self._is_wanted(member):
            return
        path = self._staging / member["path"]
        if member["kind"] == "model":
            path = self._staging / "content" / member["sha256"]
        file: BinaryIO = self._writing(path, lambda: _open_new(path))
        with file:
            for block in blocks:
                self._writing(path, lambda block=block: file.write(block))  # type: ignore[misc]
            self._writing(path, file.flush)
            self._writing(path, lambda: os.fsync(file.fileno()))

    def _writing(self, path: Path, work: Callable[[], Any]) -> Any:
        """Write; an error is one of the disk, while one of reading is a damaged part."""
        try:
            return work()
        except OSError as error:
            text = f"Cannot write {path} ({error.strerror}); free some space or choose another --prefix."
            raise BundleError("disk", text) from None

    def finish(self, checked: dict[str, Any]) -> None:
        """Make a version of the members, all of which were right, and give it its name."""
        self._step("storing the models")
        (self._prefix / "content").mkdir(exist_ok=True)
        for path in sorted((self._staging / "content").glob("*")):
            path.replace(self._content(path.name))
        if self._is_installed:
            return
        self._step("unpacking the packages")
        version, python = self._staging / "version", self._manifest["platform"]["python"]
        version.mkdir()
        for member in self._manifest["members"]:
            path = self._staging / member["path"]
            if member["kind"] == "wheel":
                _unpack_wheel(path, version, python)
            elif member["kind"] == "python":
                _unpack_python(path, version / "python")
            elif member["kind"] in ("sbom", "licence"):
                (version / member["path"]).parent.mkdir(parents=True, exist_ok=True)
                path.replace(version / member["path"])
            if member["kind"] in ("wheel", "python"):
                path.unlink()
        for member in self._models:
            link = version / layout.MODELS / str(member["path"]).partition("/")[2]
            link.parent.mkdir(parents=True, exist_ok=True)
            target = os.path.relpath(self._content(member["sha256"]), self.version / link.parent.relative_to(version))
            link.symlink_to(target)
        text = json.dumps(self._manifest, indent=1, sort_keys=True)
        (version / layout.MANIFEST).write_text(text)
        _finish(self._manifest, self._prefix, version, self.version, checked)
        self._step("renaming the version to its final name")
        os.sync()
        version.rename(self.version)

    def place_library(self, name: str) -> None:
        """Give an unpacked library its name, unless there is one of that name."""
        target = self._prefix / "libraries" / name
        if target.exists() or not (self._staging / "library").is_dir():
            return
        files = [one for one in self._manifest["members"] if one["kind"] == "library"]
        layout.record(self._prefix, name, {one["path"].partition("/")[2]: one["sha256"] for one in files})
        target.parent.mkdir(exist_ok=True)
        (self._staging / "library").chmod(0o700)
        (self._staging / "library").rename(target)


def _open_new(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("xb")


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


def _finish(manifest: dict[str, Any], prefix: Path, staging: Path, final: Path, checked: dict[str, Any]) -> None:
    """Make the folder a Python environment: interpreter, launcher, receipt."""
    python = manifest["platform"]["python"]
    base = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    if manifest["platform"].get("interpreter"):
        program = f"bin/python{python}"
        found = [*staging.glob(f"python/{program}"), *sorted(staging.glob(f"python/*/{program}"))]
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
        prefix=shlex.quote(str(prefix)),
        folder=final.name,
        profile=shlex.quote(manifest["profile"]),
        start=layout.START,
    )
    layout.write_program(staging / "bin" / "local-rag", text)
    records = sorted((staging / "lib" / f"python{python}" / "site-packages").glob("*.dist-info/RECORD"))
    receipt = {
        **{name: manifest[name] for name in ("id", "version", "commit", "profile")},
        "prefix": str(prefix),
        "bundle": str(checked["bundle"]),
        "signature": checked["signature"],
        "python": str(base),
        "packages": {path.parent.name: layout.sha256(path) for path in records},
    }
    (staging / layout.RECEIPT).write_text(json.dumps(receipt, indent=1, sort_keys=True))


def _self_test(version: Path, prefix: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOCAL_RAG_"))}
    environment |= {"LOCAL_RAG_MODELS": str(prefix / "models"), "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [version / "bin" / "python", "-P", "-m", "local_rag.bundle.self_test", manifest["profile"]]
    done = layout.run(command, env=environment)
    try:
        result = dict(json.loads(done.stdout))
    except ValueError:
        result = {"ok": False, "problem": layout.last_line(done, f"it ended with {done.returncode}")}
    if not result["ok"]:
        raise BundleError("self-test", f"The new version does not work on this machine: {result['problem']}")
    return result


def main() -> int:
    """Install the bundle in this file's folder."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    parser = argparse.ArgumentParser(
        prog="install.sh", description="Install the bundle in this file's folder.", allow_abbrev=False
    )
    parser.add_argument("--prefix", type=Path, default=Path(data) / "local-rag", help="folder to install into")
    parser.add_argument("--key", type=Path, help="file with the public key that must have signed the bundle")
    parser.add_argument("--require-signature", action="store_true", help="reject an unsigned bundle")
    parser.add_argument("--yes", action="store_true", help="install a bundle that is older than the installed version")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    if given.key and not given.key.is_file():
        parser.error(f"{given.key} does not exist")
    prefix, kind, message = given.prefix.absolute(), "", ""

    def tell(text: str) -> None:
        print(f"{text} ...", file=sys.stderr)

    def take_older(text: str) -> bool:
        if given.yes or given.json or not sys.stdin.isatty():
            return bool(given.yes)
        print(f"{text}. Install it all the same? [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    try:
        folder = Path(__file__).resolve().parent
        receipt = install(
            folder,
            prefix,
            key=given.key,
            require_signature=given.require_signature,
            step=tell,
            take_older=take_older,
        )
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
