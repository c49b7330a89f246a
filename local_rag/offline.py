"""Make a connection to anything but this machine impossible, in this process and its libraries.

Each command says what it may reach, and closes the rest once. Three layers, since each has a way round it: environment
variables that keep the model libraries from asking their hubs, an audit hook below everything that uses Python's
sockets, and on Linux a system call filter that denies native code and child processes every socket but a Unix one.
"""

import ctypes
import errno
import ipaddress
import os
import platform
import socket
import struct
import sys
from enum import Enum
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

# For the system call filter: audit architecture, and the numbers of the calls `socket` and `seccomp`.
_SYSTEM_CALLS = {"x86_64": (0xC000003E, 41, 317), "aarch64": (0xC00000B7, 198, 277)}
_NO_NEW_PRIVILEGES = 38  # prctl
_SET_MODE_FILTER = 1
_ALL_THREADS = 1
# Without it, older kernels slow down all computing of a filtered process as a shield against Spectre.
_ALLOW_SPECULATION = 4
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | errno.EACCES

_hooked = False


class Network(Enum):
    """What a command may reach: nothing but this machine, or what it is there to fetch."""

    NONE = "none"
    FETCH = "fetch"


class OfflineError(LocalRagError, PermissionError):
    """Report an attempt to reach another machine; a library takes it for a network that is down."""


def close(allow: Network = Network.NONE, *, native_code: bool = True) -> None:
    """Refuse connections and name look-ups but those allowed from now on, for as long as the process lives.

    Loopback stays open to Python. With `native_code`, Linux refuses every socket but a Unix one to all code in the
    process and in its children.
    """
    global _hooked  # noqa: PLW0603  an audit hook cannot be removed, nor should it be added twice
    set_switches(allow)
    if allow is Network.FETCH:
        return
    if not _hooked:
        sys.addaudithook(_refuse)
        _hooked = True
    if native_code:
        _filter_system_calls()


def set_switches(allow: Network = Network.NONE) -> None:
    """Tell the model libraries to send no usage data, and but to fetch to ask no hub; they look when imported."""
    os.environ.update(SWITCHES)
    if allow is Network.FETCH:
        os.environ.update(dict.fromkeys(_OFF, "0"))


def open_ways() -> list[str]:
    """Try each way out of this process that should be closed, and name those that are open; nothing is sent."""
    ways = [f"the variable {name}" for name, value in SWITCHES.items() if os.environ.get(name) != value]
    try:
        sys.audit("socket.gethostbyname", "another.invalid")
        ways.append("Python's sockets")
    except OfflineError:
        pass
    if _can_filter():
        library = ctypes.CDLL(None)
        if (descriptor := library.socket(socket.AF_INET, socket.SOCK_DGRAM, 0)) >= 0:
            os.close(descriptor)
            ways.append("native code")
    return ways


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _WITH_ADDRESS:
        opened, address = arguments[0], arguments[1]
        if opened.family == getattr(socket, "AF_UNIX", None) or address is None:  # None: connected, and checked then
            return
        host = address[0] if isinstance(address, tuple) and address else address
    elif event in _WITH_HOST:
        host = arguments[0][0] if event == "socket.getnameinfo" else arguments[0]
        if event == "socket.getaddrinfo" and _address(host):  # nothing is looked up
            return
    else:
        return
    if not _is_this_machine(host):
        raise OfflineError(
            f"A connection to {host} was refused, since nothing may leave this machine but in `local-rag scrape` and "
            "`local-rag models pull`."
        )


def _is_this_machine(host: object) -> bool:
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _address(host: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read a host as an address; None where it is a name."""
    name = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(name))  # 127.1 and 2130706433 are addresses too
        except (OSError, ValueError):
            return None
    return getattr(address, "ipv4_mapped", None) or address


def _can_filter() -> bool:
    return sys.platform == "linux" and platform.machine() in _SYSTEM_CALLS and sys.maxsize > 2**32


def _filter_system_calls() -> None:
    """Let `socket` fail with EACCES for every family but Unix and netlink, which never leave the kernel.

    A program for seccomp(2), in the kernel's packet filter language: an instruction is a code, two jumps and a value.
    """
    if not _can_filter():
        return
    architecture, socket_number, seccomp_number = _SYSTEM_CALLS[platform.machine()]
    load, jump_if_equal, return_value = 0x20, 0x15, 0x06
    call, machine, first_argument = 0, 4, 16  # offsets into struct seccomp_data
    instructions = [
        (load, 0, 0, machine),
        (jump_if_equal, 0, 5, architecture),
        (load, 0, 0, call),
        (jump_if_equal, 0, 3, socket_number),
        (load, 0, 0, first_argument),
        (jump_if_equal, 1, 0, int(socket.AF_UNIX)),
        (jump_if_equal, 0, 1, 16),  # AF_NETLINK, by which glibc lists the network interfaces
        (return_value, 0, 0, _ALLOW),
        (return_value, 0, 0, _DENY),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0:
        flags = _ALL_THREADS | _ALLOW_SPECULATION
        library.syscall(seccomp_number, _SET_MODE_FILTER, flags, program)  # where it fails, `doctor` says so


if __name__ == "__main__":  # for `doctor`, which may run in a process that is not to be sealed
    close()
    print(*open_ways(), sep="\n")
