"""Fixtures: fakes for logic, the tiny models for model paths."""

import gc
import importlib.util
import os
import re
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import settings

from local_rag.cli.main import cli
from local_rag.cli.options import Invocation
from local_rag.errors import ModelError
from local_rag.library import Parts
from local_rag.llama.model import LlamaModel
from local_rag.model_records import InstalledModel
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.models.registry import resolve
from local_rag.reading.split import Splitting
from tests.fakes import EMBEDS_QUICKLY

# A shell starts its background jobs with Ctrl-C ignored, which tests that press it would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
# How long one example takes is the machine's affair: a slow or busy one fails nothing.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

Run = Callable[..., Result]
_TESTS = Path(__file__).parent
# Besides the tests marked `slow`, `scripts/test.sh --quick` leaves out tests that use these fixtures, and tests of the
# whole program, of llama.cpp, of installers and of other machines.
_SLOW_FIXTURES = {"tiny_llama"}
_SLOW_FOLDERS = {"bundle", "cluster", "llama", "whole"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what needs a language model, or more than this process."""
    for item in items:
        used = set(item.fixturenames) if isinstance(item, pytest.Function) else set[str]()
        if used & _SLOW_FIXTURES or item.path.relative_to(_TESTS).parts[0] in _SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)


def _missing() -> list[str]:
    """Name what `scripts/setup.sh --core` leaves out: packages, and the tiny models."""
    names = [name for name in ("llama_cpp", "torch", "qdrant_edge") if importlib.util.find_spec(name) is None]
    try:
        resolve("all-minilm-l6-v2", "embed")
        resolve("smollm2-135m-instruct", "context")
    except ModelError:
        names.append("the tiny models")
    return names


_MISSING = _missing()
NEEDS_LLAMA = pytest.mark.skipif("llama_cpp" in _MISSING, reason="needs llama.cpp")
_SKIPPED = f"needs {', '.join(_MISSING)}"
# What a failure says whose cause is one of them.
_NEEDS = re.compile(
    r"is not pulled|models pull|smollm2|local_rag\.llama\.probe"
    r"|(?:No module named|No package metadata was found for) '?(?:llama|torch|transformers|sentence|qdrant_edge|ray)"
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that fails because this environment lacks a model or a package that it needs."""
    report = yield
    if _MISSING and call.excinfo and report.failed and _NEEDS.search(str(call.excinfo.value)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {_SKIPPED}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a module that cannot be imported for the same reason."""
    report = yield
    if _MISSING and report.failed and _NEEDS.search(str(report.longrepr)):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"Skipped: {_SKIPPED}")
    return report


def pytest_collection_finish() -> None:
    """Keep the thousands of collected tests out of garbage collection, which indexing calls for each run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _stay_out_of_garbage_collection() -> Iterator[None]:
    """Do the same with the libraries that the tests of a module have imported."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def run() -> Run:
    """Run the command line in this process, with the fake embedder unless other parts are given."""

    def invoke(*arguments: str, parts: Parts = EMBEDS_QUICKLY) -> Result:
        result = CliRunner().invoke(cli, list(map(str, arguments)), obj=Invocation(parts=parts))
        if _MISSING and result.exit_code and _NEEDS.search(result.output):
            pytest.skip(_SKIPPED)
        return result

    return invoke


@pytest.fixture(scope="session", autouse=True)
def _writes_no_sentences() -> Iterator[None]:
    """Let only the tests that set the time write sentences in the mode `auto`, which is the default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_RAG_CONTEXT_MINUTES", "0")
        yield


@pytest.fixture(scope="session", autouse=True)
def _leaves_no_process() -> Iterator[None]:
    """Let only the tests that want one leave a process behind that keeps models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_RAG_KEEP_WARM", "0")
        yield


@pytest.fixture(scope="session")
def embed_model() -> InstalledModel:
    return resolve("all-minilm-l6-v2", "embed")


@pytest.fixture(scope="session")
def splitting(embed_model: InstalledModel) -> Splitting:
    return Splitting(embed_model.path / TOKENIZER_FILE, 100)


@pytest.fixture(scope="session")
def tiny_llama() -> Iterator[LlamaModel]:
    with LlamaModel(resolve("smollm2-135m-instruct", "context").path) as model:
        yield model


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a folder of three documents."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "documents"
    (folder / "norway").mkdir(parents=True)
    (folder / "norway" / "leave.md").write_text(
        "# Leave in Norway\n\n## Parental leave\n\nParents get 49 weeks at full pay.\n\n## Sick leave\n\nA doctor's "
        "note is needed after 3 days.\n"
    )
    (folder / "ireland.md").write_text("# Leave in Ireland\n\n## Parental leave\n\nParents get 26 weeks at half pay.\n")
    (folder / "boat.txt").write_text("The boat leaves the harbour at seven. It carries twelve people.\n")
    return folder


@pytest.fixture
def indexed(documents: Path, run: Run) -> Path:
    """The folder of three documents, indexed in the working directory by the command line."""
    result = run("index", "documents", "--profile", "tiny", "--context", "headings")
    assert result.exit_code == 0, result.output
    return documents


@pytest.fixture
def folder(documents: Path) -> Path:
    """The folder of a library of the three documents, as a server finds it."""
    from tests.support import served  # needs an extra

    library = documents.parent / "lib"
    served.index(documents, library)
    return library


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime directory of the user, of which a socket's path may not be long."""
    place = tmp_path_factory.mktemp("run")
    place.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", os.fspath(place))
    return place
