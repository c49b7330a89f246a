"""A command leaves a process behind that answers the next ones, and that ends by itself."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from local_rag.answer_records import Found
from local_rag.errors import StoppedError
from local_rag.library import Library, Parts
from local_rag.serialization import from_plain
from local_rag.serving import socket_client
from local_rag.serving.leaving import leave, listen, may_leave
from local_rag.serving.left import Left
from local_rag.serving.socket_client import ask_server, environment, is_served, running, socket_path, stop_left
from local_rag.settings import ClusterSettings, SearchEngineSettings, Settings
from tests.conftest import Run
from tests.fakes import FakeEmbedder
from tests.support.served import QUESTION, command_line_server, parts, wait_until

PLENTY = (8_000_000_000, 4_000_000_000)
SEARCH = {"do": "search", "question": "boat", "top": 1}
IMPORTED = """
import atexit, json, sys
from local_rag.cli.main import main
sys.argv = ["local-rag", *sys.argv[1:]]
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
main()
"""


@contextmanager
def left_behind(
    folder: Path,
    memory: Callable[[], tuple[int, int]] = lambda: PLENTY,
    made_of: Parts | None = None,
    **settings: Any,
) -> Iterator[threading.Thread]:
    """Keep a library in a thread as a process that was left behind does."""
    listener = listen(folder.resolve())
    assert listener is not None
    left = list[Left]()

    async def run() -> None:
        opened = partial(Library, folder, parts=made_of or parts(), **{"keep_warm": 5.0, **settings})
        left.append(Left(listener, opened, memory=memory, look_seconds=0.05))
        await left[0].run()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    try:
        assert ask_server(folder, {}, SEARCH, first_seconds=30)
        yield thread
    finally:
        stop_left(folder.resolve())
        thread.join(30)
        assert not socket_path(folder.resolve()).exists()


def test_it_answers_like_the_command(folder: Path, runtime: Path, run: Run) -> None:
    commands = [
        ["search", "boat", "--library", str(folder), "--json"],
        ["find", "How many documents mention parents?", "--library", str(folder), "--json"],
        ["find", "boat", "--library", str(folder), "--not"],
        ["find", "boat", "--library", str(folder), "--in", "nowhere/**"],
    ]
    alone = [run(*command, parts=parts()) for command in commands]
    with left_behind(folder):
        served = [run(*command, parts=replace(parts(), load_reader=_none, open_engine=_none)) for command in commands]
    assert [(one.exit_code, one.stdout) for one in alone] == [(one.exit_code, one.stdout) for one in served]
    assert [one.exit_code for one in alone] == [0] * len(commands)


def test_it_extracts_like_the_command(folder: Path, runtime: Path, run: Run) -> None:
    asked = ["extract", "--column", "Leave: How long is parental leave?", "--library", str(folder), "--first", "2"]
    with left_behind(folder):
        served = run(*asked, parts=replace(parts(), load_reader=_none, open_engine=_none))
    stored = run(*asked, parts=replace(parts(), load_reader=_none, open_engine=_none))
    assert (served.exit_code, served.stdout) == (0, stored.stdout)
    assert len(served.stdout.splitlines()) == 2
    assert "Extracting" in served.stderr


def test_a_conversation_asks_it(folder: Path, runtime: Path) -> None:
    code = "from local_rag.cli.main import main; main()"
    with left_behind(folder):  # whose fakes answer what the models here could not
        talked = subprocess.run(
            [sys.executable, "-P", "-c", code, "chat", "--library", str(folder), "--json"],
            input=f"{QUESTION}\nAnd how many people?\n",
            capture_output=True,
            text=True,
            check=True,
        )
    answers = [json.loads(line) for line in talked.stdout.splitlines()]
    assert [answer["question"] for answer in answers] == [QUESTION, "And how many people?"]
    assert "The boat leaves the harbour at seven." in answers[0]["answer"]


def _none(*_: Any, **__: Any) -> Any:
    raise AssertionError("the process does it")


def test_it_writes_no_answer_for_the_next_time(folder: Path, runtime: Path) -> None:
    asked = {"do": "ask", "question": QUESTION}
    with left_behind(folder, audit_log=True):
        answers = [ask_server(folder, {}, asked) for _ in range(2)]
    assert [answer and answer["found"]["again"] for answer in answers] == [False, False]
    assert not (folder / "audit.jsonl").exists()


def test_it_ends_when_nobody_has_asked_for_a_while(folder: Path, runtime: Path) -> None:
    with left_behind(folder, keep_warm=0.2 / 60) as thread:
        thread.join(30)
        assert not thread.is_alive()
        assert not is_served(folder.resolve())


def test_it_stays_while_it_may(folder: Path, runtime: Path) -> None:
    with left_behind(folder) as thread:
        thread.join(0.5)
        assert thread.is_alive()
        found = running(folder.resolve())
    assert found is not None
    assert found.process == os.getpid()
    assert found.seconds_left is not None
    assert 290 < found.seconds_left < 300


def test_it_gives_memory_back_when_that_runs_short(folder: Path, runtime: Path) -> None:
    available = [PLENTY]
    with left_behind(folder, lambda: available[-1]) as thread:
        thread.join(0.3)
        assert thread.is_alive()
        available.append((8_000_000_000, 700_000_000))
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("how", ["gone", "replaced", "set"])
def test_it_ends_with_its_library_and_settings(folder: Path, runtime: Path, how: str) -> None:
    with left_behind(folder) as thread:
        if how == "set":
            (folder / "settings.toml").write_text("rrf_k = 20\n")
        else:
            folder.rename(folder.with_name("before"))
        if how == "replaced":
            shutil.copytree(folder.with_name("before"), folder)
        assert ask_server(folder, {}, SEARCH) is None, "the answer would be that of another library"
        thread.join(30)
        assert not thread.is_alive()


def test_what_it_has_not_begun_when_it_ends_is_left_to_the_command(folder: Path, runtime: Path) -> None:
    may_search, searching, waiting = threading.Event(), threading.Event(), threading.Event()

    class Slow(FakeEmbedder):
        """An embedder that waits with the question about a lamp."""

        def embed_query(self, text: str) -> Any:
            if "lamp" in text:
                searching.set()
                assert may_search.wait(30)
            return super().embed_query(text)

    def on_event(event: str, _value: Any) -> None:
        if event == "queue":
            waiting.set()

    replies, asked = list[Any](), {"do": "ask", "question": QUESTION}
    with left_behind(folder, made_of=replace(parts(), load_embedder=Slow)):
        busy = threading.Thread(target=ask_server, args=(folder, {}, {**SEARCH, "question": "lamp"}))
        busy.start()
        assert searching.wait(30)
        later = threading.Thread(target=lambda: replies.append(ask_server(folder, {}, asked, on_event=on_event)))
        later.start()
        assert waiting.wait(30)
        ending = threading.Thread(target=stop_left, args=(folder.resolve(),))
        ending.start()
        time.sleep(0.2)
        may_search.set()
        for thread in (ending, busy, later):
            thread.join(30)
    assert replies == [None]


def test_another_environment_is_not_answered_and_ends_it(
    folder: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with left_behind(folder) as thread:
        monkeypatch.setenv("LOCAL_RAG_RRF_K", "20")
        assert ask_server(folder, {}, SEARCH) is None
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("name", "value", "anywhere"),
    [
        ("ANSWER_MODEL", "http://127.0.0.1:11434/v1#qwen", "http://127.0.0.1:11434/v1#qwen"),
        ("ANSWER_MODEL", "qwen+adapters/law.gguf", "qwen+{folder}/adapters/law.gguf"),
        (
            "ANSWER_MODEL",
            "adapters/law.gguf+adapters/a+b.gguf",
            "{folder}/adapters/law.gguf+{folder}/adapters/a+b.gguf",
        ),
        ("CONTEXT_MODEL", "adapters/a+b.gguf", "{folder}/adapters/a+b.gguf"),
        ("CONTEXT_MODEL", "own.gguf", "{folder}/own.gguf"),
        ("EMBED_MODEL", "./adapters", "{folder}/adapters"),
        ("EMBED_MODEL", "adapters", "adapters"),
        ("MODELS", "models", "{folder}/models"),
        ("SEARCH_ENGINE_CA", "ca.pem", "{folder}/ca.pem"),
        ("SEARCH_ENGINE_ADDRESS", "qdrant:https://10.0.0.5:6333/lib", "qdrant:https://10.0.0.5:6333/lib"),
        ("NO_VERSIONS", "policies/**", "policies/**"),
    ],
)
def test_only_what_names_a_file_becomes_a_whole_path(
    name: str, value: str, anywhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("adapters").mkdir()
    for file in ("own.gguf", "adapters/law.gguf", "adapters/a+b.gguf"):
        Path(file).touch()
    monkeypatch.setenv(f"LOCAL_RAG_{name}", value)
    assert environment()[f"LOCAL_RAG_{name}"] == anywhere.format(folder=tmp_path)


def test_of_every_variable_it_is_known_whether_it_names_a_file() -> None:
    tables: dict[str, type[BaseModel]] = {"CLUSTER": ClusterSettings, "SEARCH_ENGINE": SearchEngineSettings}
    texts = {f"LOCAL_RAG_{name.upper()}" for name, field in Settings.model_fields.items() if field.annotation is str}
    for table, form in tables.items():
        fields = form.model_fields.items()
        texts |= {f"LOCAL_RAG_{table}_{name.upper()}" for name, field in fields if field.annotation is str}
    package = Path(socket_client.__file__).parents[1]
    code = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    named = {*texts, *re.findall(r"\bLOCAL_RAG_[A-Z_]*[A-Z]\b", code)}
    others = "PROFILE DEFAULT_PROFILE CLUSTER_ADDRESS SEARCH_ENGINE_ADDRESS QDRANT_KEY KEEP_WARM CPU_VARIANT PYTHON"
    known = socket_client.SECRETS | {f"LOCAL_RAG_{name}" for name in others.split()}
    assert named == known | socket_client.MODEL_VARIABLES | socket_client.PATH_VARIABLES


def test_what_a_new_index_holds_is_found(folder: Path, documents: Path, runtime: Path, run: Run) -> None:
    with left_behind(folder):
        (documents / "lamp.md").write_text("# Lamp\n\nThe lamp is green.\n")
        assert run("index", "--library", str(folder)).exit_code == 0
        found = ask_server(folder, {}, {"do": "search", "question": "lamp", "top": 1})
    assert found is not None
    assert found["found"]["passages"][0]["path"].endswith("lamp.md")


def test_a_search_that_is_stopped_has_what_it_found(folder: Path, runtime: Path) -> None:
    asked, begun = {"do": "find", "question": "Which documents deal with leave?"}, threading.Event()
    with left_behind(folder):
        whole = ask_server(folder, {}, asked, begun.is_set, halfway=True)
        assert whole is not None
        found = from_plain(Found, whole["found"])
        assert found.count
        with suppress(StoppedError):  # it was stopped before it began
            half = ask_server(folder, {}, asked, begun.is_set, lambda *_: begun.set(), halfway=True)
            assert half is not None
            assert from_plain(Found, half["found"]).count <= found.count
        assert begun.is_set()


def test_a_server_takes_its_place(folder: Path, runtime: Path, run: Run) -> None:
    with left_behind(folder) as thread, command_line_server(folder):
        thread.join(30)
        assert not thread.is_alive()
        found = running(folder.resolve())
        assert found is not None
        assert found.seconds_left is None
        assert not stop_left(folder.resolve()), "only its user ends a server"
        refused = run("stop", "--library", str(folder))
        assert refused.exit_code == 1
        assert "end it with Ctrl-C" in refused.stderr
        assert "serves this library" in run("status", "--library", str(folder)).stdout


def test_the_commands_say_that_it_runs(folder: Path, runtime: Path, run: Run) -> None:
    assert "No process" in run("stop", "--library", str(folder)).stdout
    assert json.loads(run("status", "--library", str(folder), "--json").stdout)["running"] is None
    with left_behind(folder):
        assert "keeps the models loaded, for about 5 minutes" in run("status", "--library", str(folder)).stdout
        ended = run("stop", "--library", str(folder), "--json")
    assert json.loads(ended.stdout) == {"ended": os.getpid()}


def test_who_may_leave_one(folder: Path, documents: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not may_leave(folder), "as the tests say"
    monkeypatch.delenv("LOCAL_RAG_KEEP_WARM")
    assert may_leave(folder)
    assert not may_leave(documents), "there is no library"
    for setting in ("keep_warm = 0", 'answer_model = "http://127.0.0.1:1/v1"', "keep_warm = 5000"):
        (folder / "settings.toml").write_text(f"{setting}\n")
        assert not may_leave(folder), setting
    (folder / "settings.toml").write_text("keep_warm = 2\n")
    assert may_leave(folder)
    (runtime / "local-rag").mkdir(mode=0o777)
    (runtime / "local-rag").chmod(0o777)
    assert not leave(folder.resolve()), "others may enter the folder of the socket"


@pytest.fixture
def library(documents: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A library that the real embedder has made, for which commands leave a process behind."""
    monkeypatch.delenv("LOCAL_RAG_KEEP_WARM")
    folder = documents.parent / ".local-rag"
    command(["index", "documents", "--profile", "tiny", "--context", "headings"])
    yield folder
    stop_left(folder)


