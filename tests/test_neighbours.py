"""Making way for other programs: as many threads fewer as cores are kept busy by others, and all of them afterwards."""

import os
from pathlib import Path

from local_rag.machine import Neighbours

TICK = os.sysconf("SC_CLK_TCK")


class Machine:
    """A processor that can be told who works on it."""

    def __init__(self, folder: Path) -> None:
        self.stat, self.now, self.own, self.used, self.nice = folder / "stat", 0.0, 0.0, 0.0, 0.0
        self.pass_time(0)

    def pass_time(self, seconds: float, *, own: float = 0, others: float = 0, nice: float = 0) -> None:
        """Let time pass, in which programs keep so many cores busy."""
        self.now += seconds
        self.own += own * seconds
        self.used += (own + others) * seconds
        self.nice += nice * seconds
        cpu = min(os.sched_getaffinity(0))
        ticks = [int(value * TICK) for value in (self.used, self.nice, 0, 0, 0, 0, 0, 0)]
        line = " ".join(map(str, ticks))
        self.stat.write_text(f"cpu  {line}\ncpu{cpu} {line}\nintr 1 2 3\n")

    def neighbours(self) -> Neighbours:
        return Neighbours(stat=self.stat, own=lambda: self.own, clock=lambda: self.now)


def threads(machine: Machine, neighbours: Neighbours, wanted: int, **work: float) -> int:
    for _ in range(8):
        machine.pass_time(0.6, **work)
        found = neighbours.threads(wanted)
    return found


def test_threads_follow_what_others_do(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    neighbours = machine.neighbours()
    assert neighbours.threads(4) == 4
    assert threads(machine, neighbours, 4, own=4) == 4
    assert threads(machine, neighbours, 4, own=3.3, others=0.7) == 3
    assert threads(machine, neighbours, 4, own=2, others=2) == 2
    assert threads(machine, neighbours, 4, own=0.2, others=9) == 1
    assert threads(machine, neighbours, 4, own=1) == 4


def test_a_short_burst_and_programs_of_low_priority_do_not_count(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    neighbours = machine.neighbours()
    assert threads(machine, neighbours, 2, own=1.1, nice=0.9) == 2
    machine.pass_time(0.6, own=1, others=1)
    assert neighbours.threads(2) == 2
    machine.pass_time(0.1, own=1, others=1)
    assert neighbours.threads(2) == 2, "too short to tell"


def test_where_the_system_does_not_tell_nobody_else_works(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    neighbours = Neighbours(stat=tmp_path / "none", own=lambda: machine.own, clock=lambda: machine.now)
    assert threads(machine, neighbours, 2, own=0.1, others=1.9) == 2
