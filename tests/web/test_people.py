"""People with limits: nothing outside is read, named or counted for them, whichever interface they ask."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from fpdf import FPDF
from starlette.testclient import TestClient

from local_rag.asking import Filters, PersonRole
from local_rag.files import AUDIT_FILE
from local_rag.library import Library
from local_rag.mcp.server import http_interface
from local_rag.openai.endpoint import chat_interface
from local_rag.store.history import History
from local_rag.store.people_file import PEOPLE_FILE, add_person, remove_person
from tests.fakes import QUICK, generating
from tests.support import served

HOST = "a-token-of-the-owner"
WORD = "quixotic"  # stands in the documents outside, and nowhere else
QUESTION = f"When is the {WORD} boat due in the harbour?"
OUTSIDE = re.compile(rf"{WORD}|ledger|windmill|closed/", re.I)
INTERFACES: list[Any] = [partial(http_interface, with_ask=True), chat_interface]
SHARED = "The harbour master keeps the key of the boat house and hands it out at seven every morning to the crew."
MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library of a part that is open, and one that is closed to some; both hold a text that is the same."""
    for part in ("open", "closed"):
        (tmp_path / "docs" / part).mkdir(parents=True)
        (tmp_path / "docs" / part / "house.txt").write_text(SHARED)
    (tmp_path / "docs/open/boat.txt").write_text("The boat leaves the harbour at seven.")
    (tmp_path / "docs/open/leave.md").write_text("---\ntags: [staff]\n---\n# Leave\n\nParental leave is long.")
    (tmp_path / "docs/closed/ledger.md").write_text(f"# Windmill\n\nThe {WORD} boat leaves the harbour at nine.")
    (tmp_path / "docs/closed/broken.pdf").write_bytes(b"%PDF-1.4 this is none")
    page = FPDF()
    page.add_page()
    page.set_font("helvetica")
    page.cell(text=f"The {WORD} boat stands on a page.")
    page.output(str(tmp_path / "docs/closed/windmill.pdf"))
    served.index(tmp_path / "docs", tmp_path / "lib")
    return tmp_path / "lib"


@pytest.fixture
def opened(library: Path) -> Iterator[TestClient]:
    with served.client(library, served.parts(answer), token=HOST, interfaces=INTERFACES, audit_log=True) as client:
        yield client


def answer(prompt: str) -> str:
    """Say the word if a passage of the prompt says it, as a model would."""
    passages = prompt.rpartition("Question:")[0].replace(QUESTION, "")
    return f"The {WORD} boat leaves at nine." if WORD in passages else "The boat leaves the harbour at seven."


def person(library: Path, name: str, *within: str, role: PersonRole = "reader", tags: tuple[str, ...] = ()) -> Any:
    """Add a person; return the headers of a request of this person."""
    return {"authorization": f"Bearer {add_person(library, name, role, within=within, tags=tags)}"}


def chunks_of(library: Path, name: str) -> list[int]:
    """Return the numbers of the passages of a document."""
    with Library(library) as whole:
        number = next(
            number for path, number in whole.documents.contents().documents.items() if path.endswith(f"/{name}")
        )
        return [one.chunk_id for one in whole.documents.get(number).passages]


def tool(opened: TestClient, who: Any, name: str, **arguments: Any) -> str:
    order = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return opened.post("/mcp", content=json.dumps(order), headers=MCP | who).text


def completion(opened: TestClient, who: Any, **more: Any) -> str:
    body = {"messages": [{"role": "user", "content": QUESTION}], **more}
    return opened.post("/v1/chat/completions", json=body, headers=who).text


def without_the_question(text: str) -> str:
    """Leave out what the person has typed, which comes back in pages."""
    for typed in (
        f"Which documents mention {WORD}?",
        QUESTION,
        json.dumps(QUESTION)[1:-1],
        QUESTION.replace(" ", "+"),
        quote(QUESTION),
        quote_plus(QUESTION),
        f"q={WORD}",
        f">{WORD}<",
        f">{WORD} -",
        f'"{WORD}"',
    ):
        text = text.replace(typed, "")
    return text


