"""nginx and Caddy in front of the server, as docs/team.md sets them up: the real programs, over TLS."""

import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPSConnection
from pathlib import Path
from socket import create_server
from urllib.parse import urlencode

import pytest

from local_rag.files import AUDIT_FILE
from local_rag.web.app import make_app
from local_rag.web.gate.authentication import Access
from tests.fakes import QUICK, generating
from tests.support import served
from tests.support.served import ENDLESS, Talker

SECRET = "a-token-of-the-owner"
DOCS = Path(__file__).parents[2] / "docs" / "team.md"
BEARER = {"authorization": f"Bearer {SECRET}"}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes a certificate, is not installed"),
]


def free_port() -> int:
    with create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def documented(name: str, changed: dict[str, str]) -> str:
    """Return a set-up of the docs with the ports and files of this test."""
    found = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", DOCS.read_text(), re.S)
    assert found is not None
    text = found[1]
    for documented_text, own in changed.items():
        assert documented_text in text
        text = text.replace(documented_text, own)
    return text


def nginx(folder: Path, port: int, backend: str, files: dict[str, str]) -> list[str]:
    listening = {"listen 443 ssl": f"listen 127.0.0.1:{port} ssl", "server_name notes.example": "server_name localhost"}
    text = documented("nginx", files | listening | {"http://127.0.0.1:8000": backend})
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    own = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off;\n{own}{text}}}\n"
    )
    return ["nginx", "-e", str(folder / "error.log"), "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, port: int, backend: str, files: dict[str, str]) -> list[str]:
    named = {"notes.example": f"https://localhost:{port}", "127.0.0.1:8000": backend.removeprefix("http://")}
    text = documented("caddy", files | named)
    (folder / "Caddyfile").write_text(f"{{\nadmin off\nauto_https disable_redirects\n}}\n{text}")
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


PROXIES = {"nginx": nginx, "caddy": caddy}


@contextmanager
def proxied(name: str, folder: Path, work: Path, talker: Talker) -> Iterator[tuple[int, ssl.SSLContext]]:
    """Serve a library behind a proxy; yield the port of the proxy and the certificates to trust."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    certificate, key = work / "cert.pem", work / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    files = {"/etc/ssl/notes.pem": str(certificate), "/etc/ssl/private/notes.key": str(key)}
    port, trusted = free_port(), ssl.create_default_context(cafile=str(certificate))
    app = make_app(
        served.worker(folder, replace(QUICK, open_engine=generating(talker)), audit_log=True),
        hosts=[f"localhost:{port}"],
        origins=[f"https://localhost:{port}"],
        access=Access(SECRET, secure=True),
        behind_proxy=True,
        maintain=["true"],
    )
    environment = {"HOME": str(work), "XDG_DATA_HOME": str(work), "XDG_CONFIG_HOME": str(work), "PATH": "/usr/bin:/bin"}
    with served.server(app) as backend:
        command = PROXIES[name](work, port, backend, files)
        program = shutil.which(command[0]) or command[0]
        with subprocess.Popen([program, *command[1:]], env=environment, stderr=subprocess.DEVNULL) as process:
            try:
                served.wait_until(lambda: is_ready(port, trusted), 60)
                yield port, trusted
            finally:
                process.terminate()


def is_ready(port: int, trusted: ssl.SSLContext) -> bool:
    try:
        return bool(json.loads(request(port, trusted, "GET", "/healthz")[1])["ready"])
    except (OSError, ValueError):
        return False


def request(
    port: int, trusted: ssl.SSLContext, method: str, target: str, body: bytes | str = b"", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Send a request to the proxy; return status, body and headers."""
    with closing(HTTPSConnection("localhost", port, timeout=60, context=trusted)) as connection:
        connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}


@pytest.mark.parametrize("name", PROXIES)
def test_behind_the_documented_proxy_everything_works(name: str, folder: Path, tmp_path: Path) -> None:
    talker = Talker()
    (tmp_path / "proxy").mkdir()
    with proxied(name, folder, tmp_path / "proxy", talker) as (port, trusted):
        origin = f"https://localhost:{port}"
        form = {"content_type": "application/x-www-form-urlencoded", "origin": origin}
        assert request(port, trusted, "GET", "/library")[0] == 401
        status, _, headers = request(port, trusted, "POST", "/login", urlencode({"token": SECRET}), **form)
        assert status == 303
        assert headers["set-cookie"].startswith("__Host-")
        assert "Secure" in headers["set-cookie"]
        cookie = headers["set-cookie"].partition(";")[0]
        assert request(port, trusted, "GET", "/library", cookie=cookie)[0] == 200
        asked = urlencode({"question": "When does the boat leave?"})
        invented = {"x_forwarded_for": "203.0.113.9"}
        assert request(port, trusted, "POST", "/ask", asked, **form, **BEARER, **invented)[0] == 200
        line = json.loads((folder / AUDIT_FILE).read_text().splitlines()[-1])
        assert line["client"] == "127.0.0.1", "the last proxy tells who asks, not the client"
        assert (
            request(port, trusted, "POST", "/ask", asked, **form | {"origin": "https://evil.example"}, **BEARER)[0]
            == 403
        )
        assert b"Library" not in request(port, trusted, "GET", "/library", **BEARER, host="evil.example")[1]
        boundary = "x" * 20
        sent = f'--{boundary}\r\ncontent-disposition: form-data; name="files"; filename="kite.txt"\r\n\r\n'.encode()
        sent += b"wind " * 500_000 + f"\r\n--{boundary}--\r\n".encode()
        upload = {"content_type": f"multipart/form-data; boundary={boundary}", "accept": "application/json"}
        status, body, _ = request(port, trusted, "POST", "/library/add", sent, **upload, **BEARER)
        assert (status, len(json.loads(body)["added"])) == (200, 1)
        stream(port, trusted, talker)


def stream(port: int, trusted: ssl.SSLContext, talker: Talker) -> None:
    """Read an answer as it is written, which never ends, and leave: then the server stops it."""
    with closing(HTTPSConnection("localhost", port, timeout=60, context=trusted)) as connection:
        headers = {"accept": "text/event-stream", "content-type": "application/x-www-form-urlencoded"} | BEARER
        connection.request("POST", "/ask", urlencode({"question": ENDLESS}), headers)
        response = connection.getresponse()
        seen = b""
        while b"event: passages" not in seen:
            seen += response.read1(1024)
        assert talker.going.wait(60)
    assert talker.stopped.wait(60)
