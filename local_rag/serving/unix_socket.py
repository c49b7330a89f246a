"""Answer the commands of the same user, through a Unix socket that nobody else can open."""

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from local_rag.answer_records import Written
from local_rag.errors import LocalRagError, QuestionError, StoppedError
from local_rag.library import Library
from local_rag.progress_records import Progress
from local_rag.retrieval.searcher import Trace
from local_rag.serialization import from_plain, to_line
from local_rag.serving.job import Event, Failure, Job, PassagesFound, QueuePosition, Result
from local_rag.serving.leaving import listen
from local_rag.serving.requests import AskRequest, Caller, FindRequest, SearchRequest, TableRequest
from local_rag.serving.service import Service
from local_rag.serving.socket_client import environment, running, socket_path, stop_left

if TYPE_CHECKING:  # it makes a server itself
    from local_rag.serving.left import Left

_LONGEST_LINE = 64 * 1024
_LINE_SECONDS = 10.0
_PING_SECONDS = 3600.0  # the client needs no pings


class SocketServer:
    """Listen on the socket of a library; each connection is one line with a request, and lines with events.

    A server that the user has started makes the socket itself and ends where it was started. A process that a command
    has left behind is `staying`, on a `listener` that the command has made.
    """

    def __init__(self, service: Service, staying: "Left | None" = None, listener: socket.socket | None = None) -> None:
        self._service, self._staying, self._listener = service, staying, listener
        self._library = service.library.folder
        self._path = socket_path(self._library)
        self._environment = environment()
        self._server: asyncio.Server | None = None
        self._inode = 0

    async def open(self) -> None:
        """Start to listen; if that is impossible, print the reason and continue."""
        try:
            listener = self._listener or await asyncio.to_thread(self._listen)
            self._inode = self._path.stat().st_ino
            self._server = await asyncio.start_unix_server(self._answer, sock=listener, limit=_LONGEST_LINE)
        except OSError as error:
            print(f"The command line will not use this server: {error}.", file=sys.stderr)

    def _listen(self) -> socket.socket:
        """Return a socket that listens in the place of one that a command has left behind; raise OSError without."""
        if (other := running(self._library)) and other.seconds_left is not None:
            stop_left(self._library)
        if (listener := listen(self._library)) is None:
            raise OSError("another server of this library is running")
        return listener

    async def close(self) -> None:
        """Stop listening and remove the socket, unless another server has put its own there."""
        if self._server:
            self._server.close()
            with contextlib.suppress(OSError):
                if self._path.stat().st_ino == self._inode:
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
        if request["do"] in ("state", "stop"):
            await self._tell(str(request["do"]), writer)
            return
        if request["environment"] != self._environment or not await self._is_current():
            if self._staying:  # the next command leaves a process behind that fits
                self._staying.leave()
            await _send(writer, "other", None)
            return
        try:
            job = self._submit(request)
        except (QuestionError, StoppedError):  # the command says so itself, or does it while this process ends
            await _send(writer, "other", None)
            return
        except LocalRagError as error:
            await _send(writer, "error", str(error))
            return
        if self._staying:
            await _send(writer, "stays", self._staying.minutes)
        # The client sends nothing more: an end is Ctrl-C, after which some still read what was found until then.
        gone, begun = asyncio.ensure_future(reader.read(1)), False
        gone.add_done_callback(lambda _read: job.stop())
        try:
            async with aclosing(job.events(_PING_SECONDS)) as events:
                async for event in events:
                    begun = begun or isinstance(event, PassagesFound | Written)
                    if isinstance(event, Result):
                        value = await self._service.aside(partial(_done, self._service.library, event.value))
                        await _send(writer, "done", value)
                    elif self._staying and not begun and isinstance(event, Failure) and _is_stop(event):
                        await _send(writer, "other", None)  # this process ends, and the command has shown nothing yet
                    elif line := _line(event):
                        await _send(writer, *line)
        finally:
            gone.cancel()

    async def _is_current(self) -> bool:
        return self._staying is None or await self._service.aside(self._staying.is_current)

    async def _tell(self, do: str, writer: asyncio.StreamWriter) -> None:
        """Tell the state of this process, or end one that a command has left behind."""
        staying = self._staying
        if do == "stop" and not staying:
            await _send(writer, "other", None)
            return
        await _send(writer, "done", {"process": os.getpid(), "seconds_left": staying and staying.seconds_left})
        if do == "stop" and staying:
            staying.end()
            await asyncio.Event().wait()  # the connection ends with the process

    def _submit(self, request: dict[str, Any]) -> Job[Any]:
        caller = Caller("", str(request["do"]))
        fields = {name: value for name, value in request.items() if name not in ("do", "environment")}
        service = self._service
        match request["do"]:
            case "ask":
                return service.ask(from_plain(AskRequest, fields), caller)
            case "find":
                return service.find_all(from_plain(FindRequest, fields), caller)
            case "extract":
                return service.extract_all(from_plain(TableRequest, fields), caller)
            case "search":
                return service.search(from_plain(SearchRequest, fields), caller)
        raise ValueError(f"{request['do']!r} is no request")


def _line(event: Event[Any]) -> tuple[str, Any] | None:
    match event:
        case QueuePosition(ahead, _):
            return "queue", ahead
        case PassagesFound(passages):
            return "passages", passages
        case Written():
            return "token", event
        case Progress():
            return "progress", event
        case Failure():
            return ("error", event.message) if event.expected else ("other", None)
    return None


def _is_stop(failure: Failure) -> bool:
    return isinstance(failure.error, StoppedError)


def _done(library: Library, value: Any) -> dict[str, Any]:
    """Return a result as the command gets it, and what it says on stderr beside it."""
    if isinstance(value, Trace):
        value = {"passages": value.passages, "question": value.question, "corrections": value.corrections}
    notices = []
    with contextlib.suppress(LocalRagError):
        notices = [notice for notice in (library.feedback.gate_notice(), library.documents.missing_notice()) if notice]
    return {
        "found": value,
        "reranks": library.retrieval.reranks,
        "profile": library.settings.profile,
        "notices": notices,
    }


async def _send(writer: asyncio.StreamWriter, event: str, value: object) -> None:
    writer.write(to_line({"event": event, "value": value}))
    await writer.drain()


def _is_same_user(writer: asyncio.StreamWriter) -> bool:
    if sys.platform != "linux":
        return True
    peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", peer)[1] == os.getuid())
