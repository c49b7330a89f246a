"""Packing: the same inputs give the same bytes, only what is allowed goes in, what cannot be reached is refused."""

import json
import re
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.bundle import approval, archive, create, packing_list, wheels
from local_rag.bundle.archive import BundleError
from local_rag.bundle.create import BundleContents, Packing, read_source, write_parts
from local_rag.bundle.packing_list import a_sentence, copy_for_bundle, item_of
from local_rag.files import package_key
from local_rag.models.models_folder import default_models_directory
from local_rag.models.registry import load_registry
from local_rag.store.published import copy_library
from tests.conftest import Run
from tests.support.bundles import PART, make_bundle, make_wheel

paths = st.from_regex(r"[a-z0-9_.-]{0,60}[a-z0-9](/[a-z0-9_-]{1,70}){0,2}", fullmatch=True).filter(
    lambda path: all(piece.strip(".") for piece in path.split("/"))
)


@given(
    files=st.dictionaries(paths, st.binary(max_size=2000), min_size=1, max_size=8),
    part_bytes=st.integers(500, 5000),
)
def test_what_is_written_is_read_again_by_us_and_by_tar(files: dict[str, bytes], part_bytes: int) -> None:
    items = [item_of(path, "wheel", content) for path, content in files.items()]
    with tempfile.TemporaryDirectory() as temporary:
        members = ((one.path, one.bytes, one.sha256, lambda one=one: read_source(one.source)) for one in items)
        write_parts(members, Path(temporary), "name", part_bytes)
        written = sorted(Path(temporary).iterdir())
        assert all(path.stat().st_size == part_bytes for path in written[:-1])
        with closing(archive.Stream(written)) as stream:
            found = {name: b"".join(read()) for name, _, read in archive.members(stream)}
        (Path(temporary) / "whole.tar").write_bytes(b"".join(path.read_bytes() for path in written))
        with tarfile.open(Path(temporary) / "whole.tar") as packed:
            by_tar = {one.name: packed.extractfile(one).read() for one in packed}  # type: ignore[union-attr]
            assert {(one.uid, one.mtime, one.mode) for one in packed.getmembers()} == {(0, 0, 0o644)}
    assert found == by_tar == files


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (make_bundle(tmp_path / name / "bundle", library=b"SQLite") for name in ("a", "b"))
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()
    assert wheels.wheel_of_installed("click", tmp_path / "x").read_bytes() == (
        wheels.wheel_of_installed("click", tmp_path / "y").read_bytes()
    )


def test_the_same_library_gives_the_same_bytes_and_nothing_that_was_asked(documents: Path, run: Run) -> None:
    assert run("index", documents, "--context", "none", "--library", "library").exit_code == 0
    run("search", "parental leave", "--library", "library")
    for name in ("a", "b"):
        copy_library(Path("library"), Path(name))
    files = sorted(path.relative_to("a") for path in Path("a").rglob("*") if path.is_file())
    assert {"library.sqlite3", "CURRENT"} < {str(path) for path in files}
    assert not any("history" in str(path) or path.suffix == ".jsonl" for path in files)
    for path in files:
        assert (Path("a") / path).read_bytes() == (Path("b") / path).read_bytes()


def test_a_moved_library_answers_shows_its_roots_and_is_repaired(documents: Path, run: Run, tmp_path: Path) -> None:
    assert run("index", documents, "--context", "none", "--library", "library").exit_code == 0
    copy_library(Path("library"), Path("other"))
    documents.rename(tmp_path / "gone")
    found = json.loads(run("search", "parental leave in Norway", "--library", "other", "--json", "--no-rerank").output)
    passages = found["passages"] if isinstance(found, dict) else found
    assert any("49 weeks" in passage["text"] for passage in passages)
    assert "not reachable" in run("roots", "--library", "other").output
    assert run("roots", "move", documents, tmp_path / "gone", "--library", "other").exit_code == 0
    assert "not reachable" not in run("roots", "--library", "other").output


