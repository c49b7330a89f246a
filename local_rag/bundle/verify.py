"""Check a bundle: its parts, their content, whether it fits this machine, and who signed it.

    python3 -I verify.py [FOLDER] [--key PUBLIC_KEY] [--require-signature] [--json]

Nothing is extracted, and nothing in the archive is run. Needs only Python 3.6 or later and its standard library.
`local-rag bundle verify` runs the same checks. Exit codes are 0: intact, 1: not intact, 2: wrong usage.
"""

import sys

if __name__ == "__main__":
    sys.dont_write_bytecode = True  # Python's cache files would not belong to the bundle
    if not sys.flags.isolated:
        del sys.path[0]  # files in the bundle's folder must not replace modules of the standard library

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

if __package__:
    from local_rag.bundle import archive
elif "archive" in sys.modules:  # loaded by the installer
    archive = sys.modules["archive"]
else:  # in the bundle's folder, without the package
    import importlib.util

    _path = Path(os.path.abspath(__file__)).with_name("archive.py")
    _found = importlib.util.spec_from_file_location("archive", str(_path))
    archive = importlib.util.module_from_spec(_found)  # type: ignore[arg-type]
    _found.loader.exec_module(archive)  # type: ignore[union-attr]
BundleError = archive.BundleError

SUMS, SIGNATURE, NAMESPACE = "SHA256SUMS", "SHA256SUMS.sig", "local-rag-bundle"
TOOLS = ("verify.py", "archive.py", "install.py", "prefix.py", "install.sh")  # the files beside the parts
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_PART = re.compile(r"[A-Za-z0-9._+-]+\.tar\.[0-9]{3}")
_SUM = re.compile(r"([0-9a-f]{64})  (.+)")

Problem = NamedTuple("Problem", [("kind", str), ("file", str), ("message", str)])
Machine = NamedTuple(
    "Machine",
    [
        ("system", str),
        ("machine", str),
        ("glibc", str),
        ("macos", str),
        ("flags", List[str]),
        ("pythons", List[str]),
        ("library", Callable[[str], Optional[bytes]]),
    ],
)
# What the installer does with a bundle: it is given the checked manifest, and returns what takes each member's blocks.
Take = Callable[[Dict[str, Any], Iterator[bytes]], None]
Begin = Callable[[Dict[str, Any]], Take]


def check(
    path: Path,
    key: Optional[Path] = None,
    require_signature: bool = False,
    machine: Optional[Machine] = None,
    begin: Optional[Begin] = None,
) -> Dict[str, Any]:
    """Check the bundle in a folder, or in the folder of a part; return the result as a dictionary for JSON.

    Every file is read once. `begin`, given to install, is only called if signature, folder and platform are in order;
    what it takes is good only if the result is `ok`.
    """
    folder = path if path.is_dir() else path.parent
    problems = []  # type: List[Problem]
    manifest, parts, size = {}, [], 0  # type: Dict[str, Any], List[str], int
    signature, sums = "not checked", {}  # type: str, Dict[str, str]
    try:
        listed = read_list(folder)
        signature, unsigned = check_signature(folder, listed, key, require_signature)
        sums = parse_list(listed, folder)
        parts = [name for name in sorted(sums) if _PART.fullmatch(name)]
        problems += check_folder(folder, sums)
        absent = {problem.file for problem in problems if problem.file in sums}
        refused = bool(problems or unsigned)
        machine = machine or this_machine()
        manifest, size, found = _check_parts(folder, parts, sums, absent, machine, None if refused else begin)
        problems += found + unsigned
        if manifest and not (begin and not refused):
            problems += check_platform(manifest["platform"], machine)
    except BundleError as error:
        problems.append(Problem(error.kind, "", str(error)))
    except OSError as error:
        problems.append(Problem("integrity", str(error.filename or folder), "cannot be read: %s" % error.strerror))
    return {
        "ok": not problems,
        "kind": problems[0].kind if problems else None,
        "bundle": str(folder),
        "id": manifest.get("id"),
        "parts": len(parts),
        "bytes": size,
        "members": len(manifest.get("members", ())),
        "signature": signature,
        "copy_again": sorted({one.file for one in problems if one.kind == "integrity" and one.file in sums}),
        "problems": [problem._asdict() for problem in problems],
        "manifest": manifest,
    }


