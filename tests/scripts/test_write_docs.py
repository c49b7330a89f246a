"""scripts/write_docs.py and scripts/docs/packages.py: what is generated in the docs is what the program says today."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.docs import packages

CHECKOUT = Path(__file__).parents[2]


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *script.split(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)


def copy_docs(folder: Path) -> Path:
    shutil.copy(CHECKOUT / "README.md", folder)
    shutil.copytree(CHECKOUT / "docs", folder / "docs", ignore=shutil.ignore_patterns("measurements"))
    return folder


def test_nothing_is_stale() -> None:
    done = run("scripts/write_docs.py", "--check")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_readmes_results_are_those_measured(tmp_path: Path) -> None:
    readme = copy_docs(tmp_path) / "README.md"
    readme.write_text(readme.read_text().replace(" chunks of source code", " chunks of prose"))
    done = run("-m scripts.docs.write_results", "--readme", readme)
    assert done.returncode == 0, done.stderr
    assert readme.read_text() == (CHECKOUT / "README.md").read_text()


def test_what_is_stale_is_named_and_written(tmp_path: Path) -> None:
    root = copy_docs(tmp_path)
    (root / "docs" / "commands.md").unlink()
    readme = root / "README.md"
    readme.write_text(readme.read_text().replace("| `starter` (default) |", "| `starter` |"))
    done = run("scripts/write_docs.py", "--check", "--root", root)
    assert done.returncode == 1
    command = "run `.venv/bin/python scripts/write_docs.py`."
    assert done.stdout.splitlines() == [f"docs/commands.md is stale; {command}", f"README.md is stale; {command}"]
    assert not (root / "docs" / "commands.md").exists()
    assert run("scripts/write_docs.py", "--root", root).returncode == 0
    assert readme.read_text() == (CHECKOUT / "README.md").read_text()
    assert (root / "docs" / "commands.md").read_text() == (CHECKOUT / "docs" / "commands.md").read_text()


def test_a_page_without_its_comments_is_refused(tmp_path: Path) -> None:
    page = copy_docs(tmp_path) / "docs" / "engine.md"
    page.write_text(page.read_text().replace("<!-- end of speed -->", ""))
    done = run("scripts/write_docs.py", "--root", tmp_path)
    assert done.returncode == 1
    assert "The comments of `speed` stand 0 times" in done.stderr


def test_imports_from_a_higher_and_from_the_same_layer_are_found() -> None:
    wrong = packages.forbidden_imports
    assert list(wrong({"store": {"models": ["a.py"]}})) == ["`store` -> `models` (a.py)"]
    assert list(wrong({"answering": {"indexing": ["a.py"]}})) == ["`answering` -> `indexing` (a.py)"]
    assert list(wrong({"answering": {"store": ["a.py"]}, "records": {"errors": ["records.py"]}})) == []


def test_imports_are_found_wherever_they_stand_but_those_for_types_alone() -> None:
    source = """
import local_rag.store.database
from local_rag import errors, Library
if TYPE_CHECKING:
    from local_rag.cli import main
def late():
    from local_rag.models.registry import resolve
"""
    assert list(packages.imported_packages(ast.parse(source))) == ["store", "errors", "models"]
