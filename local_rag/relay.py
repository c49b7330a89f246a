"""Forward a Unix socket to one address, from a process of its own.

A sealed process can open only Unix sockets. Before it is sealed it starts a relay for the one engine that the user
named: so it reaches that address, and no code in it can reach another.
"""

import atexit
import ipaddress
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from local_rag.errors import ModelError
from local_rag.offline import is_loopback

_BLOCK = 65536
_CONNECT_SECONDS = 10.0
_sockets: dict[tuple[str, int], Path] = {}


def open_relay(host: str, port: int) -> None:
    """Start a relay to an address, unless this process has one; it ends with this process."""
    if (host, port) in _sockets:
        return
    folder = Path(tempfile.mkdtemp(prefix="local-rag-"))  # only its user may enter
    path = folder / "engine"
    command = [sys.executable, "-P", "-m", "local_rag.relay", host, str(port), str(path)]
    relay = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert relay.stdout is not None
    if relay.stdout.readline() != b"ready\n":
        raise ModelError(f"No relay to {host}:{port} could be started; run the same command again.")
    _sockets[host, port] = path
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def socket_of(host: str, port: int) -> Path | None:
    """Return the Unix socket that leads to an address, or None if this process has no relay to it."""
    return _sockets.get((host, port))


def _connect(host: str, port: int) -> socket.socket:
    """Connect to the address; a loopback name must not lead to another machine."""
    opened = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
    if is_loopback(host) and not ipaddress.ip_address(opened.getpeername()[0]).is_loopback:
        opened.close()
        raise OSError(f"{host} is not this machine")
    opened.settimeout(None)
    return opened


def _forward(client: socket.socket, host: str, port: int) -> None:
    try:
        engine = _connect(host, port)
    except OSError:
        client.close()
        return
    back = threading.Thread(target=_copy, args=(engine, client), daemon=True)
    back.start()
    _copy(client, engine)
    back.join()
    client.close()
    engine.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until one side ends, and let both sides know."""
    with suppress(OSError):
        while data := source.recv(_BLOCK):
            target.sendall(data)
    for end, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            end.shutdown(how)


def _main(host: str, port: int, path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        threading.Thread(target=_end_with_parent, daemon=True).start()
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_forward, args=(client, host, port), daemon=True).start()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # ends when the parent does, however that happens
    os._exit(0)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
