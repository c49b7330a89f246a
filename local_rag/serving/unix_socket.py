"""Answer `search` and `ask` of the command line, through a Unix socket that only the same user can open."""

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
from contextlib import aclosing
from typing import Any

from local_rag.errors import LocalRagError, QuestionError
from local_rag.library import Library
from local_rag.records import Written
from local_rag.retrieval.searcher import Trace
from local_rag.serialization import from_plain, to_line
from local_rag.serving.job import Event, Failure, Job, PassagesFound, QueuePosition, Result
from local_rag.serving.requests import AskRequest, Caller, SearchRequest
from local_rag.serving.service import Service
from local_rag.serving.socket_client import connect, environment, is_private, socket_path

_LONGEST_LINE = 64 * 1024
_LINE_SECONDS = 10.0
_PING_SECONDS = 3600.0  # the client needs no pings


class SocketServer:
    """Listen on the socket of a library; each connection is one line with a request, and lines with events."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._library = service.library.folder
        self._path = socket_path(self._library)
        self._environment = environment()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Start to listen; if that is impossible, print the reason and continue."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private(self._path.parent):
                raise OSError(f"other users may enter {self._path.parent}")
            if other := connect(self._library):
                other.close()
                raise OSError("another server of this library is running")
            self._path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self._path))
            self._path.chmod(0o600)  # before anybody can connect; the folder lets only this user in
            self._server = await asyncio.start_unix_server(self._answer, sock=listener, limit=_LONGEST_LINE)
        except OSError as error:
            print(f"The command line will not use this server: {error}.", file=sys.stderr)

    async def close(self) -> None:
        """Stop listening and remove the socket."""
        if self._server:
            self._server.close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if _is_same_user(writer):
                async with asyncio.timeout(_LINE_SECONDS):
                    line = await reader.readline()
                await self._serve(json.loads(line), reader, writer)
        except (ValueError, KeyError, TypeError, AttributeError, OSError):  # TimeoutError is an OSError
            pass  # the line is not a request of ours, or the client has gone
        finally:
            writer.close()

    async def _serve(self, request: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if request["environment"] != self._environment:
            await _send(writer, "other", None)
            return
        try:
            job = self._submit(request)
        except QuestionError:  # the command says so itself, in the same words as without a server
            await _send(writer, "other", None)
            return
        except LocalRagError as error:
            await _send(writer, "error", str(error))
            return
        gone = asyncio.ensure_future(reader.read(1))  # the client sends nothing more: an end is Ctrl-C
        gone.add_done_callback(lambda _read: job.stop())
        try:
            async with aclosing(job.events(_PING_SECONDS)) as events:
                async for event in events:
                    if line := _line(event, self._service.library):
                        await _send(writer, *line)
        finally:
            gone.cancel()

    def _submit(self, request: dict[str, Any]) -> Job[Any]:
        caller = Caller("", str(request["do"]))
        fields = {name: value for name, value in request.items() if name not in ("do", "environment")}
        if request["do"] == "ask":
            return self._service.ask(from_plain(AskRequest, fields), caller)
        return self._service.search(from_plain(SearchRequest, fields), caller)


def _line(event: Event[Any], library: Library) -> tuple[str, Any] | None:
    match event:
        case QueuePosition(ahead, _):
            return "queue", ahead
        case PassagesFound(passages):
            return "passages", passages
        case Written():
            return "token", event
        case Result(value):
            told = value
            if isinstance(value, Trace):
                told = {"passages": value.passages, "question": value.question, "corrections": value.corrections}
            return "done", {"found": told, "reranks": library.reranks, "profile": library.settings.profile}
        case Failure():
            return ("error", event.message) if event.expected else ("other", None)
    return None


async def _send(writer: asyncio.StreamWriter, event: str, value: object) -> None:
    writer.write(to_line({"event": event, "value": value}))
    await writer.drain()


def _is_same_user(writer: asyncio.StreamWriter) -> bool:
    if sys.platform != "linux":
        return True
    peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", peer)[1] == os.getuid())