def test_a_file_that_changes_while_it_is_packed_is_noticed(tmp_path: Path) -> None:
    item = item_of("a", "wheel", b"before")

    def changed() -> Iterator[bytes]:
        yield b"after!"

    with pytest.raises(BundleError, match="changed while it was packed"):
        write_parts([(item.path, item.bytes, item.sha256, changed)], tmp_path, "name", PART)


def test_pickles_are_not_packed() -> None:
    for name in ("model.gguf", "model.safetensors", "1/model.onnx", "model.onnx.data", "LICENSE", "config.json"):
        assert packing_list.is_allowed(name)
    for name in ("pytorch_model.bin", "model.pt", "model.pkl", "model.ckpt", "run.py", "lib.so", "model.npy"):
        assert not packing_list.is_allowed(name)
    for entry in load_registry().models.values():
        assert all(packing_list.is_allowed(file.name) for file in entry.files)


def test_a_damaged_model_is_not_packed(tmp_path: Path) -> None:
    entry = load_registry().models["smollm2-135m-instruct"]
    with pytest.raises(BundleError, match="models pull") as told:
        list(packing_list.model_items(entry, tmp_path))
    assert told.value.kind == "integrity"


def test_the_parts_of_a_profile() -> None:
    assert packing_list.models_of("tiny")["smollm2-135m-instruct"] == ("context", "answer")
    shipped = [load_registry().models[name] for name in ("all-minilm-l6-v2", "minilm-l6-reader")]
    assert not [*packing_list.model_items(shipped[0], Path()), *packing_list.model_items(shipped[1], Path())], (
        "they come in the wheel"
    )
    with pytest.raises(BundleError, match="Unknown profile 'huge'"):
        packing_list.models_of("huge")


def test_packages_are_pinned_and_torch_stays_out() -> None:
    lean = wheels.needed_packages()
    assert not {"torch", "transformers", "sentence-transformers", "onnx", "pytest", "ray"} & lean.keys()
    assert {"onnxruntime", "faiss-cpu", "llama-cpp-python", "uvicorn", "tokenizers"} <= lean.keys()
    assert all(wheels.pins()[name] == version for name, version in lean.items())


def test_extras_are_packed_only_if_they_are_known_and_installed() -> None:
    assert {"cluster", "sentence-transformers"} <= set(wheels.known_extras())
    assert {"torch", "transformers"} <= wheels.needed_packages(["sentence-transformers"]).keys()
    assert wheels.missing_packages(["sentence-transformers"]) == []
    with pytest.raises(BundleError, match=r"Unknown extra clusters; choose from cluster, "):
        wheels.missing_packages(["clusters"])
    if not wheels.missing_packages(["cluster"]):
        assert {"ray", "qdrant-client"} <= wheels.needed_packages(["cluster"]).keys()


def test_the_lock_file_has_the_pinned_versions_with_hashes() -> None:
    locked = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ ]+)", Path("requirements.lock").read_text(), re.MULTILINE))
    pinned = wheels.pins()
    assert {package_key(name): version for name, version in locked.items()}.items() >= {
        name: pinned[name] for name in map(package_key, locked) if name in pinned
    }.items()
    assert all(hashes for hashes in wheels.locked_hashes().values())
    assert {"llama-cpp-python", "onnxruntime", "ray", "ziglang"} <= wheels.locked_hashes().keys()


def test_a_wheel_in_the_cache_is_compared_with_the_lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    half = cache / "click-8.5.1-py3-none-any.whl"
    half.write_bytes(b"PK half a wheel")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    version = wheels.pins()["click"]
    with pytest.raises(BundleError, match="pip download failed"):
        wheels.fetch({"click": version}, cache)
    assert not half.exists()
    make_other = wheel_with(tmp_path / "index" / f"click-{version}-py3-none-any.whl", a__py=b"other")
    with zipfile.ZipFile(make_other, "a") as wheel:
        wheel.writestr(
            f"click-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: click\nVersion: {version}\n"
        )
        wheel.writestr(f"click-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"click-{version}.dist-info/RECORD", "")
    with pytest.raises(BundleError, match=r"not in requirements\.lock"):
        wheels.fetch({"click": version}, cache)
    assert not list(cache.glob("*.whl"))


def test_too_many_parts_and_too_small_a_disk_are_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = contents_of(tmp_path, "2.35")
    contents.items = [replace(item_of("models/x/x.gguf", "model", b"GGUF"), bytes=10**9)]
    contents.packing = replace(contents.packing, part_bytes=1000)
    with pytest.raises(BundleError, match="larger --part-size"):
        create.pack(contents, lambda _: None)
    contents.packing = replace(contents.packing, part_bytes=10**16)
    contents.items = [replace(contents.items[0], bytes=10**15)]
    with pytest.raises(BundleError, match=r"with its rehearsal needs .* MB free") as told:
        create.pack(contents, lambda _: None)
    assert told.value.kind == "disk"
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / ".out.tmp").exists()


