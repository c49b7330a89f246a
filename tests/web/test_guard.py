"""What the server refuses: each attack of the table in docs/attacks.md, and beside it what is let through."""

import itertools
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.testclient import TestClient

from local_rag.mcp.server import http_interface
from local_rag.openai.endpoint import chat_interface
from local_rag.web.app import make_app
from local_rag.web.gate.authentication import Access
from local_rag.web.gate.guard import Limits
from local_rag.web.listening import Libraries, allowed_hosts
from tests.support import served
from tests.support.served import ADDRESS, QUESTION, client

PAGES = ["/", "/search?q=boat", "/inspect?q=boat", "/document/1", "/library", "/history", "/questions", "/verify"]
ROUTES = [*PAGES, "/healthz", "/static/page.js"]
SECRET = "a-token-of-the-owner"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "attacker.example"}, 400),
        ({"host": "127.0.0.1:9999"}, 400),
        ({"host": "127.0.0.1.attacker.example:8000"}, 400),
        ({"host": ""}, 400),
        ({"origin": "http://attacker.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://127.0.0.1:8000"}, 403),
        ({"origin": "http://127.0.0.1:8001"}, 403),
    ],
    ids=str,
)
def test_hosts_and_origins_of_others_are_refused_on_every_route(
    client: TestClient, headers: Mapping[str, str], status: int
) -> None:
    assert [client.get(route, headers=headers).status_code for route in ROUTES] == [status] * len(ROUTES)
    assert client.post("/ask", data={"question": QUESTION}, headers=headers).status_code == status


