"""Change copies of a signed bundle in 25 ways, and require that verify.py rejects each: tamper.py BUNDLE KEYS FOLDER.

Parts are linked, not copied, unless they are changed. Prints one line for each way.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

bundle, keys, folder = map(Path, sys.argv[1:4])
BLOCK = 512


def parts(copy: Path) -> list[Path]:
    """Return the parts in order."""
    return sorted(copy.glob("*.tar.*"))


def edit(path: Path, change: Callable[[bytearray], object]) -> None:
    """Replace a file by a changed copy."""
    data = bytearray(path.read_bytes())
    change(data)
    path.unlink()
    path.write_bytes(data)


def flip(path: Path, at: float) -> None:
    """Change one bit of a file."""
    place = int(path.stat().st_size * at)
    edit(path, lambda data: data.__setitem__(place, data[place] ^ 1))


def seal(copy: Path) -> None:
    """Write the list of hashes anew, as somebody without the key can."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(copy.iterdir())
        if not path.name.startswith("SHA256SUMS")
    ]
    (copy / "SHA256SUMS").unlink()
    (copy / "SHA256SUMS").write_text("".join(lines))


def unsigned(copy: Path) -> None:
    """Remove the signature and write the list anew."""
    (copy / "SHA256SUMS.sig").unlink()
    seal(copy)


def resealed(copy: Path) -> None:
    """Change the installer and write the list anew, below the old signature."""
    edit(copy / "install.sh", lambda data: data.extend(b"true\n"))
    seal(copy)


def signed_by_another(copy: Path) -> None:
    """Sign the list with another key."""
    (copy / "SHA256SUMS.sig").unlink()
    shutil.copyfile(copy / "SHA256SUMS", copy.parent / "list")
    signed = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(copy.parent / "own"), "-n", "local-rag-bundle"]
    subprocess.run([*signed, str(copy.parent / "list")], check=True, stderr=subprocess.DEVNULL)
    shutil.move(copy.parent / "list.sig", copy / "SHA256SUMS.sig")


def manifest(copy: Path, old: bytes, new: bytes) -> None:
    """Change text of the manifest, of the same length, and make the hashes agree."""
    assert len(old) == len(new)
    edit(parts(copy)[0], lambda data: data.__setitem__(slice(None), data.replace(old, new, 1)))
    unsigned(copy)


def swap(copy: Path) -> None:
    """Give the first two parts each other's names, or the only one another number."""
    first, *others = parts(copy)
    if others:
        first.rename(copy / "x")
        others[0].rename(first)
        (copy / "x").rename(others[0])
    else:
        first.rename(first.with_suffix(".002"))


def link(path: Path) -> None:
    """Put a link in place of a file."""
    outside = folder / "outside"
    shutil.copyfile(path, outside)
    path.unlink()
    path.symlink_to(outside)


WAYS: dict[str, Callable[[Path], object]] = {
    "a bit at the beginning of the first part": lambda copy: flip(parts(copy)[0], 0),
    "a bit in the middle of a part": lambda copy: flip(parts(copy)[len(parts(copy)) // 2], 0.5),
    "a bit at the end of the last part": lambda copy: flip(parts(copy)[-1], 0.9999),
    "a part cut short": lambda copy: edit(parts(copy)[-1], lambda data: data.__delitem__(slice(-BLOCK, None))),
    "a part that is longer": lambda copy: edit(parts(copy)[-1], lambda data: data.extend(b"more")),
    "a missing part": lambda copy: parts(copy)[-1].unlink(),
    "an empty part": lambda copy: edit(parts(copy)[0], lambda data: data.clear()),
    "parts in another order": swap,
    "a part under another name": lambda copy: parts(copy)[0].rename(copy / "renamed"),
    "a second copy of a part": lambda copy: shutil.copyfile(parts(copy)[0], copy / "copy.bin"),
    "a file that does not belong": lambda copy: (copy / "autorun.inf").write_text("run"),
    "a module beside verify.py": lambda copy: (copy / "argparse.py").write_text("raise SystemExit(0)"),
    "a folder that does not belong": lambda copy: (copy / "folder").mkdir(),
    "a link in place of a part": lambda copy: link(parts(copy)[0]),
    "a link in place of the installer": lambda copy: link(copy / "install.py"),
    "another install.sh": lambda copy: edit(copy / "install.sh", lambda data: data.extend(b"true\n")),
    "another verify.py": lambda copy: edit(copy / "verify.py", lambda data: data.extend(b"\n")),
    "another install.sh with a list that agrees": resealed,
    "a missing list": lambda copy: (copy / "SHA256SUMS").unlink(),
    "a list with a line less": lambda copy: edit(copy / "SHA256SUMS", lambda data: data.__delitem__(slice(0, 80))),
    "a list with a path": lambda copy: edit(copy / "SHA256SUMS", lambda data: data.extend(b"0" * 64 + b"  ../x\n")),
    "no signature, and a list that agrees": unsigned,
    "the signature of another key": signed_by_another,
    "a damaged signature": lambda copy: flip(copy / "SHA256SUMS.sig", 0.5),
    "another platform in the manifest": lambda copy: manifest(copy, b'"system": "Linux"', b'"system": "Linus"'),
}


def main() -> None:
    """Try all ways."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "own")], check=True)
    assert len(WAYS) == 25  # noqa: PLR2004
    for number, (name, change) in enumerate(WAYS.items(), 1):
        copy = folder / "tampered"
        copy.mkdir()
        for path in bundle.iterdir():
            try:
                os.link(path, copy / path.name)
            except OSError:  # another disk or another owner
                shutil.copyfile(path, copy / path.name)
        change(copy)
        command = [sys.executable, "-I", "-B", str(bundle / "verify.py"), str(copy), "--json"]
        done = subprocess.run(
            [*command, "--key", str(keys / "packer.pub")], capture_output=True, text=True, check=False
        )
        told: dict[str, Any] = json.loads(done.stdout or "{}")
        if done.returncode != 1 or told["ok"] is not False:
            sys.exit(f"{number}. {name}: NOT REJECTED ({done.stderr})")
        print(f"{number}. {name}: {told['problems'][0]['file']} {told['problems'][0]['message']}".rstrip())
        shutil.rmtree(copy)


main()
