"""The thread that owns a library: its queue, events, stopping, loading and freeing, and settings that change."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import aclosing, closing, contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TypeVar

import pytest

from local_rag.answer_records import Written
from local_rag.asking import DEFAULT_OPTIONS, AskOptions
from local_rag.errors import BusyError, ModelError, StoppedError
from local_rag.library import Library
from local_rag.llama.generator import Request, Token
from local_rag.retrieval.searcher import Trace
from local_rag.serving.job import Event, Failure, Job, PassagesFound, Ping, QueuePosition, Result
from local_rag.serving.requests import AskRequest, Caller, SearchRequest, ServedAnswer
from local_rag.serving.served_models import open_library
from local_rag.serving.service import Service
from local_rag.serving.worker import MAX_WAITING_OF_ONE, LibraryWorker
from tests.fakes import QUICK, FakeGenerator, generating
from tests.support.served import QUESTION, index, parts, reply, wait_until, worker

T = TypeVar("T")


class Slow(FakeGenerator):
    """A generator that waits for leave before each token but the first."""

    def __init__(self) -> None:
        super().__init__(reply, context_tokens=100_000)
        self.going, self.leave = threading.Event(), threading.Event()

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        for token in super().stream(requests):
            yield token
            self.going.set()
            while not self.leave.is_set() and not self.stop():
                self.leave.wait(0.01)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def owned(folder: Path, slow: Slow) -> Iterator[LibraryWorker]:
    with closing(worker(folder, replace(QUICK, open_engine=generating(slow)))) as opened:
        opened.start()
        yield opened


def search(worker: LibraryWorker, question: str, *, client: str = "") -> Job[Trace]:
    return Service(worker).search(SearchRequest(question=question), Caller(client, "/search"))


def ask(
    worker: LibraryWorker, question: str, *, client: str = "", options: AskOptions = DEFAULT_OPTIONS
) -> Job[ServedAnswer]:
    request = AskRequest(question=question, options=options, in_history=True)
    return Service(worker).ask(request, Caller(client, "/ask"))


def events_of(job: Job[T], ping: float = 30) -> list[Event[T]]:
    """Read the events of a job to the end."""

    async def read() -> list[Event[T]]:
        return [event async for event in job.events(ping)]

    return asyncio.run(read())


def test_jobs_wait_in_a_queue_and_are_told_their_position(owned: LibraryWorker, slow: Slow) -> None:
    jobs = [ask(owned, f"{QUESTION} {number}") for number in range(3)]
    assert slow.going.wait(30)
    slow.leave.set()
    told = [events_of(job) for job in jobs]
    for events in told:
        assert isinstance(events[-1], Result)
        assert events[-1].value.answer.answered
    positions = [[event.ahead for event in events if isinstance(event, QueuePosition)] for events in told]
    assert positions[1][-2:] == [1, 0]
    assert positions[2] == sorted(positions[2], reverse=True)
    assert positions[2][-3:] == [2, 1, 0]


def test_what_is_quick_and_who_waits_for_less_comes_first(owned: LibraryWorker) -> None:
    done, going = list[str](), threading.Event()

    def job(name: str, kind: str, client: str = "") -> Job[None]:
        def work(_library: Library, _job: Job[None]) -> None:
            time.sleep({"answer": 0.5, "search": 0.0}[kind])
            done.append(name)

        return owned.submit(Job(work, client, kind))

    for kind in ("answer", "search"):  # so that it is known how long they take
        job(kind, kind).result.result(30)
    done.clear()
    first = owned.submit(Job[bool](lambda _library, _job: going.wait(30)))
    jobs = [job("one", "answer", "a"), job("two", "answer", "a"), job("other", "answer", "b"), job("quick", "search")]
    going.set()
    assert first.result.result(30)
    for waiting in jobs:
        waiting.result.result(30)
    assert done == ["quick", "one", "other", "two"]


def test_an_answer_is_told_as_it_is_made(owned: LibraryWorker, slow: Slow) -> None:
    slow.leave.set()
    found, *written, result = [one for one in events_of(ask(owned, QUESTION)) if not isinstance(one, QueuePosition)]
    assert isinstance(found, PassagesFound)
    assert isinstance(result, Result)
    assert "".join(one.text for one in written if isinstance(one, Written)) == result.value.answer.text


def test_a_reader_gets_pings_while_nothing_happens_and_stops_the_job_by_leaving(
    owned: LibraryWorker, slow: Slow
) -> None:
    job = ask(owned, QUESTION)
    assert slow.going.wait(30)

    async def read() -> None:
        async with aclosing(job.events(0.01)) as events:
            async for event in events:
                if isinstance(event, Ping):
                    return

    asyncio.run(read())
    with pytest.raises(StoppedError):
        job.result.result(30)


def test_a_failure_is_the_last_event(owned: LibraryWorker, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_library: Library, _job: Job[None]) -> None:
        raise ZeroDivisionError("a cause")

    *_, last = events_of(owned.submit(Job(fail)))
    assert isinstance(last, Failure)
    assert "local-rag serve" in last.message
    assert "a cause" in capsys.readouterr().err


def test_a_running_job_ends_between_two_operations_and_the_next_one_begins(owned: LibraryWorker, slow: Slow) -> None:
    running, waiting = ask(owned, QUESTION), search(owned, "boat")
    assert slow.going.wait(30)
    running.stop()
    with pytest.raises(StoppedError):
        running.result.result(30)
    assert waiting.result.result(30).passages


def test_a_running_search_ends_between_two_stages(owned: LibraryWorker) -> None:
    """Nobody waits for it any more; whoever waits behind it must not wait for its end."""
    service, job = Service(owned), Job[Trace](lambda _library, _job: Trace([], {}, {}))

    def work(library: Library, job: Job[Trace]) -> Trace:
        job.stopped.set()
        return library.retrieval.trace("boat", top=3, check=job.check)

    job.work = work
    with pytest.raises(StoppedError):
        owned.submit(job).result.result(30)
    assert service.search(SearchRequest(question="boat"), Caller("", "")).result.result(30).passages


def test_what_the_last_job_was_stopped_by_stops_no_other(folder: Path) -> None:
    generator = FakeGenerator(reply, context_tokens=100_000)
    with closing(worker(folder, replace(QUICK, open_engine=generating(generator)))) as opened:
        opened.start()
        ask(opened, QUESTION).result.result(30)
        ended = ask(opened, f"{QUESTION} Again?")
        ended.result.result(30)
        ended.stop()
        assert not generator.stop(), "outside of a job nothing is stopped"
        assert list(generator.complete([Request("", [65], [66], 5)]))


def test_a_waiting_job_is_taken_out(owned: LibraryWorker, slow: Slow) -> None:
    running, waiting = ask(owned, QUESTION), ask(owned, "Another one?")
    assert slow.going.wait(30)
    waiting.stop()
    with pytest.raises(StoppedError):
        waiting.result.result(1)
    slow.leave.set()
    assert running.result.result(30).answer.answered
    assert not any("Another one" in prompt for prompt in slow.prompts)


def test_one_client_cannot_fill_the_queue(owned: LibraryWorker, slow: Slow) -> None:
    ask(owned, QUESTION, client="first")
    assert slow.going.wait(30)
    for _ in range(MAX_WAITING_OF_ONE):
        search(owned, "boat", client="first")
    with pytest.raises(BusyError, match="waiting"):
        search(owned, "boat", client="first")
    assert search(owned, "boat", client="second")


def test_the_addresses_of_one_ipv6_network_are_one_client_of_the_queue(owned: LibraryWorker, slow: Slow) -> None:
    ask(owned, QUESTION, client="2001:db8::1")
    assert slow.going.wait(30)
    for number in range(MAX_WAITING_OF_ONE):
        search(owned, "boat", client=f"2001:db8::{number:x}")
    with pytest.raises(BusyError, match="waiting"):
        search(owned, "boat", client="2001:db8::ffff")
    assert search(owned, "boat", client="2001:db8:0:1::1")


def test_a_job_that_fails_ends_nothing_else(owned: LibraryWorker) -> None:
    def fail(_library: Library, _job: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        owned.submit(Job(fail)).result.result(30)
    assert search(owned, "boat").result.result(30).passages


def test_models_are_freed_when_idle_and_loaded_again(folder: Path) -> None:
    with closing(worker(folder, idle_seconds=0.05)) as opened:
        opened.start()
        opened.wake()
        wait_until(lambda: opened.ready)
        wait_until(lambda: not opened.loaded)
        assert opened.ready
        assert search(opened, "boat").result.result(30).passages
        assert opened.loaded


def test_a_new_idle_time_counts_from_the_next_question_on(folder: Path) -> None:
    with closing(LibraryWorker(lambda: open_library(folder, parts()))) as opened:
        opened.start()
        assert search(opened, "boat").result.result(30).passages
        assert opened.loaded
        (folder / "settings.toml").write_text("idle_seconds = 0.05\n")
        assert search(opened, "harbour").result.result(30).passages
        wait_until(lambda: not opened.loaded)


def test_a_library_without_an_index_is_not_ready_until_it_has_one(documents: Path) -> None:
    (documents.parent / "lib").mkdir()
    with closing(worker(documents.parent / "lib", profile="tiny")) as opened:
        opened.start()
        opened.wake()
        wait_until(lambda: bool(opened.problem))
        assert "local-rag index" in opened.problem
        assert not opened.ready
        index(documents, documents.parent / "lib")

        def is_ready() -> bool:
            opened.wake()
            return opened.ready

        wait_until(is_ready)
        assert opened.problem == ""


def test_an_index_that_another_process_publishes_is_picked_up(folder: Path, documents: Path) -> None:
    with closing(worker(folder)) as opened:
        opened.start()
        before = search(opened, "zebras").result.result(30)
        assert not any("zebras" in passage.text for passage in before.passages)
        (documents / "new.md").write_text("# Zebras\n\nZebras sleep standing up.\n")
        index(documents, folder)
        after = search(opened, "zebras").result.result(30)
        assert "zebras" in after.passages[0].text.lower()


def test_settings_that_the_user_changes_count_from_the_next_question_on(folder: Path) -> None:
    with closing(worker(folder)) as opened:
        opened.start()
        assert len(search(opened, "boat").result.result(30).passages) > 1
        (folder / "settings.toml").write_text("passages = 1\n")
        assert len(search(opened, "boat").result.result(30).passages) == 1


def test_a_model_that_was_missing_is_missed_no_longer(folder: Path) -> None:
    pulled = threading.Event()

    @contextmanager
    def open_engine(_path: Path, **_options: object) -> Iterator[FakeGenerator]:
        if not pulled.is_set():
            raise ModelError("The answer model is not pulled; run `local-rag models pull`.")
        yield FakeGenerator(reply, context_tokens=100_000)

    with closing(worker(folder, replace(QUICK, open_engine=open_engine))) as opened:
        opened.start()
        opened.wake()
        wait_until(lambda: "models pull" in opened.problem)
        assert search(opened, "boat").result.result(30).passages
        pulled.set()
        assert ask(opened, QUESTION).result.result(30).answer.answered
        wait_until(lambda: not opened.problem)


def test_nobody_waits_while_models_are_freed(folder: Path) -> None:
    freeing, freed = threading.Event(), threading.Event()

    @contextmanager
    def open_engine(_path: Path, **_options: object) -> Iterator[FakeGenerator]:
        yield FakeGenerator(reply, context_tokens=100_000)
        freeing.set()
        assert freed.wait(30)

    with closing(worker(folder, replace(QUICK, open_engine=open_engine), idle_seconds=0.05)) as opened:
        opened.start()
        ask(opened, QUESTION).result.result(30)
        assert freeing.wait(30)
        began = time.monotonic()
        waiting = search(opened, "boat")
        waiting.stop()
        opened.wake()
        assert time.monotonic() - began < 25, "less than the models take to be freed"
        freed.set()


@pytest.mark.parametrize("_again", range(20))
def test_closing_and_stopping_at_once_end_each_job_once(folder: Path, _again: int) -> None:
    opened = worker(folder)
    opened.start()
    jobs = [search(opened, f"boat {number}") for number in range(30)]

    def stop_all() -> None:
        for job in jobs:
            job.stop()

    stopping = threading.Thread(target=stop_all)
    stopping.start()
    assert opened.close(30)
    stopping.join()
    assert all(job.result.done() for job in jobs)
    with pytest.raises(StoppedError):
        search(opened, "boat")


def test_closing_ends_what_runs_and_what_waits(folder: Path, slow: Slow) -> None:
    opened = worker(folder, replace(QUICK, open_engine=generating(slow)))
    opened.start()
    jobs = [ask(opened, f"{QUESTION} {number}") for number in range(2)]
    assert slow.going.wait(30)
    opened.close()
    for job in jobs:
        with pytest.raises(StoppedError):
            job.result.result(1)


def test_the_same_question_gets_the_same_answer_at_once_until_the_index_changes(folder: Path, documents: Path) -> None:
    replies = iter(["The boat leaves at seven.", "At seven."])
    with closing(worker(folder, parts(lambda _prompt: next(replies)))) as opened:
        opened.start()
        first, again = (ask(opened, QUESTION).result.result(30) for _ in range(2))
        assert (first.again, again.again) == (False, True)
        assert again == first
        (documents / "new.md").write_text("# Zebras\n\nZebras sleep.\n")
        index(documents, folder)
        later = ask(opened, QUESTION).result.result(30)
        assert (later.again, later.answer.text) == (False, "At seven. [1]")


def test_a_cached_answer_does_not_lead_to_where_a_folder_was(folder: Path, documents: Path) -> None:
    with closing(worker(folder)) as opened:
        opened.start()
        ask(opened, QUESTION).result.result(30)
        moved = documents.rename(documents.with_name("moved"))
        with Library(folder) as library:
            library.upkeep.move_root(documents, moved)
        later = ask(opened, QUESTION).result.result(30)
        assert later.answer.passages
        assert all(Path(one.path).is_relative_to(moved) for one in later.answer.passages)
        assert ask(opened, QUESTION).result.result(30).again


def test_a_time_that_is_counted_from_today_is_another_one_tomorrow(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tomorrow(date):
        @classmethod
        def today(cls) -> "Tomorrow":
            return cls.fromordinal(date.today().toordinal() + 1)

    with closing(worker(folder)) as opened:
        opened.start()
        question = f"{QUESTION.removesuffix('?')} next week?"
        for asked, again in ((QUESTION, True), (question, False)):
            ask(opened, asked).result.result(30)
            assert ask(opened, asked).result.result(30).again
            with monkeypatch.context() as patched:
                patched.setattr("local_rag.serving.cached_answers.date", Tomorrow)
                assert ask(opened, asked).result.result(30).again == again


@pytest.mark.parametrize("options", [AskOptions(passages=1), AskOptions(rerank=False), AskOptions(anyway=True)])
def test_a_question_that_is_asked_otherwise_is_another_one(folder: Path, options: AskOptions) -> None:
    with closing(worker(folder)) as opened:
        opened.start()
        ask(opened, QUESTION).result.result(30)
        assert not ask(opened, QUESTION, options=options).result.result(30).again


def test_answers_are_not_kept_where_the_setting_says_so(folder: Path) -> None:
    with closing(worker(folder, answer_cache=False)) as opened:
        opened.start()
        for _ in range(2):
            assert not ask(opened, QUESTION).result.result(30).again
        with closing(sqlite3.connect(folder / "history.sqlite3")) as history:
            assert not history.execute("SELECT kind FROM cached").fetchall()


def test_a_damaged_history_is_no_reason_not_to_answer(folder: Path) -> None:
    (folder / "history.sqlite3").write_bytes(b"no database at all" * 100)
    with closing(worker(folder)) as opened:
        opened.start()
        assert ask(opened, QUESTION).result.result(30).answer.answered
