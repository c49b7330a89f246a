"""Connect to web servers: check each address before sending anything, and limit the time of each response."""

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

# An address of version 4 may hide in one of version 6.
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_PATIENCE = 4  # a whole response may take this many timeouts


def resolve(host: str) -> list[str]:
    """Return the addresses of a host, or an empty list for an unknown name, which a proxy may still resolve."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in found]


def is_private(address: str) -> bool:
    """Return whether an address is not public."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        carried = parsed.ipv4_mapped or parsed.sixtofour or _behind_nat64(parsed)
        if carried is not None:
            return is_private(str(carried))
        return not parsed.is_global or parsed.is_multicast or parsed.is_site_local or parsed in _COMPATIBLE
    return not parsed.is_global or parsed.is_multicast


def _behind_nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the address that a translator at the edge of a network makes of one."""
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if any(address in one for one in _NAT64) else None


class CheckedSession(requests.Session):
    """Call `check` with the address of each new connection, and leave redirects to the caller.

    The `timeout` is in seconds without a byte. A whole response, including its headers, may take `_PATIENCE` times as
    long.
    """

    def __init__(self, check: Callable[[str], None]) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter(check))

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return None, because requests would follow the redirect and read its whole body."""
        return None


class _Adapter(requests.adapters.HTTPAdapter):
    """Check the address of each new connection before sending anything over it.

    A name may resolve to another address now than when it was checked ("DNS rebinding").
    """

    def __init__(self, check: Callable[[str], None]) -> None:
        self._check = check
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Create the connection pools."""
        super().init_poolmanager(*arguments, **options)
        self._watch(self.poolmanager, self._check)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Create the connection pools of a proxy; its own address is not checked, and it resolves names itself."""
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
        response_class = _TimedResponse

        def _new_conn(self) -> socket.socket:
            opened: socket.socket = super()._new_conn()
            try:
                check(opened.getpeername()[0])
            except BaseException:
                opened.close()
                raise
            return opened

    return type("Pool", (pool,), {"ConnectionCls": Connection})


class _TimedResponse(http.client.HTTPResponse):
    """Read a response up to a deadline, because a server could send single bytes for ever, also in headers."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_Deadline(self.fp.detach(), _PATIENCE * (sock.gettimeout() or math.inf)))


class _Deadline(io.RawIOBase):
    """Read from a stream for a limited number of seconds."""

    def __init__(self, stream: io.RawIOBase, seconds: float) -> None:
        self._stream = stream
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self._end:
            raise NetworkError(f"it was not complete after {self._seconds:g} seconds")
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()
