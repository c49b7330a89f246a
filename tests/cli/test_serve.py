"""`local-rag serve` as a user types it: it listens, closes the network, answers, and ends with Ctrl-C."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from local_rag.cli.serve import _reached, listen_on
from local_rag.models.models_folder import default_models_directory
from local_rag.web.listening import allowed_hosts
from tests.conftest import Run
from tests.support.served import index, wait_until

COMMAND = [sys.executable, "-P", "-c", "from local_rag.cli.main import main; main()", "serve"]


@contextmanager
def serving(
    folder: Path, *arguments: str, token: str = "--no-token", **variables: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start the command; yield the address that it prints, and the process."""
    arguments = (*arguments, *filter(None, [token]))
    environment = os.environ | {"LOCAL_RAG_MODELS": str(default_models_directory())} | variables
    command = [*COMMAND, "--port", "0", "--library", str(folder), *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1], process
        finally:
            if process.poll() is None:
                process.kill()


def health(address: str, context: ssl.SSLContext | None = None) -> dict[str, bool]:
    with urllib.request.urlopen(f"{address}healthz", timeout=60, context=context) as answer:
        found: dict[str, bool] = json.load(answer)
        return found


def tools(address: str) -> list[dict[str, str]]:
    """List the tools of MCP."""
    order = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with urllib.request.urlopen(urllib.request.Request(f"{address}mcp", order, headers), timeout=60) as answer:
        data = next(line for line in answer.read().decode().splitlines() if line.startswith("data: {"))
    found: list[dict[str, str]] = json.loads(data.removeprefix("data: "))["result"]["tools"]
    return found


def answers(address: str) -> bool:
    try:
        return health(address)["ready"]
    except OSError:
        return False


@pytest.mark.slow
def test_it_answers_sealed_and_ends_with_ctrl_c(documents: Path, tmp_path: Path) -> None:
    index(documents, tmp_path / "lib")
    with serving(tmp_path / "lib", "--openai", XDG_RUNTIME_DIR=str(tmp_path)) as (address, process):
        wait_until(lambda: answers(address), 120)
        with urllib.request.urlopen(f"{address}v1/models", timeout=60) as models:
            assert [model["id"] for model in json.load(models)["data"]] == ["lib"]
        names = ["search", "find", "diff", "brief", "verify", "fetch", "list_documents", "status", "gaps", "marks"]
        assert [tool["name"] for tool in tools(address)] == names
        assert health(address)["sealed"] == (sys.platform == "linux")
        filtered = Path(f"/proc/{process.pid}/status")
        assert not filtered.exists() or "Seccomp:\t2" in filtered.read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in {0, 130}
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


@pytest.mark.slow
def test_a_service_manager_ends_it_cleanly(documents: Path, tmp_path: Path) -> None:
    index(documents, tmp_path / "lib")
    with serving(tmp_path / "lib", "--log-requests", XDG_RUNTIME_DIR=str(tmp_path)) as (address, process):
        wait_until(lambda: answers(address), 120)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr is not None
        told = process.stderr.read()
        assert "Traceback" not in told
        assert '"path": "/healthz", "status": 200' in told


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of this test's own making for this machine, and its key."""
    made, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*command, "-out", made, "-keyout", key], check=True, capture_output=True)
    return made, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes a certificate, is not installed")
@pytest.mark.slow
def test_tls_is_spoken_with_a_certificate_of_ones_own(
    documents: Path, tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    index(documents, tmp_path / "lib")
    files = ["--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1])]
    variables = {"XDG_RUNTIME_DIR": str(tmp_path), "LOCAL_RAG_TOKEN": "a-token-of-the-owner"}
    with serving(tmp_path / "lib", *files, token="", **variables) as (address, _process):
        assert address.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=certificate[0])
        assert set(health(address, trusted)) == {"ready", "sealed", "loaded"}
        with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
            health(address)
        with pytest.raises((urllib.error.URLError, ConnectionError), match=r"\w"):
            urllib.request.urlopen(address.replace("https", "http"), timeout=60)
        data = urlencode({"token": "a-token-of-the-owner"}).encode()
        login = urllib.request.Request(f"{address}login", data)
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trusted), Unfollowing())
        with opener.open(login, timeout=60) as answer:
            assert "Secure" in answer.headers["set-cookie"]


class Unfollowing(urllib.request.HTTPErrorProcessor):
    """Return a redirection as it is."""

    def http_response(self, _request: urllib.request.Request, response: Any) -> Any:
        return response

    def https_response(self, _request: urllib.request.Request, response: Any) -> Any:
        return response


