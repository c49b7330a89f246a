"""The questions of a file, answered on the page: watched, stopped, taken up again, downloaded, and nobody else's."""

import csv
import io
import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pytest
from starlette.testclient import TestClient

from local_rag.library import Library
from local_rag.store.history import History
from local_rag.store.history_file import HISTORY_FILE
from local_rag.store.people_file import add_person, remove_person
from tests.fakes import QUICK, generating
from tests.support import served
from tests.support.served import DOUBTED, ENDLESS, QUESTION, Talker, client, wait_until

JSON = {"accept": "application/json"}
HOST = {"authorization": "Bearer a-token-of-the-owner"}
ASKED = [QUESTION, "=HYPERLINK(boat)", "When are parents carried by boat?"]


def send(opened: TestClient, content: bytes, name: str = "tender.txt", who: Any = None, **fields: str) -> Any:
    headers = JSON | (who or {})
    return opened.post("/questions", files={"file": (name, content)}, data=fields, headers=headers)


def state(opened: TestClient, identifier: str, who: Any = None) -> Any:
    return opened.get(f"/questions/{identifier}?format=json", headers=who).json()


def finished(opened: TestClient, identifier: str, who: Any = None) -> Any:
    wait_until(lambda: not state(opened, identifier, who)["running"])
    return state(opened, identifier, who)


def test_all_questions_are_answered_and_downloaded_in_every_form(client: TestClient) -> None:
    begun = send(client, "\n".join(ASKED).encode(), "../<b>tender.txt").json()
    assert begun["questions"] == 3
    done = finished(client, begun["id"])
    assert (done["answered"], done["message"], done["failed"]) == (3, "", {})
    page = client.get(f"/questions/{begun['id']}").text
    assert "3 of 3 answered" in page
    assert "<b>tender" not in page
    table = client.get(f"/questions/{begun['id']}/answers.csv")
    assert "attachment" in table.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [row["question"] for row in rows] == [ASKED[0], f"'{ASKED[1]}", ASKED[2]], "no cell is a formula"
    assert "documents/boat.txt:1" in rows[0]["sources"]
    assert str(Path.cwd()) not in table.text, "places are named from the indexed folder on"
    sheet = openpyxl.load_workbook(io.BytesIO(client.get(f"/questions/{begun['id']}/answers.xlsx").content)).active
    assert (sheet["A3"].value, sheet["A3"].data_type) == (ASKED[1], "s")
    lines = client.get(f"/questions/{begun['id']}/answers.jsonl").text.splitlines()
    assert [json.loads(line)["question"] for line in lines] == ASKED
    assert client.get(f"/questions/{begun['id']}/answers.html").status_code == 400
    assert client.get("/history?format=json").json()["conversations"] == [], "it is no conversation"


@pytest.mark.parametrize(
    ("name", "content", "status", "reason"),
    [
        ("a.csv", b"name;age\nAda;36\n", 400, "named `question`"),
        ("a.xlsx", b"PK no sheet", 400, "no XLSX file"),
        ("a.txt", b"\n".join(b"Why %d?" % number for number in range(1001)), 400, "more than 1,000 questions"),
        ("a.txt", b"x" * 1024 * 1024, 413, "larger than"),
    ],
)
def test_a_file_that_cannot_be_asked_is_refused(
    client: TestClient, name: str, content: bytes, status: int, reason: str
) -> None:
    refused = send(client, content, name)
    assert (refused.status_code, reason in refused.text) == (status, True), refused.text
    assert client.get("/questions?format=json").json() == []


def client_of(folder: Path, talker: Talker, **more: Any) -> Any:
    return served.client(folder, replace(QUICK, open_engine=generating(talker)), **more)


def test_a_stopped_file_goes_on_where_it_was_also_after_a_restart(folder: Path) -> None:
    talker = Talker()
    with client_of(folder, talker) as opened:
        identifier = send(opened, f"{QUESTION}\n{ENDLESS}\n".encode()).json()["id"]
        assert talker.going.wait(30)
        assert "1 of 2 answered" in opened.get(f"/questions/{identifier}/progress").text
        opened.post(f"/questions/{identifier}/stop")
        assert talker.stopped.wait(30)
        stopped = finished(opened, identifier)
        assert (stopped["answered"], stopped["message"]) == (1, "Stopped; what is answered is kept.")
    with client(folder) as opened:
        before = opened.get(f"/questions/{identifier}/answers.jsonl").text
        assert ">Go on<" in opened.get(f"/questions/{identifier}").text
        opened.post(f"/questions/{identifier}/go")
        assert finished(opened, identifier)["answered"] == 2
        assert opened.get(f"/questions/{identifier}/answers.jsonl").text.startswith(before), "none is asked again"
        opened.post(f"/questions/{identifier}/forget")
        assert opened.get(f"/questions/{identifier}").status_code == 404
    assert b"boat without end" not in (folder / HISTORY_FILE).read_bytes()


