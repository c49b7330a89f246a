"""The search engine over TLS with a site's own authority, and everything that is refused, as one sentence each."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from local_rag.cluster.engines.client import AlreadyThereError, Client, EngineAwayError
from local_rag.cluster.hosts import engine_of, private_addresses
from local_rag.cluster.on_request import indexes_of
from local_rag.errors import ClusterError
from local_rag.index.generations import Generations
from local_rag.settings import SearchEngineSettings, resolve_settings

pytest.importorskip("qdrant_client", reason="the extra [cluster] is not installed")
pytest.importorskip("cryptography", reason="the extra [cluster] is not installed")

from tests.support.certificates import Authority

ANSWER = b'{"result":{"aliases":[]},"status":"ok","time":0.0}'


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: Any) -> None: ...


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None: ...  # the client tells what is wrong


class Server:
    """An engine behind TLS; with `clients`, only those that this authority knows may connect."""

    def __init__(self, certificate: tuple[Path, Path], clients: Path | None = None) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        if clients:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.setting = f"qdrant:https://127.0.0.1:{self.server.server_port}/handbook"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def serve() -> Iterator[Any]:
    running = list[Server]()

    def start(*arguments: Any) -> Server:
        running.append(Server(*arguments))
        return running[-1]

    yield start
    for one in running:
        one.server.shutdown()
        one.server.server_close()


def test_an_engine_with_a_certificate_of_the_site_answers(tmp_path: Path, authority: Authority, serve: Any) -> None:
    server = serve(authority.issue("engine"))
    settings = resolve_settings(tmp_path, search_engine={"address": server.setting, "ca": str(authority.ca)})
    assert indexes_of(settings, Generations(tmp_path)).live_name() == ""


def test_an_authority_that_the_system_does_not_know_is_one_sentence(authority: Authority, serve: Any) -> None:
    server = serve(authority.issue("engine"))
    waited = list[float]()
    with pytest.raises(ClusterError, match=r"set `search_engine\.ca`") as raised:
        Client(engine_of(server.setting), sleep=waited.append).insist("get_aliases")
    assert not isinstance(raised.value, EngineAwayError)
    assert not waited, "a wrong certificate does not become a right one"


def test_another_authority_and_an_expired_certificate_are_one_sentence(authority: Authority, serve: Any) -> None:
    access = SearchEngineSettings(ca=str(authority.ca))
    other = Authority(authority.folder, "Another CA")
    for certificate, said in (
        (other.issue("foreign"), "no authority that is trusted here"),
        (authority.issue("old", days=-1), "has expired"),
        (authority.issue("elsewhere", address="10.0.0.9"), "names another host"),
    ):
        with pytest.raises(ClusterError, match=said):
            Client(engine_of(serve(certificate).setting), access).call("get_aliases")


def test_an_engine_that_wants_a_certificate_is_shown_one(authority: Authority, serve: Any) -> None:
    server = serve(authority.issue("engine"), authority.ca)
    certificate, key = authority.issue("client")
    known = SearchEngineSettings(ca=str(authority.ca), certificate=str(certificate), key_file=str(key))
    assert Client(engine_of(server.setting), known).call("get_aliases").aliases == []
    with pytest.raises(ClusterError, match=r"search_engine\.certificate"):
        Client(engine_of(server.setting), SearchEngineSettings(ca=str(authority.ca))).call("get_aliases")
    with pytest.raises(ClusterError, match="belong together"):
        Client(engine_of(server.setting), known.model_copy(update={"key_file": ""}))
    key.chmod(0o644)
    with pytest.raises(ClusterError, match="chmod 600"):
        Client(engine_of(server.setting), known)


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_file_that_is_no_certificate_is_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ClusterError, match=r"search_engine.ca"):
        Client(engine_of("qdrant:https://127.0.0.1/x"), SearchEngineSettings(ca=str(path)))


def test_http_to_another_machine_has_to_be_named() -> None:
    engine = engine_of("qdrant:http://10.0.0.9/x")
    with pytest.raises(ClusterError, match=r"use https in `search_engine.address`, or name 10\.0\.0\.9"):
        Client(engine)
    assert Client(engine, SearchEngineSettings(http=("10.0.0.9",))).engine == engine
    assert Client(engine_of("qdrant:http://127.0.0.1/x"))


def test_a_key_never_goes_over_http_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_QDRANT_KEY", "secret")
    with pytest.raises(ClusterError, match="use https"):
        Client(engine_of("qdrant:http://10.0.0.9/x"), SearchEngineSettings(http=("10.0.0.9",)))


def test_private_networks_are_those_that_no_public_router_knows() -> None:
    for address in ("10.0.0.5", "100.64.0.5", "fd00::1", "169.254.1.1", "::ffff:10.0.0.5", "127.0.0.1"):
        assert private_addresses(address) == {address}
    for address in ("192.0.2.1", "198.18.0.1", "240.0.0.1", "0.0.0.0", "8.8.8.8", "2001:db8::1"):
        with pytest.raises(ClusterError, match="public address"):
            private_addresses(address)


class Restarting(BaseHTTPRequestHandler):
    """An engine that is restarting, carries a request out without an answer, and then holds what was asked for."""

    answers: ClassVar[list[tuple[int, bytes]]] = []

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, said = self.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None: ...


def test_an_engine_that_cannot_answer_is_waited_for_and_what_it_made_meanwhile_is_no_error() -> None:
    there = b'{"status":{"error":"Collection `x` already exists!"}}'
    Restarting.answers = [(503, b"starting"), (500, b"busy"), (409, there)]
    server = Quiet(("127.0.0.1", 0), Restarting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    waited = list[float]()
    client = Client(engine_of(f"qdrant:http://127.0.0.1:{server.server_port}/x"), sleep=waited.append)
    with pytest.raises(AlreadyThereError):
        client.insist("create_collection", "x", vectors_config={})
    assert len(waited) == 2
    server.shutdown()
    server.server_close()
