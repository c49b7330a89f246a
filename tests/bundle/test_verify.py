"""What a check finds: every way to damage a bundle is named, with the files to copy again."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_rag.bundle import archive, verify
from local_rag.bundle.create import tar_header
from local_rag.bundle.packing_list import Kind, item_of
from tests.conftest import Run
from tests.support.bundles import make_bundle

BLOCK = archive.BLOCK


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory.mktemp("packed") / "bundle", library=b"SQLite")


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def parts_of(bundle: Path) -> list[Path]:
    return sorted(bundle.glob("*.tar.*"))


def seal(bundle: Path) -> None:
    """Write the list of hashes again, as an attacker can."""
    names = sorted(path.name for path in bundle.iterdir() if path.name != verify.SUMS)
    lines = [f"{item_of(name, 'sbom', bundle / name).sha256}  {name}\n" for name in names]
    (bundle / verify.SUMS).write_text("".join(lines))


def test_an_intact_bundle_is_reported_as_unsigned(bundle: Path, run: Run) -> None:
    result = verify.check(bundle)
    assert result["ok"], result["problems"]
    assert len(parts_of(bundle)) == result["parts"] > 1
    assert "unsigned" in verify.as_text(result)
    told = json.loads(run("bundle", "verify", bundle, "--json").output)
    assert (told["ok"], told["kind"], told["members"]) == (True, None, 5)
    assert run("bundle", "verify", parts_of(bundle)[0]).exit_code == 0


def test_verify_py_checks_the_bundle_without_the_program(bundle: Path, tmp_path: Path) -> None:
    # Files that would be imported in place of the standard library's, were the folder of the bundle looked into.
    command = [sys.executable, str(bundle / "verify.py"), "--json"]
    (tmp_path / "elsewhere").mkdir()
    for _ in range(2):  # the first run leaves nothing beside the parts
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path / "elsewhere", env={}, check=False)
        assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
    (bundle / "argparse.py").write_text("raise SystemExit('run')")
    done = subprocess.run(command, capture_output=True, text=True, cwd=bundle, env={}, check=False)
    assert (done.returncode, json.loads(done.stdout)["problems"][0]["file"]) == (1, "argparse.py")
    assert subprocess.run([*command, "/nowhere"], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize(
    "kind", ["part", "verify.py", "archive.py", "prefix.py", "install.py", "install.sh", "SHA256SUMS"]
)
def test_one_flipped_byte_in_each_kind_of_file(bundle: Path, kind: str) -> None:
    path = parts_of(bundle)[1] if kind == "part" else bundle / kind
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    result = verify.check(bundle)
    assert (result["ok"], result["kind"]) == (False, "integrity")
    if kind != "SHA256SUMS":
        assert result["copy_again"] == [path.name]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_anywhere_in_the_archive_passes(whole: Path, place: float, bit: int) -> None:
    files = parts_of(whole)
    at = int(place * sum(path.stat().st_size for path in files))
    path = files[at // files[0].stat().st_size]
    before = path.read_bytes()
    try:
        data = bytearray(before)
        data[at % files[0].stat().st_size] ^= 1 << bit
        path.write_bytes(data)
        assert verify.check(whole)["copy_again"] == [path.name]
    finally:
        path.write_bytes(before)


def missing(bundle: Path) -> str:
    parts_of(bundle)[1].unlink()
    return "is missing; copy it again"


def doubled(bundle: Path) -> str:
    shutil.copyfile(parts_of(bundle)[0], bundle / "copy.tar.001")
    return f"is a second copy of {parts_of(bundle)[1].name}"


def renamed(bundle: Path) -> str:
    part = parts_of(bundle)[1]
    part.rename(bundle / "part-two")
    return f"is {part.name} under another name; rename it"


def truncated(bundle: Path) -> str:
    part = parts_of(bundle)[1]
    part.write_bytes(part.read_bytes()[:1000])
    return "is damaged or truncated; copy it again"


def extra(bundle: Path) -> str:
    (bundle / "autorun.inf").write_text("run me")
    return "does not belong to the bundle"


def swapped(bundle: Path) -> str:
    first, second = parts_of(bundle)[:2]
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    return "is damaged or truncated; copy it again"


def linked(bundle: Path) -> str:
    part = parts_of(bundle)[0]
    part.rename(bundle.parent / "elsewhere")
    part.symlink_to(bundle.parent / "elsewhere")
    return "is not a regular file"


@pytest.mark.parametrize("damage", [missing, doubled, renamed, truncated, extra, swapped, linked])
def test_changed_parts_are_named(bundle: Path, damage: Callable[[Path], str], run: Run) -> None:
    text = damage(bundle)
    done = run("bundle", "verify", bundle)
    assert done.exit_code == 1
    assert text in done.output
    told = json.loads(run("bundle", "verify", bundle, "--json").output)
    assert told["kind"] == "integrity"


def kind_of(path: str) -> Kind:
    """Return the kind of member that a path belongs to."""
    kinds: dict[str, Kind] = {"wheels": "wheel", "models": "model", "licences": "licence"}
    return kinds.get(path.partition("/")[0], "sbom")


def archive_of(*members: tuple[str, bytes, bytes], after: bytes = b"") -> bytes:
    """Make a tar of members (path, content, type)."""
    data = b""
    for path, content, kind in members:
        data += tar_header(path, len(content), kind) + content + bytes(-len(content) % BLOCK)
    return data + bytes(2 * BLOCK) + after


def forge(bundle: Path, *members: tuple[str, bytes, bytes], after: bytes = b"", told: list[str] | None = None) -> Any:
    """Put another archive in place of a bundle's, with a manifest and hashes that agree with it, and check it."""
    manifest = verify.check(bundle)["manifest"]
    manifest["members"] = [
        item_of(path, kind_of(path), content).as_member()
        for path, content, kind in members
        if (kind == b"0" if told is None else path in told)
    ]
    for part in parts_of(bundle)[1:]:
        part.unlink()
    text = json.dumps(manifest).encode()
    parts_of(bundle)[0].write_bytes(archive_of(("manifest.json", text, b"0"), *members, after=after))
    seal(bundle)
    return verify.check(bundle)


