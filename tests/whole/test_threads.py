"""One library answers several threads, one question at a time, while another one publishes."""

import re
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking import AskOptions
from local_rag.errors import ModelError
from local_rag.library import Parts
from local_rag.llama.generator import Request, Token
from local_rag.model_records import InstalledModel
from tests.fakes import FakeEmbedder, FakeGenerator, generating

THREADS, YEARS = 8, 4
Fleet = Callable[[str], None]


def reply(prompt: str) -> str:
    """Answer from the sources when the boat that is asked for leaves."""
    asked = re.search(r"When does boat (\w+) leave", prompt)
    assert asked is not None
    found = re.search(rf"Boat {asked[1]} leaves (in:\d+)", prompt)
    return f"Boat {asked[1]} leaves {found[1]}." if found else "Never."


class OneAtATime(FakeGenerator):
    """A generator that notices when a second caller comes while the first is being answered."""

    busy = False

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        assert not self.busy
        self.busy = True
        time.sleep(0.001)
        try:
            yield from super().stream(requests)
        finally:
            self.busy = False


PARTS = Parts(load_embedder=FakeEmbedder, open_engine=generating(OneAtATime(reply, context_tokens=100_000)))


@pytest.fixture
def fleet(documents: Path) -> Fleet:
    """Index the same boats with the year in which they leave, by a library of its own."""

    def publish(year: str) -> None:
        boats = [f"# Boat {name}\n\nBoat {name} leaves {year}. It carries people.\n" for name in "abcdefgh"]
        (documents / "boats.md").write_text("\n".join(boats))
        with Library("lib", parts=PARTS, profile="tiny", context="headings", chunk_tokens=16) as library:
            library.index([documents / "boats.md"])

    publish("in:2000")
    return publish


def test_threads_ask_and_search_while_another_library_publishes(fleet: Fleet) -> None:
    library, published = Library("lib", parts=PARTS), threading.Event()

    def ask(number: int) -> set[str]:
        years, boat = set[str](), "abcdefgh"[number]
        while len(years) < YEARS and not (published.is_set() and years):
            answer = library.ask(f"When does boat {boat} leave?", AskOptions(passages=20))
            (said,) = re.findall(rf"Boat {boat} leaves (in:\d+)\.", answer.text)
            found = library.search(f"boat {boat}", top=20) if number % 2 else answer.passages
            of_passages = {year for passage in found for year in re.findall(r"in:\d+", passage.text)}
            assert len(of_passages) == 1, "all from one index"
            assert number % 2 or of_passages == {said}
            years.add(said)
        return years

    with ThreadPoolExecutor(THREADS) as threads:
        running = [threads.submit(ask, number) for number in range(THREADS)]
        for year in range(2001, 2001 + YEARS):
            fleet(f"in:{year}")
        published.set()
        seen = set().union(*(thread.result() for thread in running))
    assert len(seen) > 1, "the index changed while it was asked"
    assert library.ask("When does boat a leave?").text.startswith(f"Boat a leaves in:{2000 + YEARS}. [")
    library.close()


def test_a_callback_may_ask_on_and_a_thread_may_close(fleet: Fleet) -> None:
    library = Library("lib", parts=PARTS)
    inner = []
    answer = library.ask("When does boat b leave?", on_passages=lambda _: inner.append(library.search("boat c", top=1)))
    assert answer.answered
    assert len(inner[0]) == 1
    closing = threading.Thread(target=library.close)
    closing.start()
    closing.join()
    assert library.search("boat d", top=1), "it is opened again"
    library.close()


def test_the_embedder_is_loaded_while_the_first_question_is_read(fleet: Fleet) -> None:
    loaders = list[str]()

    def load(model: InstalledModel) -> FakeEmbedder:
        loaders.append(threading.current_thread().name)
        return FakeEmbedder(model)

    with Library("lib", parts=replace(PARTS, load_embedder=load)) as library:
        first = library.search("boat a")
        assert library.search("boat a") == first
        library.ask("When does boat a leave?")
    assert len(loaders) == 1
    assert loaders[0] != threading.current_thread().name


def test_what_fails_while_the_first_question_is_read_is_said_by_the_search(fleet: Fleet) -> None:
    def load(_model: InstalledModel) -> FakeEmbedder:
        raise ModelError("The embedder is torn.")

    with Library("lib", parts=replace(PARTS, load_embedder=load)) as library:
        for _ in range(2):
            with pytest.raises(ModelError, match="is torn"):
                library.search("boat a")
