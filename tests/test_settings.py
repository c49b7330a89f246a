from pathlib import Path

import pytest

from local_rag.errors import LibraryError
from local_rag.settings import remember_settings, resolve_settings


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_settings(tmp_path).profile == "starter"
    remember_settings(tmp_path, resolve_settings(tmp_path, profile="tiny", chunk_tokens=50, context="headings"))
    remembered = resolve_settings(tmp_path)
    assert (remembered.profile, remembered.chunk_tokens, remembered.context) == ("tiny", 50, "headings")
    monkeypatch.setenv("LOCAL_RAG_PROFILE", "small")
    assert resolve_settings(tmp_path).profile == "small"
    assert resolve_settings(tmp_path, profile="laptop").profile == "laptop"
    assert resolve_settings(tmp_path, profile=None).profile == "small"


def test_only_what_shapes_the_index_is_remembered(tmp_path: Path) -> None:
    remember_settings(tmp_path, resolve_settings(tmp_path, passages=3))
    assert resolve_settings(tmp_path).passages == 20


@pytest.mark.parametrize(("name", "value"), [("passages", "many"), ("context", "magic"), ("rrf_k", "0")])
def test_a_wrong_value_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"LOCAL_RAG_{name.upper()}", value)
    with pytest.raises(LibraryError, match=f"setting {name} cannot be '{value}'.*LOCAL_RAG_{name.upper()}"):
        resolve_settings(tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("profile = ")
    with pytest.raises(LibraryError, match=r"settings\.toml cannot be read"):
        resolve_settings(tmp_path)
