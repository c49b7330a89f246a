"""No command but the three that fetch can reach another machine, in Python, in native code or by a child."""

import errno
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from local_rag import Library
from local_rag.cli.main import COMMANDS, cli
from local_rag.cli.options import Command, FetchingCommand
from local_rag.models.models_folder import default_models_directory
from local_rag.offline import left_open
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY

CLI = [sys.executable, "-c", "from local_rag.cli.main import main; main()"]
MODELS = default_models_directory()
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="system call filters are Linux's")
X86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has a second set of system calls")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('192.0.2.1', 80), 1)",
        "socket.create_connection(('example.org', 80), 1)",
        "socket.socket().connect(('::ffff:192.0.2.1', 80))",
        "socket.socket(socket.AF_INET6).connect(('2001:db8::1', 80))",
        "socket.socket().connect_ex(('192.0.2.1', 80))",
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('192.0.2.1', 53))",
        "socket.getaddrinfo('example.org', 443)",
        "socket.getaddrinfo(b'example.org', 443)",
        "socket.gethostbyname('example.org')",
        "socket.gethostbyname_ex('example.org')",
        "socket.gethostbyaddr('192.0.2.1')",
        "socket.getnameinfo(('192.0.2.1', 80), 0)",
        "__import__('urllib.request').request.urlopen('http://example.org')",
        "__import__('requests').get('http://192.0.2.1/', timeout=1)",
    ],
)
def test_the_hook_refuses_every_way_out_of_python(attempt: str) -> None:
    done = python(f"import socket; from local_rag.offline import close; close(native_code=False); {attempt}")
    assert done.returncode == 1
    assert "was refused because only `local-rag scrape`" in done.stderr.splitlines()[-1]


def test_this_machine_stays_within_reach() -> None:
    code = """
import socket
from local_rag.offline import close
close(native_code=False)
close(native_code=False)
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(("localhost", server.getsockname()[1])).close()
socket.create_connection(("127.1", server.getsockname()[1])).close()
left, right = socket.socketpair()
left.sendall(b"x")
assert right.recv(1) == b"x"
"""
    assert python(code).stderr == ""


@LINUX
def test_native_code_and_children_get_no_socket() -> None:
    code = """
import ctypes, socket, subprocess, sys, threading
from local_rag.offline import close, open_ways
started = threading.Event()
results = []
def wait():
    started.wait()
    results.append(ctypes.CDLL(None).socket(2, 1, 0))
thread = threading.Thread(target=wait)
thread.start()
assert open_ways(), "before, every way is open"
close()
assert open_ways() == []
started.set()
thread.join()
child = "import ctypes; print([ctypes.CDLL(None).socket(family, 1, 0) for family in (2, 10, 40)])"
print(results, subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.strip())
socket.socketpair()
"""
    done = python(code)
    assert (done.stdout.strip(), done.stderr) == ("[-1] [-1, -1, -1]", "")


IO_URING = "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)) < 0)"
# Machine code that calls the kernel as a program of 32 bits does: `socket` of the Internet, and `getpid`.
CALL = """
import ctypes, mmap
def call(code):
    memory = mmap.mmap(-1, 4096, prot=7)
    memory.write(bytes.fromhex(code))
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
print(call("53b867010000bb02000000b90200000031d2cd805bc3"), call("b814000000cd80c3"))
"""


@LINUX
def test_sockets_by_io_uring_are_refused() -> None:
    code = """
import ctypes, os
from local_rag.offline import close
close()
libc = ctypes.CDLL(None, use_errno=True)
parameters = ctypes.create_string_buffer(120)
for arguments in ((425, 1, parameters), (426, 0, 0, 0, 0, None, 0), (427, 0, 0, None, 0)):
    print(libc.syscall(*arguments), os.strerror(ctypes.get_errno()))
"""
    assert python(code).stdout.splitlines() == ["-1 Permission denied"] * 3


@LINUX
@X86_64
def test_calls_of_another_architecture_are_refused() -> None:
    x32 = "libc = ctypes.CDLL(None, use_errno=True); print(libc.syscall(41 | 1 << 30, 2, 1, 0), ctypes.get_errno())"
    done = python(f"from local_rag.offline import close; close(){CALL}{x32}")
    if done.returncode < 0:
        pytest.skip("this kernel runs no programs of 32 bits")
    assert done.stdout.splitlines() == [f"-{errno.EACCES} -{errno.EACCES}", f"-1 {errno.EACCES}"]


