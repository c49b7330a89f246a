"""Connect to web servers, and look at where each connection leads before anything is sent over it."""

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

import requests
import urllib3


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
    """Have `check` look at the address of each new connection; leave redirects to the caller, unread."""

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
        """Make the pools of connections; those through a proxy, which resolves names itself, are made elsewhere."""
        super().init_poolmanager(*arguments, **options)
        pools = {"http": urllib3.HTTPConnectionPool, "https": urllib3.HTTPSConnectionPool}
        self.poolmanager.pool_classes_by_scheme = {scheme: self._checked(pool) for scheme, pool in pools.items()}

    def _checked(self, pool: Any) -> Any:
        check = self._check

        class Connection(pool.ConnectionCls):  # type: ignore[misc]
            def _new_conn(self) -> socket.socket:
                opened: socket.socket = super()._new_conn()
                try:
                    check(opened.getpeername()[0])
                except BaseException:
                    opened.close()
                    raise
                return opened

        return type("Pool", (pool,), {"ConnectionCls": Connection})
