"""Questions answered by an engine that already runs, by commands that can reach nothing else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag.errors import LibraryError, ModelError
from local_rag.models.choice import find
from local_rag.models.engine_address import parse_engine, permitted_engine
from local_rag.settings import Settings, own_settings_file, resolve_settings
from tests.conftest import Run
from tests.support.engine_stand_in import Engine, running

QUESTION = "When does the boat leave the harbour?"
CLI = [sys.executable, "-c", "from local_rag.cli.main import main; main()"]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="system call filters are Linux's")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running(Engine(reply=lambda _prompt: "The boat leaves the harbour at seven.")) as started:
        yield started


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def test_a_sealed_process_reaches_the_engine_and_nothing_else(engine: Engine, tmp_path: Path) -> None:
    address = parse_engine(engine.url)
    with running(Engine()) as other:
        code = f"""
import ctypes, socket, sys
from local_rag import Library
from local_rag.llama.external import ExternalEngine
from local_rag.models.engine_address import parse_engine
Library({str(tmp_path)!r}, sealed=True, answer_model="{engine.url}#llama3.2:3b")
room = lambda length, _: length
print(ExternalEngine(parse_engine("{engine.url}#llama3.2:3b"), context_tokens=room).context_tokens)
if sys.platform == "linux" and ctypes.CDLL(None).socket(2, 1, 0) < 0:
    print("no socket")
try:
    ExternalEngine(parse_engine("{other.url}#llama3.2:3b"), context_tokens=room)
except Exception as error:
    print(error)
"""
        done = python(code)
    said = done.stdout.splitlines()
    assert said[0] == "4096", done.stderr
    if sys.platform == "linux":
        assert said[1] == "no socket"
        assert f"{other.url} cannot be reached" in said[2]
    assert address.port


@LINUX
def test_the_relay_ends_with_its_process(engine: Engine, tmp_path: Path) -> None:
    address = parse_engine(engine.url)
    code = f"""
import os, signal
from pathlib import Path
from local_rag.relay import open_relay, socket_of
open_relay("127.0.0.1", {address.port})
open_relay("127.0.0.1", {address.port})  # is there already
(child,) = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
print(child, socket_of("127.0.0.1", {address.port}), oct(socket_of("127.0.0.1", {address.port}).parent.stat().st_mode))
os.kill(os.getpid(), signal.SIGKILL)
"""
    child, path, mode = python(code).stdout.split()
    assert mode == "0o40700"
    for _ in range(100):
        if not Path("/proc", child).exists() or "Z" in Path("/proc", child, "stat").read_text().split()[2]:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    else:
        raise AssertionError("the relay is still running")
    assert Path(path).parent.name.startswith("local-rag-")


def test_a_name_for_loopback_must_lead_there() -> None:
    code = """
import socket
from local_rag import relay
class Elsewhere:
    def getpeername(self): return ("192.0.2.1", 80)
    def close(self): print("closed")
socket.create_connection = lambda *_, **__: Elsewhere()
try:
    relay._connect("localhost", 80)
except OSError as error:
    print(error)
