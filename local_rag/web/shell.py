"""Answer the command line of the same user: `search` and `ask` come through a Unix socket that nobody else can open."""

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from local_rag.errors import LocalRagError, QuestionError
from local_rag.serialization import from_plain, to_line
from local_rag.serving.requests import Question, answering, searching
from local_rag.web.pages.base import Site
from local_rag.wire import connect, environment, is_private, socket_path

_MAX_ORDER = 64 * 1024


class Shell:
    """Listen on the socket of a library; each connection is one line that asks, and lines that answer."""

    def __init__(self, library: Path) -> None:
        self._library, self._path = library, socket_path(library)
        self._environment = environment()
        self._server: asyncio.Server | None = None
        self._site: Site | None = None

    async def open(self, site: Site) -> None:
        """Begin to listen; say why where that cannot be, and go on without."""
        self._site = site
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private(self._path.parent):
                raise OSError(f"{self._path.parent} is not this user's alone")
            if other := connect(self._library):
                other.close()
                raise OSError("another server of this library is running")
            self._path.unlink(missing_ok=True)
            before = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(self._answer, path=self._path, limit=_MAX_ORDER)
            finally:
                os.umask(before)
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
                order = json.loads(await reader.readline())
                await self._serve(order, reader, writer)
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            pass  # nothing of ours has written that, or it has gone
        finally:
            writer.close()

    async def _serve(self, order: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._site is not None
        owner, told, loop = self._site.owner, asyncio.Queue[tuple[str, Any]](), asyncio.get_running_loop()
        if order["environment"] != self._environment:
            await _send(writer, "other", None)
            return

        def tell(event: str, value: Any) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(told.put_nowait, (event, value))

        try:
            question = from_plain(Question, {"text": order["question"], **order})
            self._site.audit_as("command line", str(order["do"]), question.text)
        except QuestionError:  # the command itself says so in the words that it always had
            await _send(writer, "other", None)
            return
        except LocalRagError as error:
            await _send(writer, "error", str(error))
            return
        job = owner.submit(answering(question) if order["do"] == "ask" else searching(question), tell)
        job.result.add_done_callback(lambda _result: tell("end", None))
        gone = asyncio.ensure_future(reader.read(1))  # whoever asks says no more: an end is Ctrl-C
        gone.add_done_callback(lambda _read: owner.stop(job))
        try:
            while (happened := await told.get())[0] != "end":
                await _send(writer, *happened)
            library = owner.library
            result = job.result.result()
            found = result if order["do"] == "ask" else {"passages": result.passages}
            await _send(
                writer, "done", {"found": found, "reranks": library.reranks, "profile": library.settings.profile}
            )
        except LocalRagError as error:
            await _send(writer, "error", str(error))
        except Exception:
            await _send(writer, "other", None)
            raise
        finally:
            gone.cancel()
            owner.stop(job)


async def _send(writer: asyncio.StreamWriter, event: str, value: object) -> None:
    writer.write(to_line({"event": event, "value": value}))
    await writer.drain()


def _is_same_user(writer: asyncio.StreamWriter) -> bool:
    """Ask the kernel, where it tells, who is at the other end."""
    if sys.platform != "linux":
        return True
    peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", peer)[1] == os.getuid())
