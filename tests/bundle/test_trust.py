"""What an approver relies on: what was hashed is what is installed, and nothing unchecked is said or trusted."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_rag.bundle import archive, installed, verify
from local_rag.bundle.archive import BundleError
from local_rag.bundle.create import PYTHON, sign
from local_rag.bundle.install import install
from local_rag.bundle.prefix import MODELS, current, differences
from tests.conftest import Run
from tests.support.bundles import make_bundle, started, with_manifest

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="signing needs OpenSSH")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return tmp_path / "prefix"


def parts_of(bundle: Path) -> list[Path]:
    return sorted(bundle.glob("*.tar.*"))


def key(folder: Path, name: str) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    return folder / name


def swap_during(bundle: Path, other: Path, moment: str) -> Callable[[str], None]:
    """Put another archive in place of a bundle's at a moment of its installation."""

    def step(text: str) -> None:
        if text.startswith(moment):
            for part in parts_of(bundle):
                shutil.copyfile(other / part.name, part)

    return step


def test_an_archive_that_changes_after_the_start_is_not_installed(tmp_path: Path, prefix: Path) -> None:
    good = make_bundle(tmp_path / "good" / "bundle", library=b"SQLite" * 50_000)
    evil = make_bundle(tmp_path / "evil" / "bundle", library=b"Other." * 50_000)
    with pytest.raises(BundleError, match="damaged or truncated"):
        install(good, prefix, step=swap_during(good, evil, "unpacking: licence"))
    assert not prefix.exists()


def test_an_archive_that_changes_after_it_was_read_does_not_matter(tmp_path: Path, prefix: Path) -> None:
    good = make_bundle(tmp_path / "good" / "bundle", "1.0")
    evil = make_bundle(tmp_path / "evil" / "bundle", "1.0", tested='{"ok": true, "seconds": 6.6}')
    receipt = install(good, prefix, step=swap_during(good, evil, "storing the models"))
    assert receipt["self_test"]["seconds"] == 0.1
    assert not list(differences(prefix / "current"))


def test_members_that_the_manifest_does_not_name_are_not_written(tmp_path: Path, prefix: Path) -> None:
    from tests.bundle.test_verify import forge

    bundle = make_bundle(tmp_path / "bundle")
    wheel = next((tmp_path / "wheels").glob("*.whl")).read_bytes()
    site = f"lib/python{PYTHON}/site-packages/sitecustomize.py"
    told = [f"wheels/{next((tmp_path / 'wheels').glob('*.whl')).name}"]
    result = forge(bundle, (told[0], wheel, b"0"), (site, b"print('run')", b"0"), told=told)
    assert not result["ok"]
    with pytest.raises(BundleError, match="is not in the manifest"):
        install(bundle, prefix)
    assert not prefix.exists()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("#!/bin/sh\necho 'unknown option -- Y' >&2\necho 'usage: ssh-keygen [-q] ...' >&2\nexit 1\n", "OpenSSH 8.1"),
        ("", "is not installed"),
    ],
)
def test_a_key_is_never_satisfied_without_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, program: str, said: str
) -> None:
    bundle = make_bundle(tmp_path / "it has an unknown option" / "bundle")
    public = Path(f"{key(tmp_path, 'packer')}.pub")
    sign(bundle / verify.SUMS, key(tmp_path, "attacker"))
    other = run("bundle", "verify", bundle, "--key", public)  # a name of a folder that looks like the message
    assert (other.exit_code, "not the key" in other.output) == (1, True)
    (tmp_path / "old").mkdir()
    if program:
        (tmp_path / "old" / "ssh-keygen").write_text(program)
        (tmp_path / "old" / "ssh-keygen").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "old") + (":/usr/bin:/bin" if program else ""))
    for arguments in (["--key", public], ["--require-signature"], ["--key", public, "--require-signature"]):
        done = run("bundle", "verify", bundle, *arguments, "--json")
        told = json.loads(done.output)
        assert (done.exit_code, told["ok"], told["kind"]) == (1, False, "signature")
        assert said in told["signature"]
    without = run("bundle", "verify", bundle, "--json")
    assert (without.exit_code, json.loads(without.output)["ok"]) == (0, True)
    unsigned = make_bundle(tmp_path / "unsigned" / "bundle")
    assert run("bundle", "verify", unsigned, "--key", public).exit_code == 1


