"""The same question in this process and through llama-cpp-python's own server: the same answer."""

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from local_rag.answering.answerer import Answerer, answer_room
from local_rag.answering.selection import whole_sources
from local_rag.llama.external import ExternalEngine
from local_rag.llama.models_in_use import open_engine
from local_rag.models.engine_address import parse_engine
from local_rag.models.registry import resolve
from local_rag.retrieval.question import read_question
from tests.fakes import passage

_NEEDED = ("fastapi", "sse_starlette", "starlette_context")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in _NEEDED), reason="no llama-cpp-python[server]"
    ),
]
BOAT = passage("The boat leaves the harbour at seven and carries twelve people. It returns at nine in the evening.")
QUESTIONS = ("When does the boat leave the harbour?", "How many people does the boat carry?", "When does it return?")


@pytest.fixture(scope="module")
def weights() -> Path:
    return resolve("qwen2.5-coder-1.5b-instruct", "answer").path


@pytest.fixture(scope="module", params=[True, False], ids=["with odds", "without odds"])
def server(request: pytest.FixtureRequest, weights: Path) -> Iterator[tuple[str, bool]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights), "--model_alias", "smollm2"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "4096", "--logits_all", str(request.param)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(120):
                with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models"):
                    break
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1#smollm2", request.param
        finally:
            process.terminate()


def test_the_same_answer_as_in_this_process(server: tuple[str, bool], weights: Path) -> None:
    url, odds = server
    engine = ExternalEngine(parse_engine(url), context_tokens=answer_room)
    with open_engine(weights, context_tokens=answer_room) as generator:
        for question in QUESTIONS:
            sources = whole_sources(question, [[BOAT]])
            here = Answerer(lambda: generator).draft(read_question(question), sources)
            there = Answerer(lambda: engine).draft(read_question(question), sources)
            assert here is not None
            assert there is not None
            assert [one.sentence for one in there.sentences] == [one.sentence for one in here.sentences]
            if odds:
                assert there.signals.right == pytest.approx(here.signals.right, abs=0.5)
    assert engine.tells_odds is odds