def test_all_routes_answer_a_page_of_ours(client: TestClient) -> None:
    assert [client.get(route, headers={"origin": ADDRESS}).status_code for route in ROUTES] == [200] * len(ROUTES)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_others_may_link_to_what_only_shows_and_nothing_else(client: TestClient, site: str) -> None:
    link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200
    assert client.get("/search?q=boat", headers=link).status_code == 403
    assert client.get("/", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}).status_code == 403
    assert client.post("/ask", data={"question": QUESTION}, headers=link).status_code == 403
    assert client.get("/search?q=boat", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_two_hosts_are_refused(client: TestClient) -> None:
    assert client.get("/", headers=[("host", "127.0.0.1:8000"), ("host", "attacker.example")]).status_code == 400


def test_the_names_that_are_allowed() -> None:
    assert allowed_hosts("127.0.0.1", 8000, ()) == {"127.0.0.1:8000", "localhost:8000", "[::1]:8000"}
    assert allowed_hosts("0.0.0.0", 8000, ["Notes.Example"]) == {"notes.example", "notes.example:8000"}
    assert "localhost" in allowed_hosts("127.0.0.1", 80, ())


def test_without_the_token_nothing_is_shown(folder: Path) -> None:
    strangers = [{}, {"authorization": "Bearer wrong"}, {"authorization": SECRET}, {"cookie": "local_rag_session=x"}]
    with client(folder, token=SECRET) as opened:
        for route, headers in itertools.product(PAGES, strangers):
            refused = opened.get(route, headers=headers)
            assert refused.status_code == 401
            assert "boat" not in refused.text
        for route in PAGES:
            form = opened.get(route, headers={"accept": "text/html"})
            assert (form.status_code, "Log in" in form.text, "harbour" in form.text) == (401, True, False)
            assert opened.get(route, headers={"authorization": f"Bearer {SECRET}"}).status_code == 200
        assert opened.post("/ask", data={"question": QUESTION}).status_code == 401
        assert set(opened.get("/healthz").json()) == {"ready", "sealed", "loaded"}


def test_the_form_sets_a_cookie_that_stands_for_the_token(folder: Path) -> None:
    with client(folder, token=SECRET) as opened:
        wrong = opened.post("/login", data={"token": "guess"})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
        right = opened.post("/login", data={"token": SECRET})
        assert right.status_code == 303
        cookie = right.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert SECRET not in cookie
        assert opened.get("/search?q=boat").status_code == 200
        assert opened.post("/logout").status_code == 303
        assert opened.get("/search?q=boat").status_code == 401


def test_a_cookie_over_tls_is_never_sent_without() -> None:
    response = Response()
    Access(SECRET, secure=True).log_in("1.2.3.4", SECRET, response, {})
    assert "Secure" in response.headers["set-cookie"]
    assert response.headers["set-cookie"].startswith("__Host-")


def test_a_body_that_does_not_come_is_not_waited_for(folder: Path) -> None:
    app = make_app(
        served.worker(folder),
        hosts={f"127.0.0.1:{port}" for port in range(1, 65536)},
        limits=Limits(body_seconds=0.3),
        interfaces=[http_interface, chat_interface],
    )
    with served.server(app) as address:
        host, port = address.removeprefix("http://").split(":")
        for route in ("/ask", "/login", "/v1/chat/completions", "/mcp"):
            with socket.create_connection((host, int(port)), timeout=20) as opened:
                head = f"POST {route} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
                accept = "Accept: application/json, text/event-stream\r\n"
                opened.sendall(f"{head}{accept}Content-Length: 50\r\n\r\n{{".encode())
                assert int(opened.recv(12).split()[1]) in {408, 500}, route


def test_a_request_that_ends_at_two_places_ends_its_connection(folder: Path) -> None:
    app = make_app(served.worker(folder), hosts={f"127.0.0.1:{port}" for port in range(1, 65536)})
    with served.server(app) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as opened:
            head = f"GET /healthz HTTP/1.1\r\nHost: {host}:{port}\r\n"
            both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            opened.sendall(f"{head}{both}{head}\r\n".encode())
            told = b"".join(iter(lambda: opened.recv(4096), b""))
            assert told.startswith(b"HTTP/1.1 400")
            assert told.count(b"HTTP/1.1") == 1, "what follows is not read"


def test_strangers_do_not_keep_connections_of_several_libraries(folder: Path) -> None:
    hosts = {f"127.0.0.1:{port}" for port in range(1, 65536)}
    apps = {
        name: make_app(served.worker(folder), hosts=hosts, interfaces=[chat_interface], root=root)
        for name, root in (("one", ""), ("two", "/in/two"))
    }
    with served.server(Libraries(apps)) as address:
        host, port = address.removeprefix("http://").split(":")
        for named in ("evil.example", f"{host}:{port}"):
            with socket.create_connection((host, int(port)), timeout=60) as opened:
                head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {named}\r\nContent-Type: application/json\r\n"
                opened.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
                with suppress(ConnectionResetError):
                    assert b"".join(iter(lambda: opened.recv(4096), b"")).startswith(b"HTTP/1.1 4")


def test_large_bodies_and_addresses_are_refused(client: TestClient) -> None:
    assert client.post("/ask", data={"question": "x" * 100_000}).status_code == 413

    def pieces() -> object:
        yield from [b"question=" + b"x" * 40_000] * 3  # of no length that is told

    assert client.post("/ask", content=pieces()).status_code == 413  # type: ignore[arg-type]
    assert client.get("/search?q=" + "x" * 20_000).status_code == 414
    assert client.post("/ask", data={"question": "x" * 5000}).status_code == 400
    assert client.post("/ask", content=b"{}", headers={"content-length": "-1"}).status_code == 413


def test_bodies_that_are_no_question_are_refused_in_a_sentence(client: TestClient) -> None:
    bodies = [b"\xff\xfe", b"[1]", b"{", b"[" * 60_000, b'{"question": 7}', b"null", b""]
    for body, kind in itertools.product(bodies, ("application/json", "application/x-www-form-urlencoded")):
        answer = client.post("/ask", content=body, headers={"content-type": kind, "accept": "application/json"})
        assert answer.status_code == 400
        assert answer.json()["error"]


def test_floods_are_refused(folder: Path) -> None:
    with client(folder, limits=Limits(rate=0.001, burst=8)) as opened:
        statuses = [opened.get("/static/page.css").status_code for _ in range(16)]
        assert statuses[:5] == [200] * 5
        assert statuses[-4:] == [429] * 4


def test_a_flood_of_strangers_costs_nobody_who_is_known_at_the_same_address(folder: Path) -> None:
    token = "a-token-that-nobody-guesses"
    known = {"authorization": f"Bearer {token}"}
    with client(folder, token=token, limits=Limits(rate=0.001, burst=30)) as opened:
        while opened.get("/static/page.css").status_code == 200:
            pass
        assert [opened.get(path, headers=known).status_code for path in ("/healthz", "/library")] == [200, 200]
        assert (
            opened.get("/library", headers={"authorization": "Bearer another-token-that-is-wrong"}).status_code == 429
        )
        statuses = [opened.get("/healthz", headers=known).status_code for _ in range(40)]
        assert statuses[-1] == 429, "they have a limit, too"


PATHS = [
    "/document/../../etc/passwd",
    "/document/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/document/1/../../../../etc/passwd",
    "/document//etc/passwd",
    "/document/1%00",
    "/document/-1",
    "/document/999999999999999999",
    "/document/99999999999999999999999999",
    "/document/1/page/1.png",
    "/static/../site.py",
    "/static/%2e%2e/site.py",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
]


def test_no_path_leads_out(client: TestClient) -> None:
    for path in PATHS:
        answer = client.get(path)
        assert answer.status_code == 404
        assert "root:" not in answer.text
        assert "import" not in answer.text


def test_where_to_go_back_to_is_never_another_site(client: TestClient) -> None:
    for back in ("//attacker.example", "https://attacker.example", "/\\attacker.example", ""):
        answer = client.post("/theme", data={"theme": "dark", "back": back})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert client.post("/theme", data={"theme": "dark", "back": "/library"}).headers["location"] == "/library"
    assert "set-cookie" not in client.post("/theme", data={"theme": "<script>"}).headers


def test_every_answer_forbids_what_is_not_ours(client: TestClient) -> None:
    for route in (*ROUTES, "/nothing"):
        headers = client.get(route, headers={"origin": ADDRESS}).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert not any(name.startswith("access-control") for name in headers), "there is no CORS"
    assert client.options("/ask", headers={"origin": ADDRESS}).status_code == 405


def test_a_name_that_is_too_long_is_refused_and_the_server_goes_on(client: TestClient) -> None:
    assert client.get("/search", params={"q": "boat", "top": "9" * 500}).status_code == 400
    assert client.get("/search", params={"q": "boat", "top": "\u0663"}).status_code == 400
    assert client.get("/search", params={"q": "boat"}).status_code == 200


def test_each_attack_that_the_documentation_names_has_a_test() -> None:
    checkout = Path(__file__).parents[2]
    lines = (checkout / "docs" / "attacks.md").read_text(encoding="utf-8").splitlines()
    table = list(itertools.takewhile(bool, lines[lines.index("| attack | what happens | test |") + 2 :]))
    files = [
        file
        for folder in ("web", "serving", "cli", "openai", "store")
        for file in (checkout / "tests" / folder).glob("test_*.py")
    ]
    present = set(re.findall(r"^def (test_\w+)", "\n".join(file.read_text(encoding="utf-8") for file in files), re.M))
    for line in table:
        named = re.findall(r"`(test_\w+)`", line)
        assert named, line
        assert set(named) <= present
    assert len(table) > 10
