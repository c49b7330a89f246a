"""A server that is killed in the midst of an answer has lost nothing: library, history, nor its next start."""

import os
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from local_rag.library import Library
from tests.support.served import ENDLESS, QUESTION, parts

SERVE = """
import socket, sys
from dataclasses import replace
from pathlib import Path
from local_rag.serving.served_models import open_library
from local_rag.web.listening import serve
from tests.fakes import QUICK, generating
from local_rag.library import Library
from tests.support.served import Talker
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
made_of = replace(QUICK, open_engine=generating(Talker()))
serve([Path(sys.argv[1])], open_library, made_of, listener, host="127.0.0.1")
"""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve with a generator that to one question never ends its answer."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", SERVE, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}", process
        finally:
            process.kill()


def ask(address: str, question: str) -> urllib.request.Request:
    data = urlencode({"question": question, "conversation": ""}).encode()
    return urllib.request.Request(f"{address}/ask", data, {"accept": "text/event-stream"})


@pytest.mark.slow
def test_killed_mid_answer_nothing_is_lost(folder: Path, runtime: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "generations" in path.parts}
    with serving(folder) as (address, process):
        with urllib.request.urlopen(ask(address, QUESTION), timeout=60) as answer:
            assert b"event: done" in answer.read()
        with urllib.request.urlopen(ask(address, ENDLESS), timeout=60) as answer:
            while not (line := answer.readline()).startswith(b"event: passages"):
                assert line
            process.send_signal(signal.SIGKILL)
            assert process.wait(30) == -signal.SIGKILL
    for name in ("library.sqlite3", "history.sqlite3"):
        with closing(sqlite3.connect(folder / name)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert {path: path.read_bytes() for path in before} == before
    with Library(folder, parts=parts()) as library:
        assert library.search("boat")
    with serving(folder) as (address, process):
        with urllib.request.urlopen(f"{address}/history", timeout=60) as page:
            assert QUESTION in page.read().decode()
        with urllib.request.urlopen(ask(address, QUESTION), timeout=60) as answer:
            assert b'"again": true' in answer.read(), "the answer of before the crash"