def test_a_key_with_a_password_is_refused_and_nothing_is_asked(
    run: Run, tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    locked = tmp_path / "locked.pem"
    command = ["openssl", "rsa", "-aes256", "-passout", "pass:x", "-in", str(certificate[1]), "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    result = run("serve", "--port", "0", "--tls-cert", str(certificate[0]), "--tls-key", str(locked))
    assert result.exit_code == 1
    assert "without a password" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("broken", ["nonsense", "another key"])
def test_a_certificate_that_cannot_be_used_is_one_sentence(
    run: Run, tmp_path: Path, certificate: tuple[Path, Path], broken: str
) -> None:
    (tmp_path / "broken.pem").write_text(broken)
    result = run("serve", "--port", "0", "--tls-cert", str(certificate[0]), "--tls-key", str(tmp_path / "broken.pem"))
    assert result.exit_code == 1
    assert "cannot be used" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


GOOD = "a-token-of-the-owner"


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (["--host", "0.0.0.0"], {}, "--allow-host"),
        (["--host", "0.0.0.0"], {"LOCAL_RAG_TOKEN": GOOD}, "--allow-host"),
        (["--host", "0.0.0.0", "--no-token", "--allow-host", "notes.example"], {}, "needs a token"),
        (["--host", "0.0.0.0", "--tls-cert", "cert.pem"], {"LOCAL_RAG_TOKEN": GOOD}, "--allow-host"),
        (["--public-url", "https://notes.example", "--no-token"], {}, "needs a token"),
        (["--public-url", "notes.example"], {}, "give an address"),
        (["--public-url", "https://notes.example/rag"], {}, "without a path"),
    ],
)
def test_beyond_this_machine_a_token_and_a_name_are_needed(
    documents: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    variables: dict[str, str],
    message: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = run("serve", "--port", "0", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("token", ["1234", "x" * 19, "a token with blanks in it"])
def test_a_token_that_can_be_guessed_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("LOCAL_RAG_TOKEN", token)
    result = run("serve", "--port", "0")
    assert result.exit_code == 1
    assert "secrets.token_urlsafe" in result.stderr
    assert token not in result.stderr
    assert "LOCAL_RAG_TOKEN" not in os.environ, "child processes would inherit it"


def authorized(address: str, token: str) -> int:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{address}library", None, headers), timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables", [{}, {"LOCAL_RAG_TOKEN": ""}, {"LOCAL_RAG_TOKEN": " ", "LOCAL_RAG_TOKEN_FILE": ""}]
)
def test_without_a_token_one_is_made_and_printed(documents: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    index(documents, tmp_path / "lib")
    with serving(tmp_path / "lib", token="", XDG_RUNTIME_DIR=str(tmp_path), **variables) as (address, process):
        assert process.stdout is not None
        token = process.stdout.readline().split()[-1]
        assert len(token) >= 32
        wait_until(lambda: answers(address), 120)
        assert [authorized(address, one) for one in ("", "wrong", token)] == [401, 401, 200]


@pytest.mark.slow
def test_behind_a_proxy_the_public_address_is_printed_and_answers(documents: Path, tmp_path: Path) -> None:
    index(documents, tmp_path / "lib")
    port = free_port()
    arguments = ["--public-url", "https://notes.example", "--port", str(port)]
    variables = {"XDG_RUNTIME_DIR": str(tmp_path), "LOCAL_RAG_TOKEN": GOOD}
    with serving(tmp_path / "lib", *arguments, token="", **variables) as (address, _process):
        assert address == "https://notes.example/"
        local = f"http://127.0.0.1:{port}/"
        wait_until(lambda: answers(local), 120)
        headers = {"host": "notes.example", "origin": "https://notes.example", "x-forwarded-for": "192.0.2.7"}
        data = urlencode({"token": GOOD}).encode()
        opener = urllib.request.build_opener(Unfollowing())
        with opener.open(urllib.request.Request(f"{local}login", data, headers), timeout=60) as answer:
            cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"__Host-local_rag_session_{port}=")
        assert "Secure" in cookie


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("host", "allowed", "reached"),
    [
        ("127.0.0.1", (), "127.0.0.1:8000"),
        ("::1", (), "[::1]:8000"),
        ("0.0.0.0", ("Notes.Example",), "notes.example:8000"),
        ("0.0.0.0", ("notes.example:8443", "other"), "notes.example:8443"),
        ("localhost", ("notes.example",), "localhost:8000"),
    ],
)
def test_the_address_that_is_printed_is_one_that_is_served(host: str, allowed: tuple[str, ...], reached: str) -> None:
    assert _reached(host, 8000, allowed) == reached
    assert reached in allowed_hosts(host, 8000, allowed)


def test_a_token_file_that_others_can_read_is_told(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short\n")
    monkeypatch.setenv("LOCAL_RAG_TOKEN_FILE", str(tmp_path / "token"))
    for mode, told in ((0o644, True), (0o600, False)):
        (tmp_path / "token").chmod(mode)
        assert ("chmod 600" in run("serve", "--port", "0").stderr) == told


def test_token_files_that_hold_none_are_told(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for name, message in (("missing", "cannot be read"), ("empty", "is empty")):
        monkeypatch.setenv("LOCAL_RAG_TOKEN_FILE", str(tmp_path / name))
        result = run("serve", "--port", "0")
        assert result.exit_code == 1
        assert message in result.stderr


def test_a_port_that_is_taken_is_one_sentence(documents: Path, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert "name another with `--port`" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_half_of_a_certificate_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("")
    assert run("serve", "--tls-cert", str(tmp_path / "cert.pem")).exit_code == 2
    assert run("serve", "--tls-cert", "missing.pem", "--tls-key", "missing.pem").exit_code == 2


def test_replies_do_not_wait_for_more_to_send() -> None:
    with listen_on("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
