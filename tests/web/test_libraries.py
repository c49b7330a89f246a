"""Several libraries in one server: each with its pages, people and history, all with the same models."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from local_rag.llama.generator import Generator
from local_rag.openai.endpoint import chat_interface
from local_rag.serving.served_models import SharedModels
from local_rag.store.people_file import add_person
from local_rag.web.app import make_app
from local_rag.web.gate.authentication import Access
from local_rag.web.gate.connections import Connections
from local_rag.web.listening import Libraries, names_of, root_of
from tests.support import served
from tests.support.served import ADDRESS, PORT

SECRET = "a-token-of-the-owner"
HOST = {"authorization": f"Bearer {SECRET}"}
JSON = {"accept": "application/json"}


class Opened:
    """Count how often a model that answers is loaded and freed."""

    def __init__(self) -> None:
        self.loaded = self.freed = 0

    def parts(self) -> Any:
        def echo(prompt: str) -> str:
            return "The kite flies at noon." if "kite" in prompt else "The boat leaves the harbour at seven."

        inner = served.parts(echo)

        @contextmanager
        def opening(*given: Any, **how: Any) -> Iterator[Generator]:
            self.loaded += 1
            with inner.open_engine(*given, **how) as generator:
                yield generator
            self.freed += 1

        return replace(inner, open_engine=opening)


@pytest.fixture
def kites(tmp_path: Path) -> Path:
    """A second library, whose name holds a blank."""
    (tmp_path / "kite documents" / "more").mkdir(parents=True)
    (tmp_path / "kite documents" / "kite.txt").write_text("The kite flies over the hill at noon.")
    (tmp_path / "kite documents" / "more" / "wind.txt").write_text("The wind of the kite comes from the west.")
    served.index(tmp_path / "kite documents", tmp_path / "our kites")
    return tmp_path / "our kites"


@pytest.fixture
def counted() -> Opened:
    return Opened()


@pytest.fixture
def opened(folder: Path, kites: Path, counted: Opened) -> Iterator[TestClient]:
    shared, access = SharedModels(counted.parts()), Access(SECRET)
    libraries = names_of([folder, kites])
    named = [(name, root_of(name) if number else "") for number, name in enumerate(libraries)]
    workers = [served.worker(path, shared.parts(), turn=shared.turn) for path in libraries.values()]
    apps = {
        name: make_app(
            worker,
            hosts=[f"127.0.0.1:{PORT}"],
            access=access,
            interfaces=[chat_interface],
            root=root,
            libraries=named,
        )
        for (name, root), worker in zip(named, workers, strict=True)
    }
    with TestClient(Libraries(apps), base_url=ADDRESS, follow_redirects=False) as client:
        for prefix in ("", root_of("our kites")):
            served.wait_until(lambda prefix=prefix: client.get(f"{prefix}/healthz").json()["ready"])  # type: ignore[misc]
        yield client


def complete(opened: TestClient, model: str, who: Any = HOST) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": "When does it leave, the boat or the kite?"}]}
    return opened.post("/v1/chat/completions", json=body, headers=who)


def test_all_are_models_of_one_list_and_a_filter_can_stand_behind_the_name(opened: TestClient, folder: Path) -> None:
    listed = opened.get("/v1/models", headers=HOST).json()
    assert [one["id"] for one in listed["data"]] == [folder.name, "our kites"]
    assert "boat" in complete(opened, folder.name).text
    answer = complete(opened, "our kites").json()
    assert "boat" not in str(answer["citations"])
    assert "kite" in str(answer["citations"])
    filtered = complete(opened, "our kites/more/**").json()
    assert {Path(one["path"]).name for one in filtered["citations"]} <= {"wind.txt"}
    assert filtered["model"] == "our kites/more/**"
    assert opened.get("/v1/models/our kites", headers=HOST).status_code == 200
    assert complete(opened, "nothing").status_code == 404
    checked = {"model": "our kites", "text": "The kite leaves at nine."}
    assert opened.post("/v1/verify", json=checked, headers=HOST).status_code == 200
    assert opened.post("/v1/chat/completions", content=b"\xff", headers=HOST).status_code == 400


def test_the_pages_of_each_stay_in_it(opened: TestClient, folder: Path) -> None:
    root = root_of("our kites")
    assert root == "/in/our%20kites"
    asked = opened.post(f"{root}/ask", data={"question": "When does the kite fly?"}, headers=HOST)
    assert "kite.txt" in asked.text
    for route in ("/", "/library", "/history", "/inspect", "/search?q=kite"):
        page = opened.get(root + route, headers=HOST).text
        others = {"/", f"{root}/"}  # the links to the libraries themselves
        addresses = set(re.findall(r'(?:href|action|src)="(/[^"]*)"', page)) - others
        assert addresses
        assert {one for one in addresses if not one.startswith(f"{root}/")} == set()
    assert opened.get(f"{root}/document/", headers=HOST).headers["location"] == f"{root}/library"
    assert len(opened.get(f"{root}/history?format=json", headers=HOST).json()["conversations"]) == 1
    assert opened.get("/history?format=json", headers=HOST).json()["conversations"] == []
    assert [
        one["path"]
        for one in opened.get("/search?q=kite&format=json", headers=HOST).json()["passages"]
        if "kite" in one["path"]
    ] == []
    assert opened.get(f"/in/{folder.name}/library", headers=HOST).status_code == 200
    assert opened.get("/in/nothing/library", headers=HOST).status_code == 404
    assert opened.get("/in/nothing/library").status_code == 401


def test_each_has_its_own_people(opened: TestClient, folder: Path, kites: Path) -> None:
    anna = {"authorization": f"Bearer {add_person(kites, 'Anna', 'reader')}"}
    root = root_of("our kites")
    assert opened.get(f"{root}/library", headers=anna).status_code == 200
    assert opened.get("/library", headers=anna).status_code == 401
    assert [one["id"] for one in opened.get("/v1/models", headers=anna).json()["data"]] == ["our kites"]
    assert complete(opened, "our kites", anna).status_code == 200
    assert complete(opened, folder.name, anna).status_code == 401
    assert 'aria-label="Libraries"' not in opened.get(f"{root}/", headers=anna).text, "others are not named"
    assert opened.get("/v1/models").status_code == 401


def test_a_browser_is_logged_in_to_each_with_one_cookie(opened: TestClient, folder: Path, kites: Path) -> None:
    root, ben, anna = root_of("our kites"), add_person(folder, "Ben", "reader"), add_person(kites, "Anna", "reader")
    entered = opened.post(f"{root}/login", data={"token": anna, "next": "/library"})
    assert (entered.status_code, entered.headers["location"]) == (303, f"{root}/library")
    assert [opened.get(route).status_code for route in (f"{root}/library", "/library")] == [200, 401]
    opened.post("/login", data={"token": ben})
    assert [opened.get(route).status_code for route in (f"{root}/library", "/library")] == [200, 200]
    opened.post("/login", data={"token": SECRET})
    page = opened.get("/").text
    assert f'<a href="{root}/">our kites</a>' in page
    assert [opened.get(route).status_code for route in (f"{root}/library", "/library")] == [200, 200]


def test_the_models_are_loaded_once_and_freed_with_the_last_library(folder: Path, kites: Path, counted: Opened) -> None:
    shared = SharedModels(counted.parts())
    first, second = (served.worker(path, shared.parts(), turn=shared.turn) for path in (folder, kites))
    for worker in (first, second):
        worker.start()
        worker.wake()
        served.wait_until(lambda worker=worker: worker.library._shared.answer_model._generator is not None)  # type: ignore[misc]
    assert counted.loaded == 1
    assert first.close(60)
    assert counted.freed == 0
    assert second.close(60)
    assert (counted.loaded, counted.freed) == (1, 1)


def test_libraries_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / ".local-rag", tmp_path / "b" / "a", tmp_path / "a" / ".local-rag", tmp_path / "c" / "a"]
    assert list(names_of(paths)) == ["a", "a-2", "a-3"]


def test_the_body_of_a_completion_is_read_only_of_whom_some_library_knows(opened: TestClient, kites: Path) -> None:
    """Nothing is received of a stranger, or for another host; who comes into the second library alone is heard."""
    app, read, status = opened.app, list[bool](), list[int]()

    async def receive() -> Any:
        read.append(True)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        status.append(message.get("status", 0))

    for host, token in ((f"127.0.0.1:{PORT}", "wrong"), ("evil.example", SECRET)):
        headers = [(b"host", host.encode()), (b"authorization", f"Bearer {token}".encode())]
        scope = {
            "type": "http", "method": "POST", "path": "/v1/chat/completions", "raw_path": b"", "query_string": b"",
            "headers": headers, "client": ("127.0.0.1", 5), "scheme": "http", "server": ("127.0.0.1", PORT),
        }  # fmt: skip
        assert opened.portal is not None
        opened.portal.call(app, scope, receive, send)
    assert (status[0], read) == (401, [])
    assert 400 in status
    anna = {"authorization": f"Bearer {add_person(kites, 'Anna', 'reader')}"}
    assert "kite" in complete(opened, "our kites", anna).text


def test_a_body_of_a_stranger_that_does_not_come_ends_its_connection(folder: Path, kites: Path) -> None:
    """What was answered is read to its end: a look at one sign of it says nothing of the connection."""
    apps = {
        path.name: make_app(served.worker(path), hosts=["elsewhere"], access=Access(SECRET)) for path in (folder, kites)
    }
    with served.server(Libraries(apps), Connections(seconds=0.5)) as address:
        port = urlsplit(address).port or 0
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: evil.example:{port}\r\nContent-Length: 999\r\n\r\n{{"
        with socket.create_connection(("127.0.0.1", port), timeout=20) as opened:
            opened.sendall(head.encode())
            answered = b"".join(iter(partial(opened.recv, 65536), b""))
    assert answered.startswith(b"HTTP/1.1 400")


def test_strangers_see_the_same_form_below_every_name(opened: TestClient, folder: Path) -> None:
    html = {"accept": "text/html"}
    names = [folder.name, "our kites", "x" * len(folder.name)]
    pages = {opened.get(f"{root_of(name)}/library", headers=html).text.replace(root_of(name), "") for name in names}
    assert len(pages) == 1
    assert opened.get("/in/nothing/library", headers=HOST | JSON).status_code == 404
