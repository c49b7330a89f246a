from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag.errors import LibraryError
from local_rag.library import Library
from local_rag.model_records import InstalledModel
from local_rag.settings import Settings, explicit_settings, index_settings, resolve_settings
from tests.fakes import QUICK, FakeGenerator


def test_flags_win_over_environment_over_file_over_what_is_remembered_over_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve_settings(tmp_path).profile == "starter"
    remembered = {"profile": "tiny", "chunk_tokens": 50, "context": "headings", "passages": 3}
    found = resolve_settings(tmp_path, remembered)
    assert (found.profile, found.chunk_tokens, found.context) == ("tiny", 50, "headings")
    assert found.passages == 20, "only what shapes the index is remembered"
    (tmp_path / "settings.toml").write_text('profile = "laptop"\n')
    assert resolve_settings(tmp_path, remembered).profile == "laptop"
    monkeypatch.setenv("LOCAL_RAG_PROFILE", "small")
    assert resolve_settings(tmp_path, remembered).profile == "small"
    assert resolve_settings(tmp_path, remembered, profile="starter").profile == "starter"
    assert resolve_settings(tmp_path, remembered, profile=None).profile == "small"
    for name in ("CONTEXT_MINUTES", "KEEP_WARM"):  # which the other tests set
        monkeypatch.delenv(f"LOCAL_RAG_{name}", raising=False)
    assert explicit_settings(profile=None, overlap=2) == {"profile", "overlap"}


def test_a_model_of_the_registry_is_remembered_by_its_name_and_a_file_by_its_path(tmp_path: Path) -> None:
    def remembered(given: str, found: str) -> Any:
        model = InstalledModel(name=found, role="context", path=tmp_path, identity="w", context_length=2048)
        return index_settings(Settings(context_model=given), model)["context_model"]

    assert remembered("an-adapter", "its-base") == "an-adapter"
    assert remembered("own.gguf", str(tmp_path / "own.gguf")) == str(tmp_path / "own.gguf")
    assert remembered("", str(tmp_path / "own.gguf")) == ""


def test_an_unknown_name_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('anwser_model = "x"\n')
    with pytest.raises(LibraryError, match=r"unknown setting 'anwser_model'; did you mean 'answer_model'\?"):
        resolve_settings(tmp_path)
    (tmp_path / "settings.toml").write_text("xyzzy = 1\n")
    with pytest.raises(LibraryError, match=r"xyzzy.*docs/settings.md"):
        resolve_settings(tmp_path)


def test_a_table_is_read_from_the_file_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.toml").write_text('[search_engine]\naddress = "qdrant:https://10.0.0.9/a"\nshards = 3\n')
    monkeypatch.setenv("LOCAL_RAG_SEARCH_ENGINE_HTTP", "10.0.0.9, 10.0.0.8")
    monkeypatch.setenv("LOCAL_RAG_SEARCH_ENGINE_KEY_FILE", "here.key")
    monkeypatch.setenv("LOCAL_RAG_CLUSTER_ADDRESS", "10.0.0.5:6379")
    monkeypatch.setenv("LOCAL_RAG_CLUSTER_STATE", "is no setting")
    found = resolve_settings(tmp_path, search_engine={"shards": 4})
    engine = found.search_engine
    assert (engine.address, engine.shards, engine.key_file) == ("qdrant:https://10.0.0.9/a", 4, "here.key")
    assert (engine.http, found.cluster.address) == (("10.0.0.9", "10.0.0.8"), "10.0.0.5:6379")
    monkeypatch.setenv("LOCAL_RAG_SEARCH_ENGINE_SHARDS", "-1")
    with pytest.raises(LibraryError, match=r"setting search_engine\.shards cannot be .*LOCAL_RAG_SEARCH_ENGINE_SHARDS"):
        resolve_settings(tmp_path)


def test_an_unknown_name_in_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[cluster]\nadress = "10.0.0.5:6379"\n')
    with pytest.raises(LibraryError, match=r"unknown setting 'cluster\.adress'; did you mean 'cluster\.address'\?"):
        resolve_settings(tmp_path)


@pytest.mark.parametrize(("name", "value"), [("passages", "many"), ("context", "magic"), ("rrf_k", "0")])
def test_a_wrong_value_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"LOCAL_RAG_{name.upper()}", value)
    with pytest.raises(LibraryError, match=f"setting {name} cannot be '{value}'.*LOCAL_RAG_{name.upper()}"):
        resolve_settings(tmp_path)


def test_a_variable_that_names_a_whole_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_SEARCH_ENGINE", "qdrant:http://127.0.0.1:1/x")
    with pytest.raises(LibraryError, match=r"variables LOCAL_RAG_.* cannot be read .*search_engine"):
        resolve_settings(tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("profile = ")
    with pytest.raises(LibraryError, match=r"settings\.toml cannot be read"):
        resolve_settings(tmp_path)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "{b = " * 100_000])
def test_a_file_that_is_nested_too_deeply_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(LibraryError, match=r"settings\.toml cannot be read"):
        resolve_settings(tmp_path)


def test_the_layers_on_a_gpu_reach_the_engine(folder: Path) -> None:
    options: list[object] = []

    @contextmanager
    def open_engine(_path: Path, **given: object) -> Iterator[FakeGenerator]:
        options.append(given["gpu_layers"])
        yield FakeGenerator(lambda _prompt: "The boat leaves the harbour at seven.")

    for given in (None, 3):
        with Library(folder, parts=replace(QUICK, open_engine=open_engine), gpu_layers=given) as library:
            library.ask("When does the boat leave the harbour?")
    assert options == [-1, 3]
    with pytest.raises(LibraryError, match="The setting gpu_layers cannot be -2"):
        resolve_settings(folder, gpu_layers=-2)


@pytest.mark.parametrize("name", ["./model.gguf", "models/one", "{folder}/model.gguf", "starter+{folder}/a.gguf"])
def test_a_library_names_no_model_file_that_came_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    named = name.format(folder=tmp_path)
    (tmp_path / "settings.toml").write_text(f'answer_model = "{named}"\n')
    with pytest.raises(LibraryError, match="which is not loaded because others may have put it there"):
        resolve_settings(tmp_path)
    assert resolve_settings(tmp_path, answer_model=named).answer_model == named
    monkeypatch.setenv("LOCAL_RAG_ANSWER_MODEL", named)
    assert resolve_settings(tmp_path).answer_model == named


def test_a_plus_in_a_path_is_no_adapter(tmp_path: Path) -> None:
    library, own = tmp_path / "c++" / "library", tmp_path / "a+b" / "own.gguf"
    for file in (library / "carried.gguf", own):
        file.parent.mkdir(parents=True)
        file.touch()
    (library / "settings.toml").write_text(f'answer_model = "{own}"\n')
    assert resolve_settings(library).answer_model == str(own)
    for named in (library / "carried.gguf", f"{own}+{library / 'carried.gguf'}", f"{library / 'carried.gguf'}+{own}"):
        (library / "settings.toml").write_text(f'answer_model = "{named}"\n')
        with pytest.raises(LibraryError, match="which is not loaded"):
            resolve_settings(library)