def answers_of_a_file(opened: TestClient, who: Any) -> dict[str, str]:
    """Have the questions of a file answered; return its page and the files of answers."""
    sent = opened.post("/questions", files={"file": ("asked.txt", QUESTION.encode())}, headers=who)
    page = sent.headers["location"]
    served.wait_until(lambda: "1 of 1 answered" in opened.get(page, headers=who).text)
    said = {f"answers of a file, {form}": f"{page}/answers.{form}" for form in ("csv", "jsonl")}
    return {name: opened.get(path, headers=who).text for name, path in ({"answers of a file": page} | said).items()}


def everything(opened: TestClient, who: Any, ids: dict[str, int], chunks: list[int]) -> dict[str, str]:
    """Ask each interface in every way for what is outside; return what it said, by what was asked."""

    def get(address: str, **headers: str) -> str:
        found = opened.get(address, headers={"accept": "text/html", **who, **headers})
        return found.text + str(found.headers)

    def ask(**fields: Any) -> str:
        accept = fields.pop("accept")
        return opened.post("/ask", data={"question": QUESTION, **fields}, headers={"accept": accept, **who}).text

    said = {
        "page": get("/"),
        "ask, page": ask(accept="text/html"),
        "ask, JSON": ask(accept="application/json"),
        "ask, stream": ask(accept="text/event-stream"),
        "ask, anyway": ask(accept="application/json", anyway="1"),
        "ask, whole passages": ask(accept="application/json", passages="9"),
        "ask, filters that name it": ask(accept="application/json", **{"in": "closed/**"}),
        "ask, filters for all": ask(accept="text/event-stream", **{"in": "**"}),
        "search, page": get(f"/search?q={WORD}"),
        "search, JSON": get(f"/search?q={WORD}&format=json&top=1000"),
        "search, unranked": get(f"/search?q={WORD}&format=json&rerank=0"),
        "search, its folder": get(f"/search?q={WORD}&format=json&in=closed/**"),
        "search, a type": get(f"/search?q={WORD}&format=json&type=pdf"),
        "inspector": get(f"/inspect?q={WORD}"),
        "inspector, why missing": get(f"/inspect?q={WORD}&path=.pdf"),
        "inspector, JSON": get(f"/inspect?q={WORD}&path=e&format=json"),
        "inspector, dense": get(f"/inspect?q={WORD}&show=dense"),
        "start": get("/"),
        "sources": get("/sources"),
        "sources, what is chosen": get("/sources?source=docs/closed&source=closed&scope=1"),
        "sources, found": get("/sources?find=.pdf&part=1"),
        "scope": get("/scope?type=md"),
        "open": get("/open"),
        "open, by name": get("/open?q=.pdf&part=1"),
        "open, JSON": get("/open?q=e&format=json"),
        "conversations beside": get("/history/beside"),
        "ask, a folder that was chosen": ask(accept="text/event-stream", source="closed"),
        "find": get(f"/find?q=Which documents mention {WORD}?"),
        "find, JSON": get(f"/find?q=How many documents mention {WORD}?&format=json"),
        "find, CSV": get(f"/find?q=Which documents mention {WORD}?&format=csv"),
        "tool find": tool(opened, who, "find", question=f"Which documents mention {WORD}?"),
        "ask, count": opened.post(
            "/ask", data={"question": f"Which documents mention {WORD}?"}, headers={"accept": "application/json", **who}
        ).text,
        "library": get("/library"),
        "library, JSON": get("/library?format=json"),
        "library, later": get("/library?from=1"),
        "library, searched": get("/library?q=windmill&format=json"),
        "library, read in part": get("/library?show=part"),
        "people": get("/people"),
        "people, counted": opened.post(
            "/people/preview?part=1", data={"sees": "chosen", "in": "closed/**"}, headers=who
        ).text,
        "removing": opened.post(
            "/library/remove", data={"document": [str(one) for one in ids.values()]}, headers=who
        ).text,
        "progress": get("/library/progress"),
        "health": get("/healthz"),
        "history": get("/history?format=json"),
        "health, page": get("/health"),
        "metrics": get("/metrics"),
        "task": get("/library/task"),
        "adding": get("/library/add"),
        "questions": get("/questions"),
        "models": get("/v1/models"),
        "completion": completion(opened, who),
        "completion, stream": completion(opened, who, stream=True),
        "tool search": tool(opened, who, "search", query=WORD, limit=20),
        "tool search, its folder": tool(opened, who, "search", query=WORD, **{"in": ["closed"]}),
        "tool list": tool(opened, who, "list_documents"),
        "tool list, its folder": tool(opened, who, "list_documents", **{"in": "closed/**"}),
        "tool status": tool(opened, who, "status"),
        "tool ask": tool(opened, who, "ask", question=QUESTION),
        "initialize": opened.post("/mcp", content=INITIALIZE, headers=MCP | who).text,
    }
    held = opened.get("/history?format=json", headers=who).json()["conversations"]
    first = [one["id"] for one in held if one["title"] == QUESTION][-1]
    said |= {f"exported as {form}": get(f"/history/{first}.{form}") for form in ("html", "md")}
    said["conversation"] = get(f"/?conversation={first}")
    said |= answers_of_a_file(opened, who)
    for name, number in ids.items():
        said |= {
            f"document {name}": get(f"/document/{number}"),
            f"file {name}": get(f"/document/{number}/file"),
            f"image {name}": get(f"/document/{number}/page/1.png"),
            f"tool fetch {name}": tool(opened, who, "fetch", id=f"document-{number}"),
        }
    for chunk in chunks:
        said[f"passage {chunk}"] = get(f"/document/{ids['ledger.md']}?chunk={chunk}")
        said[f"tool fetch passage {chunk}"] = tool(opened, who, "fetch", id=f"passage-{chunk}")
    counted = ("find", "tool find", "ask, count")  # they say what they have looked for, whether it is there or not
    return {
        name: text.replace(WORD, "") if name.startswith(counted) else without_the_question(text)
        for name, text in said.items()
    }


INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
)


def test_nothing_outside_leaks_through_any_interface(opened: TestClient, library: Path) -> None:
    anna, host = person(library, "Anna", "open/**"), {"authorization": f"Bearer {HOST}"}
    with Library(library) as whole:
        documents = whole.documents.contents().documents
        ids = {Path(path).name: number for path, number in documents.items() if "/closed/" in path}
    chunks = [chunk for name in ids for chunk in chunks_of(library, f"closed/{name}")]
    assert set(ids) == {"ledger.md", "house.txt", "windmill.pdf"}
    everything(opened, host, ids, chunks)  # first, so that answers are in the cache
    said = everything(opened, anna, ids, chunks)
    assert len(said) >= 40
    assert {name: found for name, text in said.items() if (found := OUTSIDE.findall(text))} == {}
    seen = everything(opened, host, ids, chunks)
    blind = {name for name, text in seen.items() if not OUTSIDE.search(text)}
    named = {name for name in blind if not name.startswith(("passage", "image", "file"))}
    assert named <= {
        "page", "library, later", "progress", "health", "history", "models", "initialize", "inspector, dense",
        "document house.txt", "tool fetch house.txt", "tool status", "questions", "health, page", "metrics", "adding",
        "task", "people", "library, read in part", "conversations beside", "scope",
    }, "what shows nothing to the owner proves nothing"  # fmt: skip
    numbers = [opened.get(path, headers=who).status_code for who in (anna, host) for path in ("/metrics", "/health")]
    assert numbers == [403, 403, 200, 200]
    assert (
        json.loads(seen["find, JSON"].partition("Headers(")[0])["count"],
        json.loads(said["find, JSON"].partition("Headers(")[0])["count"],
    ) == (2, 0)
    assert [re.findall(r'\\"documents\\": ?(\d+)', text["tool status"]) for text in (seen, said)] == [["6"], ["3"]]
    assert opened.get(f"/document/{ids['windmill.pdf']}/page/1.png", headers=host).status_code == 200
    assert opened.get(f"/document/{ids['windmill.pdf']}/page/1.png", headers=anna).status_code == 404
    assert "The user's own library: 6 documents" in seen["initialize"]
    assert "documents" not in said["initialize"].partition("Search before")[0]