def forge_manifest(bundle: Path, paths: list[str]) -> Any:
    """Name members in the manifest of an archive that holds none."""
    manifest = verify.check(bundle)["manifest"]
    manifest["members"] = [item_of(path, kind_of(path), b"").as_member() for path in paths]
    parts_of(bundle)[0].write_bytes(archive_of(("manifest.json", json.dumps(manifest).encode(), b"0")))
    seal(bundle)
    return verify.check(bundle)


def test_a_replaced_archive_that_is_consistent_passes(bundle: Path) -> None:
    assert forge(bundle, ("wheels/a.whl", b"a", b"0"), ("wheels/" + "w" * 120, b"b", b"0"))["ok"]


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("../evil", b"0", "unsafe path"),
        ("wheels/../../evil", b"0", "unsafe path"),
        ("/etc/passwd", b"0", "unsafe path"),
        ("wheels//a", b"0", "unsafe path"),
        ("a\\b", b"0", "unsafe path"),
        ("new\nline", b"0", "unsafe path"),
        ("wheels/a.whl", b"1", "a link"),
        ("wheels/a.whl", b"2", "a link"),
        ("wheels/a.whl", b"3", "not a regular file"),
        ("wheels", b"5", "a folder"),
        ("wheels/a.whl", b"L", "not a regular file"),
        ("x" * 130 + "/../y", b"0", "unsafe path"),
    ],
)
def test_members_with_unsafe_paths_or_types_are_refused(bundle: Path, path: str, kind: bytes, message: str) -> None:
    result = forge(bundle, (path, b"content", kind))
    assert (result["ok"], result["kind"]) == (False, "integrity")
    assert message in verify.as_text(result)