def test_a_library_of_other_models_is_refused_and_settings_of_this_machine_stay_here(
    documents: Path, run: Run, tmp_path: Path
) -> None:
    options = ("--context", "none", "--profile", "tiny", "--library", "library")
    assert run("index", documents, *options).exit_code == 0
    library = Path("library")
    (library / "settings.toml").write_text('answer_hosts = ["10.0.0.9"]\npassages = 7\n')
    copy_for_bundle(library, tmp_path / "copy", "tiny")
    assert (tmp_path / "copy" / "settings.toml").read_text() == "passages = 7\n"
    assert a_sentence(library)
    with pytest.raises(BundleError, match=r"which is not in the profile small|does not fit"):
        copy_for_bundle(library, tmp_path / "other", "small")
    assert not (tmp_path / "other").exists()


def shared_object(*versions: str, library: str = "libc.so.6") -> bytes:
    """Make an ELF file that needs versions of symbols of one library."""
    names = b"\0" + library.encode() + b"\0" + b"".join(one.encode() + b"\0" for one in versions)
    places = [names.index(b"\0" + one.encode() + b"\0") + 1 for one in versions]
    entries = [
        struct.pack("<IHHII", 0, 0, number, place, 16 if number < len(versions) - 1 else 0)
        for number, place in enumerate(places)
    ]
    needs = struct.pack("<HHIII", 1, len(versions), 1, 16, 0) + b"".join(entries)
    at_names, at_needs = 64, 64 + len(names)
    sections = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at_names, len(names), 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 0x6FFFFFFE, 0, 0, at_needs, len(needs), 0, 1, 0, 0)
    at_sections = at_needs + len(needs)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, at_sections, 0, 64, 0, 0, 64, 2, 0
    )
    return header + names + needs + sections


def wheel_with(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name.replace("__", "."), content)
    return path


def test_the_highest_glibc_is_read_out_of_compiled_files(tmp_path: Path) -> None:
    old = wheel_with(tmp_path / "old.whl", a__so=shared_object("GLIBC_2.2.5", "GLIBC_2.17", "GLIBCXX_3.4.29"))
    new = wheel_with(tmp_path / "new.whl", b__so=shared_object("GLIBC_2.9", "GLIBC_2.34"), c__py=b"GLIBC_2.99")
    assert wheels.system_needs({"old": old}) == wheels.SystemNeeds("2.17", "a.so of old")
    assert wheels.system_needs({"old": old, "new": new}) == wheels.SystemNeeds("2.34", "b.so of new")
    assert wheels.system_needs({}) == wheels.SystemNeeds()
    relr = wheel_with(tmp_path / "relr.whl", a__so=shared_object("GLIBC_2.2.5", "GLIBC_ABI_DT_RELR"))
    assert wheels.system_needs({"relr": relr}).glibc == "2.36"
    # The interpreter that runs this needs something, and what it needs is there.
    with pytest.raises(BundleError):
        wheels.needed_versions(shared_object("GLIBC_2.17")[:-60])


def test_versions_of_a_compilers_library_are_read_unless_a_wheel_contains_it(tmp_path: Path) -> None:
    code = shared_object("GLIBCXX_3.4.9", "GLIBCXX_3.4.29", "CXXABI_1.3.13", library="libstdc++.so.6")
    first = wheel_with(tmp_path / "first.whl", a__so=code, b__so=shared_object("FOO_1.0", library="libfoo.so.1"))
    wanted = ("libstdc++.so.6 CXXABI_1.3.13", "libstdc++.so.6 GLIBCXX_3.4.29")
    assert wheels.system_needs({"first": first}).library_versions == wanted
    second = tmp_path / "second.whl"
    with zipfile.ZipFile(second, "w") as wheel:
        wheel.writestr("x.libs/libstdc++.so.6", b"")
    assert wheels.system_needs({"first": first, "second": second}).library_versions == ()


