"""The event loop only waits: no route opens a file or a database in it, and no slow disk or locked file stops it."""

import http.client
import json
import logging
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

import local_rag.web
from local_rag.indexing.changes import FileState
from local_rag.library import Library
from local_rag.maintenance.checks import CheckResult
from local_rag.mcp.server import http_interface
from local_rag.openai.endpoint import chat_interface
from local_rag.store.database import StoredDocument
from local_rag.web import site
from local_rag.web.app import make_app
from local_rag.web.pages import (
    ask_page,
    changes_page,
    document_page,
    history_page,
    inspect_page,
    library_page,
    login_page,
    people_page,
)
from tests.support import served
from tests.support.served import QUESTION

SLEEP = 2.0  # seconds that a look at a file takes on a disk that sleeps
_WATCHED = ("open", "sqlite3.connect", "subprocess.Popen", "os.scandir", "os.listdir")
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
MCP = JSON | {"mcp-protocol-version": "2025-06-18"}


class Watch:
    """Note what a thread opens below some folders; audit hooks last until the process ends, so this one is shared."""

    thread: int | None = None
    below: tuple[str, ...] = ()
    opened: list[str]


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if Watch.thread == threading.get_ident() and event in _WATCHED:
        path = str(arguments[0])
        if event == "subprocess.Popen" or path.startswith(Watch.below):
            Watch.opened.append(f"{event} {path}")


_hooked: list[bool] = []


@contextmanager
def watched(thread: int, *folders: Path) -> Iterator[list[str]]:
    """Yield what is opened in a thread from now on."""
    if not _hooked:
        sys.addaudithook(_note)
        _hooked.append(True)
    Watch.opened, Watch.below, Watch.thread = [], tuple(map(str, folders)), thread
    try:
        yield Watch.opened
    finally:
        Watch.thread = None


def asleep(_document: StoredDocument) -> FileState:
    """Look at a file on a disk that sleeps."""
    time.sleep(SLEEP)
    return "same"


def check(_library: Library) -> Iterator[CheckResult]:
    yield CheckResult("one", "ok", "fine")


@contextmanager
def serving(folder: Path, **parts: object) -> Iterator[tuple[str, int]]:
    """Serve everything with some parts of a library replaced; yield the address and the thread of the event loop."""
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}
    app = make_app(
        served.worker(folder, replace(served.parts(), **parts)),  # type: ignore[arg-type]
        hosts=allowed,
        interfaces=[partial(http_interface, with_ask=True), chat_interface],
        check=check,
        may_add=[folder.parent],
        maintain=[sys.executable, "-c", ""],
    )
    before = set(threading.enumerate())
    with served.server(app) as address:
        loop = next(one for one in threading.enumerate() if one not in before and one.name.endswith("(run)"))
        assert loop.ident
        served.wait_until(lambda: json.loads(send(address, "GET", "/healthz")[1])["ready"])
        yield address, loop.ident


