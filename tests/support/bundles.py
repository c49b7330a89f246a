"""Small bundles for tests: a program of two files, a model, a library, in parts of 64 KiB."""

import base64
import hashlib
import json
import platform
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

from local_rag.bundle import archive, packing_list, verify
from local_rag.bundle.create import PYTHON, BundleContents, Packing, read_source, write_bundle, write_parts
from local_rag.bundle.packing_list import Item, item_of

PART = 64 * 1024


def make_wheel(folder: Path, version: str, *, tested: str = '{"ok": true, "seconds": 0.1}') -> Path:
    """Make a wheel of a program that prints its version, and whose self-test prints what is given."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"local_rag-{version}-py3-none-any.whl"
    files = {
        "local_rag/__init__.py": "",
        "local_rag/cli/__init__.py": "",
        "local_rag/cli/main.py": f"def main():\n    print({version!r})\n",
        "local_rag/bundle/__init__.py": "",
        "local_rag/bundle/self_test.py": f"print({tested!r})\n",
        f"local_rag-{version}.data/scripts/other": "#!python\n",
        f"local_rag-{version}.data/data/share/note.txt": "a note\n",
        f"local_rag-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: local-rag\nVersion: {version}\n",
    }
    record = f"local_rag-{version}.dist-info/RECORD"
    files[record] = "".join(f"{name},{_digest(text)},\n" for name, text in files.items()) + f"{record},,\n"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), text)
    return path


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def with_manifest(bundle: Path, change: dict[str, Any]) -> None:
    """Change fields of a bundle's manifest, with hashes that agree, as an attacker can."""
    parts = sorted(bundle.glob("*.tar.*"))
    with closing(archive.Stream(parts)) as stream:
        members = {name: b"".join(read()) for name, _, read in archive.members(stream)}
    manifest = json.loads(members[archive.MANIFEST]) | change
    members[archive.MANIFEST] = json.dumps(manifest).encode()
    for part in parts:
        part.unlink()
    items = [item_of(name, "sbom", content) for name, content in members.items()]
    rows = ((one.path, one.bytes, one.sha256, lambda one=one: read_source(one.source)) for one in items)
    write_parts(rows, bundle, parts[0].name.partition(".tar.")[0], PART)
    names = sorted(path.name for path in bundle.iterdir() if path.name != verify.SUMS)
    lines = [f"{item_of(name, 'sbom', bundle / name).sha256}  {name}\n" for name in names]
    (bundle / verify.SUMS).write_text("".join(lines))


def make_bundle(
    folder: Path,
    version: str = "1.0",
    *,
    tested: str = '{"ok": true, "seconds": 0.1}',
    model: bytes = b"GGUF" + bytes(range(256)) * 400,
    library: bytes = b"",
    interpreter: Path | None = None,
    python: str = PYTHON,
    without_models: bool = False,
    members: list[Item] | None = None,
    **changes: Any,
) -> Path:
    """Write a bundle into a folder; `members` are packed in place of the usual ones, `changes` go into the manifest."""
    items = [item_of("sbom.cdx.json", "sbom", b"{}"), item_of("licences/local-rag.txt", "licence", b"Apache-2.0\n")]
    wheel = make_wheel(folder.parent / "wheels", version, tested=tested)
    items.append(item_of(f"wheels/{wheel.name}", "wheel", wheel))
    models = [item_of("models/small/small.gguf", "model", model)]
    if not without_models:
        items += models
    if library:
        items.append(item_of("library/library.sqlite3", "library", library))
    if interpreter:
        items.insert(0, item_of(f"python/{interpreter.name}", "python", interpreter))
    items = items if members is None else members
    packing = Packing(output=folder, profile="tiny", cache=folder, part_bytes=PART)
    manifest = {
        "format": archive.FORMAT,
        "id": packing_list.bundle_id(version, items),
        "version": version,
        "profile": "tiny",
        "platform": {
            "system": platform.system(),
            "machine": platform.machine(),
            "python": python,
            "interpreter": f"python/{interpreter.name}" if interpreter else None,
            "glibc": "2.17",
            "glibc_needed_by": "local_rag.so of local-rag",
            "macos": "",
            "processor_flags": [],
            "library_versions": [],
        },
        "commit": "",
        "llama_variants": [],
        "needs_models": [item.as_member() for item in models] if without_models else [],
        "library": {"name": "papers"} if library else None,
        "unpacked_bytes": 4096,
        "members": [item.as_member() for item in items],
        **changes,
    }
    folder.mkdir(parents=True)
    write_bundle(BundleContents(packing, items=items), manifest, folder)
    return folder


def run_installer(
    bundle: Path, prefix: Path, *arguments: str, stdin: int = subprocess.DEVNULL, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Install as a user does, with what a bare machine has in its PATH."""
    command = ["sh", str(bundle / "install.sh"), "--prefix", str(prefix), *arguments]
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(bundle.parent), "LOCAL_RAG_PYTHON": sys.executable, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=variables, stdin=stdin, check=False)


def started(prefix: Path) -> str:
    """Start the installed program; return the version that it prints."""
    command = [prefix / "bin" / "local-rag"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
