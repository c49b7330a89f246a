"""Make connections to other machines impossible in this process and its libraries.

Each command states what it may reach and blocks everything else, once. There are three layers because each can be
bypassed: environment variables that keep the model libraries from contacting their hubs, an audit hook below everything
that uses Python's sockets, and on Linux a system call filter that denies native code and child processes every socket
except Unix sockets. docs/threats.md lists the remaining gaps.
"""

import ctypes
import errno
import ipaddress
import os
import platform
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from local_rag.errors import LocalRagError

SWITCHES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "DO_NOT_TRACK": "1",
    "ORT_DISABLE_TELEMETRY": "1",
}
_OFF = {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"}
# The events of https://docs.python.org/3/library/audit_events.html that name another machine.
_WITH_ADDRESS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_WITH_HOST = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}

_INTERNET = {socket.AF_INET, socket.AF_INET6}

# For the system call filter: the audit architecture and the numbers of the calls `socket` and `seccomp`.
_SYSTEM_CALLS = {"x86_64": (0xC000003E, 41, 317), "aarch64": (0xC00000B7, 198, 277)}
# io_uring opens sockets without the call `socket`; these three calls set up, enter and register a ring.
_IO_URING = (425, 426, 427)
_X32 = 1 << 30  # set in the call numbers of the x32 interface of an x86-64 kernel
_NO_NEW_PRIVILEGES = 38  # prctl
_SET_MODE_FILTER = 1
_ALL_THREADS = 1
# Without this flag, older kernels slow down filtered processes as a mitigation of Spectre.
_ALLOW_SPECULATION = 4
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | errno.EACCES

# Opens a socket like a 32-bit program: mov eax, 359; mov ebx, 2; mov ecx, 2; xor edx, edx; int 0x80. A kernel without
# support for 32-bit programs kills the process.
_CALL_AS_32_BIT = """
import ctypes, mmap, sys
memory = mmap.mmap(-1, 4096, prot=7)
memory.write(bytes.fromhex("53 b867010000 bb02000000 b902000000 31d2 cd80 5b c3"))
sys.exit(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))() < 0)
"""
# Programs that resolve names for other programs through a Unix socket.
_NAME_SERVICES = ("/var/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve")

_hooked = _filtered = False
_hosts: frozenset[str] | None = None  # other hosts that Python's sockets may reach; None: nothing is blocked yet
_unfiltered = ""  # why the kernel rejected the filter


class Network(Enum):
    """What a command may reach: only this machine, or also what it downloads."""

    NONE = "none"
    FETCH = "fetch"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster command may reach: the hosts that the user named, as names and addresses."""

    hosts: frozenset[str]


class OfflineError(LocalRagError, PermissionError):
    """Report an attempt to reach another machine; to a library it looks as if the network were down."""


def close(allow: Network | Cluster = Network.NONE, *, native_code: bool = True) -> None:
    """Refuse all connections and name look-ups that are not allowed, from now until the process ends.

    Loopback stays open to Python. With `native_code`, Linux refuses all sockets except Unix sockets to all code in the
    process and its children; if the kernel rejects the filter, `open_ways` reports it. For a cluster there is no filter
    because it cannot distinguish addresses and native code needs sockets. A host that was refused once stays refused.
    """
    global _hooked, _filtered, _unfiltered, _hosts  # noqa: PLW0603  hook and filter belong to the process
    set_switches(allow)
    if allow is Network.FETCH:
        return
    hosts = allow.hosts if isinstance(allow, Cluster) else frozenset[str]()
    _hosts = hosts if _hosts is None else _hosts & hosts
    native_code = native_code and not isinstance(allow, Cluster)
    if not _hooked:
        sys.addaudithook(_refuse)
        _hooked = True
    if native_code and can_filter() and not _filtered:
        _unfiltered = _filter_system_calls()
        _filtered = not _unfiltered


def set_switches(allow: Network | Cluster = Network.NONE) -> None:
    """Tell the model libraries to send no usage data and, except for downloads, not to contact a hub.

    They read these variables when they are imported.
    """
    os.environ.update(SWITCHES)
    if allow is Network.FETCH:
        os.environ.update(dict.fromkeys(_OFF, "0"))


def open_ways(serving: int | None = None) -> list[str]:
    """Try each way out of this process that should be blocked, and return the open ones; nothing is sent.

    The sockets on the port that a server is `serving` are open on purpose and not listed.
    """
    ways = [f"the variable {name}" for name, value in SWITCHES.items() if os.environ.get(name) != value]
    try:
        sys.audit("socket.gethostbyname", "another.invalid")
        ways.append("Python's sockets")
    except OfflineError:
        pass
    if _unfiltered:
        ways.append(f"native code, with no system call filter ({_unfiltered})")
    if can_filter():
        ways += [f"native code ({way})" for way in _native_ways()]
    return ways + [f"a socket that was open before ({address})" for address in _open_sockets(serving)]


def left_open(name_services: Sequence[str] = _NAME_SERVICES) -> list[str]:
    """Describe what cannot be blocked on this machine, each as a clause."""
    found = [service for service in name_services if Path(service).exists()]
    listening = [path for path in _unix_services() if Path(path).exists()]
    asked = [f"a program that listens on a Unix socket may forward what it is told ({', '.join(listening)})"]
    notes = [f"a program on this machine still resolves names for native code ({service})" for service in found]
    notes += asked if listening else []
    return notes if can_filter() else [*notes, "native code could connect because this system cannot filter its calls"]


def _unix_services() -> list[str]:
    """Return where programs usually listen that carry out or pass on what any program of the user asks."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    own = [f"{runtime}/bus", f"{runtime}/systemd/private", f"{runtime}/podman/podman.sock"] if runtime else []
    everyones = ["/run/docker.sock", "/run/dbus/system_bus_socket", "/run/cups/cups.sock"]
    return [*everyones, *own, *filter(None, [os.environ.get("SSH_AUTH_SOCK", "")])]


