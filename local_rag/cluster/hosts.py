"""The hosts in the settings: they must be private, and no other host may be reached."""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from local_rag.errors import ClusterError

_PORT = 6379
# What a cluster may use; 100.64.0.0/10 is shared by the customers of one provider, or by the machines of an overlay.
_PRIVATE = [
    ipaddress.ip_network(network)
    for network in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
]


@dataclass(frozen=True, slots=True)
class Engine:
    """A search engine: its kind, its address without a path, and the name of the library in it."""

    kind: str
    url: str
    name: str

    @property
    def host(self) -> str:
        """Return the host name or address."""
        return urlsplit(self.url).hostname or ""


def head_of(address: str) -> tuple[str, int]:
    """Parse `HOST:PORT`, or a host with the default port."""
    wrong = ClusterError(f"{address!r} is not an address; set `cluster.address` to one such as 10.0.0.5:{_PORT}.")
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        raise wrong from None
    if not host or parts.path or parts.query:
        raise wrong
    return host, port


def engine_of(setting: str) -> Engine:
    """Parse `KIND:https://HOST:PORT/NAME`, such as `qdrant:https://10.0.0.5:6333/handbook`."""
    kind, _, url = setting.partition(":")
    try:
        parts = urlsplit(url)
        given = parts.port
    except ValueError:
        raise not_an_engine(setting) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
        raise not_an_engine(setting)
    if parts.username or parts.password:
        raise ClusterError(
            "The setting `search_engine.address` contains a password; remove it and put the key into "
            "LOCAL_RAG_QDRANT_KEY, or into a file that LOCAL_RAG_QDRANT_KEY_FILE names."
        )
    name = parts.path.strip("/") or "library"
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise ClusterError(
            f"{name!r} cannot name a library in {kind}; use letters, digits, - and _ in `search_engine.address`."
        )
    port = given or (443 if parts.scheme == "https" else 6333)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Engine(kind, f"{parts.scheme}://{host}:{port}", name)


def not_an_engine(setting: str) -> ClusterError:
    """Return the error for a value of `search_engine.address` that names no search engine."""
    return ClusterError(
        f"{setting!r} is not a search engine; set `search_engine.address` to one such as "
        "qdrant:https://10.0.0.5:6333/handbook."
    )


def private_addresses(host: str) -> frozenset[str]:
    """Look up the addresses of a host; raise ClusterError if one of them is public, or if there is none."""
    try:
        found = {str(information[4][0]) for information in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise ClusterError(
            f"{host} has no address ({error.strerror}); correct `cluster.address` or `search_engine.address`."
        ) from None
    for address in found:
        number = ipaddress.ip_address(address.partition("%")[0])
        number = getattr(number, "ipv4_mapped", None) or number
        if not any(number in network for network in _PRIVATE if network.version == number.version):
            raise ClusterError(
                f"{host} has the public address {address}; a cluster may use private networks only, so set a "
                "private address."
            )
    return frozenset(found)
