"""Machines on a network of their own: namespaces that a switch connects, which only root can make."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_RECORD = """
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind((sys.argv[1], 0))
print("listening", flush=True)
with open(sys.argv[2], "wb", buffering=0) as file:
    while True:
        file.write(wire.recv(1 << 16))
"""
_LISTEN = """
import selectors, socket, sys
chosen = selectors.DefaultSelector()
for port in map(int, sys.argv[1:]):
    server = socket.create_server(("0.0.0.0", port), backlog=99)
    chosen.register(server, selectors.EVENT_READ, "server")
print("listening", flush=True)
while True:
    for key, _ in chosen.select():
        if key.data == "server":
            chosen.register(key.fileobj.accept()[0], selectors.EVENT_READ, "client")
        elif not key.fileobj.recv(1 << 16):
            chosen.unregister(key.fileobj)
            key.fileobj.close()
"""
_REACH = """
import os, pwd, selectors, socket, sys, time
os.setuid(pwd.getpwnam(sys.argv[1]).pw_uid)
chosen, found, until = selectors.DefaultSelector(), [], time.monotonic() + 2
for port in map(int, sys.argv[3:]):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex((sys.argv[2], port))
    chosen.register(one, selectors.EVENT_WRITE, port)
while chosen.get_map() and time.monotonic() < until:
    for key, _ in chosen.select(0.1):
        if not key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            found.append(key.data)
        chosen.unregister(key.fileobj)
print(*sorted(found))
"""


# A machine has a network, processes and a list of mounts of its own; with the first process all others end.
_MACHINE = ["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"]


def can_make() -> bool:
    """Return whether this process may make network namespaces and rules for them."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "nft", "nsenter", "unshare"))):
        return False
    return not subprocess.run([*_MACHINE, "true"], capture_output=True, check=False).returncode


class Machine:
    """A machine with one address."""

    def __init__(self, address: str) -> None:
        self.address = address
        command = [*_MACHINE, "sh", "-c", "echo ready; exec sleep infinity"]
        self._first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert self._first.stdout is not None
        assert self._first.stdout.readline() == "ready\n"
        self.pid = int(Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children").read_text())

    def remove(self) -> None:
        self._first.kill()
        self._first.wait()
        assert self._first.stdout is not None
        self._first.stdout.close()

    def run(self, *command: str | Path, **how: Any) -> subprocess.CompletedProcess[str]:
        """Run a command there."""
        inside = ["nsenter", f"--target={self.pid}", "--net", "--pid", "--mount", "--wd", *map(str, command)]
        return subprocess.run(inside, text=True, capture_output=True, check=how.pop("check", True), **how)

    def on_its_network(self, command: Sequence[str | Path]) -> list[str]:
        """Return what runs a command on its network only, as a process that can be killed from here."""
        return ["nsenter", f"--target={self.pid}", "--net", *map(str, command)]

    @contextmanager
    def running(self, code: str, *arguments: object) -> Iterator[None]:
        """Run Python code on its network that prints a line as soon as it is ready."""
        command = self.on_its_network([sys.executable, "-c", code, *map(str, arguments)])
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "listening\n"
                yield
            finally:
                process.kill()

    def listening(self, ports: Sequence[int]) -> Any:
        return self.running(_LISTEN, *ports)

    def reached(self, other: "Machine", ports: Sequence[int], user: str = "root") -> list[int]:
        """Return the ports of another machine that accept a connection from a user here."""
        found = self.run(sys.executable, "-c", _REACH, user, other.address, *map(str, ports))
        return [int(port) for port in found.stdout.split()]


class Network:
    """Some machines, by name, and the switch between them."""

    def __init__(self, stack: ExitStack, addresses: Mapping[str, str]) -> None:
        def machine(address: str) -> Machine:
            made = Machine(address)
            stack.callback(made.remove)
            return made

        self.switch = machine("")
        self.switch.run("ip", "link", "add", "switch", "type", "bridge")
        self.switch.run("ip", "link", "set", "switch", "up")
        self.machines = {name: machine(address) for name, address in addresses.items()}
        for number, one in enumerate(self.machines.values()):
            port = f"port{number}"
            end = ["peer", "name", "eth0", "netns", str(one.pid)]
            # The number of a process means nothing to the switch: it is on another machine.
            link = self.switch.on_its_network(["ip", "link", "add", port, "type", "veth", *end])
            subprocess.run(link, check=True)
            self.switch.run("ip", "link", "set", port, "master", "switch", "up")
            one.run("ip", "link", "set", "lo", "up")
            one.run("ip", "address", "add", f"{one.address}/8", "dev", "eth0")
            one.run("ip", "link", "set", "eth0", "up")

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def recording(self, file: Path) -> Any:
        """Record all frames between the machines, as somebody at the switch could."""
        self.switch.run("ip", "link", "set", "switch", "promisc", "on")
        return self.switch.running(_RECORD, "port0", file)


@contextmanager
def network(**addresses: str) -> Iterator[Network]:
    """Make machines with these addresses, which can all reach each other."""
    with ExitStack() as stack:
        yield Network(stack, addresses)