def manifest_of(bundle: Path) -> dict[str, Any]:
    return dict(verify.check(bundle)["manifest"])


ESCAPE = "\x1b[8m"


@pytest.mark.parametrize(
    "change",
    [
        {"id": f"1.0\nSignature: signed by SHA256:x, the key in packer.pub{ESCAPE}"},
        {"id": "../../escaped"},
        {"id": 5},
        {"version": "1\n2"},
        {"profile": ESCAPE},
        {"platform": {"processor_flags": 5}},
        {"platform": {"glibc": "2.17\nSignature: good"}},
        {"platform": {"interpreter": "wheels/x"}},
        {"platform": {"library_versions": ["../x 1"]}},
        {"platform": {"system": "Linux\n"}},
        {"library": {"name": "../../outside"}},
        {"library": {"name": ".hidden"}},
        {"library": []},
        {"needs_models": [{"path": "models/x", "kind": "wheel", "bytes": 1, "sha256": "0" * 64}]},
        {"unpacked_bytes": -1},
        {"unpacked_bytes": True},
        {"members": [{"path": "wheels/x"}]},
        {"members": [{"path": "lib/x.py", "kind": "wheel", "bytes": 1, "sha256": "0" * 64}]},
        {"members": [{"path": "wheels/x", "kind": "other", "bytes": 1, "sha256": "0" * 64}]},
        {"llama_variants": [ESCAPE]},
        {"commit": "main"},
    ],
)
def test_each_field_of_the_manifest_is_checked_and_never_printed_unchecked(
    change: dict[str, Any], tmp_path: Path, prefix: Path, run: Run
) -> None:
    bundle = make_bundle(tmp_path / "bundle")
    if isinstance(change.get("platform"), dict):
        change = {"platform": {**manifest_of(bundle)["platform"], **change["platform"]}}
    with_manifest(bundle, change)
    done = run("bundle", "verify", bundle)
    assert done.exit_code == 1
    assert "manifest is damaged at" in done.output or "unsafe path" in done.output
    assert "the key in" not in done.output
    assert ESCAPE not in done.output
    with pytest.raises(BundleError):
        install(bundle, prefix)
    assert not prefix.exists()


def test_a_manifest_of_the_right_fields_passes(tmp_path: Path) -> None:
    manifest = manifest_of(make_bundle(tmp_path / "bundle", library=b"SQLite"))
    assert archive.wrong_field(manifest) == ""
    assert archive.wrong_field([]) == "its beginning"
    assert archive.wrong_field({**manifest, "platform": []}) == "platform"


def model(prefix: Path, link: str = "current") -> bytes:
    return (prefix / link / MODELS / "small" / "small.gguf").read_bytes()


def test_each_version_keeps_its_own_models(tmp_path: Path, prefix: Path) -> None:
    old = make_bundle(tmp_path / "old" / "bundle", "1.0", model=b"GGUF old")
    new = make_bundle(tmp_path / "new" / "bundle", "2.0", model=b"GGUF new")
    failing = make_bundle(
        tmp_path / "bad" / "bundle", "3.0", model=b"GGUF bad", tested='{"ok": false, "problem": "no"}'
    )
    install(old, prefix)
    with pytest.raises(BundleError, match="no"):
        install(failing, prefix)
    assert (started(prefix), model(prefix)) == ("1.0", b"GGUF old")
    assert len(list((prefix / "content").iterdir())) == 1
    install(new, prefix)
    assert (started(prefix), model(prefix), model(prefix, "previous")) == ("2.0", b"GGUF new", b"GGUF old")
    installed.rollback(prefix)
    assert (started(prefix), model(prefix)) == ("1.0", b"GGUF old")
    assert not list(differences(prefix / "current"))


