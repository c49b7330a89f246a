"""Send a server requests that were made to hold it up, and note how long its health takes meanwhile.

Each of the two runs as a process of its own, so that they wait for nothing but the server.
"""

import http.client
import io
import itertools
import json
import socket
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

FOLDER = "attacker"
_ELSEWHERE = "127.0.0.2"  # other limits on requests than those of the people
_BOUNDARY = "another-boundary"
_PROBES_PER_SECOND = 4
_INITIALS = 20_000
_LEAVE = "# Leave policy {}\n\nEvery employee has {} days of paid leave per year. Leave is requested in writing.\n"


def write_documents(folder: Path) -> None:
    """Write the documents that only the attacker sees, each made to take long when it is used."""
    folder.mkdir(parents=True)
    (folder / "rules.txt").write_text(f"Rules\n{'-' * 80}\n\nThe zebra drinks at the pond.\n")
    (folder / "signs.md").write_text("# Signs\n\n" + "[a](" * 10_000 + "\n\n" + "> - " * 10_000 + "\n")
    (folder / "sales.csv").write_text("City,Amount EUR\n" + "".join(f"Town {n},{n}\n" for n in range(100)))
    for year, days in ((2023, 25), (2024, 28)):
        (folder / f"leave policy {year}.md").write_text(_LEAVE.format(year, days) + "A. " * _INITIALS)


def attack(address: str, token: str, seconds: float) -> None:
    """Attack in several ways at once for a while; print how often each reply came."""
    ends, counts, lock = time.monotonic() + seconds, Counter[str](), threading.Lock()

    def repeat(name: str, send: Callable[[], int]) -> None:
        while time.monotonic() < ends:
            status = 0
            with suppress(OSError, http.client.HTTPException):
                status = send()
            with lock:
                counts[f"{name} {status}"] += 1
            time.sleep(0.2)

    threads = [threading.Thread(target=repeat, args=one, daemon=True) for one in _attacks(address, token)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()) + 30)
    print(json.dumps(dict(sorted(counts.items()))), flush=True)


def probe(address: str, token: str, seconds: float) -> None:
    """Fetch `/health` and `/healthz` by turns; print the status of each reply with its seconds."""
    parts, waits, ends = urlsplit(address), list[tuple[int, float]](), time.monotonic() + seconds
    targets = itertools.cycle(("/health", "/healthz"))
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    while time.monotonic() < ends:
        began, status = time.monotonic(), 0
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", next(targets), headers=headers)
            reply = connection.getresponse()
            reply.read()
            status = reply.status
        connection.close()
        waits.append((status, round(time.monotonic() - began, 3)))
        time.sleep(1 / _PROBES_PER_SECOND)
    print(json.dumps(waits), flush=True)


def _attacks(address: str, token: str) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield what is done again and again, by name; each returns the status of a reply."""
    server = urlsplit(address).netloc
    own = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    form = {**own, "Content-Type": "application/x-www-form-urlencoded"}
    files = {**own, "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}

    def send(method: str, target: str, headers: dict[str, str], body: bytes | None = None) -> Callable[[], int]:
        def sending() -> int:
            connection = http.client.HTTPConnection(server, timeout=60, source_address=(_ELSEWHERE, 0))
            try:
                connection.request(method, target, body, headers)
                reply = connection.getresponse()
                reply.read()
                return reply.status
            finally:
                connection.close()

        return sending

    def ask(question: str) -> Callable[[], int]:
        return send("POST", "/ask", form, urlencode({"question": question}).encode())

    cookie = f'local_rag_session_{server.rpartition(":")[2]}="' + "\\\\" * 30_000 + '"'
    counted = quote('How many documents mention "' + "- " * 40 + 'zebra"?')
    crossed = quote("SELECT count(*) FROM " + ", ".join(f"sales s{n}" for n in range(10)))  # noqa: S608
    versions = f"before={quote('leave policy 2023.md')}&after={quote('leave policy 2024.md')}"
    yield "cookie", send("GET", "/history", {"Cookie": cookie})
    yield "wrong token", send("GET", "/history", {"Authorization": "Bearer " + "wrong" * 9})
    yield "slow bodies", lambda: _hold(server, f"Host: {server}\r\nContent-Type: application/x-www-form-urlencoded")
    yield "slow bodies of another host", lambda: _hold(server, "Host: evil.example\r\nContent-Type: application/json")
    yield "find", send("GET", f"/find?format=json&q={counted}", own)
    yield "dashes", ask(f"How many days of paid leave has every employee? 12 {'- ' * 900}total 15 kg")
    yield "versions", ask("How many days of paid leave has every employee per year?")
    for _ in range(3):
        yield "query", send("GET", f"/rows?query={crossed}", own)
    yield "diff", send("GET", f"/diff?{versions}", own)
    yield "bomb of questions", send("POST", "/questions", files, _as_file("file", "q.xlsx", _bomb()))
    yield "bomb", send("POST", "/library/add", files, _as_file("files", "bomb.xlsx", _bomb()))
    yield "signs", send("GET", f"/inspect?q={quote('> - ' * 100)}", own)
    yield "login", send("POST", "/login", {"Content-Type": form["Content-Type"]}, urlencode({"token": token}).encode())


def _hold(server: str, headers: str) -> int:
    """Begin 256 requests, from the address of the people, whose bodies do not come; wait, and leave."""
    host, _, port = server.rpartition(":")
    held = []
    try:
        for _ in range(256):
            held.append(socket.create_connection((host, int(port)), timeout=10))
            held[-1].sendall(f"POST /login HTTP/1.1\r\n{headers}\r\nContent-Length: 1000\r\n\r\nt".encode())
        time.sleep(10)
    finally:
        for one in held:
            one.close()
    return len(held)


def _as_file(field: str, name: str, content: bytes) -> bytes:
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
    return head.encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()


def _bomb() -> bytes:
    """Return a workbook of some 100 kB whose only sheet unpacks to 100 MB."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/worksheets/sheet1.xml", b"<row>" * 20_000_000)
    return packed.getvalue()
