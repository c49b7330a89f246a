"""What a command imports decides how long it takes to answer: what a question needs no more of, it must not load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "scipy.stats",
    "pandas",
    "sklearn",
    "trafilatura",
    "chardet",
    "mammoth",
    "markdownify",
    "pptx",
}
IMPORTED = """
import atexit, json, sys
from local_rag.cli.main import main
sys.argv = ["local-rag", *sys.argv[1:]]
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
main()
"""


@pytest.fixture
def library(documents: Path) -> Path:
    """A library that the real embedder has made."""
    assert imported("index", str(documents), "--profile", "tiny", "--context", "headings").isdisjoint(HEAVY)
    return documents


def imported(*arguments: str) -> set[str]:
    """Run a command in a process of its own; return which modules it imported."""
    done = subprocess.run([sys.executable, "-c", IMPORTED, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_searching_and_indexing_import_neither_torch_nor_transformers(library: Path) -> None:
    modules = imported("search", "when does the boat leave", "--top", "1")
    assert "onnxruntime" in modules, "the question was embedded"
    assert modules.isdisjoint(HEAVY)
    assert modules.isdisjoint({"llama_cpp", "pypdfium2", "openpyxl", "huggingface_hub", "requests"})
    assert "local_rag.cluster.engines.qdrant_indexes" not in modules, "no search engine is set"


@pytest.mark.parametrize("command", ["", "ask", "chat", "documents", "find", "remove", "search", "serve", "status"])
def test_help_imports_nothing_of_weight(command: str) -> None:
    modules = imported(*filter(None, [command, "--help"]))
    assert modules.isdisjoint({"numpy", "pydantic", "faiss", "onnxruntime", "bm25s", *HEAVY})


def test_indexing_and_searching_need_no_ssl(documents: Path, tmp_path: Path) -> None:
    # The Python on the other side of an air gap may be built without it.
    start = "import sys; sys.modules['_ssl'] = None; from local_rag.cli.main import main; main()"
    for command in (["index", str(documents), "--profile", "tiny"], ["search", "boat"]):
        arguments = [sys.executable, "-P", "-c", start, *command, "--library", str(tmp_path / "library")]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