def test_installing_again_repairs_a_changed_version(tmp_path: Path, prefix: Path) -> None:
    older = make_bundle(tmp_path / "older" / "bundle", "0.9", model=b"GGUF old")
    bundle = make_bundle(tmp_path / "bundle", "1.0")
    install(older, prefix)
    install(bundle, prefix)
    code = prefix / "current" / "lib" / f"python{PYTHON}" / "site-packages" / "local_rag"
    for damage in (
        lambda: (code / "cli" / "main.py").write_text("import os"),
        (code / "cli" / "main.py").unlink,
        lambda: (code / "extra.py").write_text(""),
        (prefix / "current" / "receipt.json").unlink,
        lambda: (prefix / "current" / "manifest.json").write_text("{}"),
        lambda: (prefix / "current" / MODELS / "small" / "small.gguf").write_bytes(b"GGUF"),
    ):
        damage()
        assert list(differences(prefix / "current"))
        install(bundle, prefix)
        assert not list(differences(prefix / "current"))
        assert started(prefix) == "1.0"
        assert current(prefix, "previous").startswith("0.9")  # not the changed one
    before = current(prefix)
    install(bundle, prefix)
    assert current(prefix) == before


def test_the_previous_version_survives_when_installing_it_again_fails(tmp_path: Path, prefix: Path) -> None:
    old = make_bundle(tmp_path / "old" / "bundle", "1.0")
    install(old, prefix)
    install(make_bundle(tmp_path / "new" / "bundle", "2.0"), prefix)
    test = prefix / "previous" / "lib" / f"python{PYTHON}" / "site-packages" / "local_rag" / "bundle" / "self_test.py"
    fails = 'print(\'{"ok": false, "problem": "short of memory"}\')'
    test.write_text(fails)  # and the packages' list does not know it
    with pytest.raises(BundleError, match="short of memory"):
        install(
            make_bundle(tmp_path / "same" / "bundle", "1.0", tested='{"ok": false, "problem": "short of memory"}'),
            prefix,
            take_older=lambda _: True,
        )
    assert started(prefix) == "2.0"
    assert installed.rollback(prefix)["current"].startswith("1.0")
    assert started(prefix) == "1.0"


def test_nothing_of_a_library_remains_after_a_kill_and_the_next_install(tmp_path: Path, prefix: Path) -> None:
    first = make_bundle(tmp_path / "first" / "bundle", "1.0")
    second = make_bundle(tmp_path / "second" / "bundle", "2.0", library=b"SECRET TEXT" * 1000)
    install(first, prefix)
    script = (
        "import os, sys; from pathlib import Path; from local_rag.bundle.install import install;"
        "install(Path(sys.argv[1]), Path(sys.argv[2]), "
        "step=lambda text: os._exit(9) if text == 'storing the models' else None)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script, second, prefix], check=False)
    assert done.returncode == 9
    assert any(b"SECRET" in path.read_bytes() for path in prefix.rglob("*") if path.is_file())
    install(first, prefix)
    assert not any(b"SECRET" in path.read_bytes() for path in prefix.rglob("*") if path.is_file())
    installed.uninstall(prefix)
    assert not prefix.exists()


def test_a_machine_without_a_compilers_library_or_with_an_old_macos_is_refused(tmp_path: Path) -> None:
    needs = manifest_of(make_bundle(tmp_path / "bundle"))["platform"]
    here = verify.this_machine()
    needs |= {"library_versions": ["libstdc++.so.6 GLIBCXX_3.4.29"], "macos": "13.0"}
    assert not verify.check_platform(needs, here._replace(macos="", library=lambda _: b"GLIBCXX_3.4.29\0"))
    for content, said in ((None, "has none"), (b"GLIBCXX_3.4.25\0", "an older one")):
        found = verify.check_platform(needs, here._replace(macos="", library={"libstdc++.so.6": content}.get))
        assert said in found[0].message
    assert "macOS 13.0" in verify.check_platform(needs, here._replace(macos="12.7", library=lambda _: b""))[0].message
    assert (verify.this_machine().library("libc.so.6") or b"").startswith(b"\x7fELF") or os.uname().sysname != "Linux"
    assert verify.this_machine().library("libnone.so.99") is None
