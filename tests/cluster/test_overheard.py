"""What can be read on the way between this machine and the search engine: over TLS nothing, over http everything."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from local_rag.library import Library
from tests.fakes import QUICK

pytest.importorskip("qdrant_edge", reason="the extra [cluster-test] is not installed")

from tests.support.certificates import Authority
from tests.support.search_engine import StandIn

WORD, KEY, QUESTION = "zeppelinmark", "the-key-of-the-engine", "Where is the quayquestion?"


@contextmanager
def overheard(port: int, heard: bytearray) -> Iterator[int]:
    """Pass connections on to a port and keep all that is sent in either direction; yield the port to connect to."""
    threads, ends = list[threading.Thread](), list[socket.socket]()

    def run(target: object, *arguments: object) -> None:
        threads.append(threading.Thread(target=target, args=arguments, daemon=True))  # type: ignore[arg-type]
        threads[-1].start()

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                heard.extend(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def accept(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, far = server.accept()[0], socket.create_connection(("127.0.0.1", port))
                for end in (near, far):
                    ends.append(end)
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                run(pass_on, near, far)
                run(pass_on, far, near)

    with socket.create_server(("127.0.0.1", 0)) as server:
        run(accept, server)
        try:
            yield server.getsockname()[1]
        finally:
            for end in (server, *ends):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for end in ends:
                end.close()


@pytest.mark.parametrize("encrypted", [True, False])
@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_only_without_encryption_the_texts_and_the_key_can_be_read(
    encrypted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RAG_QDRANT_KEY", KEY)
    authority, folder, heard = Authority(tmp_path), tmp_path / "documents", bytearray()
    folder.mkdir()
    (folder / "a.md").write_text(f"# The quay\n\nThe {WORD} leaves the quay at seven.\n")
    with ExitStack() as stack:
        engine = StandIn(authority if encrypted else None)
        stack.callback(engine.remove)
        setting = engine.setting_at(stack.enter_context(overheard(engine.port, heard)))
        how: dict[str, Any] = {"search_engine": {"address": setting, "ca": str(authority.ca)}}
        with Library(tmp_path / "library", parts=QUICK, **how) as library:
            library.index([folder])
        published = bytes(heard)
        heard.clear()
        with Library(tmp_path / "reader", parts=QUICK, **how) as reader:
            assert WORD in reader.search(QUESTION, rerank=False)[0].text
    for sent in (published, bytes(heard)):
        assert len(sent) > 1000
        assert (WORD.encode() in sent) == (KEY.encode() in sent) == (not encrypted)
        assert b"quayquestion" not in sent, "a question itself never goes to the engine"
