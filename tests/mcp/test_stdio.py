"""The tools over pipes: nothing but the protocol comes out, and it ends well."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import version as versions

from local_rag.mcp.handshake import HANDSHAKE_VERSIONS, MODERN_VERSION, Greeting
from local_rag.mcp.server import instructions_of, make_server
from local_rag.mcp.stdio import Lines, Wire, greet, serve
from tests.mcp.talking import ERAS, local_service
from tests.support import served

# The embedder prints in every way there is, as a native library may.
pytestmark = pytest.mark.slow
NOISY = """
import os, sys
from dataclasses import replace
from local_rag.cli.main import main
from tests.fakes import FakeEmbedder
from tests.support.served import parts

def noisy(model):
    print("from Python")
    os.write(1, b"from native code\\n")
    os.system("echo from a child")
    return FakeEmbedder(model)

main(parts=replace(parts(), load_embedder=noisy))
"""
META = {
    "_meta": {
        f"io.modelcontextprotocol/{name}": value
        for name, value in {
            "protocolVersion": "2026-07-28",
            "clientInfo": {"name": "test", "version": "1"},
            "clientCapabilities": {},
        }.items()
    }
}


def request(key: int, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method} | ({} if params is None else {"params": params})


def handshake(asked: str = "2025-06-18") -> list[dict[str, Any]]:
    client = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return [request(0, "initialize", client), {"jsonrpc": "2.0", "method": "notifications/initialized"}]


def command(folder: Path, *arguments: str, code: str = NOISY) -> list[str]:
    return [sys.executable, "-P", "-c", code, "mcp", "--library", str(folder), *arguments]


def through_pipes(folder: Path, lines: Sequence[Any], *, greets: bool) -> dict[int, Any]:
    """Serve lines in this process; return the replies by id. Without greeting the SDK answers everything."""
    (from_host, to_server), (from_server, to_host) = os.pipe(), os.pipe()
    service, received = local_service(folder), bytearray()
    wire = Wire(from_host, to_host)
    instructions = instructions_of(service.library)
    server = make_server(service, instructions)
    greeting = Greeting("local-rag", str(server.version), instructions, with_ask=False)

    def read() -> None:
        while part := os.read(from_server, 65536):
            received.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(to_server, "wb") as host:
        host.writelines(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    never = threading.Event()
    try:
        if greets:
            assert greet(wire, greeting, lambda: never.wait(0.5) or server) in (server, None)
        serve(server, Lines(wire, greeting))
    finally:
        os.close(to_host)
        reader.join()
        os.close(from_server)
        os.close(from_host)
        assert service.worker.close(30)
    replies = [json.loads(line) for line in received.splitlines()]
    assert len({reply["id"] for reply in replies}) == len(replies), "each is answered once"
    return {reply["id"]: reply for reply in replies}


BEGINNINGS: dict[str, list[Any]] = {
    **{f"handshake {one}": [*handshake(one), request(1, "tools/list")] for one in (*HANDSHAKE_VERSIONS, "1999-01-01")},
    "no parameters": [*handshake(), request(1, "tools/list", {})],
    "modern": [request(0, "server/discover", META), request(1, "tools/list", META)],
    "modern, at once": [request(1, "tools/list", META)],
    "no handshake": [request(1, "tools/list")],
    "half a handshake": [request(0, "initialize", {"protocolVersion": "2025-06-18"}), request(1, "tools/list")],
    "both eras": [*handshake(), request(1, "tools/list", META)],
    "another version": [
        request(1, "tools/list", {"_meta": META["_meta"] | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}})
    ],
    "a cursor": [*handshake(), request(1, "tools/list", {"cursor": "x"})],
    "a ping": [*handshake(), request(1, "ping"), request(2, "tools/list")],
    "no JSON": [b"garbage\n", b"[]\n", b"\xff\n", *handshake(), request(1, "tools/list")],
    "a call": [*handshake(), request(1, "tools/list"), request(2, "tools/call", {"name": "fetch", "arguments": {}})],
    "a modern call": [
        request(1, "tools/list", META),
        request(2, "tools/call", {"name": "list_documents", "arguments": {}, **META}),
    ],
}


@pytest.mark.parametrize("lines", BEGINNINGS.values(), ids=BEGINNINGS)
def test_the_greeting_says_what_the_sdk_says(folder: Path, lines: list[Any]) -> None:
    told, wanted = (through_pipes(folder, lines, greets=greets) for greets in (True, False))
    assert told == wanted
    assert told


def test_the_greeting_knows_the_versions_of_the_sdk() -> None:
    assert HANDSHAKE_VERSIONS == versions.HANDSHAKE_PROTOCOL_VERSIONS
    assert (MODERN_VERSION,) == versions.MODERN_PROTOCOL_VERSIONS


def test_the_beginning_is_answered_here_and_nothing_else_is() -> None:
    greeting = Greeting("local-rag", "1", "", with_ask=True)
    shake, initialized = (json.dumps(one).encode() for one in handshake())
    ping, listing = (json.dumps(request(key, name)).encode() for key, name in ((1, "ping"), (2, "tools/list")))
    assert greeting.reply(shake)
    assert greeting.reply(initialized) is None
    listed = greeting.reply(listing)
    assert listed
    assert [tool["name"] for tool in json.loads(listed)["result"]["tools"]][-1] == "ask"
    assert greeting.reply(ping) is None
    assert greeting.reply(listing) is None, "what comes behind is answered in its order"
    assert greeting.unanswered == [shake, initialized, ping, listing]


def test_what_answers_the_beginning_imports_nothing_heavy() -> None:
    code = (
        "import sys, local_rag.cli.mcp, local_rag.mcp.handshake, local_rag.mcp.instructions, local_rag.mcp.stdio\n"
        "print({'mcp', 'anyio', 'starlette', 'rich', 'faiss', 'bm25s', 'onnxruntime', 'llama_cpp', 'torch'} "
        "& set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_nothing_but_the_protocol_comes_out(folder: Path) -> None:
    calls = [
        request(2, "tools/call", {"name": "search", "arguments": {"query": "boat"}}),
        request(3, "tools/call", {"name": "search", "arguments": {"query": "boat", "nonsense": 1}}),
        request(4, "tools/call", {"name": "nonsense", "arguments": {}}),
        request(5, "tools/call", {"name": "ask", "arguments": {"question": served.QUESTION}}),
    ]
    lines = [*handshake(), request(1, "tools/list"), "no JSON", *calls]
    sent = "".join(line + "\n" if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    with subprocess.Popen(
        command(folder, "--with-ask"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        with closing(process.stdin):
            process.stdin.write(sent)
            process.stdin.flush()
            replies = [json.loads(process.stdout.readline()) for _ in range(6)]
            filtered = Path(f"/proc/{process.pid}/status")
            assert not filtered.exists() or "Seccomp:\t2" in filtered.read_text()
        rest, complained = process.stdout.read(), process.stderr.read()
        assert process.wait(60) == 0
    assert rest == ""
    by_id = {reply["id"]: reply for reply in replies}
    assert sorted(by_id) == [0, 1, 2, 3, 4, 5]
    assert by_id[2]["result"]["structuredContent"]["results"][0]["title"] == "Boat"
    assert by_id[3]["result"]["isError"]
    assert "There is no tool" in by_id[4]["error"]["message"]
    assert by_id[5]["result"]["structuredContent"]["answered"]
    for said in ("from Python", "from native code", "from a child"):
        assert said in complained
    assert "Traceback" not in complained


def test_a_conversation_that_ends_with_the_list_waits_for_no_sdk(folder: Path) -> None:
    sent = "".join(json.dumps(line) + "\n" for line in [*handshake(), request(1, "tools/list")])
    code = "from local_rag.cli.main import main; main()"
    done = subprocess.run(command(folder, code=code), input=sent, capture_output=True, text=True, check=True)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1]
    assert done.stderr == ""


def test_what_was_asked_before_the_end_is_answered(folder: Path) -> None:
    """Lines from a shell end at once."""
    listing = request(7, "tools/call", {"name": "list_documents", "arguments": {}})
    replies = through_pipes(folder, [*handshake(), listing], greets=True)
    assert len(replies[7]["result"]["structuredContent"]["results"]) == 3


@pytest.mark.parametrize("makes", [False, True], ids=["no folder", "another folder"])
def test_a_folder_that_is_no_library_is_told_on_stderr_alone(tmp_path: Path, makes: bool) -> None:
    folder = tmp_path / "other"
    if makes:
        folder.mkdir()
        (folder / "notes.txt").write_text("Mine.\n")
    code = "from local_rag.cli.main import main; main()"
    done = subprocess.run(command(folder, code=code), input="", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "There is no library" in done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == (["notes.txt", "other"] if makes else [])


@pytest.mark.parametrize("era", ERAS)
def test_a_host_talks_to_the_command(folder: Path, era: str) -> None:
    started = command(folder)
    parameters = StdioServerParameters(
        command=started[0], args=started[1:], env=dict(os.environ), cwd=Path(__file__).parents[2]
    )

    async def run() -> Any:
        async with Client(parameters, mode=era) as client:
            tools = (await client.list_tools()).tools
            found = await client.call_tool("search", {"query": "boat"})
            return client.protocol_version, [tool.name for tool in tools], found.structured_content

    version, tools, found = anyio.run(run)
    assert version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[era]
    assert tools == ["search", "fetch", "list_documents", "status"]
    assert found["results"][0]["title"] == "Boat"


def test_a_running_server_of_the_library_is_used(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime = tmp_path_factory.mktemp("run")
    runtime.chmod(0o700)
    calls = [
        request(1, "tools/call", {"name": "search", "arguments": {"query": "boat"}}),
        request(2, "tools/call", {"name": "status", "arguments": {}}),
    ]
    sent = "".join(json.dumps(line) + "\n" for line in [*handshake(), *calls])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        with served.command_line_server(folder):
            done = subprocess.run(
                command(folder), input=sent, capture_output=True, text=True, check=True, env=dict(os.environ)
            )
    replies = {reply["id"]: reply["result"] for reply in map(json.loads, done.stdout.splitlines())}
    ranks = replies[1]["structuredContent"]["results"][0]["ranks"]
    assert {"dense", "keyword"} <= set(ranks)
    assert replies[2]["structuredContent"]["dense"] == "ready"
    assert "from Python" not in done.stderr, "no model of its own was loaded"
