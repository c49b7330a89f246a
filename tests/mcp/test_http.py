"""The tools over HTTP: behind the guard of the page, with its queue and models."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from starlette.testclient import TestClient

from local_rag.mcp.server import http_interface
from local_rag.serving.worker import LibraryWorker
from local_rag.web.app import make_app
from tests.mcp.talking import ERAS
from tests.support import served

INTERFACES = [partial(http_interface, with_ask=True)]
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
SECRET = "a-token-of-the-owner"


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with served.client(folder, interfaces=INTERFACES) as opened:
        yield opened


@pytest.mark.parametrize("era", ERAS)
def test_a_host_talks_to_the_server(folder: Path, era: str) -> None:
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}  # the port is not known before it is taken

    async def run(address: str) -> Any:
        async with Client(f"{address}/mcp", mode=era) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("search", {"query": "boat"})
            answer = await client.call_tool("ask", {"question": served.QUESTION})
            wrong = await client.call_tool("search", {"query": "boat", "nonsense": 1})
            return tools, found.structured_content, answer.structured_content, wrong

    worker = served.worker(folder)
    with served.server(make_app(worker, hosts=allowed, interfaces=INTERFACES)) as address:
        served.wait_until(lambda: not worker.loading)
        tools, found, answer, wrong = anyio.run(run, address)
    assert tools == [
        "search",
        "find",
        "diff",
        "brief",
        "verify",
        "fetch",
        "list_documents",
        "status",
        "gaps",
        "marks",
        "ask",
        "extract",
    ]
    assert found["dense"] == "ready"
    assert found["results"][0]["title"] == "Boat"
    assert answer["citations"][0]["location"].endswith("boat.txt:1")
    assert wrong.is_error
    assert "takes no nonsense" in wrong.content[0].text


@pytest.mark.parametrize("era", ERAS)
def test_a_host_with_a_progress_token_sees_the_answer_as_it_is_written(folder: Path, era: str) -> None:
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}
    told = list[tuple[float, str | None]]()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        told.append((progress, message))

    async def run(address: str) -> Any:
        async with Client(f"{address}/mcp", mode=era) as client:
            answer = await client.call_tool("ask", {"question": served.QUESTION}, progress_callback=hear)
            filtered = await client.call_tool("ask", {"question": served.QUESTION, "in": "nowhere/**"})
            counted = await client.call_tool(
                "find", {"question": "Which documents mention the boat?", "since": "2999-01-01"}
            )
            return answer, filtered, counted

    # A library that tells its answer word by word, and then takes a sentence back.
    worker = LibraryWorker(lambda: served.Streaming(folder, parts=served.parts()))
    with served.server(make_app(worker, hosts=allowed, interfaces=INTERFACES)) as address:
        served.wait_until(lambda: not worker.loading)
        answer, filtered, counted = anyio.run(run, address)
    assert [number for number, _ in told] == [*range(1, len(told) + 1)]
    messages = [message for _, message in told if message]
    assert messages[0].startswith("Reading ")
    assert messages[1] == "The"
    assert any(message.startswith("The boat leaves the harbour at seven.") for message in messages)
    assert answer.structured_content["text"].startswith("The boat leaves the harbour at seven. [1] It carries")
    assert filtered.structured_content["outcome"] == "refused"
    assert counted.structured_content["count"] == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "attacker.example"}, 400),
        ({"host": "127.0.0.1:9999"}, 400),
        ({"host": "127.0.0.1.attacker.example:8000"}, 400),
        ({"origin": "http://attacker.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:8001"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 400),
    ],
    ids=str,
)
def test_attacks_are_refused(client: TestClient, headers: dict[str, str], status: int) -> None:
    refused = client.post("/mcp", content=LIST, headers=HEADERS | headers)
    assert refused.status_code == status
    assert "search" not in refused.text
    assert client.post("/mcp", content=LIST, headers=HEADERS | {"origin": served.ADDRESS}).status_code == 200


def test_there_is_no_stream_to_get_and_no_session_to_delete(client: TestClient) -> None:
    for method in ("GET", "DELETE"):
        assert client.request(method, "/mcp", headers=HEADERS).status_code == 405


def test_the_instructions_tell_of_the_library_as_it_is(folder: Path, documents: Path) -> None:
    shake = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    order = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": shake})
    with served.client(folder, interfaces=[partial(http_interface, fresh_seconds=0.0)]) as opened:
        assert "3 documents" in opened.post("/mcp", content=order, headers=HEADERS).text
        (documents / "new.md").write_text("# New\n\nText.\n")
        served.index(documents, folder)
        assert "4 documents" in opened.post("/mcp", content=order, headers=HEADERS).text


def test_large_bodies_are_refused(client: TestClient) -> None:
    large = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "x" * 100_000}})
    assert client.post("/mcp", content=large, headers=HEADERS).status_code == 413
    pieces = client.post("/mcp", content=iter([large.encode()]), headers=HEADERS)
    assert pieces.status_code == 413


def test_the_token_is_wanted_here_too(folder: Path) -> None:
    with served.client(folder, token=SECRET, interfaces=INTERFACES) as opened:
        for header in ("", "Bearer wrong", SECRET):
            assert opened.post("/mcp", content=LIST, headers=HEADERS | {"authorization": header}).status_code == 401
        right = opened.post("/mcp", content=LIST, headers=HEADERS | {"authorization": f"Bearer {SECRET}"})
    assert right.status_code == 200
    assert "list_documents" in right.text


def test_what_is_asked_stands_in_the_audit_log(folder: Path) -> None:
    call = {"name": "search", "arguments": {"query": "the boat"}}
    order = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    with served.client(folder, interfaces=INTERFACES, audit_log=True) as opened:
        served.wait_until(lambda: opened.get("/healthz").json()["loaded"])
        assert opened.post("/mcp", content=order, headers=HEADERS).status_code == 200
    line = json.loads((folder / "audit.jsonl").read_text().splitlines()[-1])
    assert (line["route"], line["question"], line["client"]) == ("/mcp", "the boat", "testclient")