@given(st.binary(max_size=300))
def test_other_and_damaged_files_do_not_crash_the_elf_reader(data: bytes) -> None:
    for one in (data, b"\x7fELF\x02\x01" + data):
        try:
            wheels.needed_versions(one)
        except BundleError as error:
            assert error.kind == "platform"  # noqa: PT017


def contents_of(tmp_path: Path, glibc: str) -> BundleContents:
    packing = Packing(output=tmp_path / "out", profile="tiny", cache=tmp_path, glibc=glibc)
    path = wheel_with(tmp_path / "llama.whl", lib__so=shared_object("GLIBC_2.34"), libggml_cpu__so=b"")
    return BundleContents(packing, wheels={wheels.LLAMA: item_of("wheels/llama.whl", "wheel", path)})


def test_a_wheel_that_needs_a_later_glibc_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"lib\.so of .* needs glibc 2\.34, .* later than --glibc 2\.28") as told:
        create.make_manifest(contents_of(tmp_path, "2.28"))
    assert told.value.kind == "platform"
    manifest = create.make_manifest(contents_of(tmp_path, "2.35"))
    assert manifest["platform"]["glibc"] == "2.34"
    assert manifest["platform"]["python"] == create.PYTHON


def test_wheels_for_an_older_glibc_are_chosen_by_their_tags(tmp_path: Path) -> None:
    tags = wheels.glibc_tags("2.17")
    assert tags[0].startswith("manylinux_2_17_")
    assert any(tag.startswith("manylinux2014_") for tag in tags)
    assert not any("2_28" in tag for tag in tags)
    machine = tags[0].removeprefix("manylinux_2_17_")
    for minor in ("17", "28"):
        (tmp_path / f"a-1.0-cp311-abi3-manylinux_2_{minor}_{machine}.whl").touch()
    found = wheels.find_wheels({"a": "1.0"}, tmp_path, tags)
    assert found["a"].name == f"a-1.0-cp311-abi3-manylinux_2_17_{machine}.whl"
    assert not wheels.find_wheels({"a": "2.0"}, tmp_path, tags)


def test_without_zig_an_older_glibc_is_refused_in_a_sentence(tmp_path: Path) -> None:
    try:
        compilers = wheels.zig_compiler("2.28", tmp_path)
    except BundleError as error:
        assert "pip install ziglang" in str(error)  # noqa: PT017
    else:
        assert "x86_64-linux-gnu.2.28" in Path(compilers["CC"]).read_text()


def test_the_list_of_components_holds_wheels_and_models(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "1.0")
    packed = {"local-rag": item_of("wheels/x.whl", "wheel", path)}
    models = [load_registry().models[name] for name in packing_list.models_of("tiny")]
    commit = "0" * 40
    interpreter = item_of("python/cpython.tar.gz", "python", b"py")
    document = approval.write_sbom("1.0", commit, packed, models, interpreter)
    again = approval.write_sbom("1.0", commit, packed, models, interpreter)
    assert document == again
    told = json.loads(document)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    by_name = {one["name"]: one for one in told["components"]}
    assert by_name["local-rag"]["purl"] == "pkg:generic/local-rag@1.0"
    assert by_name["cpython.tar.gz"]["type"] == "application"
    assert told["metadata"]["component"]["properties"] == [{"name": "local-rag:commit", "value": commit}]
    tree = {one["ref"]: one.get("dependsOn", []) for one in told["dependencies"]}
    assert "pkg:generic/local-rag@1.0" in tree["local-rag"]
    assert by_name["smollm2-135m-instruct"]["type"] == "machine-learning-model"
    assert by_name["smollm2-135m-instruct"]["hashes"][0]["content"] == models[0].weights.sha256