def test_a_file_belongs_to_a_person_whose_limits_and_removal_count(folder: Path) -> None:
    anna = {"authorization": f"Bearer {add_person(folder, 'Anna', 'reader', within=('norway/**',))}"}
    ben = {"authorization": f"Bearer {add_person(folder, 'Ben', 'editor')}"}
    talker = Talker()
    with client_of(folder, talker, token="a-token-of-the-owner") as opened:
        identifier = send(opened, f"{QUESTION}\nWhat of sick leave?".encode(), who=anna, **{"in": "**"}).json()["id"]
        assert finished(opened, identifier, anna)["answered"] == 2
        answers = opened.get(f"/questions/{identifier}/answers.jsonl", headers=anna).text
        assert "boat.txt" not in answers
        assert "seven" not in " ".join(str(json.loads(line)["quotes"]) for line in answers.splitlines())
        for other in (ben, HOST):
            assert opened.get("/questions?format=json", headers=other).json() == []
            for address in ("", "/progress", "/answers.csv"):
                assert opened.get(f"/questions/{identifier}{address}", headers=other).status_code == 404
            for action in ("go", "stop", "forget"):
                assert opened.post(f"/questions/{identifier}/{action}", headers=other).status_code == 404
        send(opened, f"{ENDLESS}\n{QUESTION}".encode(), who=ben)
        assert talker.going.wait(30)
        remove_person(folder, "Ben")
        assert opened.get("/questions", headers=ben).status_code == 401


def test_an_erased_document_takes_the_questions_along(client: TestClient, folder: Path, documents: Path) -> None:
    identifier = send(client, QUESTION.encode()).json()["id"]
    finished(client, identifier)
    with Library(folder, parts=served.parts()) as library:
        library.remove([documents / "boat.txt"], erase=True)
    assert client.get(f"/questions/{identifier}", headers={"accept": "application/json"}).status_code == 404
    assert QUESTION.encode() not in (folder / HISTORY_FILE).read_bytes()
    assert b"twelve people" not in (folder / HISTORY_FILE).read_bytes()