def test_documents_are_counted_within_the_limits(opened: TestClient, library: Path) -> None:
    anna = person(library, "Anna", "open/**")
    status = opened.get("/library?format=json", headers=anna).json()
    assert [Path(one["path"]).name for one in status["documents"]] == ["boat.txt", "house.txt", "leave.md"]
    assert (status["status"]["documents"], status["progress"]["total"]) == (3, 3)
    assert status["skipped"] == []
    whole = opened.get("/library?format=json", headers={"authorization": f"Bearer {HOST}"}).json()
    assert (whole["status"]["documents"], len(whole["skipped"])) == (6, 1)
    tagged = person(library, "Ben", tags=("staff",))
    assert [
        Path(one["path"]).name for one in opened.get("/library?format=json", headers=tagged).json()["documents"]
    ] == ["leave.md"]


def test_an_answer_is_given_again_only_to_who_sees_everything(opened: TestClient, library: Path) -> None:
    anna, ben, carl = (person(library, name, *within) for name, *within in (["A", "open/**"], ["B"], ["C"]))
    first = [ask(opened, who)["again"] for who in (ben, carl, anna, anna)]
    assert first == [False, True, False, False], "an answer made anew would tell that something has changed"
    assert WORD in ask(opened, ben)["answer"]
    assert WORD not in ask(opened, anna)["answer"]


def ask(opened: TestClient, who: Any, question: str = QUESTION, **fields: Any) -> Any:
    return opened.post(
        "/ask", data={"question": question, **fields}, headers={"accept": "application/json", **who}
    ).json()


def test_a_conversation_belongs_to_who_began_it(opened: TestClient, library: Path) -> None:
    anna, ben = person(library, "Anna"), person(library, "Ben")
    host = {"authorization": f"Bearer {HOST}"}
    mine = ask(opened, anna, "When does the boat leave?")["conversation"]
    for other in (ben, host):
        assert opened.get("/history?format=json", headers=other).json()["conversations"] == []
        assert opened.get(f"/history/{mine}.html", headers=other).status_code == 404
        assert opened.get(f"/?conversation={mine}", headers=other).status_code == 404
        assert opened.post("/history/forget", data={"id": mine}, headers=other).status_code == 404
        answered = ask(opened, other, "And on Sundays?", conversation=mine)
        assert answered["conversation"] != mine, "it begins one of its own"
        assert answered["notice"]
    assert [one["id"] for one in opened.get("/history?format=json", headers=anna).json()["conversations"]] == [mine]
    opened.post("/history/forget", data={"id": "all", "confirmed": "1"}, headers=ben)
    assert opened.get("/history?format=json", headers=ben).json()["conversations"] == []
    assert len(opened.get("/history?format=json", headers=anna).json()["conversations"]) == 1
    assert len(opened.get("/history?format=json", headers=host).json()["conversations"]) == 1


def test_the_name_of_another_inherits_nothing(opened: TestClient, library: Path) -> None:
    anna = person(library, "Anna")
    ask(opened, anna, "When does the boat leave?")
    assert opened.get("/library", headers=anna).status_code == 200
    remove_person(library, "anna")
    assert opened.get("/library", headers=anna).status_code == 401, "from the next request on"
    again = person(library, "Anna")
    assert opened.get("/history?format=json", headers=again).json()["conversations"] == []