def wheel_of(path: Path, metadata: str, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("a-1.0.dist-info/METADATA", f"Metadata-Version: 2.4\nName: a\nVersion: 1.0\n{metadata}")
        for name, content in files.items():
            wheel.writestr(name, content)
    return path


def test_licences_are_found_wherever_they_lie(tmp_path: Path) -> None:
    files = {
        "a-1.0.dist-info/licenses/pdfium.txt": b"PDFium",
        "a/ThirdPartyNotices.txt": b"others",
        "a/LICENSE": b"own",
        "a-1.0.dist-info/COPYING_QHULL.txt": b"Qhull",
        "a/licensed.py": b"code",
        "a/data.txt": b"data",
    }
    path = wheel_of(tmp_path / "a.whl", "License-File: pdfium.txt\n", **files)
    assert sorted(text for _, text in approval.licences_of_wheel("a", path)) == [b"PDFium", b"Qhull", b"others", b"own"]


def test_without_a_text_the_standard_one_is_packed_and_without_a_licence_nothing(tmp_path: Path) -> None:
    for metadata, begins in (
        ("License-Expression: MIT\n", b"Permission is hereby granted"),
        ("Classifier: License :: OSI Approved :: Apache Software License\n", b"Apache License"),
    ):
        (name, text), *others = approval.licences_of_wheel("a", wheel_of(tmp_path / "a.whl", metadata))
        assert (text.strip().startswith(begins), "standard text" in name, others) == (True, True, [])
    for metadata in ("", "License: Own Licence\n", "License-Expression: GPL-3.0-only\n"):
        with pytest.raises(BundleError, match="No licence text of a is known"):
            approval.licences_of_wheel("a", wheel_of(tmp_path / "a.whl", metadata))
    llama = dict(approval.licences_of_wheel("llama-cpp-python", wheel_of(tmp_path / "a.whl", "", LICENSE=b"Betlen")))
    assert b"ggml authors" in llama["llama.cpp"]
    models = load_registry().models
    assert b"Apache License" in approval.licences_of_model(models["qwen2.5-coder-0.5b-instruct"], tmp_path)[0][1]
    with pytest.raises(BundleError, match=r"llama-3\.2-1b-instruct .*put its text as LICENSE into"):
        approval.licences_of_model(models["llama-3.2-1b-instruct"], tmp_path)
    (tmp_path / "LICENSE").write_text("Llama 3.2 Community License")
    assert approval.licences_of_model(models["llama-3.2-1b-instruct"], tmp_path)[0][0] == "LICENSE"


def test_the_command_shows_the_plan_and_writes_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = run("bundle", "create", "--profile", "tiny", "--dry-run", "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "Total: about" in done.output
    told = json.loads(run("bundle", "create", "--profile", "tiny", "--dry-run", "--json").stdout)
    assert told["kinds"]["model"]["bytes"] == 98_362_432
    smaller = json.loads(run("bundle", "create", "--profile", "tiny", "--without-models", "--dry-run", "--json").stdout)
    assert smaller["bytes"] < told["bytes"]
    assert "model" not in smaller["kinds"]
    assert not (tmp_path / "out").exists()
    assert default_models_directory().exists()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--part-size", "5G"], 2, "not a size between"),
        (["--part-size", "much"], 2, "not a size between"),
        (["--glibc", "new"], 2, "not a version of glibc"),
        (["--profile", "huge"], 1, "Unknown profile 'huge'"),
        (["--profile", "tiny", "--python", __file__], 1, "not an archive of a Python interpreter"),
    ],
)
def test_wrong_usage_and_refusals_have_their_codes(run: Run, arguments: list[str], code: int, text: str) -> None:
    done = run("bundle", "create", "--dry-run", *arguments)
    assert (done.exit_code, text in done.output) == (code, True), done.output


def test_a_folder_with_files_is_not_written_into(run: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    done = run("bundle", "create", "--dry-run", "--output", tmp_path, "--json")
    assert (done.exit_code, json.loads(done.stdout)["kind"]) == (1, "disk")
    with pytest.raises(BundleError, match="is not installed"):
        wheels.wheel_of_installed("no-such-package", tmp_path)
