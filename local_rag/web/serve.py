"""Run the server on a socket that already listens, because the network may be closed by then."""

import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from local_rag.errors import LocalRagError
from local_rag.library import Library
from local_rag.offline import is_loopback
from local_rag.serving.http import Interface
from local_rag.serving.worker import LibraryWorker
from local_rag.web.app import make_app

_GRACE_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path

    def require(self) -> None:
        """Raise LocalRagError if the files cannot be used."""
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise LocalRagError(
                f"{self.certificate} and {self.key} cannot be used ({error}); name a certificate and its own key, "
                "without a password, with `--tls-cert` and `--tls-key`."
            ) from None


def serve(
    open_library: Callable[[], Library],
    listener: socket.socket,
    *,
    host: str,
    token: str = "",
    allowed: Iterable[str] = (),
    tls: Tls | None = None,
    interfaces: Sequence[Interface] = (),
) -> None:
    """Answer on a listening socket until Ctrl-C; `interfaces` are those beside the page."""
    if tls:
        tls.require()
    port = int(listener.getsockname()[1])
    app = make_app(
        LibraryWorker(open_library),
        hosts=allowed_hosts(host, port, allowed),
        token=token,
        tls=tls is not None,
        port=port,
        with_socket=True,
        interfaces=interfaces,
    )
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )
    uvicorn.Server(config).run(sockets=[listener])


def allowed_hosts(host: str, port: int, allowed: Iterable[str]) -> set[str]:
    """Return the values of the header Host that are allowed: this machine's names, and those that the user named."""
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else set()
    if is_loopback(host):
        names.add(f"[{host}]" if ":" in host else host)
    hosts = {f"{name}:{port}" for name in names}
    for name in allowed:
        lowered = name.lower()
        hosts |= {lowered, f"{lowered}:{port}"}
    return hosts | (names if port in (80, 443) else set())
