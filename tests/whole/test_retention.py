"""With the setting history off, nothing that is asked or quoted is in any file, through whatever interface."""

import json
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from local_rag.library import Library
from local_rag.mcp.server import http_interface
from local_rag.openai.endpoint import chat_interface
from local_rag.serving.http import Interface
from local_rag.serving.requests import AskRequest, Caller, SearchRequest
from local_rag.serving.service import LocalService
from local_rag.serving.socket_client import ask_server
from local_rag.store.history import History
from tests.conftest import Run
from tests.support import served
from tests.support.served import client
from tests.whole.test_erasing import held

JSON = {"accept": "application/json"}
WORD = "zeppelinword"
QUESTION = f"When does the {WORD} boat leave the harbour?"
QUOTED = "It carries twelve people"
INTERFACES: list[Interface] = [partial(http_interface, with_ask=True), chat_interface]
_ERASE = "import sys; from local_rag.library import Library; Library(sys.argv[1]).remove([sys.argv[2]], erase=True)"
# Where the text of documents belongs.
OWN = {"library.sqlite3", "library.sqlite3-wal"}


def places(folder: Path) -> set[str]:
    """Return the files that hold the question, or a text that was quoted, besides the library itself."""
    return {*held(folder, WORD), *held(folder, QUOTED)} - OWN


def call(opened: TestClient, tool: str, **arguments: str) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    answer = opened.post("/mcp", json=request, headers=headers)
    assert answer.status_code == 200
    assert "twelve people" in answer.text


def ask_everywhere(folder: Path, opened: TestClient) -> None:
    """Ask and search through every interface of a server."""
    first = opened.post("/ask", data={"question": QUESTION}, headers=JSON).json()
    follow_up = {"question": f"And how many {WORD} people?", "conversation": first["conversation"]}
    opened.post("/ask", data=follow_up, headers={"accept": "text/event-stream"})
    opened.post("/ask", data={"question": QUESTION, "anyway": "1"})
    opened.get("/search", params={"q": QUESTION})
    chunk = opened.get("/inspect", params={"q": QUESTION}).text.partition('name="chunk" value="')[2].partition('"')[0]
    opened.post("/inspect/question", data={"question": QUESTION, "chunk": chunk})
    message = {"role": "user", "content": QUESTION}
    assert opened.post("/v1/chat/completions", json={"model": "", "messages": [message]}).status_code == 200
    for tool, name in (("search", "query"), ("ask", "question")):
        call(opened, tool, **{name: QUESTION})


@pytest.mark.parametrize("history", [True, False])
def test_what_a_server_is_asked_is_in_a_file_only_if_that_is_wanted(folder: Path, history: bool) -> None:
    with client(folder, history=history, interfaces=INTERFACES) as opened:
        ask_everywhere(folder, opened)
        assert bool(places(folder)) == history
        lead = opened.get("/history").text
        assert ("Nothing is written to any file" in lead) != history
        assert "Forget everything" in lead
    assert places(folder) == ({"history.sqlite3", "questions/questions.jsonl"} if history else set())
    assert (folder / "history.sqlite3").exists() == history


@pytest.mark.parametrize("history", [True, False])
def test_nor_is_what_the_command_line_asks_of_a_server(folder: Path, runtime: Path, history: bool) -> None:
    with served.command_line_server(folder, history=history):
        for do in ("ask", "search"):
            assert ask_server(folder, {}, {"do": do, "question": QUESTION}) is not None
    assert places(folder) == ({"history.sqlite3"} if history else set())


def test_nor_is_what_the_command_line_answers_itself(folder: Path, run: Run) -> None:
    (folder / "settings.toml").write_text("history = false\n")
    for command in (["ask", QUESTION], ["search", QUESTION]):
        assert run(*command, "--library", str(folder), parts=served.parts()).exit_code == 0
    with Library(folder, parts=served.parts()) as library, closing(library.chat()) as conversation:
        conversation.ask(QUESTION)
        conversation.ask(f"And the {WORD}?")
        assert len(conversation.kept()) == 1
    held_by = served.worker(folder, history=False)
    held_by.start()
    with closing(held_by):
        service = LocalService(held_by, lambda *_arguments: None, lambda: False)
        caller = Caller("", "mcp")
        service.search(SearchRequest(question=QUESTION), caller).result.result(30)
        service.ask(AskRequest(question=QUESTION), caller).result.result(30)
    assert places(folder) == set()
    assert not (folder / "history.sqlite3").exists()


def test_only_the_audit_log_has_a_setting_of_its_own(folder: Path) -> None:
    with client(folder, history=False, audit_log=True) as opened:
        opened.post("/ask", data={"question": QUESTION}, headers=JSON)
    assert places(folder) == {"audit.jsonl"}
    line = json.loads((folder / "audit.jsonl").read_text())
    assert set(line) == {"time", "client", "route", "question"}