@LINUX
def test_every_way_out_is_tried() -> None:
    before, after = python(
        # Without the variables that this process may have set for its children.
        "import os; from local_rag.offline import SWITCHES, close, open_ways\n"
        "for name in SWITCHES: os.environ.pop(name, None)\n"
        "print(open_ways()); close(); print(open_ways())"
    ).stdout.splitlines()
    wanted = ["the variable HF_HUB_OFFLINE", "Python's sockets", "IPv4", "IPv6"]
    wanted += ["io_uring"] if python(IO_URING).returncode == 0 else []
    wanted += ["int 0x80"] if platform.machine() == "x86_64" and python(CALL).returncode == 0 else []
    assert [way for way in wanted if way not in before] == []
    assert after == "[]"


# Filters of one's own: one that refuses further ones, and one in another thread, which cannot get ours then.
FILTER = """
import ctypes, platform, struct, threading
number = {"x86_64": 317, "aarch64": 277}[platform.machine()]
def keep(*instructions):
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
    assert ctypes.CDLL(None).prctl(22, 2, program) == 0
def refuse_filters():
    keep((0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x00050001), (6, 0, 0, 0x7FFF0000))
ready, done = threading.Event(), threading.Event()
def filter_one_thread():
    keep((6, 0, 0, 0x7FFF0000))
    ready.set()
    done.wait()
def in_a_thread():
    threading.Thread(target=filter_one_thread, daemon=True).start()
    ready.wait()
"""


@LINUX
@pytest.mark.parametrize(
    ("before", "reason"), [("refuse_filters", "Operation not permitted"), ("in_a_thread", "another thread")]
)
def test_a_filter_that_the_kernel_does_not_take_is_named(before: str, reason: str) -> None:
    done = python(f"{FILTER}\n{before}()\nfrom local_rag.offline import close, open_ways\nclose()\nprint(open_ways())")
    assert done.stderr == "", "the command goes on"
    assert "no system call filter" in done.stdout
    assert reason in done.stdout


