"""Connect to web servers: look where a connection leads before anything is sent, and wait for no answer for ever."""

import http.client
import io
import ipaddress
import math
import socket
import time
from collections.abc import Callable
from typing import Any

import requests

from local_rag.errors import NetworkError

_PATIENCE = 4  # times the seconds that may pass without a byte


def resolve(host: str) -> list[str]:
    """List the addresses of a host; none for a name that only a proxy may know: without one, the request fails."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in found]


def is_private(address: str) -> bool:
    """Tell whether an address is not public."""
    parsed = ipaddress.ip_address(address)
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    return not parsed.is_global or parsed.is_multicast


class Session(requests.Session):
    """Have `check` look at the address of each new connection; leave redirects to the caller, unread.

    An answer, its headers too, may take four times as long as its `timeout`, which is in seconds without a byte.
    """

    def __init__(self, check: Callable[[str], None]) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter(check))

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Name no target: requests would follow it, and read the whole body of each redirect."""
        return None


class _Adapter(requests.adapters.HTTPAdapter):
    """Have the address of each new connection checked before anything is sent over it.

    A name may resolve to another address by then than when it was checked ("DNS rebinding").
    """

    def __init__(self, check: Callable[[str], None]) -> None:
        self._check = check
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make the pools of connections."""
        super().init_poolmanager(*arguments, **options)
        self._watch(self.poolmanager, self._check)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Make the pools of connections through a proxy, which resolves names itself: its own address is no matter."""
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if not known:
            self._watch(manager, lambda _address: None)
        return manager

    def _watch(self, manager: Any, check: Callable[[str], None]) -> None:
        pools = manager.pool_classes_by_scheme
        manager.pool_classes_by_scheme = {scheme: _watched(pool, check) for scheme, pool in pools.items()}


def _watched(pool: Any, check: Callable[[str], None]) -> Any:
    class Connection(pool.ConnectionCls):  # type: ignore[misc]
        response_class = _Answer

        def _new_conn(self) -> socket.socket:
            opened: socket.socket = super()._new_conn()
            try:
                check(opened.getpeername()[0])
            except BaseException:
                opened.close()
                raise
            return opened

    return type("Pool", (pool,), {"ConnectionCls": Connection})


class _Answer(http.client.HTTPResponse):
    """Read an answer up to a deadline: a server that now and then sends a byte, of a header too, goes on for ever."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_Deadline(self.fp.detach(), _PATIENCE * (sock.gettimeout() or math.inf)))


class _Deadline(io.RawIOBase):
    """Read from a stream for that many seconds."""

    def __init__(self, stream: io.RawIOBase, seconds: float) -> None:
        self._stream = stream
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self._end:
            raise NetworkError(f"it was not complete within {self._seconds:g} seconds")
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()