def read_list(folder: Path) -> bytes:
    """Read the list of hashes, once: what the signature covers is also what is compared."""
    path = folder / SUMS
    if path.is_symlink() or not path.is_file() or path.stat().st_size > archive.CHUNK:
        raise BundleError("integrity", "%s in %s is missing or damaged; copy it again." % (SUMS, folder))
    return path.read_bytes()


def parse_list(listed: bytes, folder: Path) -> Dict[str, str]:
    """Return name -> SHA-256 of every file in a bundle."""
    sums = {}  # type: Dict[str, str]
    for line in listed.decode("ascii", "replace").splitlines():
        found = _SUM.fullmatch(line)
        if not found or not _NAME.fullmatch(found.group(2)) or found.group(2) in sums:
            raise BundleError("integrity", "%s is damaged at %s; copy it again." % (folder / SUMS, ascii(line[:80])))
        sums[found.group(2)] = found.group(1)
    parts = [name for name in sorted(sums) if _PART.fullmatch(name)]
    if not parts or [int(name[-3:]) for name in parts] != list(range(1, len(parts) + 1)):
        raise BundleError("integrity", "%s does not list all parts; copy it again." % (folder / SUMS))
    return sums


def check_folder(folder: Path, sums: Dict[str, str]) -> List[Problem]:
    """Compare the folder with the list of hashes; hash files other than parts."""
    problems = []
    there = {path.name: path for path in folder.iterdir()}
    missing = [name for name in sorted(sums) if name not in there]
    whose = {value: name for name, value in sums.items()}
    for name in sorted(set(there) - set(sums) - {SUMS, SIGNATURE}):
        original = whose.get(_hash(there[name])) if is_plain(there[name]) else None
        if original in missing:
            missing.remove(original or "")
            text = "is %s under another name; rename it" % original
        elif original:
            text = "is a second copy of %s; remove it" % original
        else:
            text = "does not belong to the bundle; remove it or move the bundle to its own folder"
        problems.append(Problem("integrity", name if _NAME.fullmatch(name) else ascii(name), text))
    for name in sorted(sums):
        if name in missing:
            problems.append(Problem("integrity", name, "is missing; copy it again"))
        elif name in there and not is_plain(there[name]):
            problems.append(Problem("integrity", name, "is not a regular file; copy it again"))
        elif name in there and not _PART.fullmatch(name) and _hash(there[name]) != sums[name]:
            problems.append(Problem("integrity", name, "is damaged; copy it again"))
    return problems


def is_plain(path: Path) -> bool:
    """Return whether a path is a regular file and not a link."""
    return stat.S_ISREG(path.lstat().st_mode)


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(archive.CHUNK), b""):
            digest.update(block)
    return digest.hexdigest()


def _check_parts(
    folder: Path, parts: Sequence[str], sums: Dict[str, str], absent: Any, machine: Machine, begin: Optional[Begin]
) -> Tuple[Dict[str, Any], int, List[Problem]]:
    """Hash the parts and all members in one pass; return the manifest, the bytes read, and the problems."""
    there = [name for name in parts if name not in absent]
    manifest, problems = {}, []  # type: Dict[str, Any], List[Problem]
    with closing(archive.Stream([folder / name for name in there])) as stream:
        try:
            if len(there) == len(parts):
                manifest = _check_members(stream, machine, begin)
        except BundleError as error:
            if error.kind == "disk":
                raise
            problems.append(Problem(error.kind, "", str(error)))
        zeros = stream.rest()
    damaged = [name for name, found in zip(there, stream.hashes) if found != sums[name]]
    if damaged or len(there) < len(parts):
        problems = [Problem("integrity", name, "is damaged or truncated; copy it again") for name in damaged]
        return {}, stream.bytes, problems
    if manifest and not zeros:
        problems.append(Problem("integrity", "", "The archive has data after its end; copy the bundle again."))
    return manifest, stream.bytes, problems


