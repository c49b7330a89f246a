"""The page and MCP over an empty folder: the index is in a search engine, and no document is on this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_rag.library import Library
from tests.conftest import Run
from tests.fakes import QUICK
from tests.mcp.talking import call, loaded, local_service
from tests.support import served

pytest.importorskip("qdrant_edge", reason="the extra [cluster-test] is not installed")

from tests.support.search_engine import StandIn

ELSEWHERE = "whole documents are on the machine that indexed them"


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A search engine that holds an index of two documents, whose library is elsewhere."""
    place = tmp_path_factory.mktemp("elsewhere")
    (place / "documents").mkdir()
    (place / "documents" / "boat.txt").write_text("The boat leaves the harbour at seven. It carries twelve people.\n")
    (place / "documents" / "ireland.md").write_text("# Leave in Ireland\n\nParents get 26 weeks at half pay.\n")
    engine = StandIn()
    with Library(
        place / "lib", parts=QUICK, profile="tiny", context="headings", search_engine={"address": engine.setting}
    ) as one:
        one.index([place / "documents"])
    yield engine.setting
    engine.remove()


def test_the_page_searches_and_answers(tmp_path: Path, setting: str) -> None:
    with served.client(tmp_path, profile="tiny", search_engine={"address": setting}) as client:
        assert client.get("/").status_code == 200
        found = client.get("/search?q=boat")
        assert found.status_code == 200
        assert "boat.txt" in found.text
        assert 'href="/document/' not in found.text
        answered = client.post("/ask", data={"question": served.QUESTION})
        assert answered.status_code == 200
        assert "leaves the harbour at seven" in answered.text
        events = client.post("/ask", data={"question": "boat?"}, headers={"accept": "text/event-stream"}).text
        assert "event: done" in events
        assert client.get("/inspect?q=boat").status_code == 200
        assert "boat.txt" in client.get("/inspect?q=boat&format=json").text
        for page in ("/library", "/document/1"):
            whole = client.get(page)
            assert whole.status_code == 503
            assert ELSEWHERE in whole.text


def test_mcp_searches(tmp_path: Path, setting: str) -> None:
    how: dict[str, Any] = {"profile": "tiny", "search_engine": {"address": setting}}
    found = call(loaded(local_service(tmp_path, **how)), "search", {"query": "boat"})
    assert found["dense"] == "ready"
    assert found["results"][0]["title"] == "Boat"
    assert found["results"][0]["document"] == ""
    by_keywords = local_service(tmp_path, **how)
    assert by_keywords.library.retrieval.search_keywords("boat", top=1)[0].title == "Boat"
    assert ELSEWHERE in call(by_keywords, "fetch", {"id": "document-1"})


@pytest.mark.parametrize("question", ["How many documents mention the boat?", "Which documents are about leave?"])
def test_counting_needs_the_documents_and_says_so(tmp_path: Path, setting: str, run: Run, question: str) -> None:
    (tmp_path / "settings.toml").write_text(f'profile = "tiny"\nsearch_engine.address = "{setting}"\n')
    found = run("find", question, "--library", tmp_path, parts=QUICK)
    assert found.exit_code == 1
    assert ELSEWHERE in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert ELSEWHERE in call(loaded(local_service(tmp_path)), "find", {"question": question})
    with served.client(tmp_path) as client:
        asked = client.get("/find", params={"q": question})
        assert ELSEWHERE in asked.text
