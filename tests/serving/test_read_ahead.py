"""After a search or a quotation on the page the model reads what an answer would, until somebody asks for anything."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag.errors import StoppedError
from local_rag.serving.requests import AskRequest, Caller, SearchRequest
from local_rag.serving.service import Service
from tests.fakes import QUICK, FakeGenerator, generating
from tests.support.served import DOUBTED, QUESTION, client, reply, wait_until, worker

CALLER = Caller("somebody", "/search")


class Reading(FakeGenerator):
    """A generator that notes what it reads ahead, and with `slow` reads until it is stopped."""

    def __init__(self, *, slow: bool = False) -> None:
        super().__init__(reply, lambda prompt: DOUBTED not in prompt, context_tokens=100_000)
        self.ahead, self.going, self._slow = list[str](), threading.Event(), slow

    def read(self, prefix: Sequence[int]) -> None:
        self.ahead.append(self.model.detokenize(list(prefix)))
        self.going.set()
        while self._slow and not self.stop():
            threading.Event().wait(0.01)
        if self.stop():
            raise StoppedError("The answer was stopped.")


@pytest.fixture
def generator() -> Reading:
    return Reading()


@pytest.fixture
def service(folder: Path, generator: Reading) -> Iterator[Service]:
    with closing(worker(folder, replace(QUICK, open_engine=generating(generator)))) as opened:
        opened.start()
        yield Service(opened)


def test_what_is_read_ahead_is_what_the_answer_reads(service: Service, generator: Reading) -> None:
    service.search(SearchRequest(question=QUESTION), CALLER).result.result(60)
    service.read_ahead(SearchRequest(question=QUESTION), CALLER)
    assert generator.going.wait(60)
    service.ask(AskRequest(question=QUESTION), CALLER).result.result(60)
    (ahead,) = generator.ahead
    assert QUESTION in ahead
    assert all(prompt.startswith(ahead) for prompt in generator.prompts)


@pytest.mark.parametrize("generator", [Reading(slow=True)])
def test_a_question_does_not_wait_for_it(service: Service, generator: Reading) -> None:
    service.read_ahead(SearchRequest(question=QUESTION), CALLER)
    assert generator.going.wait(60)
    assert service.search(SearchRequest(question="boat"), CALLER).result.result(60).passages
    assert service.worker.loaded


def test_a_library_that_takes_turns_with_others_reads_nothing_ahead(folder: Path, generator: Reading) -> None:
    made_of = replace(QUICK, open_engine=generating(generator))
    with closing(worker(folder, made_of, turn=threading.Lock())) as opened:
        opened.start()
        service = Service(opened)
        service.read_ahead(SearchRequest(question=QUESTION), CALLER)
        service.search(SearchRequest(question="boat"), CALLER).result.result(60)
    assert not generator.ahead


@pytest.mark.parametrize(("headers", "reads"), [({}, True), ({"accept": "application/json"}, False)])
def test_the_page_reads_ahead_and_a_program_does_not(
    folder: Path, generator: Reading, headers: dict[str, str], reads: bool
) -> None:
    with client(folder, replace(QUICK, open_engine=generating(generator))) as opened:
        assert opened.get("/search?q=boat", headers=headers).status_code == 200
        if reads:
            wait_until(lambda: bool(generator.ahead))
        assert opened.get("/search?q=tide", headers={"accept": "application/json"}).status_code == 200
        assert bool(generator.ahead) == reads


@pytest.mark.parametrize(("question", "reads"), [(DOUBTED, True), (QUESTION, False)])
def test_after_a_quotation_the_page_reads_ahead_for_an_answer_anyway(
    folder: Path, generator: Reading, question: str, reads: bool
) -> None:
    with client(folder, replace(QUICK, open_engine=generating(generator))) as opened:
        told = opened.post("/ask", data={"question": question}, headers={"accept": "text/event-stream"}).text
        assert ('"quoted"' in told) == reads
        if reads:
            wait_until(lambda: bool(generator.ahead))
        opened.get("/search?q=tide", headers={"accept": "application/json"})
        assert bool(generator.ahead) == reads