def test_members_missing_in_the_manifest_or_the_archive(bundle: Path) -> None:
    assert "data after its end" in verify.as_text(
        forge(make_bundle(bundle.parent / "longer"), ("licences/a", b"a", b"0"), after=b"hidden")
    )
    extra_member = forge(bundle, ("licences/a", b"a", b"0"), ("licences/b", b"b", b"0"), told=["licences/a"])
    assert "is not in the manifest" in verify.as_text(extra_member)
    doubled_member = forge(
        make_bundle(bundle.parent / "twice"),
        ("licences/a", b"a", b"0"),
        ("licences/a", b"a", b"0"),
        told=["licences/a"],
    )
    assert "manifest is damaged at 'members'" in verify.as_text(doubled_member)
    lacking = make_bundle(bundle.parent / "lacking", members=[], unpacked_bytes=1)
    assert verify.check(lacking)["ok"]
    assert "licences/b is not in the archive" in verify.as_text(forge_manifest(lacking, ["licences/b"]))


def test_a_bundle_for_another_machine_is_refused_with_its_requirements(bundle: Path) -> None:
    here = verify.this_machine()
    for machine, message in (
        (here._replace(machine="riscv64"), "The bundle is for"),
        (here._replace(glibc="2.12"), "needs glibc 2.17 or later, but this machine has glibc 2.12"),
        (here._replace(glibc=""), "another C library"),
        (here._replace(pythons=["3.4"]), "needs Python"),
    ):
        result = verify.check(bundle, machine=machine)
        assert result["kind"] == "platform"
        assert message in verify.as_text(result)


def test_missing_processor_features_are_reported(tmp_path: Path) -> None:
    needs = {**verify.check(make_bundle(tmp_path / "b"))["manifest"]["platform"], "processor_flags": ["avx512f"]}
    machine = verify.this_machine()._replace(flags=["avx2"])
    assert "avx512f" in verify.check_platform(needs, machine)[0].message
    assert not verify.check_platform(needs, machine._replace(flags=["avx512f"]))


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="signing needs OpenSSH")
def test_signatures(bundle: Path, tmp_path: Path, run: Run) -> None:
    from local_rag.bundle.create import sign

    def keys(name: str) -> Path:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
        return tmp_path / name

    ours, theirs = keys("ours"), keys("theirs")
    unsigned = run("bundle", "verify", bundle, "--require-signature", "--json")
    assert (unsigned.exit_code, json.loads(unsigned.output)["kind"]) == (1, "signature")
    sign(bundle / verify.SUMS, ours)
    assert run("bundle", "verify", bundle, "--key", f"{ours}.pub", "--require-signature").exit_code == 0
    assert "signed by SHA256:" in run("bundle", "verify", bundle).output
    other = run("bundle", "verify", bundle, "--key", f"{theirs}.pub", "--json")
    assert (other.exit_code, json.loads(other.output)["kind"]) == (1, "signature")
    assert run("bundle", "verify", bundle, "--require-signature").exit_code == 1
    # Signed, then changed with hashes that agree.
    (bundle / "install.sh").write_text("echo other\n")
    (bundle / verify.SIGNATURE).rename(tmp_path / "kept")
    seal(bundle)
    (tmp_path / "kept").rename(bundle / verify.SIGNATURE)
    changed = verify.check(bundle, Path(f"{ours}.pub"))
    assert changed["kind"] == "signature"


@pytest.mark.parametrize("text", ["", "nothing\n", "0" * 64 + "  ../x.tar.001\n", "0" * 64 + "  a.tar.002\n"])
def test_an_invalid_list_of_hashes_is_refused(bundle: Path, text: str) -> None:
    (bundle / verify.SUMS).write_text(text)
    assert verify.check(bundle)["kind"] == "integrity"
