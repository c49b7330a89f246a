"""One thread owns the library: a queue with places, stopping, loading and freeing, settings that change."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_rag.errors import BusyError, StoppedError
from local_rag.library import Library
from local_rag.llama.generator import Request, Token
from local_rag.records import AskOptions
from local_rag.serving.requests import Question, answering, searching
from local_rag.serving.worker import MAX_WAITING_OF_ONE, Owner
from tests.fakes import QUICK, FakeGenerator, generating
from tests.support.served import QUESTION, index, owner, parts, reply, wait_until


class Slow(FakeGenerator):
    """A generator that waits for leave before each token but the first."""

    def __init__(self) -> None:
        super().__init__(reply, context_tokens=100_000)
        self.going, self.leave = threading.Event(), threading.Event()

    def stream(self, requests: Iterable[Request]) -> Iterator[Token]:
        for token in super().stream(requests):
            yield token
            self.going.set()
            while not self.leave.is_set() and not self.stop():
                self.leave.wait(0.01)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def owned(folder: Path, slow: Slow) -> Iterator[Owner]:
    with closing(owner(folder, replace(QUICK, open_engine=generating(slow)))) as opened:
        opened.start()
        yield opened


def test_jobs_wait_in_a_queue_and_are_told_their_place(owned: Owner, slow: Slow) -> None:
    told: list[list[tuple[str, Any]]] = [[], [], []]
    jobs = [
        owned.submit(answering(Question(f"{QUESTION} {number}")), lambda *event, to=events: to.append(event))
        for number, events in enumerate(told)
    ]
    assert slow.going.wait(30)
    assert [events[-1] for events in told[1:]] == [("queue", 1), ("queue", 2)]
    slow.leave.set()
    answers = [job.result.result(30) for job in jobs]
    assert all(answered.answer.answered for answered in answers)
    places = [value for event, value in told[2] if event == "queue"]
    assert places == sorted(places, reverse=True)
    assert places[-1] == 0


def test_a_running_job_ends_between_two_operations_and_the_next_one_begins(owned: Owner, slow: Slow) -> None:
    running, waiting = owned.submit(answering(Question(QUESTION))), owned.submit(searching(Question("boat")))
    assert slow.going.wait(30)
    owned.stop(running)
    with pytest.raises(StoppedError):
        running.result.result(30)
    assert waiting.result.result(30).passages


def test_a_waiting_job_is_taken_out(owned: Owner, slow: Slow) -> None:
    running, waiting = owned.submit(answering(Question(QUESTION))), owned.submit(answering(Question("Another one?")))
    assert slow.going.wait(30)
    owned.stop(waiting)
    with pytest.raises(StoppedError):
        waiting.result.result(1)
    slow.leave.set()
    assert running.result.result(30).answer.answered
    assert not any("Another one" in prompt for prompt in slow.prompts)


def test_one_client_cannot_fill_the_queue(owned: Owner, slow: Slow) -> None:
    owned.submit(answering(Question(QUESTION)), client="first")
    assert slow.going.wait(30)
    for _ in range(MAX_WAITING_OF_ONE):
        owned.submit(searching(Question("boat")), client="first")
    with pytest.raises(BusyError, match="waiting"):
        owned.submit(searching(Question("boat")), client="first")
    assert owned.submit(searching(Question("boat")), client="second")


def test_a_job_that_fails_ends_nothing_else(owned: Owner) -> None:
    def fail(_library: Library, _job: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        owned.submit(fail).result.result(30)
    assert owned.submit(searching(Question("boat"))).result.result(30).passages


def test_models_are_freed_when_idle_and_loaded_again(folder: Path) -> None:
    with closing(owner(folder, idle_seconds=0.05)) as opened:
        opened.start()
        wait_until(lambda: opened.ready)
        wait_until(lambda: not opened.loaded)
        assert opened.ready
        assert opened.submit(searching(Question("boat"))).result.result(30).passages
        assert opened.loaded


def test_a_library_without_an_index_is_not_ready_until_it_has_one(documents: Path) -> None:
    (documents.parent / "lib").mkdir()
    with closing(owner(documents.parent / "lib", profile="tiny")) as opened:
        opened.start()
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
    with closing(owner(folder)) as opened:
        opened.start()
        before = opened.submit(searching(Question("zebras"))).result.result(30)
        assert not any("zebras" in passage.text for passage in before.passages)
        (documents / "new.md").write_text("# Zebras\n\nZebras sleep standing up.\n")
        index(documents, folder)
        after = opened.submit(searching(Question("zebras"))).result.result(30)
        assert "zebras" in after.passages[0].text.lower()


def test_settings_that_the_user_changes_count_from_the_next_question_on(folder: Path) -> None:
    with closing(owner(folder)) as opened:
        opened.start()
        assert len(opened.submit(searching(Question("boat"))).result.result(30).passages) > 1
        (folder / "settings.toml").write_text("passages = 1\n")
        assert len(opened.submit(searching(Question("boat"))).result.result(30).passages) == 1


def test_closing_ends_what_runs_and_what_waits(folder: Path, slow: Slow) -> None:
    opened = owner(folder, replace(QUICK, open_engine=generating(slow)))
    opened.start()
    jobs = [opened.submit(answering(Question(f"{QUESTION} {number}"))) for number in range(2)]
    assert slow.going.wait(30)
    opened.close()
    for job in jobs:
        with pytest.raises(StoppedError):
            job.result.result(1)


def test_the_same_question_gets_the_same_answer_at_once_until_the_index_changes(folder: Path, documents: Path) -> None:
    replies = iter(["The first answer [1].", "The second answer [1]."])
    with closing(owner(folder, parts(lambda _prompt: next(replies)))) as opened:
        opened.start()

        def ask(**how: Any) -> Any:
            return opened.submit(answering(Question(QUESTION, **how))).result.result(30)

        first, again = ask(), ask()
        assert (first.again, again.again) == (False, True)
        assert again == first
        (documents / "new.md").write_text("# Zebras\n\nZebras sleep.\n")
        index(documents, folder)
        later = ask()
        assert (later.again, later.answer.text) == (False, "The second answer [1].")


@pytest.mark.parametrize("options", [AskOptions(passages=1), AskOptions(rerank=False), AskOptions(anyway=True)])
def test_a_question_that_is_asked_otherwise_is_another_one(folder: Path, options: AskOptions) -> None:
    with closing(owner(folder)) as opened:
        opened.start()
        opened.submit(answering(Question(QUESTION))).result.result(30)
        assert not opened.submit(answering(Question(QUESTION, options=options))).result.result(30).again


def test_answers_are_not_kept_where_the_setting_says_so(folder: Path) -> None:
    with closing(owner(folder, answer_cache=False)) as opened:
        opened.start()
        for _ in range(2):
            assert not opened.submit(answering(Question(QUESTION))).result.result(30).again
        with closing(sqlite3.connect(folder / "history.sqlite3")) as history:
            assert not history.execute("SELECT kind FROM cached").fetchall()


def test_a_damaged_history_is_no_reason_not_to_answer(folder: Path) -> None:
    (folder / "history.sqlite3").write_bytes(b"no database at all" * 100)
    with closing(owner(folder)) as opened:
        opened.start()
        assert opened.submit(answering(Question(QUESTION))).result.result(30).answer.answered
