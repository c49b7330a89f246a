import gc
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as some

from local_rag.cluster.workers import driver
from local_rag.cluster.workers.driver import Driver, Finished, GivenUp, Task
from local_rag.errors import ClusterError
from tests.cluster.pool import Clock, FakeWorkerPool


def drive(pool: FakeWorkerPool) -> Driver[int, int]:
    clock = Clock()
    return Driver(pool, lambda _line: None, clock=clock, sleep=clock.sleep)


def tasks(count: int, chunks: int = 4, parts: int = 2) -> Iterator[Task[int]]:
    """Yield tasks of a few parts, each of some chunks."""
    for number in range(count):
        yield Task({f"{number}/{part}/{chunk}": (part, chunk) for part in range(parts) for chunk in range(chunks)})


def finished_keys(results: Iterator[Finished | GivenUp]) -> list[str]:
    return [key for result in results if isinstance(result, Finished) for key in result.keys]


def test_all_is_finished_once_and_shared_out() -> None:
    pool = FakeWorkerPool(3)
    keys = finished_keys(drive(pool).run(tasks(20)))
    assert len(keys) == len(set(keys)) == 160
    assert {slot for slot, _ in pool.placed} == set(pool.names)


@given(seed=some.integers(0, 10_000), failing=some.floats(0.0, 0.2), slots=some.integers(1, 4))
def test_whatever_fails_each_item_is_finished_or_given_up_once(seed: int, failing: float, slots: int) -> None:
    pool = FakeWorkerPool(slots, failing=failing, seed=seed)
    keys = list[str]()
    for result in drive(pool).run(tasks(12)):
        keys += result.keys
    assert sorted(keys) == sorted(key for task in tasks(12) for key in task.items)
    assert max(pool.done.values(), default=0) <= 1, "finished work is not repeated"


def test_a_hundred_thousand_documents_finish_exactly_once_in_little_memory() -> None:
    pool = FakeWorkerPool(8, failing=0.0005, seed=7)
    seen, twice, given_up, most = bytearray(100_000), 0, 0, 0
    for result in drive(pool).run(Task({str(number): (0, number)}) for number in range(100_000)):
        pool.placed.clear()
        pool.done.clear()
        pool.begun.clear()
        for key in result.keys:
            twice += seen[int(key)]
            seen[int(key)] = 1
            given_up += isinstance(result, GivenUp)
        if int(result.keys[0]) % 10_000 == 0:
            most = max(most, sum(isinstance(one, Task) for one in gc.get_objects()))
    assert (sum(seen), twice) == (100_000, 0)
    assert given_up == 0
    assert pool.held <= 8 * driver.IN_FLIGHT
    assert 0 < most <= 8 * driver.IN_FLIGHT + 4, "the driver holds what is at the machines, not what was or will be"


def test_tasks_are_asked_for_as_they_can_be_taken() -> None:
    pulled = list[int]()

    def watched() -> Iterator[Task[int]]:
        for number, task in enumerate(tasks(50, chunks=3, parts=1)):
            pulled.append(number)
            yield task

    for done, _ in enumerate(drive(FakeWorkerPool(2)).run(watched()), start=1):
        assert len(pulled) <= done // 3 + 2 * driver.IN_FLIGHT + 1


def test_poison_is_given_up_alone_after_its_tries_on_another_machine_each_time() -> None:
    pool = FakeWorkerPool(2, poison=frozenset({"1/1/2"}))
    results = list(drive(pool).run(tasks(3)))
    (lost,) = [result for result in results if isinstance(result, GivenUp)]
    assert lost == GivenUp(["1/1/2", "1/1/3"], "killed")
    assert pool.begun["1/1/2"] == driver.TRIES
    assert len(finished_keys(iter(results))) == 3 * 8 - 2
    tried = [slot for slot, keys in pool.placed if "1/1/2" in keys]
    assert all(before != after for before, after in itertools.pairwise(tried))
    assert max(pool.done.values()) == 1


def test_what_never_begins_is_given_up_in_the_end() -> None:
    pool = FakeWorkerPool(1, failing=4.0)
    (lost,) = drive(pool).run(tasks(1, parts=1))
    assert isinstance(lost, GivenUp)
    assert len(pool.placed) > driver.TRIES


def test_a_fault_that_is_not_the_documents_ends_the_run() -> None:
    pool = FakeWorkerPool(2, poison=frozenset(key for task in tasks(30) for key in task.items))
    with pytest.raises(ClusterError, match="probably not the cause"):
        list(drive(pool).run(tasks(30)))


def test_a_machine_that_goes_loses_nothing_and_one_that_comes_gets_work() -> None:
    pool = FakeWorkerPool(2)
    keys = list[str]()
    for result in drive(pool).run(tasks(40)):
        keys += result.keys
        if len(keys) == 20:
            pool.names.remove("machine 0")
        if len(keys) == 100:
            pool.names.append("machine 2")
    assert len(keys) == len(set(keys)) == 320
    assert max(pool.done.values()) == 1
    assert any(slot == "machine 2" for slot, _ in pool.placed)


def test_a_run_without_any_machine_ends_after_a_while() -> None:
    with pytest.raises(ClusterError, match="cluster start --join"):
        list(drive(FakeWorkerPool(0)).run(tasks(1)))


def test_a_worker_that_gives_nothing_is_abandoned_and_its_tasks_go_elsewhere() -> None:
    clock = Clock()
    pool = FakeWorkerPool(2, hanging=frozenset({"3/0/2", "7/1/1"}))
    some: Driver[int, int] = Driver(pool, lambda _line: None, clock=clock, sleep=clock.sleep, silent=5)
    keys = finished_keys(some.run(tasks(12)))
    assert len(keys) == len(set(keys)) == 12 * 8
    assert len(pool.abandoned) == 2
    assert clock.now > 5


def test_slow_workers_are_waited_for_ten_times_as_long_as_the_slowest() -> None:
    clock = Clock()
    pool = FakeWorkerPool(1, hanging=frozenset({"5/0/0"}))
    some: Driver[int, int] = Driver(pool, lambda _line: None, clock=clock, sleep=clock.sleep, silent=1)
    results = some.run(tasks(6))
    for _ in range(3):
        next(results)
    clock.now += 0.9  # until the next result
    keys = finished_keys(results)
    assert len(keys) == 6 * 8 - 3
    assert len(pool.abandoned) == 1
    assert clock.now > 9
