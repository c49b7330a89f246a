"""One library, many threads: questions and searches while another writes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local_rag import Library
from local_rag.library import Parts
from tests.fakes import EMBEDS_QUICKLY, FakeEmbedder, FakeGenerator, generating


def test_eight_threads_ask_and_search_while_an_index_publishes(documents: Path) -> None:
    def reply(prompt: str) -> str:
        asked = prompt.rpartition("Question: ")[2].partition("\n")[0]
        return f"It is said of {asked} [1]."

    parts = Parts(load_embedder=FakeEmbedder, open_engine=generating(FakeGenerator(reply)))
    writer = Library("lib", parts=EMBEDS_QUICKLY, profile="tiny", context="headings")
    writer.index([documents])
    stop = threading.Event()
    published = set()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (documents / "boat.txt").write_text(f"The boat leaves the harbour at seven, revision {number}.\n")
            writer.index()
            published.add((Path("lib") / "CURRENT").read_text())

    with Library("lib", parts=parts) as library, ThreadPoolExecutor(8) as threads:
        writing = threading.Thread(target=write)
        writing.start()

        def ask(number: int) -> tuple[str, set[str]]:
            answer = library.ask(f"boat number {number}")
            return answer.text, {Path(passage.path).name for passage in library.search("boat harbour", top=50)}

        results: list[tuple[str, set[str]]] = []
        try:
            while len(published) < 3 and writing.is_alive():
                results += threads.map(ask, range(len(results), len(results) + 24))
        finally:
            stop.set()
            writing.join()
    assert [text for text, _ in results] == [f"It is said of boat number {n} [1]." for n in range(len(results))]
    assert {frozenset(names) for _, names in results} == {frozenset({"boat.txt", "ireland.md", "leave.md"})}
    assert len(published) >= 3