def send(address: str, method: str, target: str, body: str = "", **headers: str) -> tuple[int, bytes]:
    """Send a request; return its status and body."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return response.status, response.read()


def call(name: str, **arguments: object) -> str:
    """Return a call of a tool of MCP."""
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def chat(**fields: object) -> str:
    return json.dumps({"model": "lib", "messages": [{"role": "user", "content": QUESTION}], **fields})


ASKED = urlencode({"question": QUESTION})
REQUESTS: list[tuple[str, str, str, dict[str, str]]] = [
    ("GET", "/", "", {}),
    ("POST", "/ask", ASKED, FORM),
    ("POST", "/ask", ASKED, FORM | {"accept": "application/json"}),
    ("POST", "/ask", ASKED, FORM | {"accept": "text/event-stream"}),
    ("GET", "/open?q=boat", "", {}),
    ("GET", "/search?q=boat", "", {}),
    ("GET", "/search?q=boat&format=json", "", {}),
    ("GET", "/find?q=How+many+documents+mention+%22boat%22%3F", "", {}),
    ("GET", "/login", "", {}),
    ("POST", "/login", "token=x", FORM),
    ("POST", "/logout", "", FORM),
    ("POST", "/theme", "theme=dark&back=/", FORM),
    ("GET", "/document/", "", {}),
    ("GET", "/document/1", "", {}),
    ("GET", "/document/1?chunk=1", "", {}),
    ("GET", "/document/1/page/1.png", "", {}),
    ("GET", "/document/1/file", "", {}),
    ("GET", "/library", "", {}),
    ("GET", "/library/tables", "", {}),
    ("GET", "/library/progress", "", {}),
    ("POST", "/library/doctor", "", FORM),
    ("GET", "/library/doctor", "", {}),
    ("GET", "/library/add", "", {}),
    ("POST", "/library/add", "path=/nowhere", FORM),
    ("POST", "/library/index", "", FORM),
    ("GET", "/library/task", "", {}),
    ("POST", "/library/watch", "on=1", FORM),
    ("POST", "/library/stop", "", FORM),
    ("POST", "/library/remove", "document=1&confirmed=1", FORM),
    ("GET", "/rows?query=SELECT+1", "", {}),
    ("GET", "/library?q=boat&sort=title", "", {}),
    ("GET", "/people", "", {}),
    ("POST", "/people", "name=Anna", FORM),
    ("GET", "/people/new", "", {}),
    ("POST", "/people/preview", "name=Anna", FORM),
    ("POST", "/people/contact", "contact=Maria", FORM),
    ("GET", "/people/0123", "", {}),
    ("POST", "/people/0123/link", "", FORM),
    ("POST", "/people/0123/remove", "", FORM),
    ("GET", "/join/0123", "", {}),
    ("POST", "/join/0123", "", FORM),
    ("POST", "/rate", urlencode({"question": "When?", "wrong": 1}), FORM),
    ("GET", "/healthz", "", {}),
    ("GET", "/inspect?q=boat&path=boat", "", {}),
    ("POST", "/inspect/question", urlencode({"question": "When?", "chunk": 1}), FORM),
    ("GET", "/history", "", {}),
    ("GET", "/history?format=json", "", {}),
    ("GET", "/static/page.css", "", {}),
    ("GET", "/nothing", "", {}),
    ("GET", "/v1/models", "", {}),
    ("POST", "/v1/chat/completions", chat(), JSON),
    ("POST", "/v1/chat/completions", chat(stream=True), JSON),
    ("POST", "/mcp", call("search", query="boat"), MCP),
    ("POST", "/mcp", call("fetch", id="document-1"), MCP),
    ("POST", "/mcp", call("list_documents"), MCP),
    ("POST", "/mcp", call("status"), MCP),
    ("POST", "/mcp", call("ask", question=QUESTION), MCP),
]


@contextmanager
def another_client(address: str) -> Iterator[Callable[[], float]]:
    """Fetch the page's script again and again; the function tells the longest wait."""
    waits, over = [0.0], threading.Event()

    def run() -> None:
        while not over.wait(0.02):
            began = time.monotonic()
            send(address, "GET", "/static/page.js")
            waits.append(time.monotonic() - began)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: max(waits)
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_no_route_does_anything_in_the_event_loop_but_wait(
    folder: Path, documents: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a disk that sleeps; a callback that takes as long is told by asyncio, whatever it waits for."""
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    templates = Path(local_rag.web.__file__).parent / "templates"
    with (
        caplog.at_level(logging.WARNING, "asyncio"),
        serving(folder, file_state=asleep) as (address, loop),
        another_client(address) as longest,
        watched(loop, folder, documents, templates) as opened,
    ):
        turns = json.loads(send(address, "POST", "/ask", ASKED, **FORM, accept="application/json")[1])
        conversation = turns["conversation"]
        more: list[tuple[str, str, str, dict[str, str]]] = [
            ("GET", f"/?conversation={conversation}", "", {}),
            ("POST", "/ask", f"{ASKED}&conversation={conversation}", FORM | {"accept": "text/event-stream"}),
            ("GET", f"/history/{conversation}.html", "", {}),
            ("GET", f"/history/beside?conversation={conversation}", "", {}),
            ("GET", f"/history/menu?id={conversation}", "", {}),
            ("POST", "/history/pin", f"id={conversation}&on=1", FORM),
            ("GET", f"/history/{conversation}.md", "", {}),
            ("POST", "/history/rename", f"id={conversation}&title=Boats", FORM),
            ("POST", "/history/forget", f"id={conversation}", FORM),
            ("POST", "/history/forget", "id=all&confirmed=1", FORM),
        ]
        asked = [*REQUESTS, *more]
        statuses = {
            f"{method} {target}": send(address, method, target, body, **headers)[0]
            for method, target, body, headers in asked
        }
        waited = longest()
    assert {status for status in statuses.values() if status >= 500} == set(), statuses
    assert opened == []
    slow = [float(found[1]) for found in re.finditer(r"took ([\d.]+) seconds", caplog.text)]
    assert max(slow, default=0.0) < SLEEP / 2, caplog.text
    assert waited < SLEEP / 2
    reached = {(method, target.partition("?")[0]) for method, target, _, _ in asked}
    for page in (changes_page, ask_page, document_page, library_page, inspect_page, history_page, site, login_page,
                 people_page):  # fmt: skip
        for route in page.ROUTES:
            matching = [
                one for one in reached if route.path_regex.fullmatch(one[1]) and one[0] in (route.methods or ())
            ]
            assert matching, f"{route.path} was not asked"


@pytest.mark.slow
def test_a_locked_history_holds_up_nobody_but_who_wants_it(folder: Path) -> None:
    with serving(folder) as (address, _), another_client(address) as longest:
        send(address, "POST", "/ask", ASKED, **FORM, accept="application/json")
        with closing(sqlite3.connect(folder / "history.sqlite3", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            threads = [
                threading.Thread(
                    target=send, args=(address, "POST", "/history/forget", "id=all&confirmed=1"), kwargs=FORM
                ),
                threading.Thread(target=send, args=(address, "GET", "/history")),
                threading.Thread(target=send, args=(address, "POST", "/ask", ASKED), kwargs=FORM),
            ]
            for thread in threads:
                thread.start()
            time.sleep(SLEEP)
            other.execute("COMMIT")
        for thread in threads:
            thread.join()
        assert longest() < SLEEP / 2


def test_a_file_on_a_disk_that_sleeps_is_not_known_to_have_changed(folder: Path) -> None:
    with served.client(folder, replace(served.parts(), file_state=asleep)) as client:
        began = time.monotonic()
        page = client.get("/search?q=boat").text
        assert time.monotonic() - began < SLEEP
        assert "whether it has changed is not known yet" in page
        served.wait_until(lambda: "not known yet" not in client.get("/document/1").text)
