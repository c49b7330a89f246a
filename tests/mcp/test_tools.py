"""The tools, through the SDK's own client, in both eras of the protocol."""

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import pytest
from mcp import Client, MCPError

from local_rag.catalogue.contents import Contents
from local_rag.errors import ModelError
from local_rag.holdings.documents import Documents
from local_rag.library import Library
from local_rag.mcp.token_budget import MAX_FETCH, MAX_SEARCH, count_tokens
from local_rag.mcp.tool_arguments import ListArguments, SearchArguments
from local_rag.mcp.tools import list_documents
from local_rag.model_records import InstalledModel
from local_rag.view import View
from tests.fakes import FakeEmbedder
from tests.mcp.talking import ERAS, call, loaded, local_service, talk
from tests.support import served


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_only_read_and_say_what_they_take_and_give(folder: Path, era: str) -> None:
    async def work(client: Client) -> Any:
        return (await client.list_tools()).tools, client.instructions

    tools, instructions = talk(local_service(folder), work, era=era)
    named = [tool.name for tool in tools]
    assert named == ["search", "find", "diff", "brief", "verify", "fetch", "list_documents", "status", "gaps", "marks"]
    for tool in tools:
        assert tool.annotations.read_only_hint
        assert not tool.annotations.open_world_hint
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
    takes = {tool.name: set(tool.input_schema["properties"]) for tool in tools}
    assert takes == {
        "search": {"query", "limit", "in", "type", "since", "before", "tag"},
        "diff": {"before", "after"},
        "brief": {"documents", "lines", "in"},
        "verify": {"text", "start", "in", "type", "since", "before", "tag"},
        "find": {"question", "in", "type", "since", "before", "tag"},
        "fetch": {"id", "offset", "around"},
        "list_documents": {"in", "cursor"},
        "status": set(),
        "gaps": {"start"},
        "marks": set(),
    }
    assert "results" in tools[0].output_schema["properties"]
    assert len(instructions) <= 600
    assert "3 documents" in instructions
    assert "never instructions" in instructions


@pytest.mark.parametrize("era", ERAS)
def test_search_gives_passages_with_all_that_is_promised(folder: Path, era: str) -> None:
    async def work(client: Client) -> Any:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        return tools, await client.call_tool("search", {"query": "When does the boat leave?", "limit": 2})

    tools, result = talk(loaded(local_service(folder)), work, era=era)
    found = result.structured_content
    assert json.loads(result.content[0].text) == found
    jsonschema.validate(found, tools["search"].output_schema)
    assert (found["dense"], len(found["results"])) == ("ready", 2)
    best = found["results"][0]
    assert best["text"].startswith("The boat leaves")
    assert best["location"].endswith("boat.txt:1")
    assert best["ranks"]["keyword"]["rank"] == 1
    assert {"id", "title", "headings", "generated_context", "changed_since_indexed"} <= set(best)
    assert not best["changed_since_indexed"]


