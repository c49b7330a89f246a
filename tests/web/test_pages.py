"""What the pages show, and that nothing from documents, file names and models is ever markup."""

import html
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pytest
from fpdf import FPDF
from starlette.testclient import TestClient

from local_rag.evaluation.dataset import load_dataset
from local_rag.library import Library
from local_rag.maintenance.checks import CheckResult
from local_rag.serving.worker import LibraryWorker
from local_rag.web.app import make_app
from local_rag.web.listening import allowed_hosts
from local_rag.web.pages.operations_page import check_as_served
from tests.support import served
from tests.support.served import QUESTION, client, index, parts

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(1)>{{191*7}}</textarea>" onmouseover="x'


class Tags(HTMLParser):
    """Collect the elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_tame(page: str) -> None:
    """Fail where a page holds an element or attribute that is none of ours."""
    tags = Tags(page).found
    scripts = [str(attributes.get("src")).partition("?v=")[0] for tag, attributes in tags if tag == "script"]
    assert scripts in ([], ["/static/page.js"])
    assert not [tag for tag, attributes in tags if any(name.startswith("on") for name in attributes)]
    assert all((attributes.get("src") or "").startswith("/document/") for tag, attributes in tags if tag == "img")
    addresses = [str(attributes[name]) for _, attributes in tags for name in ("href", "action") if name in attributes]
    assert all(re.match(r"/(?!/)|#|data:,$", address) for address in addresses), addresses
    assert "1337" not in page


def events(text: str) -> list[tuple[str, Any]]:
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)
    return [(name, json.loads(data)) for name, data in found]


@contextmanager
def hostile(documents: Path, *, right: bool) -> Iterator[TestClient]:
    """Serve a library whose documents, names and answers are made to harm; if none is right, documents are quoted."""
    (documents / "<img src=x onerror=alert(1)>.md").write_text(f"# {HOSTILE}\n\nThe boat leaves.\n")
    answer = f"The boat [1] {HOSTILE} [x](javascript:alert(1)) ![y](//a.example) <b>`<i>`</b> **<u>**"
    (documents / "javascript:alert(1).txt").write_text(answer)
    library = documents.parent / "hostile"
    index(documents, library)
    with client(library, parts(lambda _prompt: answer, lambda _prompt: right)) as opened:
        yield opened


@pytest.mark.parametrize("right", [True, False])
def test_markup_in_documents_names_and_answers_stays_text(documents: Path, right: bool) -> None:
    with hostile(documents, right=right) as opened:
        pages = [opened.get(path).text for path in ("/search?q=boat", "/inspect?q=boat&path=img", "/library")]
        pages += [opened.get(f"/document/{number}").text for number in range(1, 6)]
        pages.append(opened.get("/", params={"q": HOSTILE}).text)
        pages.append(opened.get("/inspect", params={"q": HOSTILE, "path": HOSTILE}).text)
        pages.append(opened.post("/ask", data={"question": f"What does the boat do, {HOSTILE}?"}).text)
        pages.append(opened.get("/history").text)
        for page in pages:
            assert_tame(page)
        assert sum("&lt;script&gt;" in page for page in pages) >= 6
        assert ('class="quote"' in pages[-2]) != right
        streamed = opened.post("/ask", data={"question": "boat"}, headers={"accept": "text/event-stream"})
        for _, data in events(streamed.text):
            for name in {"html", "cards"} & set(data):
                assert_tame(data[name])
        conversation = opened.get("/history?format=json").json()["conversations"][0]["id"]
        pages.append(opened.get(f"/?conversation={conversation}").text)
        assert_tame(pages[-1])
        exported = opened.get(f"/history/{conversation}.html")
        assert "script" not in {tag for tag, _ in Tags(exported.text).found}
        assert "img" not in {tag for tag, _ in Tags(exported.text).found}


def test_passages_come_before_the_answer_and_its_whole_text(client: TestClient) -> None:
    streamed = client.post("/ask", data={"question": QUESTION}, headers={"accept": "text/event-stream"})
    happened = [event for event in events(streamed.text) if event[0] != "queue"]
    assert [name for name, _ in happened] == ["passages", "reading", "token", "done"]
    done = happened[-1][1]
    assert happened[1][1]["passages"] >= 1
    assert happened[2][1]["text"] == done["answer"]["answer"]
    assert (done["answer"]["outcome"], done["answer"]["probability"]) == ("answered", None)
    assert done["answer"]["citations"][0]["location"].endswith("boat.txt:1")
    assert '<a class="cite" href="#turn-1-source-1"' in done["html"]
    assert "<strong>twelve</strong>" in done["html"]
    assert 'class="notice"' not in done["html"]
    assert re.fullmatch("[0-9a-f]{16}", done["conversation"])
    assert 'id="turn-1-source-1"' in done["cards"]
    assert '<mark class="best' in done["cards"]


def test_pieces_are_sent_as_they_come_with_what_replaces_them(folder: Path) -> None:
    held = LibraryWorker(lambda: served.Streaming(folder, parts=parts()))
    app = make_app(held, hosts=allowed_hosts("127.0.0.1", served.PORT, ()))
    with TestClient(app, base_url=served.ADDRESS) as opened:
        served.wait_until(lambda: opened.get("/healthz").json()["ready"])
        streamed = opened.post("/ask", data={"question": QUESTION}, headers={"accept": "text/event-stream"})
    shown, replaced = "", 0
    for name, told in events(streamed.text):
        if name == "token":
            shown, replaced = ("" if told["replaces"] else shown) + told["text"], replaced + told["replaces"]
        if name == "done":
            assert shown == told["answer"]["answer"]
    assert replaced == 1


def test_the_form_answers_without_javascript(client: TestClient) -> None:
    page = client.post("/ask", data={"question": QUESTION, "do": "ask"}).text
    assert 'href="#turn-1-source-1"' in page
    assert 'id="turn-1-source-1"' in page
    assert re.search(r"Read \d of \d passages", page)
    assert 'href="/document/' in page
    leads = client.post("/ask", data={"question": "boat & harbour", "do": "search"})
    assert (leads.status_code, leads.headers["location"]) == (303, "/search?q=boat+%26+harbour")
    again = client.post("/ask", data={"question": QUESTION}).text
    assert "Answered before" in again


def test_a_refusal_shows_what_came_closest_and_can_be_overruled(folder: Path) -> None:
    with client(folder, parts(holds=lambda _prompt: False)) as opened:
        page = opened.post("/ask", data={"question": "Do zebras sleep?"}).text
        assert "The documents do not answer this question." in page
        assert "What came closest stands under Evidence." in page
        assert 'name="anyway" value="1"' in page
        assert "boat.txt" in page
        assert 'class="quote"' not in page
        assert "Answered anyway" in opened.post("/ask", data={"question": QUESTION, "anyway": "1"}).text


QUOTED = re.compile(
    r'<blockquote class="quote"><div class="rendered" dir="auto">(?:<p.*?>)?(.*?)(?:</p>)?\n?</div>'
    r'<a class="cite" href="#(.*?)">\[(\d)\]</a> (.*?)</blockquote>'
)


def test_a_doubtful_answer_is_not_given_but_quoted_and_can_be_overruled(folder: Path) -> None:
    with client(folder, parts(lambda _prompt: "It leaves at eight.", lambda _prompt: False)) as opened:
        page = opened.post("/ask", data={"question": QUESTION}).text
        assert "Not sure. This is what the documents say:" in page
        assert "eight" not in page
        assert 'name="anyway" value="1"' in page
        text, anchor, number, place = QUOTED.findall(page)[0]
        assert (text, anchor, number) == ("The boat leaves the harbour at seven.", "turn-1-source-1", "1")
        assert place.endswith("boat.txt:1")
        assert f'class="card cited" id="{anchor}"' in page
        answer = opened.post("/ask", json={"question": QUESTION}, headers={"accept": "application/json"}).json()
        assert answer["outcome"] == "quoted"
        assert [quote["text"] for quote in answer["quotes"]] == [quote[0] for quote in QUOTED.findall(page)]


def test_a_row_of_a_table_is_quoted_as_one_below_its_header(documents: Path, tmp_path: Path) -> None:
    (documents / "fees.md").write_text("# Fees\n\n| Boat | Fee |\n| --- | --- |\n| Skiff | 40 crowns |\n")
    index(documents, tmp_path / "fees")
    with client(tmp_path / "fees", parts(holds=lambda _prompt: False)) as opened:
        page = opened.post("/ask", data={"question": "Is the fee of a skiff 40 crowns?"}).text
    quoted = next(one for one in re.findall("<blockquote(.*?)</blockquote>", page, re.DOTALL) if "Skiff" in one)
    assert re.findall(r"<t[hd]>(.*?)</t[hd]>", quoted) == ["Boat", "Fee", "Skiff", "40 crowns"]
    assert "| Skiff" not in html.unescape(page)


def test_exactly_what_the_answer_stands_on_is_marked(folder: Path) -> None:
    with client(folder, parts(lambda _prompt: "It leaves at seven.")) as opened:
        page = opened.post("/ask", data={"question": QUESTION}).text
    card = page.partition('id="turn-1-source-1"')[2].partition("</article>")[0]
    marked = "".join(re.findall(r'<mark class="best[^"]*">(.*?)</mark>', card))
    assert marked == "The boat leaves the harbour at seven."
    assert "It carries twelve people." in card
    other = page.partition('id="turn-1-source-2"')[2].partition("</article>")[0]
    assert other
    assert 'class="best' not in other


def test_json_is_what_the_command_line_prints(client: TestClient, folder: Path) -> None:
    found = client.get("/search?q=boat&top=2&format=json").json()
    assert (found["question"], found["reranked"], len(found["passages"])) == ("boat", False, 2)
    answer = client.post("/ask", json={"question": QUESTION}, headers={"accept": "application/json"}).json()
    assert answer["answered"]
    assert set(client.get("/healthz").json()) == {"ready", "sealed", "loaded"}


def test_generated_contexts_stand_apart_from_the_document(documents: Path) -> None:
    index(documents, documents.parent / "situated", context="auto", context_minutes=9)
    with client(documents.parent / "situated") as opened:
        assert "Not part of the document." not in opened.get("/search?q=boat").text
        page = opened.get("/inspect?q=boat").text
        assert "Not part of the document." in page
        assert re.search(r'class="generated"><p class="by">Written by smollm2\S+ when indexing', page)


def test_a_document_shows_its_lines_headings_and_the_passage(client: TestClient, documents: Path) -> None:
    link = re.search(
        r'href="(/document/\d+\?chunk=\d+)[^"]*#passage">(?:[^<]|<wbr>)*leave.md', client.get("/search?q=doctor").text
    )
    assert link is not None
    page = client.get(link[1]).text
    assert 'id="passage"' in page
    assert "Sick leave" in page
    assert '<nav class="outline"' in page
    marked = "".join(re.findall(r'<mark class="passage"[^>]*>(.*?)</mark>', page))
    assert "doctor" in marked
    assert "changed since it was indexed" not in page
    (documents / "norway" / "leave.md").write_text("Something else.\n")
    assert "changed since it was indexed" in client.get(link[1]).text
    (documents / "norway" / "leave.md").unlink()
    gone = client.get(link[1]).text
    assert "file moved or deleted" in gone
    assert "doctor" in gone, "all of it comes from the library"
    assert client.get(link[1].partition("?")[0] + "/file").status_code == 404


def test_a_link_to_words_finds_them_again_after_the_document_has_changed(client: TestClient, documents: Path) -> None:
    found = client.get("/search?q=boat+harbour+seven").text
    link = html.unescape(re.findall(r'href="(/document/[^"]*)#passage">(?:[^<]|<wbr>)*boat.txt', found)[0])
    page = client.get(link).text
    assert re.findall(r'<mark class="passage best" id="passage"[^>]*>(.*?)</mark>', page) == [
        "The boat leaves the harbour at seven."
    ]
    assert "boat.txt" not in link
    text = (documents / "boat.txt").read_text()
    for changed in (f"A new line above.\n\n{text}", f"Another one.\n\n{text}", "At eight now.\n"):
        (documents / "boat.txt").write_text(changed)
        index(documents, documents.parent / "lib")
        with served.client(documents.parent / "lib") as opened:
            page = opened.get(link, follow_redirects=True).text
        assert ('id="passage"' in page) == (text in changed)
        assert ("are no longer in the document" in page) == (text not in changed)
    assert "At eight now." in page


def test_the_original_file_is_a_download_that_no_browser_runs(client: TestClient, documents: Path) -> None:
    number = re.search(r'href="/document/(\d+)">Boat', client.get("/library").text)
    assert number is not None
    answer = client.get(f"/document/{number[1]}/file")
    assert answer.content == (documents / "boat.txt").read_bytes()
    assert answer.headers["content-disposition"] == 'attachment; filename="boat.txt"'
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-security-policy"] == "sandbox"
    (documents / "boat.txt").unlink()
    (documents / "boat.txt").symlink_to("/etc/passwd")
    assert client.get(f"/document/{number[1]}/file").status_code == 404


def test_programs_are_told_places_from_the_indexed_folder_on(client: TestClient, documents: Path) -> None:
    accept = {"accept": "application/json"}
    found = client.get("/search?q=boat&format=json").json()["passages"][0]
    asked = client.post("/ask", data={"question": QUESTION}, headers=accept).json()["read"][0]
    streamed = client.post("/ask", data={"question": QUESTION}, headers={"accept": "text/event-stream"}).text
    assert found["path"] == asked["path"] == f"{documents.name}/boat.txt"
    assert found["location"] == f"{documents.name}/boat.txt:1"
    data = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: ")]
    passages = next(one["passages"] for one in data if "passages" in one)
    assert f"{documents.name}/boat.txt" in {one["path"] for one in passages}


UNKNOWN = [
    "/document/999999",
    "/document/999999/file",
    "/document/x",
    "/document/1?chunk=999999",
    "/document/1?chunk=x",
    "/document/1/page/1.png",
    "/?conversation=77",
    "/history/999.html",
    "/nothing",
]


@pytest.mark.parametrize("path", UNKNOWN)
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404
    told = client.get(path, headers={"accept": "application/json"})
    assert (told.status_code, set(told.json())) == (404, {"error"})


@pytest.mark.parametrize("path", ["/search?q=boat&top=x", "/library?from=x", "/document/1?from=x", "/search?q="])
def test_what_is_malformed_is_a_bad_request(client: TestClient, path: str) -> None:
    assert client.get(path, headers={"accept": "application/json"}).status_code == 400


def test_what_may_be_better_later_is_not(documents: Path) -> None:
    (documents.parent / "lib").mkdir()
    app = make_app(served.worker(documents.parent / "lib"), hosts=["127.0.0.1:8000"])
    with TestClient(app, base_url=served.ADDRESS) as opened:
        assert opened.get("/search?q=boat").status_code == 503


def test_the_pages_own_files_are_sent_once_to_each_browser(client: TestClient) -> None:
    first = client.get("/static/page.css")
    assert first.headers["content-type"].startswith("text/css")
    again = client.get("/static/page.css", headers={"if-none-match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_one_health_check_runs_at_a_time_and_the_page_looks_at_it(folder: Path) -> None:
    begun, may_end = list[str](), threading.Event()

    def check(library: Library) -> Iterator[CheckResult]:
        begun.append(library.settings.profile)
        yield CheckResult("first", "ok", "fine")
        assert may_end.wait(60)
        yield CheckResult("second", "failed", "<b>broken</b>", "local-rag repair")

    app = make_app(served.worker(folder), hosts=["127.0.0.1:8000"], check=check)
    with TestClient(app, base_url=served.ADDRESS, follow_redirects=False) as opened:
        for _ in range(5):
            assert opened.post("/library/doctor").headers["location"] == "/library#doctor"
        served.wait_until(lambda: "first: fine" in opened.get("/library/doctor").text)
        assert opened.get("/library/doctor").headers["x-local-rag-running"] == "yes"
        assert opened.get("/healthz").status_code == 200
        may_end.set()
        served.wait_until(lambda: opened.get("/library/doctor").headers["x-local-rag-running"] == "no")
        page = opened.get("/library").text
        assert "second: &lt;b&gt;broken&lt;/b&gt;" in page
        assert begun == ["tiny"]
        opened.post("/library/doctor")
        served.wait_until(lambda: len(begun) == 2)


@pytest.mark.slow
def test_the_health_check_looks_at_the_models_that_the_server_uses(folder: Path) -> None:
    with Library(folder, parts=served.parts(), answer_model="/nowhere/answers.gguf") as library:
        assert any("/nowhere/answers.gguf" in f"{one.name}{one.message}" for one in check_as_served(library))


def test_a_folder_that_has_become_a_link_is_not_followed(client: TestClient, documents: Path) -> None:
    number = re.search(r'href="/document/(\d+)">Leave in Norway', client.get("/library").text)
    assert number is not None
    assert client.get(f"/document/{number[1]}/file").status_code == 200
    elsewhere = documents.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "leave.md").write_text("SECRET OUTSIDE")
    (documents / "norway").rename(documents.parent / "away")
    (documents / "norway").symlink_to(elsewhere)
    answer = client.get(f"/document/{number[1]}/file")
    assert (answer.status_code, "SECRET" in answer.text) == (404, False)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["", "?view=lines"])
def test_a_long_document_comes_in_parts(documents: Path, view: str) -> None:
    (documents / "long.txt").write_text("".join(f"Line {number} of many.\n" for number in range(1, 20_001)))
    index(documents, documents.parent / "long", chunk_tokens=200)
    with client(documents.parent / "long") as opened:
        number = re.search(r'href="/document/(\d+)">Long', opened.get("/library").text)
        assert number is not None
        page, seen = f"/document/{number[1]}{view}", ""
        while True:
            text = opened.get(page).text
            assert len(text) < 1_000_000
            seen += text
            later = re.search(r'href="([^"]*)">Later text', text)
            if not later:
                break
            page = html.unescape(later[1])
        assert seen.count("of many.") == 20_000
        assert "Line 20000 of many." in seen
        assert (">20000</span>" in text) == bool(view)


def test_the_inspector_has_every_stage_and_says_why_something_is_missing(client: TestClient) -> None:
    page = client.get("/inspect?q=parental leave&path=boat").text
    for name in ("dense", "keyword", "fused", "embed"):
        assert name in page
    assert "Best rank of any of its chunks" in page
    found = client.get("/inspect?q=parental+leave&path=boat&format=json").json()
    (missing,) = found["missing"]
    assert missing["path"].endswith("boat.txt")
    for name in ("dense", "keyword"):
        of_boat = [one["ranks"][name]["rank"] for one in found["passages"] if one["path"].endswith("boat.txt")]
        assert [missing["ranks"][name]] == of_boat
    assert "lost in reranking" in page
    begins = re.findall(r"<summary>(.*?)</summary>", page.partition("<tbody>")[2])
    assert any(one.startswith("Leave") for one in begins)
    assert not [one for one in begins if "#" in html.unescape(one)]
    assert re.search('<div class="passage rendered" dir="auto"><p class="heading">.*Leave', page)
    assert "None." in client.get("/inspect?q=parental+leave&show=lost").text
    assert "No document of the library" in client.get("/inspect?q=boat&path=nowhere").text


def test_a_question_becomes_a_line_of_a_dataset(client: TestClient, folder: Path) -> None:
    chunk = re.search(r'name="chunk" value="(\d+)"', client.get("/inspect?q=harbour boat").text)
    assert chunk is not None
    answer = client.post("/inspect/question", data={"question": "When does it leave?", "chunk": chunk[1]})
    assert answer.status_code == 303
    assert "Added to" in client.get(answer.headers["location"]).text
    (line,) = (folder / "questions" / "questions.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["question"] == "When does it leave?"
    assert record["golden"][0].endswith("documents/boat.txt:1-1")
    for kind in ("What is this document about?", "parental leave"):
        for found in re.findall(r'name="chunk" value="(\d+)"', client.get("/inspect", params={"q": kind}).text):
            client.post("/inspect/question", data={"question": kind, "chunk": found})
    questions = load_dataset(folder / "questions").questions
    assert len(questions) >= 5
    assert {Path(one.path).name for question in questions for one in question.lines} >= {"boat.txt", "leave.md"}
    assert {one.first for question in questions for one in question.lines} >= {0, 1}
    for wrong, status in (("", 400), ("x", 400), ("999999", 404), ("9" * 30, 400)):
        assert client.post("/inspect/question", data={"question": "q", "chunk": wrong}).status_code == status


def test_a_message_of_a_mailbox_is_downloaded_by_itself(documents: Path) -> None:
    message = "From a@x.org Mon Jan  1 10:00:00 2024\nSubject: {}\n\nThe {} boat.\n\n"
    (documents / "all.mbox").write_text(message.format("One", "first") + message.format("Two", "second"))
    library = documents.parent / "boxes"
    index(documents, library)
    with client(library) as opened:
        found = re.findall(r'href="/document/(\d+)">Two', opened.get("/library").text)
        assert opened.get(f"/document/{found[0]}/file").text == "Subject: Two\n\nThe second boat.\n\n"
        (documents / "all.mbox").unlink()
        assert opened.get(f"/document/{found[0]}/file").status_code == 404


def test_the_library_shows_state_skipped_files_models_and_what_to_do(client: TestClient, documents: Path) -> None:
    (documents / "empty.md").write_text("")
    (documents / "boat.txt").write_text("The boat leaves at eight.")
    scan = FPDF()
    scan.set_font("helvetica", size=12)
    for text in ("The boat leaves.", " "):
        scan.add_page()
        scan.cell(text=text)
    scan.output(str(documents / "scan.pdf"))
    with Library(documents.parent / "lib", parts=served.parts()) as library:
        library.index()
    (documents / "ireland.md").write_text("changed")
    # On a busy machine, whether a file has changed is known only after a while.
    served.wait_until(lambda: "changed since it was indexed" in client.get("/library").text)
    page = client.get("/library").text
    assert "empty.md" in page
    assert "<small>1 of 2 pages waits for OCR, the extra `ocr`</small>" in page
    assert "1 file is changed" in page
    assert "Apache" in page or "apache" in page
    assert "No index is running" not in page
    assert client.get("/library/progress").status_code == 200


def test_unsupported_numbers_are_said_below_the_answer(folder: Path) -> None:
    answer = "The boat leaves at seven with 99 people."
    with client(folder, parts(lambda _prompt: answer)) as opened:
        page = opened.post("/ask", data={"question": QUESTION, "anyway": "1"}).text
        assert f'<p class="notice">Not in what it cites: 99, in \u201c{answer}\u201d</p>' in page


@pytest.mark.parametrize("on", [True, False])
def test_the_audit_log_says_who_asked_what(folder: Path, on: bool) -> None:
    with client(folder, audit_log=on) as opened:
        opened.post("/ask", data={"question": QUESTION})
        opened.get("/search?q=boat")
    log = folder / "audit.jsonl"
    assert log.exists() == on
    if on:
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert [(line["route"], line["question"]) for line in lines] == [("/ask", QUESTION), ("/search", "boat")]
        assert all(line["client"] == "testclient" for line in lines)
        assert log.stat().st_mode & 0o077 == 0


def test_an_unexpected_failure_tells_nothing_of_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_prompt: str) -> str:
        raise ZeroDivisionError("a secret of the library")

    with client(folder, parts(fail)) as opened:
        opened_raw = TestClient(opened.app, base_url=served.ADDRESS, raise_server_exceptions=False)
        answer = opened_raw.post("/ask", data={"question": QUESTION})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert "a secret of the library" in capsys.readouterr().err


def test_an_unexpected_failure_of_a_stream_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_prompt: str) -> str:
        raise ZeroDivisionError("a secret of the library")

    with client(folder, parts(fail)) as opened:
        told = opened.post("/ask", data={"question": QUESTION}, headers={"accept": "text/event-stream"}).text
    assert "see what `local-rag serve` has printed" in told
    assert "secret" not in told
    assert "a secret of the library" in capsys.readouterr().err


def test_only_the_turns_that_are_not_shown_yet_are_sent(client: TestClient) -> None:
    accept, stream = {"accept": "application/json"}, {"accept": "text/event-stream"}
    conversation = client.post("/ask", data={"question": QUESTION}, headers=accept).json()["conversation"]
    asked = {"question": "When does the boat leave the pier?", "conversation": conversation}
    client.post("/ask", data=asked, headers=accept)
    asked["question"] = "When does the boat leave the quay?"
    first = client.post("/ask", data=asked | {"shown": "1"}, headers=stream).text.split("\n\n")[0]
    assert first.startswith("event: earlier")
    assert "the pier?" in first
    assert QUESTION not in first
    assert client.post("/ask", data=asked | {"shown": "x"}, headers=stream).status_code == 400


def test_a_part_of_the_documents_is_asked_and_the_form_keeps_saying_which(client: TestClient) -> None:
    found = client.get("/search", params={"q": "leave", "in": "norway/**"})
    assert "norway/<wbr>leave.md" in found.text
    assert "ireland.md" not in found.text
    assert 'name="source" value="norway/**"' in found.text
    asked = client.post("/ask", data={"question": QUESTION, "type": "md, pdf", "since": "1990-01-01"})
    assert "boat.txt" not in asked.text
    assert 'name="type" value="md, pdf"' in asked.text
    answer = client.post(
        "/ask", json={"question": QUESTION, "in": ["boat.txt"]}, headers={"accept": "application/json"}
    )
    assert {passage["path"].rpartition("/")[2] for passage in answer.json()["passages"]} == {"boat.txt"}
    sent = client.post("/ask", data={"question": "leave", "do": "search", "tag": "a, b"}, follow_redirects=False)
    assert sent.headers["location"] == "/search?q=leave&tag=a%2C+b"


def test_a_folder_whose_name_holds_a_comma_is_named_in_quotation_marks(documents: Path) -> None:
    (documents / "Rome, Italy").mkdir()
    (documents / "Rome, Italy" / "notes.md").write_text("# Rome\n\nThe leave in Rome.\n")
    index(documents, documents.parent / "lib")
    with client(documents.parent / "lib") as opened:
        fields = {"q": "leave", "in": '"Rome, Italy", boat.txt', "format": "json"}
        found = {Path(one["path"]).name for one in opened.get("/search", params=fields).json()["passages"]}
        assert found == {"notes.md", "boat.txt"}
        page = opened.get("/search", params=fields | {"format": ""}).text
        assert re.findall(r'name="source" value="([^"]*)"', page) == ["Rome, Italy", "boat.txt"]


def test_as_of_a_day_the_page_asks_the_versions_that_were_valid_then(documents: Path) -> None:
    for year, day, amount in ((2022, "1 May 2022", 520), (2025, "1 March 2025", 740)):
        text = f"# Travel policy {year}\n\nIn force from {day}.\n\nThe daily allowance for meals is {amount} kroner.\n"
        (documents / f"travel-policy-{year}.md").write_text(text)
    index(documents, documents.parent / "lib")

    def paths(found: list[dict[str, str]]) -> set[str]:
        return {Path(one["path"]).name for one in found if "travel" in one["path"]}

    with client(documents.parent / "lib") as opened:
        fields = {"q": "daily allowance for meals", "format": "json"}
        assert len(paths(opened.get("/search", params=fields).json()["passages"])) == 2
        fields["as_of"] = "2023-01-01"
        assert paths(opened.get("/search", params=fields).json()["passages"]) == {"travel-policy-2022.md"}
        asked = {"question": "What is the daily allowance for meals?", "as_of": "2023-01-01"}
        answer = opened.post("/ask", data=asked, headers={"accept": "application/json"}).json()
        assert paths(answer["passages"]) == {"travel-policy-2022.md"}
        page = opened.get("/search", params=fields | {"format": ""}).text
        assert 'name="as_of" value="2023-01-01"' in page
        assert "Only: versions valid on 2023-01-01" in page


@pytest.mark.parametrize(
    ("name", "value"), [("since", "yesterday"), ("before", "2024-13-01"), ("as_of", "then"), ("in", "x" * 3000)]
)
def test_a_filter_that_cannot_be_read_is_named(client: TestClient, name: str, value: str) -> None:
    refused = client.get("/search", params={"q": "leave", name: value})
    assert refused.status_code == 400
    assert f"{name} is" in refused.text


def test_folders_that_cannot_be_reached_are_named(client: TestClient, documents: Path) -> None:
    assert "is not reachable" not in client.get("/library").text
    documents.rename(documents.with_name("elsewhere"))
    page = client.get("/library").text
    assert "is not reachable: its documents are kept until it is back" in page
    assert page.index("is not reachable") < page.index("Search by name")


def test_a_list_of_documents_is_a_table_that_sorts_without_a_script(client: TestClient, folder: Path) -> None:
    asked = "Which documents mention parents?"
    page = client.get("/find", params={"q": asked, "type": "md"}).text
    assert_tame(page)
    assert "2 documents that contain the word &#34;parents&#34;" in page
    assert 'href="/find?q=Which+documents+mention+parents%3F&amp;type=md&amp;sort=place"' in page
    rows = re.findall(r'<a href="/document/\d+\?chunk=\d+#passage">((?:[^<]|<wbr>)+)</a>', page)
    down = client.get("/find", params={"q": asked, "sort": "place", "down": "1"}).text
    assert re.findall(r'<a href="/document/\d+\?chunk=\d+#passage">((?:[^<]|<wbr>)+)</a>', down) == rows[::-1]
    assert len(rows) == 2
    table = client.get("/find", params={"q": asked, "format": "csv"})
    assert table.headers["content-type"].startswith("text/csv")
    assert table.text.splitlines()[0] == "path,line,page,occurrences,text"
    assert client.get("/find", params={"q": asked, "format": "json"}).json()["count"] == 2


def test_an_answer_that_lists_documents_shows_the_table(client: TestClient, folder: Path) -> None:
    page = client.post("/ask", data={"question": "How many documents mention parents?", "type": "md"}).text
    assert_tame(page)
    assert "2 documents that contain the word &#34;parents&#34;" in page
    assert "type=md" in page.split("Save as CSV")[0].rsplit("href=", 1)[1]
    answered = client.post(
        "/ask", data={"question": "Which documents mention parents?"}, headers={"accept": "application/json"}
    ).json()
    assert answered["found"]["count"] == 2


def test_a_computed_answer_has_its_rows_as_evidence_and_can_be_marked(tmp_path: Path) -> None:
    documents = tmp_path / "docs"
    documents.mkdir()
    book = openpyxl.Workbook()
    book.active.title = "Fares"
    for row in (["Route", "Fare"], ["Oslo", 40], ["Bergen", 55]):
        book.active.append(row)
    for number in (2, 3):
        book.active.cell(number, 2).number_format = '0 "EUR"'
    book.save(documents / "fares.xlsx")
    served.index(documents, tmp_path / "lib")
    with served.client(tmp_path / "lib") as opened:
        page = opened.post("/ask", data={"question": "What is the sum of the fares?"}).text
        assert 'class="computed">95 EUR <a class="cite" href="#turn-1-source-1"' in page
        card = page.partition('id="turn-1-source-1"')[2]
        assert "Fares, A2:B3" in card
        assert '<th scope="col" class="num">Fare <span class="unit">(EUR)</span></th>' in card
        assert '<button class="right"' in page
        assert "Understood as: question about rows" in page
        assert 'name="kind" value="documents"' in page
        address = html.unescape(card.partition('href="')[2].partition('"')[0])
        shown = opened.get(address).text
        assert "Oslo" in shown.partition('id="passage"')[2].partition("</tr>")[0], "the sheet is opened at the row"


def test_four_places_lead_everywhere(client: TestClient) -> None:
    """Each place is marked on the pages that belong to it, and leads to them."""
    marked = re.compile('<a href="(/[^"]*)" aria-current="(?:page|true)">(Ask|Library|Work|People)<')
    for place, pages in {
        "Ask": ["/", "/history", "/inspect", "/search?q=boat", "/gaps"],
        "Library": ["/library", "/library/tables", "/document/1"],
        "Work": ["/work", "/tables", "/questions", "/diff", "/brief"],
    }.items():
        for page in pages:
            assert [name for _, name in marked.findall(client.get(page).text)] == [place], page
    home, work = client.get("/").text, client.get("/work").text
    assert all(f'href="{address}"' in home for address in ("/history", "/gaps", "/library", "/work"))
    assert all(f'href="{address}"' in work for address in ("/tables", "/questions", "/diff", "/brief"))


@pytest.mark.parametrize("address", ["/search?q=doctor", "/find?q=doctor", "/inspect?q=doctor", "/document/1"])
def test_pages_name_documents_from_their_folder_on(
    client: TestClient,
    documents: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    address: str,
) -> None:
    """Colleagues know the folder of the documents, and not where it lies on the server."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    html = client.get(address).text.replace("<wbr>", "")
    assert "documents/" in html
    assert f"{documents.parent}/" not in html