def test_what_was_kept_before_is_told_and_can_be_deleted_on_the_page(folder: Path) -> None:
    with client(folder) as opened:
        opened.post("/ask", data={"question": QUESTION}, headers=JSON)
    with client(folder, history=False) as opened:
        page = opened.get("/history").text
        assert "still holds 1 conversation and 1 cached answer" in page
        assert opened.post("/history/forget", data={"id": "all"}).status_code == 200
        assert places(folder)
        assert opened.post("/history/forget", data={"id": "all", "confirmed": "1"}).status_code == 303
        assert places(folder) == set()


def test_what_was_kept_before_can_be_deleted_on_the_command_line(folder: Path, run: Run) -> None:
    with client(folder) as opened:
        opened.post("/ask", data={"question": QUESTION}, headers=JSON)
    shown = run("clean", "--history", "--dry-run", "--library", str(folder))
    assert "Would forget 1 conversations, 1 cached answers" in shown.stdout
    assert places(folder)
    assert "Forgot 1 conversations" in run("clean", "--history", "--library", str(folder)).stdout
    assert places(folder) == set()


def test_the_next_question_counts_once_the_audit_log_is_turned_on(folder: Path) -> None:
    with client(folder) as opened:
        opened.post("/ask", data={"question": "one boat?"}, headers=JSON)
        (folder / "settings.toml").write_text("audit_log = true\n")
        for question in ("two boats?", "three boats?"):
            opened.post("/ask", data={"question": question}, headers=JSON)
    lines = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    assert [line["question"] for line in lines] == ["two boats?", "three boats?"]


def test_a_conversation_of_before_a_restart_is_not_somebody_elses(folder: Path) -> None:
    def ask(opened: TestClient, question: str, **fields: str) -> dict[str, str]:
        answer: dict[str, str] = opened.post("/ask", data={"question": question, **fields}, headers=JSON).json()
        return answer

    with client(folder, history=False) as opened:
        first = ask(opened, "How long is parental leave in Norway?")["conversation"]
    with client(folder, history=False) as opened:
        other = ask(opened, "When does the boat leave?")["conversation"]
        again = ask(opened, "And in Ireland?", conversation=first)
        assert again["conversation"] not in (first, other)
        assert "begins a new one" in again["notice"]
        assert "And in Ireland" not in opened.get(f"/history/{other}.html").text


def test_what_is_erased_by_another_process_is_forgotten_by_a_server_that_keeps_nothing(
    folder: Path, documents: Path
) -> None:
    with client(folder, history=False) as opened:
        first = opened.post("/ask", data={"question": QUESTION}, headers=JSON).json()["conversation"]
        assert QUOTED in opened.get(f"/history/{first}.html").text
        erase = (
            "import sys; from local_rag.library import Library; Library(sys.argv[1]).remove([sys.argv[2]], erase=True)"
        )
        subprocess.run([sys.executable, "-c", erase, folder, documents / "boat.txt"], check=True)
        for address in ("/history", f"/?conversation={first}", f"/history/{first}.html"):
            assert QUOTED not in opened.get(address).text
            assert WORD not in opened.get(address).text
    assert places(folder) == set()


@pytest.mark.parametrize("what", ["everything", "the conversation", "a document"])
def test_what_is_forgotten_while_an_answer_is_written_does_not_come_back(
    folder: Path, documents: Path, what: str
) -> None:
    begun: list[str] = []

    def meanwhile(prompt: str) -> str:
        if "Sundays" in prompt and begun:
            with closing(History(folder)) as history:
                if what == "the conversation":
                    history.forget(begun[0])
                elif what == "everything":
                    history.forget_all()
                else:
                    no_pattern = lambda _pattern: False  # noqa: E731
                    history.forget_documents(lambda _sha256, path: path.endswith("boat.txt"), erased=no_pattern)
        return "At seven."

    with client(folder, served.parts(meanwhile)) as opened:
        begun.append(opened.post("/ask", data={"question": QUESTION}, headers=JSON).json()["conversation"])
        asked = {"question": f"When does the {WORD} boat leave on Sundays?", "conversation": begun[0]}
        answer = opened.post("/ask", data=asked, headers=JSON).json()
        assert (answer["answer"], answer["conversation"]) == ("At seven. [1]", None)
        assert "is not kept" in answer["notice"]
        assert opened.get("/history?format=json").json()["conversations"] == []
        assert places(folder) == set()
        assert not opened.post("/ask", data={"question": QUESTION}, headers=JSON).json()["again"]