@LINUX
def test_sockets_that_were_open_before_are_named() -> None:
    code = "from local_rag.offline import close, open_ways; close(); print(*open_ways())"
    with socket.socket(type=socket.SOCK_DGRAM) as outward, socket.create_server(("127.0.0.1", 0)) as inward:
        outward.bind(("", 0))
        command = [sys.executable, "-c", code]
        descriptors = outward.fileno(), inward.fileno()
        done = subprocess.run(command, pass_fds=descriptors, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == f"a socket that was open before (0.0.0.0:{outward.getsockname()[1]})"


def test_what_closing_cannot_close_is_said(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert not any(missing in note for note in left_open([missing]))
    (note,) = [note for note in left_open([str(tmp_path), missing]) if str(tmp_path) in note]
    assert note == f"a program on this machine still resolves names for native code ({tmp_path})"


@pytest.mark.parametrize("arguments", [["search", "x"], ["models", "list"], ["models", "verify"], ["doctor"]])
def test_commands_close_the_network_before_they_begin(arguments: list[str], tmp_path: Path) -> None:
    assert closes_the_network(arguments, tmp_path)


@pytest.mark.parametrize("arguments", [["scrape", "http://127.0.0.1:1/", "--delay", "0"], ["models", "pull", "no"]])
def test_the_two_commands_that_fetch_do_not(arguments: list[str], tmp_path: Path) -> None:
    assert not closes_the_network(arguments, tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_may_reach(name: str) -> None:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    leaves = found.commands.values() if isinstance(found, click.Group) else [found]
    assert all(isinstance(leaf, Command) for leaf in leaves)
    fetching = {f"{name} {leaf.name}" for leaf in leaves if isinstance(leaf, FetchingCommand)}
    may = {"models": {"models pull", "models recommend"}, "scrape": {"scrape scrape"}, "bundle": {"bundle create"}}
    assert fetching == may.get(name, set())


def test_a_command_in_another_program_closes_nothing(documents: Path, run: Run) -> None:
    assert run("status").exit_code == 1
    sys.audit("socket.gethostbyname", "another.invalid")  # which the hook, once added, would refuse for good


@pytest.mark.parametrize("sealed", [False, True])
def test_a_library_closes_the_network_to_a_notebook_that_asks_for_it(sealed: bool, tmp_path: Path) -> None:
    code = f"""
import ctypes, socket
from local_rag import Library
for _ in range(2):
    Library({str(tmp_path)!r}, sealed={sealed})
try:
    socket.socket(type=socket.SOCK_DGRAM).connect(("192.0.2.1", 80))
except PermissionError:
    print("refused in Python")
except OSError:
    pass  # a machine without a network
try:
    socket.gethostbyname("another.invalid")
except PermissionError:
    print("refused to look up")
except OSError:
    pass
if ctypes.CDLL(None).socket(2, 1, 0) < 0:
    print("refused in native code")
"""
    done = python(code)
    refused = ["refused in Python", "refused to look up", *["refused in native code"] * (sys.platform == "linux")]
    assert (done.stdout.splitlines(), done.stderr) == (refused if sealed else [], "")


def closes_the_network(arguments: list[str], folder: Path) -> bool:
    """Run a command in a process that reports on its end whether a name can still be looked up."""
    code = f"""
import atexit, sys
from local_rag.cli.main import main
from local_rag.offline import open_ways
atexit.register(lambda: print("open:", *open_ways()))
sys.argv = ["local-rag", *{arguments!r}]
main()
"""
    environment = os.environ | {"LOCAL_RAG_MODELS": str(folder / "models"), "PYTHONPATH": str(Path.cwd())}
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    (report,) = re.findall(r"^open:(.*)$", done.stdout, re.MULTILINE)
    return not report.strip()


def namespace() -> list[str] | None:
    """Return the command that runs another one without any network interface, where it is permitted."""
    for command in (["unshare", "-n"], ["unshare", "-rn"]):
        tried = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True, check=False)
        if tried and tried.returncode == 0:
            return command
    return None


def traces() -> bool:
    """Tell whether strace is installed and permitted."""
    command = ["strace", "-f", "-o", os.devnull, "true"]
    return bool(shutil.which("strace")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.name.startswith(".")}


@dataclass
class Demo:
    printed: str
    calls: str
    folder: Path
    models_before: set[Path]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Index, search and ask as a user does, in a fresh home, with what this machine has to watch over it."""
    folder = tmp_path_factory.mktemp("demo")
    for name in ("home/tmp", "work/documents"):
        (folder / name).mkdir(parents=True)
    (folder / "work" / "documents" / "boat.md").write_text("# The boat\n\nThe boat leaves the harbour at seven.\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LOCAL_RAG_MODELS": str(MODELS)}
    environment["TMPDIR"] = str(folder / "home" / "tmp")
    environment["LOCAL_RAG_KEEP_WARM"] = "0"  # what a process that is left behind does is not waited for
    strace = ["strace", "-f", "-A", "-e", "trace=network", "-o", str(folder / "calls")] if traces() else []
    prefix = [*(namespace() or []), *strace]
    before = files_below(MODELS)
    printed = ""
    for arguments in (
        ["index", "documents", "--profile", "tiny"],
        ["search", "When does the boat leave?"],
        ["ask", "When does the boat leave?"],
        ["models", "list"],
    ):
        done = subprocess.run(
            [*prefix, *CLI, *arguments],
            cwd=folder / "work",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    calls = (folder / "calls").read_text() if strace else ""
    return Demo(printed, calls, folder, before)


@pytest.mark.skipif(namespace() is None, reason="`unshare -n` is not installed or not permitted here")
def test_the_whole_demo_runs_without_a_network_interface(demo: Demo) -> None:
    prefix = namespace()
    assert prefix is not None
    interfaces = subprocess.run([*prefix, "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
    assert [line.split(":")[0].strip() for line in interfaces.splitlines()[2:]] == ["lo"]
    assert "boat.md" in demo.printed


@pytest.mark.skipif(not traces(), reason="strace is not installed or not permitted here")
def test_no_system_call_goes_to_another_machine(demo: Demo) -> None:
    assert demo.calls.count("exited with 0") >= 4
    named = [line for line in demo.calls.splitlines() if re.search(r"sa_family=AF_INET|sin_addr", line)]
    assert named == []
    opened = re.findall(r"socket\(AF_INET6?,.*", demo.calls)
    assert all("EACCES" in line for line in opened), opened


def test_nothing_is_written_outside_the_library_and_the_models_folder(demo: Demo) -> None:
    assert [path.name for path in (demo.folder / "home").rglob("*")] == ["tmp"]
    assert {path.name for path in (demo.folder / "work").iterdir()} == {"documents", ".local-rag"}
    assert [path.name for path in (demo.folder / "work" / "documents").iterdir()] == ["boat.md"]
    assert files_below(MODELS) == demo.models_before


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_library_is_private_whatever_the_umask(umask: int, documents: Path) -> None:
    before = os.umask(umask)
    try:
        library = Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings")
        library.index([documents])
    finally:
        os.umask(before)
    assert library.folder.stat().st_mode & 0o777 == 0o700
