"""Facts about the machine: processor, memory, disks, and how busy other programs keep it."""

import math
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_ROOM_TO_OPEN = 128 * 1024
_SAMPLE_SECONDS = 0.5  # between two samples: the system counts in hundredths of a second
_SMOOTHING = 0.5  # weight of the latest sample
_WORTH_A_CORE = 0.6  # the load by other programs that counts as a busy core
_COLUMNS = (0, 2, 5, 6)  # of /proc/stat: user, system, interrupts; not `nice`, which has lower priority
# As Linux and macOS name them; also those that a virtual machine shares with its host.
_NETWORK_FILE_SYSTEMS = frozenset(
    """nfs nfs4 cifs smb3 smbfs afpfs webdav 9p afs ceph lustre beegfs gpfs sshfs glusterfs rclone s3fs gcsfuse davfs
    virtiofs vboxsf prl_fs vmhgfs vmhgfs-fuse""".split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)

Clock = Callable[[], float]


def physical_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the number of physical cores that this process may use, limited by its control group.

    Hyper-threads do not count because the threads of llama.cpp spin, so more of them only slow it down.
    """
    siblings = set()
    for cpu in _allowed_processors():
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(topology.read_text().strip() if topology.exists() else str(cpu))
    return max(1, min(len(siblings), _cores_of_time(cgroup)))


def _allowed_processors() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _cores_of_time(cgroup: Path) -> int:
    """Return how many cores a control group (version 2 or 1) may use, rounded up; `sys.maxsize` without a limit."""
    names = ["cpu.max"] if (cgroup / "cpu.max").exists() else ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]
    with suppress(OSError, ValueError):  # no such files, or "max"
        quota, period = map(int, " ".join((cgroup / name).read_text() for name in names).split())
        return math.ceil(quota / period) if quota > 0 else sys.maxsize
    return sys.maxsize


def processor() -> str:
    """Return the model name of the processor."""
    return _of_processor("model name") or platform.processor() or platform.machine()


def processor_flags() -> list[str]:
    """Return the feature flags of the processor as Linux names them."""
    return _of_processor("flags").split()


def give_way(niceness: int = 10) -> None:
    """Lower the priority of this process and its children, if the system has priorities."""
    with suppress(OSError, AttributeError):
        if os.getpriority(os.PRIO_PROCESS, 0) < niceness:
            os.setpriority(os.PRIO_PROCESS, 0, niceness)


def is_supported(system: str = sys.platform) -> bool:
    """Return whether local-rag works on a system; reading documents needs a Unix-like one."""
    return system != "win32"


def memory() -> tuple[int, int]:
    """Return total and available memory in bytes, at most the limit of the container."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = total
    with suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        free = int(found[1]) * 1024 if found else total
    with suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        total, free = min(total, limit), min(free, limit)
    return total, free


def resident_bytes() -> int:
    """Return the bytes of memory that this process holds, or where that is not told the most that it held."""
    import resource  # not on Windows, where the command says that it does not run

    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:  # noqa: PTH123  a query asks many times
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, which need not exist yet."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return shutil.disk_usage(existing).free


def is_full(folder: Path) -> bool:
    """Return whether the disk of a folder has less room than SQLite needs to open a file."""
    with suppress(OSError):
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize < _ROOM_TO_OPEN
    return False


def is_read_only(folder: Path) -> bool:
    """Return whether the disk of a folder is mounted read-only."""
    with suppress(OSError):
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    return False


def file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Return the type of a folder's file system as the system names it, or "" if unknown."""
    found, longest = "", -1
    with suppress(OSError):
        whole = folder.resolve()  # once: each query asks, and there are many mounts
        above = {str(one) for one in (whole, *whole.parents)}
        for mount, kind in _mounts(mounts):
            if mount in above and len(mount) > longest:
                found, longest = kind, len(mount)
    return found


def _mounts(table: Path) -> Iterator[tuple[str, str]]:
    """Yield the folder of each mount with the type of its file system, from Linux's table or as macOS prints them."""
    if not table.exists():
        said = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False).stdout
        yield from printed_mounts(said)
        return
    for line in table.read_text(errors="replace").splitlines():
        _, mount, kind, *_ = line.split(" ")
        yield re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), mount), kind


def printed_mounts(said: str) -> list[tuple[str, str]]:
    """Return what macOS prints of mounts, as in `//me@nas/docs on /Volumes/docs (smbfs, nodev)`."""
    return re.findall(r"^.+? on (/.*) \((\w+)[,)]", said, re.MULTILINE)


def is_network(kind: str) -> bool:
    """Return whether a type of file system belongs to another machine."""
    return kind.removeprefix("fuse.") in _NETWORK_FILE_SYSTEMS


def _of_processor(field: str) -> str:
    with suppress(OSError):
        found = re.search(rf"^{field}\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        return found[1].strip() if found else ""
    return ""


class Neighbours:
    """Recommend a number of threads that fits the current load by other programs.

    Threads that meet at a barrier after each operation are as slow as the slowest one: on two cores, one of which
    another program keeps busy, one thread is faster than two. Programs with a lower priority do not count. Systems
    other than Linux do not report the load; there it counts as zero.
    """

    def __init__(
        self, *, stat: Path = Path("/proc/stat"), own: Clock = time.process_time, clock: Clock = time.monotonic
    ):
        self._stat, self._own, self._clock = stat, own, clock
        self._cpus = _allowed_processors()
        self._busy = 0.0
        self._last = self._sample()

    def threads(self, wanted: int = 0) -> int:
        """Return `wanted` threads (0: one per physical core) minus the cores that others keep busy; at least one."""
        wanted = wanted or physical_cores()
        if self._clock() - self._last[0] >= _SAMPLE_SECONDS:
            now = self._sample()
            seconds = now[0] - self._last[0]
            others = ((now[1] - self._last[1]) - (now[2] - self._last[2])) / seconds
            self._busy += _SMOOTHING * (max(0.0, others) - self._busy)
            self._last = now
        return max(1, wanted - int(self._busy + 1 - _WORTH_A_CORE))

    def _sample(self) -> tuple[float, float, float]:
        """Return the time, and the processor seconds used by all programs and by this one on the allowed cores."""
        now, used, own = self._clock(), 0.0, self._own()
        with suppress(OSError, ValueError, IndexError):
            for line in self._stat.read_text().splitlines()[1:]:
                name, *columns = line.split()
                if not name.startswith("cpu"):
                    break
                if int(name[3:]) in self._cpus:
                    used += sum(int(columns[one]) for one in _COLUMNS)
            return now, used / os.sysconf("SC_CLK_TCK"), own
        return now, own, own
