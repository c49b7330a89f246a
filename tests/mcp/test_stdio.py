"""The tools over pipes: nothing but the protocol comes out, and it ends well."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import version as versions

from tests.fakes import generating
from tests.mcp.talking import ERAS
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


def request(key: int, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method} | ({} if params is None else {"params": params})


def handshake(asked: str = "2025-06-18") -> list[dict[str, Any]]:
    client = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return [request(0, "initialize", client), {"jsonrpc": "2.0", "method": "notifications/initialized"}]


def command(folder: Path, *arguments: str, code: str = NOISY) -> list[str]:
    return [sys.executable, "-P", "-c", code, "mcp", "--library", str(folder), *arguments]


def test_the_handshake_is_the_sdks(folder: Path) -> None:
    for asked in (*versions.HANDSHAKE_PROTOCOL_VERSIONS, "1999-01-01"):
        lines = [*handshake(asked), request(1, "tools/list")]
        (shaken, listed), _ = replies_of(folder, lines, 2)
        latest = versions.HANDSHAKE_PROTOCOL_VERSIONS[-1]
        known = asked in versions.HANDSHAKE_PROTOCOL_VERSIONS
        assert shaken["result"]["protocolVersion"] == (asked if known else latest)
        assert "3 documents" in shaken["result"]["instructions"]
        assert len(listed["result"]["tools"]) == 10


def replies_of(folder: Path, lines: Sequence[Any], count: int) -> tuple[list[Any], str]:
    """Send lines and end the input; return the replies by id, and what was complained of."""
    sent = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    code = "from local_rag.cli.main import main; main()"
    done = subprocess.run(command(folder, code=code), input=sent, capture_output=True, text=True, check=True)
    replies = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda reply: reply["id"])
    assert len(replies) == count
    return replies, done.stderr


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


def test_what_was_asked_before_the_end_is_answered(folder: Path) -> None:
    """Lines from a shell end at once."""
    listing = request(7, "tools/call", {"name": "list_documents", "arguments": {}})
    (_, listed), _ = replies_of(folder, [*handshake(), listing], 2)
    assert len(listed["result"]["structuredContent"]["results"]) == 3


ENDLESS = request(2, "tools/call", {"name": "ask", "arguments": {"question": served.ENDLESS}})


@pytest.mark.parametrize("how", ["the input ends", "the call is cancelled"])
def test_an_answer_of_a_running_server_ends_with_who_wanted_it(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, how: str
) -> None:
    runtime, talker = tmp_path_factory.mktemp("run"), served.Talker()
    runtime.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        with (
            served.command_line_server(folder, replace(served.parts(), open_engine=generating(talker))),
            subprocess.Popen(
                command(folder, "--with-ask"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as process,
        ):
            assert process.stdin
            process.stdin.write("".join(json.dumps(line) + "\n" for line in [*handshake(), ENDLESS]))
            process.stdin.flush()
            assert talker.going.wait(60)
            if how == "the call is cancelled":
                cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
                process.stdin.write(json.dumps(cancelled) + "\n")
                process.stdin.flush()
                assert talker.stopped.wait(20), "the server still writes"
            process.stdin.close()
            assert process.wait(30) == 0
            assert talker.stopped.wait(20)


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
    assert tools == ["search", "find", "diff", "brief", "verify", "fetch", "list_documents", "status", "gaps", "marks"]
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