def test_search_names_the_newest_version_of_an_older_document(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    for year, amount in ((2022, 520), (2025, 740)):
        text = f"# Travel policy {year}\n\nThe daily allowance for meals is {amount} kroner.\n"
        (documents / f"travel-policy-{year}.md").write_text(text)
    served.index(documents, tmp_path / "lib")
    asked = {"query": "daily allowance for meals"}
    by_models = call(loaded(local_service(tmp_path / "lib")), "search", asked)
    without = local_service(tmp_path / "lib", replace(served.parts(), load_embedder=missing))
    by_keywords = call(loaded(without), "search", asked)
    for found in (by_models, by_keywords):
        newest = {Path(one["location"].rpartition(":")[0]).name: one["newest_version"] for one in found["results"]}
        assert newest == {
            "travel-policy-2022.md": str(documents / "travel-policy-2025.md"),
            "travel-policy-2025.md": None,
        }
    assert by_keywords["dense"] == "unavailable"


def test_find_counts_all_documents(folder: Path) -> None:
    found = call(loaded(local_service(folder)), "find", {"question": "How many documents mention parents?"})
    assert (found["kind"], found["count"], found["complete"], found["left_out"]) == ("count", 2, True, 0)
    assert found["rule"].startswith('contain the word "parents"')
    assert {Path(one["path"]).name for one in found["documents"]} == {"leave.md", "ireland.md"}
    within = {"question": "How many documents mention parents?", "in": "norway"}
    assert call(loaded(local_service(folder)), "find", within)["count"] == 1


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        ({"in": "norway"}, {"leave.md"}),
        ({"in": ["norway", "boat.txt"]}, {"leave.md", "boat.txt"}),
        ({"type": "txt"}, {"boat.txt"}),
        ({"type": ["md"], "in": "ireland.md"}, {"ireland.md"}),
        ({"before": "1990"}, set()),
        ({"since": "1990-05"}, {"leave.md", "boat.txt", "ireland.md"}),
        ({"tag": "none"}, set()),
    ],
)
def test_filters_choose_documents(folder: Path, filters: dict[str, Any], places: set[str]) -> None:
    found = call(loaded(local_service(folder)), "search", {"query": "parental leave", **filters})
    assert {Path(one["location"].rpartition(":")[0]).name for one in found["results"]} == places


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("search", {"query": "boat", "nonsense": 1}, "takes query, in, type, since, before, tag, limit"),
        ("search", {"query": "boat", "within": "x"}, "search takes no within"),
        ("status", {"x": 1}, "status takes no x; it takes nothing."),
        ("search", {}, "query"),
        ("search", {"query": "boat", "limit": 99}, "limit"),
        ("search", {"query": "boat", "since": "soon"}, "give a date"),
        ("search", {"query": "  "}, "The question is empty."),
        ("fetch", {"id": "../../etc/passwd"}, "take one that search"),
        ("fetch", {"id": "passage-99999"}, "search again"),
        ("fetch", {"id": "document-99999"}, "search again"),
        ("fetch", {"id": "document-1", "offset": 10**6}, "after the end"),
        ("list_documents", {"cursor": "nonsense!"}, "leave it away"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_in_a_sentence(
    folder: Path, era: str, tool: str, arguments: dict[str, Any], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    said = call(loaded(local_service(folder)), tool, arguments, era=era)
    assert message in said
    assert "\n" not in said
    assert "Traceback" not in capfd.readouterr().err


def test_until_the_models_are_loaded_keywords_answer(folder: Path) -> None:
    may_load = threading.Event()

    def load(model: InstalledModel) -> FakeEmbedder:
        assert may_load.wait(60)
        return FakeEmbedder(model)

    service = local_service(folder, replace(served.parts(), load_embedder=load))

    async def work(client: Client) -> Any:
        early = await client.call_tool("search", {"query": "boat", "in": "*.txt"})
        assert (await client.call_tool("status", {})).structured_content["dense"] == "loading"
        may_load.set()
        await wait_until_ready(client)
        return early.structured_content, (await client.call_tool("search", {"query": "boat"})).structured_content

    early, late = talk(service, work)
    assert (early["dense"], late["dense"]) == ("loading", "ready")
    assert "keywords alone" in early["note"]
    assert set(early["results"][0]["ranks"]) == {"keyword"}
    assert [one["title"] for one in early["results"]] == ["Boat"]
    assert "dense" in late["results"][0]["ranks"]


def test_models_that_load_soon_are_waited_for(folder: Path) -> None:
    """As after a while without questions, when they were freed."""

    def load(model: InstalledModel) -> FakeEmbedder:
        time.sleep(0.3)
        return FakeEmbedder(model)

    service = local_service(folder, replace(served.parts(), load_embedder=load))
    service.patience = 30.0
    found = call(service, "search", {"query": "boat"})
    assert (found["dense"], found["note"]) == ("ready", None)
    assert "dense" in found["results"][0]["ranks"]


async def wait_until_ready(client: Client) -> None:
    for _ in range(1000):
        status = (await client.call_tool("status", {})).structured_content
        if status and status["dense"] == "ready":
            return
    raise AssertionError("the models were not loaded")


def missing(_model: InstalledModel) -> FakeEmbedder:
    """Load a model that is not there."""
    raise ModelError("The model is not installed; run `local-rag models pull`.")


def test_without_its_model_a_library_is_searched_by_keywords(folder: Path) -> None:
    service = local_service(folder, replace(served.parts(), load_embedder=missing))

    async def work(client: Client) -> Any:
        found = (await client.call_tool("search", {"query": "boat"})).structured_content
        return found, (await client.call_tool("status", {})).structured_content

    found, status = talk(loaded(service), work)
    assert found["dense"] == status["dense"] == "unavailable"
    assert "models pull" in found["note"]
    assert found["results"][0]["title"] == "Boat"


def test_a_file_that_has_changed_is_said_to_have(folder: Path, documents: Path) -> None:
    (documents / "boat.txt").write_text("The boat leaves at nine.\n")
    found = call(loaded(local_service(folder)), "search", {"query": "boat", "type": "txt"})
    assert found["results"][0]["changed_since_indexed"]
    assert "seven" in found["results"][0]["text"]


def test_long_passages_stay_within_the_tokens(documents: Path) -> None:
    words = " ".join(f"harbour {number}" for number in range(400))
    for number in range(12):
        (documents / f"long{number}.txt").write_text(f"{number}. {words}\n")
    served.index(documents, documents.parent / "lib", chunk_tokens=254)
    found = call(loaded(local_service(documents.parent / "lib")), "search", {"query": "harbour", "limit": 20})
    assert found["results"]
    assert found["left_out"] > 0
    assert count_tokens(json.dumps(found)) <= MAX_SEARCH * 1.1


@pytest.mark.slow
def test_fetch_reads_a_document_page_by_page(folder: Path, documents: Path) -> None:
    text = "\n".join(f'Line {number}: the harbour, the quay \\ and "the boat".' for number in range(3000))
    (documents / "long.txt").write_text(text)
    served.index(documents, folder)

    async def work(client: Client) -> Any:
        listed = (await client.call_tool("list_documents", {"in": "long.txt"})).structured_content
        assert listed
        key, pages = listed["results"][0]["id"], list[str]()
        offset: Any = 0
        while offset is not None:
            result = await client.call_tool("fetch", {"id": key, "offset": offset})
            page = result.structured_content
            assert page is not None
            assert count_tokens(result.content[0].text) <= MAX_FETCH  # type: ignore[union-attr]
            pages.append(page["text"])
            offset = page["next"]
        return pages

    pages = talk(local_service(folder), work)
    assert len(pages) > 2
    assert "".join(pages) == text


def test_fetch_reads_around_a_passage(documents: Path, folder: Path) -> None:
    parts = [f"# Part {number}\n\n" + f"Word{number} " * 120 for number in range(6)]
    (documents / "parts.md").write_text("\n\n".join(parts))
    served.index(documents, folder, chunk_tokens=130)

    async def work(client: Client) -> Any:
        found = (await client.call_tool("search", {"query": "Word3", "limit": 1})).structured_content
        assert found
        key = found["results"][0]["id"]
        alone = (await client.call_tool("fetch", {"id": key})).structured_content
        return alone, (await client.call_tool("fetch", {"id": key, "around": 1})).structured_content

    alone, around = talk(loaded(local_service(folder)), work)
    assert "Word3" in alone["text"]
    assert "Word2" not in alone["text"]
    assert alone["text"] in around["text"]
    assert "Word2" in around["text"]
    assert around["start"] < alone["start"] < alone["end"] < around["end"]


QUERIES = ["What is this document about?", "Which documents mention leave?", "boat", "parental leave", "summary"]


def test_every_id_that_a_tool_gives_can_be_fetched(folder: Path) -> None:
    async def work(client: Client) -> Any:
        ids, kinds = set[str](), set[str]()
        for query in QUERIES:
            found = (await client.call_tool("search", {"query": query, "limit": 20})).structured_content
            answered = (await client.call_tool("ask", {"question": query})).structured_content
            listed = (await client.call_tool("list_documents", {})).structured_content
            assert found and answered and listed  # noqa: PT018
            kinds |= {one["kind"] for one in found["results"]}
            ids |= {one[name] for one in found["results"] for name in ("id", "document")}
            ids |= {one["id"] for one in (*answered["citations"], *answered["closest"], *listed["results"])}
        fetched = {key: await client.call_tool("fetch", {"id": key, "around": 1}) for key in ids}
        return kinds, {key: result.is_error for key, result in fetched.items()}

    kinds, failed = talk(loaded(local_service(folder)), work, with_ask=True)
    assert kinds == {"chunk", "document"}
    assert len(failed) > 5
    assert not any(failed.values()), failed


def test_documents_are_listed_page_by_page(documents: Path) -> None:
    for number in range(60):
        (documents / f"note{number:02}.txt").write_text(f"Note {number} is about the harbour.\n")
    served.index(documents, documents.parent / "lib")

    async def work(client: Client) -> Any:
        names, cursor = list[str](), None
        for _ in range(20):
            arguments: dict[str, Any] = {"cursor": cursor} if cursor else {}
            result = await client.call_tool("list_documents", arguments)
            page = result.structured_content
            assert page is not None
            assert count_tokens(result.content[0].text) <= MAX_SEARCH  # type: ignore[union-attr]
            names += [one["location"] for one in page["results"]]
            if (cursor := page["next"]) is None:
                return names
        raise AssertionError("there is no end")

    names = talk(local_service(documents.parent / "lib"), work)
    assert names == sorted(str(path) for path in documents.rglob("*") if path.is_file())


def test_a_document_that_is_removed_while_a_page_is_made_ends_no_listing(documents: Path) -> None:
    for number in range(120):
        (documents / f"note{number:03}.txt").write_text(f"Note {number} is about the harbour.\n")
    served.index(documents, documents.parent / "lib")
    paths = sorted(str(path) for path in documents.rglob("*") if path.is_file())
    gone = {paths[1], paths[40], paths[-1]}

    class RemovedMeanwhile:
        """The documents of a library, some of which are removed between the two looks at it."""

        def __init__(self, whole: Documents) -> None:
            self.listed, self._whole = whole.listed, whole

        def contents(self) -> Contents:
            found = self._whole.contents()
            left = {path: number for path, number in found.documents.items() if path not in gone}
            return Contents(left, found.roots)

    names, cursor = list[str](), None
    with Library(documents.parent / "lib", parts=served.parts(), profile="tiny", context="headings") as library:
        view = cast(View, SimpleNamespace(documents=RemovedMeanwhile(library.documents)))
        for _ in range(20):
            page = list_documents(view, ListArguments.model_validate({"cursor": cursor}))
            names += [one.location for one in page.results]
            if (cursor := page.next) is None:
                break
    assert names == [path for path in paths if path not in gone]


def test_status_says_what_is_stale(folder: Path, documents: Path) -> None:
    (documents / "new.txt").write_text("New.\n")
    said = call(local_service(folder), "status", {})
    assert (said["documents"], said["library"]) == (3, str(folder))
    assert {"reason": "1 file is new", "command": "local-rag index"} in said["stale"]


@pytest.mark.parametrize("era", ERAS)
def test_ask_is_there_only_where_it_is_asked_for(folder: Path, era: str) -> None:
    said = call(local_service(folder), "ask", {"question": served.QUESTION}, era=era, with_ask=True)
    assert (said["outcome"], said["answered"], said["probability"]) == ("answered", True, None)
    assert said["text"].startswith("The boat leaves the harbour at seven. [1]")
    assert 'boat.txt:1\n\n  > "The boat leaves the harbour at seven."' in said["text"]
    assert said["remarks"] == []
    assert said["understood_as"].startswith("question about passages")
    assert said["quotes"][0] == {"text": "The boat leaves the harbour at seven.", "citation": 1}
    assert said["citations"][0]["location"].endswith("boat.txt:1")

    async def work(client: Client) -> None:
        with pytest.raises(MCPError, match="There is no tool 'ask'"):
            await client.call_tool("ask", {"question": served.QUESTION})

    talk(local_service(folder), work, era=era)


@pytest.mark.parametrize(
    ("question", "outcome", "quoted"), [(served.QUESTION, "quoted", True), ("Do zebras sleep?", "refused", False)]
)
def test_ask_says_what_came_of_a_doubtful_answer(folder: Path, question: str, outcome: str, quoted: bool) -> None:
    unsure = served.parts(lambda _prompt: "It leaves at eight.", holds=lambda _prompt: False)
    said = call(local_service(folder, unsure), "ask", {"question": question}, with_ask=True)
    assert (said["outcome"], said["answered"]) == (outcome, False)
    assert "eight" not in said["text"]
    assert bool(said["quotes"]) == bool(said["citations"]) == quoted
    assert bool(said["closest"]) != quoted


def test_extract_asks_each_document_and_tells_what_is_missing(folder: Path) -> None:
    def reply(prompt: str) -> str:
        return "seven" if "at seven" in prompt.rpartition("Question: ")[0] else "Unanswerable."

    arguments = {"columns": ["Leaves: When does the boat leave?"], "in": "*.txt"}
    found = call(local_service(folder, served.parts(reply)), "extract", arguments, with_ask=True)
    assert (found["documents"], found["missing"], found["next"]) == (1, 0, None)
    cell = found["rows"][0]["cells"][0]
    assert (cell["state"], cell["value"]) == ("stated", "seven")
    assert cell["quotation"] == "The boat leaves the harbour at seven."
    wrong = call(local_service(folder), "extract", {"columns": ["A: When? (date)", "A: Who?"]}, with_ask=True)
    assert "Two columns are named" in wrong


def test_a_running_server_answers_in_the_place_of_own_models(folder: Path) -> None:
    def none(_model: InstalledModel) -> FakeEmbedder:
        raise AssertionError("the server has the models")

    orders = []

    def ask_server(order: Any, _stop: Any) -> dict[str, Any]:
        orders.append(order)
        return {"found": {"passages": [], "question": "boat", "corrections": []}}

    service = local_service(folder, replace(served.parts(), load_embedder=none), ask_server, is_served=lambda: True)
    found = call(service, "search", {"query": "boat", "limit": 3, "type": "md"})
    assert (found["results"], found["dense"]) == ([], "ready")
    assert [(one["do"], one["question"], one["top"], one["options"].filters.types) for one in orders] == [
        ("search", "boat", 3, ("md",))
    ]


def test_diff_and_brief_give_quotations_only(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    for year, amount in ((2022, 520), (2025, 740)):
        text = f"# Travel policy {year}\n\nThe daily allowance for meals is {amount} kroner. Receipts must be kept.\n"
        (documents / f"travel-policy-{year}.md").write_text(text)
    served.index(documents, tmp_path / "lib")
    changed = call(loaded(local_service(tmp_path / "lib")), "diff", {"before": "travel-policy-2025.md"})
    (allowance,) = [one for one in changed["changes"] if one["about"] == "daily allowance for meals"]
    assert [(one["before"], one["after"]) for one in allowance["values"]] == [("520 kroner", "740 kroner")]
    assert allowance["after"]["text"] == "The daily allowance for meals is 740 kroner."
    brief = call(loaded(local_service(tmp_path / "lib")), "brief", {"documents": ["travel-policy-2025.md"]})
    assert {one["list"] for one in brief["lines"]} >= {"", "amounts", "obligations"}
    text = (documents / "travel-policy-2025.md").read_text()
    assert all(one["text"] in text for one in brief["lines"])


def test_arguments_are_taken_in_the_forms_that_hosts_send() -> None:
    given = {
        "query": "leave",
        "in": '["policies/**", "a"]',
        "type": None,
        "since": None,
        "tag": "[draft] x",
        "limit": None,
    }
    asked = SearchArguments.model_validate(given)
    assert (asked.within, asked.types, asked.tags, asked.limit) == (["policies/**", "a"], [], "[draft] x", 8)


def test_filters_that_no_document_passes_are_told(folder: Path) -> None:
    async def work(client: Client) -> Any:
        given = {"query": "When does the boat leave?", "in": ["nowhere"]}
        found = await client.call_tool("find", {"question": "How many documents mention a boat?", "type": "xyz"})
        return (await client.call_tool("search", given)).structured_content, found.structured_content

    searched, found = talk(loaded(local_service(folder)), work)
    assert searched["note"] == "No document lies in nowhere; `list_documents` tells what there is."
    assert found["notes"][0].startswith("No document passes the filters")


@pytest.mark.parametrize("era", ERAS)
def test_a_text_is_checked_page_by_page(folder: Path, era: str) -> None:
    text = "The boat leaves the harbour at eight. " * 40
    whole = call(loaded(local_service(folder)), "verify", {"text": text}, era=era)
    first = whole["statements"][0]
    assert (first["verdict"], first["quotes"][0]["differs"][0]["said"]) == ("contradicted", "eight")
    assert first["quotes"][0]["location"].endswith("boat.txt:1")
    assert count_tokens(json.dumps(whole, ensure_ascii=False)) <= MAX_SEARCH
    assert whole["next"] == len(whole["statements"]) < 40
    rest = call(loaded(local_service(folder)), "verify", {"text": text, "start": 39}, era=era)
    assert (len(rest["statements"]), rest["next"]) == (1, None)