def _check_members(stream: Any, machine: Machine, begin: Optional[Begin]) -> Dict[str, Any]:
    """Compare all members with the manifest, which is the first member; return the manifest."""
    manifest, wanted = {}, iter(())  # type: Dict[str, Any], Any
    take = None  # type: Optional[Take]
    for name, size, read in archive.members(stream):
        if not manifest:
            manifest = archive.read_manifest(name, size, read)
            wanted = iter(manifest["members"])
            if begin is not None:
                unfit = check_platform(manifest["platform"], machine)
                if unfit:
                    raise BundleError("platform", "; ".join(one.message for one in unfit))
                take = begin(manifest)
            continue
        expected = next(wanted, None)
        if expected is None or (name, size) != (expected["path"], expected["bytes"]):
            raise BundleError("integrity", "The archive member %s is not in the manifest." % ascii(name))
        digest = hashlib.sha256()
        blocks = _hashing(read(), digest)
        if take is not None:
            take(expected, blocks)
        for _ in blocks:
            pass
        if digest.hexdigest() != expected["sha256"]:
            raise BundleError("integrity", "The hash of %s differs from the manifest." % name)
    absent = next(wanted, None)
    if not manifest or absent is not None:
        raise BundleError("integrity", "%s is not in the archive." % (absent["path"] if absent else archive.MANIFEST))
    return manifest


def _hashing(blocks: Iterator[bytes], digest: Any) -> Iterator[bytes]:
    for block in blocks:
        digest.update(block)
        yield block


def this_machine() -> Machine:
    """Return the properties of this machine that a bundle depends on."""
    try:
        glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2]
    except (ValueError, OSError, AttributeError):
        glibc = ""
    try:
        found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    pythons = ["%d.%d" % sys.version_info[:2]]
    pythons += ["3.%d" % minor for minor in range(8, 30) if shutil.which("python3.%d" % minor)]
    flags = found.group(1).split() if found else []
    macos = platform.mac_ver()[0]
    return Machine(platform.system(), platform.machine(), glibc, macos, flags, pythons, _system_library)


def _system_library(name: str) -> Optional[bytes]:
    """Return the content of a library that the system's loader finds, such as libstdc++.so.6; None if there is none."""
    try:
        import ctypes

        ctypes.CDLL(name)
        maps = Path("/proc/self/maps").read_text()
        found = re.search(r"(/\S*/%s\S*)$" % re.escape(name), maps, re.MULTILINE)
        return Path(found.group(1)).read_bytes() if found else None
    except OSError:
        return None


def check_platform(needs: Dict[str, Any], machine: Machine) -> List[Problem]:
    """Compare the requirements of a bundle with a machine."""
    problems = []
    system, kind, glibc, python = (str(needs.get(name, "")) for name in ("system", "machine", "glibc", "python"))
    if (system, kind) != (machine.system, machine.machine):
        found = "%s on %s" % (machine.system, machine.machine)
        problems.append("The bundle is for %s on %s, but this machine is %s." % (system, kind, found))
    elif glibc and numbers(machine.glibc) < numbers(glibc):
        found = "glibc %s" % machine.glibc if machine.glibc else "another C library"
        problems.append("The bundle needs glibc %s or later, but this machine has %s." % (glibc, found))
    if needs.get("macos") and machine.macos and numbers(machine.macos) < numbers(str(needs["macos"])):
        text = "The bundle needs macOS %s or later, but this machine has %s."
        problems.append(text % (needs["macos"], machine.macos))
    for line in needs.get("library_versions", ()) if not problems else ():
        library, _, version = str(line).partition(" ")
        content = machine.library(library)
        if content is None or version.encode() + b"\0" not in content:
            text = "The bundle needs %s with %s, and this machine has %s; install it."
            problems.append(text % (library, version, "none" if content is None else "an older one"))
    if not needs.get("interpreter") and python not in machine.pythons:
        problems.append("The bundle needs Python %s, which is not installed; install it." % python)
    lacking = [flag for flag in needs.get("processor_flags", ()) if flag not in machine.flags]
    if lacking:
        text = "The bundle's llama.cpp needs a processor with %s, which this one lacks; pack a portable llama.cpp."
        problems.append(text % " ".join(map(str, lacking)))
    return [Problem("platform", "", text) for text in problems]


