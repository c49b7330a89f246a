"""Connections over HTTP, none of which is kept for a client that sends nothing, or reads nothing.

A connection *waits* while it has no request, or a stranger's request whose body has not come: it may be closed for
another one. It *works* from then on, and from the headers on if the client is known.
"""

import asyncio
import resource
from collections import Counter, OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from local_rag.offline import is_loopback
from local_rag.serving.http import forwarded_for
from local_rag.serving.requests import client_key
from local_rag.web.gate.guard import KEEP, Scope

_REQUEST_SECONDS = 10.0
_MOST_UNACCEPTED = 1024
_RESERVED = 128  # descriptors for files, models and the library
_MOST_DESCRIPTORS = 65_536


class Connections:
    """The open connections: at most `most_of_one` of an address and `most` in all.

    A new one takes the place of the one that has waited longest; where all are at work, it is closed. The headers of a
    request must arrive within `seconds`, and a client must read within `read_seconds` what is sent to it. With
    `behind_proxy`, programs of this machine pass on requests of others: each counts for the client that they tell.
    """

    def __init__(
        self,
        *,
        most: int = 4096,
        most_of_one: int = 256,
        seconds: float = _REQUEST_SECONDS,
        read_seconds: float = 60.0,
        behind_proxy: bool = False,
    ) -> None:
        self.seconds, self.read_seconds = seconds, read_seconds
        self._most, self._most_of_one, self._behind_proxy = most, most_of_one, behind_proxy
        self._open = Counter[str]()
        self._waiting: OrderedDict[Connection, str] = OrderedDict()

    def client_of(self, address: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
        """Return whom a request counts for that comes from an address."""
        if not self.is_proxy(address):
            return address
        told = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
        return client_key(forwarded_for(told) or address)

    def is_proxy(self, address: str) -> bool:
        """Return whether a program at an address may pass on requests of others."""
        return self._behind_proxy and is_loopback(address)

    def admit(self, connection: "Connection", address: str) -> bool:
        """Add a connection, perhaps in the place of another; return whether there is room."""
        if self._is_full(address):
            self._close_oldest(address)
        if self._open.total() >= self._most:
            self._close_oldest(None)
        if self._is_full(address) or self._open.total() >= self._most:
            return False
        self._open[address] += 1
        return True

    def _is_full(self, address: str) -> bool:
        return self._open[address] >= self._most_of_one and not self.is_proxy(address)

    def leave(self, connection: "Connection", address: str) -> None:
        """Remove a connection."""
        self._waiting.pop(connection, None)
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def waits(self, connection: "Connection", address: str) -> None:
        """Note that a connection waits from now on."""
        self._waiting[connection] = address
        self._waiting.move_to_end(connection)

    def works(self, connection: "Connection") -> None:
        """Note that a connection works."""
        self._waiting.pop(connection, None)

    def _close_oldest(self, address: str | None) -> None:
        oldest = next((one for one, its in self._waiting.items() if address in (None, its)), None)
        if oldest:
            oldest.drop()


class Connection(H11Protocol):
    """A connection of uvicorn's that is closed where nothing comes, or nothing goes."""

    def __init__(self, connections: Connections, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._connections, self._peer = connections, ""
        self._address: str | None = None  # whom it counts for
        self._noted: object = None  # the request that it counts for
        self._waiting: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, or end where there is none."""
        super().connection_made(transport)
        self._peer = client_key(self.client[0] if self.client else "")
        if self._connections.admit(self, self._peer):
            self._address = self._peer
            self._wait()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; a request that is whole ends the waiting."""
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._note()

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        super().pause_writing()
        self._writing = self._writing or self.loop.call_later(self._connections.read_seconds, self.drop)

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        super().resume_writing()
        if self._writing:
            self._writing.cancel()
            self._writing = None

    def drop(self) -> None:
        """End the connection at once."""
        self._leave()
        self.transport.abort()

    def _note(self) -> None:
        if self._address is None:
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            if self._waiting is None:
                self._count_for(self._peer)
                self._wait()
            return
        if cycle is not self._noted:
            self._noted = cycle
            cast(Scope, cycle.scope)[KEEP] = partial(self._connections.works, self)
            self._stop_waiting()
            if self._count_for(self._connections.client_of(self._peer, self.headers)):
                self._connections.waits(self, self._address)
        if not cycle.more_body:
            self._connections.works(self)

    def _count_for(self, address: str) -> bool:
        """Count for a client from now on; end where it has no room."""
        if address == self._address:
            return True
        self._connections.leave(self, self._address or "")
        self._address = address if self._connections.admit(self, address) else None
        if self._address is None:
            self.drop()
        return self._address is not None

    def _wait(self) -> None:
        assert self._address is not None
        self._connections.waits(self, self._address)
        self._waiting = self.loop.call_later(self._connections.seconds, self.drop)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting.cancel()
            self._waiting = None

    def _leave(self) -> None:
        self._stop_waiting()
        if self._writing:
            self._writing.cancel()
            self._writing = None
        if self._address is not None:
            self._connections.leave(self, self._address)
            self._address = None


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose servers wait for the beginning of TLS no longer than for a request.

    They accept few connections at once, as `backlog` says, and let many wait for that: the system refuses more, and who
    was refused tries again only after a second.
    """

    async def create_server(self, *args: Any, **options: Any) -> Any:
        """Create a server."""
        if options.get("ssl"):
            options["ssl_handshake_timeout"] = _REQUEST_SECONDS
        server = await super().create_server(*args, **options)
        if listener := options.get("sock"):
            listener.listen(_MOST_UNACCEPTED)
        return server


def most_connections() -> int:
    """Allow as many open files as the system does; return how many connections leave enough of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(16, min(4096, most - _RESERVED))
