"""The machine: processor, memory, disk."""

import math
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_LOOK_SECONDS = 0.5  # between two looks: the system counts in hundredths
_SMOOTH = 0.5  # weight of the newest look
_WORTH_A_CORE = 0.6  # of a core, kept busy by others
_COLUMNS = (0, 2, 5, 6)  # of /proc/stat: user, system, interrupts; not `nice`, which gives way

Clock = Callable[[], float]


def physical_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Count the physical cores this process may use: llama.cpp's threads spin, so hyper-threads only harm.

    No more than a container has the time of, which the files of its control group say.
    """
    siblings = set()
    for cpu in _allowed_processors():
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(topology.read_text().strip() if topology.exists() else str(cpu))
    return max(1, min(len(siblings), _cores_of_time(cgroup)))


def _allowed_processors() -> set[int]:
    """Return the numbers of the logical processors that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _cores_of_time(cgroup: Path) -> int:
    """Return how many cores a control group (of version 2 or 1) may keep busy, rounded up; many where it says none."""
    names = ["cpu.max"] if (cgroup / "cpu.max").exists() else ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]
    with suppress(OSError, ValueError):  # no such files, or "max"
        quota, period = map(int, " ".join((cgroup / name).read_text() for name in names).split())
        return math.ceil(quota / period) if quota > 0 else sys.maxsize
    return sys.maxsize


def processor() -> str:
    """Name the processor's model."""
    return _of_processor("model name") or platform.processor() or platform.machine()


def processor_flags() -> list[str]:
    """List what the processor can do, as Linux calls it."""
    return _of_processor("flags").split()


def give_way(niceness: int = 10) -> None:
    """Let this process and its children compute only when others do not want to, where the system knows priorities."""
    with suppress(OSError, AttributeError):
        if os.getpriority(os.PRIO_PROCESS, 0) < niceness:
            os.setpriority(os.PRIO_PROCESS, 0, niceness)


def is_supported(system: str = sys.platform) -> bool:
    """Say whether the program can work on a system; what reads documents needs one like Unix."""
    return system != "win32"


def memory() -> tuple[int, int]:
    """Return total and available memory in bytes, no more than a container's limit."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = total
    with suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        free = int(found[1]) * 1024 if found else total
    with suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        total, free = min(total, limit), min(free, limit)
    return total, free


def free_bytes(folder: Path) -> int:
    """Return the free space of the disk that a folder, which may not exist yet, is on."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return shutil.disk_usage(existing).free


def file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Name the file system that a folder is on, as Linux calls it; empty where that cannot be told."""
    found, longest = "", -1
    with suppress(OSError):
        for line in mounts.read_text(errors="replace").splitlines():
            _, place, kind, *_ = line.split(" ")
            place = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), place)
            if folder.resolve().is_relative_to(place) and len(place) > longest:
                found, longest = kind, len(place)
    return found


def is_network(kind: str) -> bool:
    """Say whether a file system is another machine's."""
    return kind.removeprefix("fuse.") in {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "lustre",
        "sshfs",
    }


def _of_processor(field: str) -> str:
    with suppress(OSError):
        found = re.search(rf"^{field}\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        return found[1].strip() if found else ""
    return ""


class Neighbours:
    """Say how many threads are worth running beside what other programs do now.

    Threads that meet at a barrier after each operation are as slow as the slowest: on two cores, one of which another
    program keeps busy, one thread is faster than two. What runs with a lower priority gives way, and does not count.
    Where the system does not tell (only Linux does), nobody else is thought to work.
    """

    def __init__(
        self, *, stat: Path = Path("/proc/stat"), own: Clock = time.process_time, clock: Clock = time.monotonic
    ):
        self._stat, self._own, self._clock = stat, own, clock
        self._cpus = _allowed_processors()
        self._busy = 0.0
        self._last = self._look()

    def threads(self, wanted: int = 0) -> int:
        """Return as many threads as `wanted`, or as physical cores, less those that others keep busy; one at least."""
        wanted = wanted or physical_cores()
        if self._clock() - self._last[0] >= _LOOK_SECONDS:
            now = self._look()
            seconds = now[0] - self._last[0]
            others = ((now[1] - self._last[1]) - (now[2] - self._last[2])) / seconds
            self._busy += _SMOOTH * (max(0.0, others) - self._busy)
            self._last = now
        return max(1, wanted - int(self._busy + 1 - _WORTH_A_CORE))

    def _look(self) -> tuple[float, float, float]:
        """Return the time, and the seconds that all programs and this one have computed on the cores it may use."""
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