def numbers(version: str) -> Tuple[int, ...]:
    """Parse a version such as 2.28 for comparison."""
    return tuple(int(piece) for piece in version.split(".") if piece.isdecimal())


def check_signature(folder: Path, listed: bytes, key: Optional[Path], required: bool) -> Tuple[str, List[Problem]]:
    """Return who signed the list of hashes, which covers the whole bundle, and the problems.

    With `key` or `required`, everything but a good signature of that key is a problem, also a check that is impossible.
    """

    def refuse(text: str) -> Tuple[str, List[Problem]]:
        return text, [Problem("signature", SIGNATURE, text)] if required or key else []

    if not os.path.lexists(str(folder / SIGNATURE)):
        return refuse("unsigned: hashes detect damage, but do not show who made the bundle")
    if not is_plain(folder / SIGNATURE):
        return "not checked", [Problem("signature", SIGNATURE, "is not a regular file; copy it again")]
    common = ["-n", NAMESPACE, "-s", str(folder / SIGNATURE)]
    obstacle = _obstacle()
    if obstacle:
        return refuse("signed, but not checked: %s" % obstacle)
    code, text = _ssh_keygen(["-Y", "check-novalidate", *common], listed)
    found = re.search(r"SHA256:[A-Za-z0-9+/]{43}", text)
    whose = found.group(0) if found else "an unknown key"
    if code:
        return "damaged", [Problem("signature", SIGNATURE, "is not a valid signature of this %s" % SUMS)]
    if key is None:
        return refuse("signed by %s, which was not compared with a key: pass the public key with --key" % whose)
    good, name = _is_signed_by(key, common, listed), ascii(str(key))[1:-1]
    text = "signed by %s, which is %s in %s" % (whose, "the key" if good else "not the key", name)
    return (text, []) if good else refuse(text)


def _obstacle() -> str:
    """Say why ssh-keygen cannot check a signature; names of files never reach the text that this is told from."""
    try:
        _, text = _ssh_keygen(["-Y", "check-novalidate"], b"")
    except OSError:
        return "ssh-keygen of OpenSSH is not installed"
    old = re.search(r"(unknown|illegal|invalid) option", text)
    return "that needs ssh-keygen of OpenSSH 8.1 or later" if old else ""


def _is_signed_by(key: Path, common: List[str], listed: bytes) -> bool:
    lines = [line for line in key.read_text().splitlines() if line.strip() and not line.startswith("#")]
    with tempfile.TemporaryDirectory() as temporary:
        allowed = Path(temporary) / "allowed_signers"
        allowed.write_text("".join("signer %s\n" % line for line in lines))
        code, _ = _ssh_keygen(["-Y", "verify", "-f", str(allowed), "-I", "signer", *common], listed)
    return code == 0


def _ssh_keygen(arguments: List[str], data: bytes) -> Tuple[int, str]:
    pipe = subprocess.PIPE
    command = ["ssh-keygen"] + arguments
    done = subprocess.run(command, input=data, stdout=pipe, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def as_text(result: Dict[str, Any]) -> str:
    """Return the result of a check as lines of text."""
    lines = ["%s%s" % (one["file"] + " " if one["file"] else "", one["message"]) for one in result["problems"]]
    if result["copy_again"]:
        lines.append("Copy again: %s" % " ".join(result["copy_again"]))
    if result["ok"]:
        counts = (result["id"], result["parts"], result["members"], result["bytes"])
        lines.append("%s: intact and suitable for this machine (%d parts, %d files, %d bytes)" % counts)
    lines.append("Signature: %s" % result["signature"])
    return "\n".join(lines)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Check the bundle in this file's folder or in the given folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(os.path.abspath(__file__)).parent)
    parser.add_argument("--key", type=Path, help="file with the public key that must have signed the bundle")
    parser.add_argument("--require-signature", action="store_true", help="fail if the bundle is not signed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    for path in (given.folder, given.key):
        if path is not None and not path.exists():
            parser.error("%s does not exist" % path)
    result = check(given.folder, given.key, given.require_signature)
    print(json.dumps(result) if given.json else as_text(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
