"""MODEL+ADAPTER is split where the path of a file follows the plus, and nowhere else."""

from pathlib import Path

import pytest

from local_rag.model_names import parts_of


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("starter", ("starter",)),
        ("starter+a+b/law.gguf", ("starter", "a+b/law.gguf")),
        ("a+b/own.gguf", ("a+b/own.gguf",)),
        ("a+b/own.gguf+a+b/law.gguf", ("a+b/own.gguf", "a+b/law.gguf")),
        ("new+model", ("new+model",)),
        ("x+law.gguf", ("x+law.gguf",)),
    ],
)
def test_a_plus_parts_a_model_from_its_adapter_only(
    name: str, parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a+b").mkdir()
    for file in ("a+b/own.gguf", "a+b/law.gguf", "x+law.gguf", "law.gguf"):
        Path(file).touch()
    assert parts_of(name) == parts