def _native_ways() -> Iterator[str]:
    """Try each way in which the kernel gives native code a socket, and yield the open ones."""
    _, socket_number, _ = _SYSTEM_CALLS[platform.machine()]
    calls: dict[str, tuple[Any, ...]] = {
        "IPv4": (socket_number, socket.AF_INET, socket.SOCK_DGRAM, 0),
        "IPv6": (socket_number, socket.AF_INET6, socket.SOCK_DGRAM, 0),
        "x32": (_X32 | socket_number, socket.AF_INET, socket.SOCK_DGRAM, 0),
        "io_uring": (_IO_URING[0], 1, ctypes.create_string_buffer(120)),
    }
    for name, arguments in calls.items():
        if (descriptor := ctypes.CDLL(None).syscall(*arguments)) >= 0:
            os.close(descriptor)
            yield name
    command = [sys.executable, "-I", "-S", "-c", _CALL_AS_32_BIT]
    if platform.machine() == "x86_64" and subprocess.run(command, capture_output=True, check=False).returncode == 0:
        yield "int 0x80"


def _open_sockets(serving: int | None) -> Iterator[str]:
    """Yield the addresses of open sockets that are not on loopback; using them needs no further permission."""
    for path in Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            if path.is_socket():
                with socket.socket(fileno=os.dup(int(path.name))) as opened:
                    host, port = opened.getsockname()[:2] if opened.family in _INTERNET else ("", 0)
                if not _is_this_machine(host) and port != serving:
                    yield f"{host}:{port}"


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _WITH_ADDRESS:
        opened, address = arguments[0], arguments[1]
        if opened.family == getattr(socket, "AF_UNIX", None) or address is None:  # None: connected and checked
            return
        host = address[0] if isinstance(address, tuple) and address else address
    elif event in _WITH_HOST:
        host = arguments[0][0] if event == "socket.getnameinfo" else arguments[0]
        if event == "socket.getaddrinfo" and _address(host):  # nothing is looked up
            return
    else:
        return
    if not _is_this_machine(host) and not _is_named(host):
        raise OfflineError(
            f"A connection to {host} was refused because only `local-rag scrape`, `local-rag models pull`, "
            "`local-rag models recommend` and `local-rag bundle create` may connect to other machines"
            + (f", and other commands to the hosts of the cluster ({', '.join(sorted(_hosts))})." if _hosts else ".")
        )


def _is_named(host: object) -> bool:
    """Return whether a host belongs to the cluster, by name or address."""
    name = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    address = _address(host)
    return bool(_hosts) and (name in _hosts or (address is not None and str(address) in _hosts))  # type: ignore[operator]


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback name or address, which no other machine can reach."""
    return bool(host) and _is_this_machine(host)


def _is_this_machine(host: object) -> bool:
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _address(host: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse a host as an IP address; return None for a name."""
    name = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(name))  # 127.1 and 2130706433 are addresses too
        except (OSError, ValueError):
            return None
    return getattr(address, "ipv4_mapped", None) or address


def can_filter() -> bool:
    """Return whether this system can filter the system calls of native code."""
    return sys.platform == "linux" and platform.machine() in _SYSTEM_CALLS and sys.maxsize > 2**32


def _filter_system_calls() -> str:
    """Make `socket` fail with EACCES for all families except Unix and netlink, which never leave the machine.

    io_uring also fails, and so do all calls of other architectures, whose numbers have other meanings. Returns why the
    kernel rejected the filter, or "". The filter is a program for seccomp(2) in the kernel's packet filter language: an
    instruction consists of a code, the jumps if its condition is true and if it is false, and a value.
    """
    architecture, socket_number, seccomp_number = _SYSTEM_CALLS[platform.machine()]
    load, jump_if_equal, jump_if_at_least, return_value = 0x20, 0x15, 0x35, 0x06
    call, machine, first_argument = 0, 4, 16  # offsets into struct seccomp_data
    instructions = [
        (load, 0, 0, machine),
        (jump_if_equal, 0, 9, architecture),
        (load, 0, 0, call),
        (jump_if_at_least, 7, 0, _X32),
        *((jump_if_equal, jump, 0, number) for jump, number in zip((6, 5, 4), _IO_URING, strict=True)),
        (jump_if_equal, 0, 4, socket_number),
        (load, 0, 0, first_argument),
        (jump_if_equal, 2, 0, int(socket.AF_UNIX)),
        (jump_if_equal, 1, 0, 16),  # AF_NETLINK, with which glibc lists the network interfaces
        (return_value, 0, 0, _DENY),
        (return_value, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    library = ctypes.CDLL(None, use_errno=True)
    failed = library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or library.syscall(
        seccomp_number, _SET_MODE_FILTER, _ALL_THREADS | _ALLOW_SPECULATION, program
    )
    # A positive number is the id of a thread whose own filter prevents this one.
    return "another thread has its own filter" if failed > 0 else os.strerror(ctypes.get_errno()) if failed else ""


if __name__ == "__main__":  # for `doctor`, whose own process may have to stay open
    close()
    sys.stdout.writelines(f"{way}\n" for way in open_ways())