def test_a_session_ends_with_the_person(opened: TestClient, library: Path) -> None:
    token = add_person(library, "Anna", "reader", within=["open/**"])
    assert opened.post("/login", data={"token": token}).status_code == 303
    page = opened.get("/library").text
    assert "Anna, reader" in page
    assert "The part of this library that you may see: 3 documents." in page
    remove_person(library, "Anna")
    assert opened.get("/library").status_code == 401


def test_each_role_may_do_what_the_one_below_may(opened: TestClient, library: Path) -> None:
    roles: tuple[PersonRole, ...] = ("reader", "editor", "owner")
    who = {role: person(library, role, role=role) for role in roles}
    recorded = {"question": "When?", "chunk": str(chunks_of(library, "boat.txt")[0])}

    def statuses(route: str, **data: str) -> list[int]:
        return [opened.post(route, data=data, headers=who[role]).status_code for role in roles]

    assert statuses("/ask", question="When does the boat leave?") == [200, 200, 200]
    assert statuses("/inspect/question", **recorded) == [403, 303, 303]
    assert statuses("/library/doctor") == [403, 403, 303]


def test_a_limited_editor_records_no_question_of_what_is_outside(opened: TestClient, library: Path) -> None:
    editor = person(library, "Ed", "open/**", role="editor")
    with Library(library) as whole:
        boat = whole.seen_by(Filters(within=("open/**",))).retrieval.search_keywords("leaves at seven", top=1)[0]
    for number, status in ((chunks_of(library, "ledger.md")[0], 404), (boat.chunk_id, 303)):
        recorded = {"question": "When?", "chunk": str(number)}
        assert opened.post("/inspect/question", data=recorded, headers=editor).status_code == status


def test_the_audit_log_names_people(opened: TestClient, library: Path) -> None:
    ask(opened, person(library, "Anna"), "When does the boat leave?")
    ask(opened, {"authorization": f"Bearer {HOST}"}, "When does it come back?")
    lines = [json.loads(line) for line in (library / AUDIT_FILE).read_text().splitlines()]
    assert [(line["question"], line.get("person")) for line in lines] == [
        ("When does the boat leave?", "Anna"),
        ("When does it come back?", None),
    ]


def test_without_a_token_of_the_server_people_need_theirs(library: Path) -> None:
    with served.client(library) as opened:
        assert opened.get("/library").status_code == 200
        anna = person(library, "Anna")
        assert opened.get("/library").status_code == 401
        assert opened.get("/library", headers=anna).status_code == 200


def test_people_that_cannot_be_read_let_nobody_in(opened: TestClient, library: Path) -> None:
    anna = person(library, "Anna")
    (library / PEOPLE_FILE).write_bytes(b"nonsense" * 1000)
    for who in (anna, {"authorization": f"Bearer {HOST}"}):
        refused = opened.get("/library", headers=who)
        assert refused.status_code == 503
        assert PEOPLE_FILE in refused.text
    assert opened.get("/healthz").status_code == 200


def test_no_file_holds_a_token_and_others_cannot_read_the_people(library: Path) -> None:
    token = add_person(library, "Anna", "reader")
    assert not [path for path in library.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert (library / PEOPLE_FILE).stat().st_mode & 0o077 == 0


def test_forgetting_all_of_a_person_leaves_what_others_asked(library: Path) -> None:
    with closing(History(library)) as history:
        assert history.of("a").forget_person() == 0


def test_who_was_removed_gets_no_answer_that_is_under_way(library: Path) -> None:
    talker = served.Talker()
    made = replace(QUICK, open_engine=generating(talker))
    with served.client(library, made, token=HOST) as opened, ThreadPoolExecutor(1) as threads:
        anna = person(library, "Anna", "open/**")
        asked = threads.submit(ask, opened, anna, served.ENDLESS)
        assert talker.going.wait(60)
        gone = remove_person(library, "Anna")
        with Library(library) as whole:
            whole.history.forget(gone.id)
        assert "answer" not in asked.result(60)
        assert talker.stopped.is_set()
    with closing(History(library)) as history:
        assert history.of(gone.id).conversations() == []