def command(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, whose output ends only when nobody holds it any more."""
    code = [sys.executable, "-c", IMPORTED, *arguments]
    return subprocess.run(code, capture_output=True, text=True, check=True, timeout=120)


@pytest.mark.slow
def test_a_command_leaves_a_process_behind(library: Path) -> None:
    first, second = (command(["search", "when does the boat leave", "--top", "1"]) for _ in range(2))
    assert "Models stay loaded for 5 minutes; `local-rag stop` ends this." in first.stderr
    assert "Models stay" not in second.stderr
    assert "boat.txt" in first.stdout
    assert first.stdout == second.stdout
    for done in (first, second):
        modules = set(json.loads(done.stderr.splitlines()[-1]))
        assert modules.isdisjoint({"numpy", "pydantic", "faiss", "onnxruntime", "sqlite3", "rich", "asyncio"})
        assert len(modules) < 230, "each takes time before the first word"
    found = running(library)
    assert found is not None
    if sys.platform == "linux":
        process = Path(f"/proc/{found.process}")
        assert {(process / "fd" / number).readlink() for number in "012"} == {Path("/dev/null")}
        assert os.getsid(found.process) == found.process
        assert "\nSeccomp:\t2\n" in (process / "status").read_text(), "it is sealed"
    assert command(["search", "boat", "--profile", "tiny"]).stdout, "an option of its own"
    assert running(library) is not None
    assert str(found.process) in command(["stop"]).stdout
    assert running(library) is None
    assert list(socket_path(library).parent.iterdir()) == []


@pytest.mark.slow
def test_what_was_killed_is_replaced(library: Path) -> None:
    command(["search", "boat"])
    found = running(library)
    assert found is not None
    os.kill(found.process, 9)
    wait_until(lambda: not is_served(library))
    again = command(["search", "boat"])
    assert "Models stay" in again.stderr
    assert running(library) is not None


@pytest.mark.slow
def test_a_process_that_cannot_open_the_library_leaves_nothing(library: Path) -> None:
    damaged = library / "library.sqlite3"
    damaged.write_bytes(b"no database" * 1000)
    code = [sys.executable, "-c", IMPORTED, "search", "boat"]
    failed = subprocess.run(code, capture_output=True, text=True, check=False, timeout=120)
    assert failed.returncode == 1
    assert "repair" in failed.stderr
    wait_until(lambda: not socket_path(library).exists())