"""
    assert python(code).stdout.splitlines() == ["closed", "localhost is not this machine"]


@pytest.mark.parametrize(
    ("settings", "permitted"),
    [
        ({"answer_model": "http://127.0.0.1:1/v1#m"}, True),
        ({"answer_model": "http://localhost:1/v1#m"}, True),
        ({"answer_model": "http://[::1]:1/v1#m"}, True),
        ({"answer_model": "http://gpu.lan:1/v1#m"}, False),
        ({"answer_model": "http://127.0.0.1.evil.example:1/v1#m"}, False),
        ({"answer_model": "http://gpu.lan:1/v1#m", "answer_hosts": "other.lan, gpu.lan"}, True),
        ({"answer_model": "https://gpu.lan/v1#m", "answer_hosts": ["gpu.lan"]}, True),
        ({"answer_model": "http://10.0.0.5:1/v1#m", "answer_hosts": ("10.0.0.6",)}, False),
    ],
)
def test_only_this_machine_or_named_hosts_are_asked(settings: dict[str, object], permitted: bool) -> None:
    chosen = Settings.model_validate(settings)
    if permitted:
        assert permitted_engine(chosen)
        assert find(chosen, "answer").engine == settings["answer_model"]
    else:
        with pytest.raises(ModelError, match=r"is another machine.*`answer_hosts = "):
            find(chosen, "answer")


@pytest.mark.parametrize(
    "name", ["http://", "http://user:secret@127.0.0.1/v1", "http://127.0.0.1:x/v1", "http://h/?q=1"]
)
def test_what_is_no_address_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="is no address of an engine; write it as http"):
        parse_engine(name)


def test_hosts_are_permitted_by_the_user_and_never_by_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "settings.toml").write_text(
        'answer_model = "http://evil.lan/v1#m"\nanswer_hosts = ["evil.lan"]\npassages = 7\n'
    )
    settings = resolve_settings(tmp_path)
    assert (settings.answer_hosts, settings.passages) == ((), 7)
    with pytest.raises(ModelError, match=r"evil\.lan is another machine.*settings\.toml"):
        permitted_engine(settings)
    own = own_settings_file()
    assert own.is_relative_to(tmp_path / "config")
    own.parent.mkdir(parents=True)
    own.write_text('answer_hosts = ["gpu.lan"]\n')
    assert resolve_settings(tmp_path).answer_hosts == ("gpu.lan",)
    own.write_text("passages = 3\n")
    with pytest.raises(LibraryError, match="it may only contain answer_hosts"):
        resolve_settings(tmp_path)
    own.write_text("")
    monkeypatch.setenv("LOCAL_RAG_ANSWER_HOSTS", "a.lan,b.lan")
    assert resolve_settings(tmp_path).answer_hosts == ("a.lan", "b.lan")


def test_an_engine_can_only_answer() -> None:
    with pytest.raises(ModelError, match="An engine can only answer"):
        find(Settings(context_model="http://127.0.0.1:1/v1#m"), "context")


def test_ask_and_doctor_use_the_engine(engine: Engine, indexed: Path, run: Run) -> None:
    arguments = ("ask", QUESTION, "--answer-model", f"{engine.url}#llama3.2:3b", "--json")
    answer = json.loads(run(*arguments).stdout)
    assert answer["outcome"] == "answered"
    assert answer["answer"].startswith("The boat leaves the harbour at seven.")
    assert answer["quotes"][0]["text"].startswith("The boat leaves the harbour at seven.")
    engine.reply = lambda _prompt: "The boat leaves the harbour at 19:45."
    assert json.loads(run(*arguments).stdout)["outcome"] == "quoted"
    (indexed.parent / ".local-rag/settings.toml").write_text(f'answer_model = "{engine.url}#llama3.2:3b"\n')
    checks = {one["name"]: one for one in json.loads(run("doctor", "--json").stdout)}
    assert checks["answer engine"]["severity"] == "warning"
    assert "does not tell how probable its words are" in checks["answer engine"]["message"]
    engine.odds = {"Yes": -0.1, "No": -3.0}
    checks = {one["name"]: one for one in json.loads(run("doctor", "--json").stdout)}
    assert checks["answer engine"]["severity"] == "ok"


@LINUX
def test_the_command_itself_is_sealed(engine: Engine, documents: Path) -> None:
    """In a process of its own, with the real embedder, the network is closed but for the engine."""
    index = [*CLI, "index", "documents", "--profile", "tiny", "--context", "headings"]
    subprocess.run(index, cwd=documents.parent, check=True, capture_output=True)
    command = [*CLI, "ask", QUESTION, "--answer-model", f"{engine.url}#llama3.2:3b"]
    done = subprocess.run(command, cwd=documents.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "The boat leaves the harbour at seven." in done.stdout
    engine.asked.clear()
    elsewhere = [*command[:-1], "http://192.0.2.1/v1#m"]
    done = subprocess.run(elsewhere, cwd=documents.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, engine.asked) == (1, [])
    assert "192.0.2.1 is another machine" in done.stderr
