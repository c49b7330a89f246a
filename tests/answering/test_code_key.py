"""The key of cached answers changes with all code between a question and its answer, by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local_rag.answering.code_key import answer_recipe
from tests.conftest import NEEDS_LLAMA


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a module, a table and what shapes no answer."""
    (tmp_path / "answering").mkdir()
    (tmp_path / "answering" / "prompt.py").write_text("REQUEST = 'Answer.'\n")
    (tmp_path / "registry.toml").write_text("weak_below = 0.5\n")
    (tmp_path / "page.css").write_text("p {}\n")
    return tmp_path


@pytest.mark.parametrize("name", ["answering/prompt.py", "registry.toml", "answering/added.py"])
def test_any_change_of_the_code_changes_it(package: Path, name: str) -> None:
    before = answer_recipe.__wrapped__(package)
    assert answer_recipe.__wrapped__(package) == before
    with (package / name).open("a") as file:
        file.write("# changed\n")
    assert answer_recipe.__wrapped__(package) != before


def test_a_style_sheet_and_compiled_code_do_not_count(package: Path) -> None:
    before = answer_recipe.__wrapped__(package)
    (package / "page.css").write_text("p { color: red }\n")
    (package / "answering" / "prompt.pyc").write_bytes(b"compiled")
    assert answer_recipe.__wrapped__(package) == before


@NEEDS_LLAMA
def test_the_recipe_is_the_same_in_every_process() -> None:
    code = "from local_rag.answering.code_key import answer_recipe; print(answer_recipe())"
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    printed = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert printed.stdout.strip() == answer_recipe()