def test_with_history_off_nothing_of_a_file_is_in_any_file(folder: Path) -> None:
    with served.client(folder, history=False) as opened:
        identifier = send(opened, f"{QUESTION} Quixotically?".encode()).json()["id"]
        assert finished(opened, identifier)["answered"] == 1
        assert "Quixotically" in opened.get(f"/questions/{identifier}/answers.csv").text
    assert not any(b"Quixotically" in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_without_a_script_the_form_leads_to_the_answers(client: TestClient) -> None:
    form = client.get("/questions?as_of=2025-01-31").text
    assert 'enctype="multipart/form-data"' in form
    assert 'name="as_of" value="2025-01-31"' in form
    sent = client.post("/questions", files={"file": ("q.txt", QUESTION.encode())}, headers={"accept": "text/html"})
    assert sent.status_code == 303
    assert re.fullmatch(r"/questions/[0-9a-f]{16}", sent.headers["location"])


def correct(opened: TestClient, identifier: str, question: str, answer: str, who: Any = None) -> Any:
    sent = {"question": question, "answer": answer, "show": "", "sort": "outcome"}
    return opened.post(f"/questions/{identifier}/correct", data=sent, headers=who)


def row_of(page: str, number: int) -> str:
    return page.partition(f'<tr id="row-{number}"')[2].partition("</tr>")[0]


def test_each_answer_stands_on_the_page_with_its_quotation(client: TestClient) -> None:
    identifier = send(client, f"{QUESTION}\nWhat is the capital of Peru, <b>please</b>?".encode()).json()["id"]
    finished(client, identifier)
    page = client.get(f"/questions/{identifier}").text
    first = row_of(page, 1)
    assert "Answered" in first
    assert "<strong>twelve</strong>" in first
    assert re.search(r'<blockquote class="quote" id="row-1-source-\d">', first)
    addresses = set(re.findall(r'href="(/document/[^"]+#passage)"', first))
    marked = [client.get(one.replace("&amp;", "&")).text.partition('<mark class="')[2][:200] for one in addresses]
    assert any("The boat leaves the harbour at seven" in one for one in marked)
    assert "<b>please" not in page
    assert client.get(f"/questions/{identifier}/rows").headers["x-local-rag-running"] == "no"


def test_answers_are_sorted_and_filtered(client: TestClient) -> None:
    asked = ["When does the boat leave the harbour on Sunday?", "Who is Zanzibar?", QUESTION, DOUBTED]
    identifier = send(client, "\n".join(asked).encode()).json()["id"]
    finished(client, identifier)

    def numbers(query: str) -> list[str]:
        return re.findall(r'<tr id="row-(\d+)"', client.get(f"/questions/{identifier}?{query}").text)

    assert numbers("") == ["1", "2", "3", "4"] == numbers("down=1")[::-1]
    assert numbers("sort=question") == ["4", "1", "3", "2"]
    outcomes = {name: numbers(f"show={name}") for name in ("answered", "quoted", "refused", "corrected")}
    assert sorted(one for some in outcomes.values() for one in some) == numbers("show=nonsense")
    assert outcomes["corrected"] == []
    assert "3" in outcomes["answered"]
    assert numbers("sort=outcome") == [*outcomes["answered"], *outcomes["quoted"], *outcomes["refused"]]
    assert client.get(f"/questions/{identifier}?from=x").status_code == 400


def test_an_answer_is_corrected_by_hand_and_marked_as_that(client: TestClient, folder: Path) -> None:
    identifier = send(client, f"{QUESTION}\nWho is Zanzibar?".encode()).json()["id"]
    finished(client, identifier)
    written = "At <eight>.\n=1+1"
    done = correct(client, identifier, QUESTION, written.replace("\n", "\r\n"))
    assert done.headers["location"] == f"/questions/{identifier}?sort=outcome#row-1"
    row = row_of(client.get(f"/questions/{identifier}").text, 1)
    assert "At &lt;eight&gt;.\n=1+1" in row
    assert "Written by who serves the library" in row
    assert "Corrected by hand" in row
    line, other = map(json.loads, client.get(f"/questions/{identifier}/answers.jsonl").text.splitlines())
    assert (line["outcome"], line["answer"], line["corrected"]["by"]) == ("corrected", written, "")
    assert "The boat leaves" in line["corrected"]["was"]
    assert line["remarks"] == [
        f"Corrected by who serves the library on {line['corrected']['at']}; the program had written: "
        f"{line['corrected']['was']}"
    ]
    assert "corrected" not in other
    (first, _) = csv.DictReader(io.StringIO(client.get(f"/questions/{identifier}/answers.csv").text))
    assert (first["outcome"], first["answer"]) == ("corrected", "At <eight>.\n'=1+1"), "no line is a formula"
    sheet = openpyxl.load_workbook(io.BytesIO(client.get(f"/questions/{identifier}/answers.xlsx").content)).active
    assert (sheet["B2"].value, sheet["C2"].value) == ("corrected", written)
    with closing(History(folder)) as history:
        assert history.corrections(identifier)[QUESTION].answer == written
    assert correct(client, identifier, QUESTION, "").status_code == 303
    assert "corrected" not in client.get(f"/questions/{identifier}/answers.jsonl").text
    assert correct(client, identifier, "Who asked this?", "Nobody.").status_code == 404
    assert correct(client, identifier, QUESTION, "x" * 10_001).status_code == 400


def test_a_correction_is_of_the_person_whose_file_it_is_and_goes_with_what_is_erased(folder: Path) -> None:
    anna = {"authorization": f"Bearer {add_person(folder, 'Anna', 'reader')}"}
    ben = {"authorization": f"Bearer {add_person(folder, 'Ben', 'owner')}"}
    with served.client(folder, token="a-token-of-the-owner") as opened:
        identifier = send(opened, QUESTION.encode(), who=anna).json()["id"]
        finished(opened, identifier, anna)
        assert correct(opened, identifier, QUESTION, "At my time.", ben).status_code == 404
        assert correct(opened, identifier, QUESTION, "At my time.", anna).status_code == 303
        assert "Written by Anna" in opened.get(f"/questions/{identifier}", headers=anna).text
    assert b"At my time." in (folder / HISTORY_FILE).read_bytes()
    with Library(folder, parts=QUICK) as library:
        library.remove(
            [path for path in library.documents.contents().documents if path.endswith("boat.txt")], erase=True
        )
    assert b"At my time." not in (folder / HISTORY_FILE).read_bytes()
