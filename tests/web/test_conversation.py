"""Conversations on the page, without JavaScript and as a stream: the same ones that `local-rag chat` holds."""

import html
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from local_rag.conversation import FORGOTTEN
from local_rag.library import Library
from local_rag.store.history import History
from local_rag.store.history_file import HISTORY_FILE
from tests.fakes import QUICK, FakeGenerator, generating
from tests.support import served
from tests.support.served import QUESTION, client, parts

JSON = {"accept": "application/json"}
STREAM = {"accept": "text/event-stream"}
ANSWERS = ("Twelve people, at seven.", "At seven.")  # to the second question of a test, and to the first


@pytest.fixture
def prompts() -> list[str]:
    return []


@pytest.fixture
def talking(folder: Path, prompts: list[str]) -> Iterator[TestClient]:
    """A server whose prompts are seen; to a question with the word refuse, no answer is right."""

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return ANSWERS[len(prompts) % 2]

    with client(folder, parts(answer, lambda prompt: "refuse" not in prompt)) as opened:
        yield opened


def ask(opened: TestClient, question: str, **fields: Any) -> Any:
    return opened.post("/ask", data={"question": question, **fields}, headers=JSON).json()


def test_a_question_is_read_behind_the_one_before_until_a_new_subject(talking: TestClient, prompts: list[str]) -> None:
    first = ask(talking, QUESTION)["conversation"]
    assert ask(talking, "When does the boat leave on Sundays?", conversation=first)["conversation"] == first
    assert f"Question: {QUESTION}\nQuestion: When does the boat leave on Sundays?\n" in prompts[-1]
    assert ask(talking, "Who is carried?", conversation=first, new_subject="1")["conversation"] == first
    assert prompts[-1].count("Question:") == 2, "alone, at its beginning and its end"
    ask(talking, "Who is carried there?", conversation=first)
    assert "Question: Who is carried?\nQuestion: Who is carried there?\n" in prompts[-1]
    other = ask(talking, "Who is carried here?")["conversation"]
    assert other != first
    assert prompts[-1].count("Question:") == 2


def test_the_answer_of_before_is_given_only_in_the_same_conversation(talking: TestClient) -> None:
    first = ask(talking, QUESTION)
    assert ask(talking, QUESTION)["again"]
    follow_up = ask(talking, "When does the boat leave on Sundays?", conversation=first["conversation"])
    assert not follow_up["again"]
    assert not ask(talking, "When does the boat leave on Sundays?")["again"]


def turns_of(page: str) -> list[str]:
    """Return the markup of each turn of a page, in the order of reading."""
    thread = page.partition('id="thread"')[2].partition('class="compose"')[0]
    return re.findall(r'<article class="turn".*?(?=<article class="turn"|\Z)', thread, re.DOTALL)


def test_a_page_shows_the_conversation_and_goes_on_with_it(talking: TestClient) -> None:
    page = talking.post("/ask", data={"question": QUESTION}).text
    begun = re.search(r'name="conversation" id="conversation" value="([0-9a-f]{16})"', page)
    assert begun is not None
    assert len(turns_of(page)) == 1
    on = {"question": "When does the boat leave on Sundays?", "conversation": begun[1]}
    page = talking.post("/ask", data=on).text
    first, second = turns_of(page)
    assert f'<h2 class="asked">{QUESTION}</h2>' in first
    assert [f"<p>{answer}" in first for answer in ANSWERS] == [False, True]
    assert [f"<p>{answer}" in second for answer in ANSWERS] == [True, False]
    assert page.index('class="turn"') < page.index('id="ask"'), "the field is below the thread"
    assert "required placeholder" in page
    assert "></textarea>" in page, "it is empty"
    for number, turn in enumerate((first, second), start=1):
        (anchor,) = set(re.findall(r'href="#(turn-\d+-source-1)"', turn))
        assert anchor == f"turn-{number}-source-1"
        assert f'id="{anchor}"' in turn, "what it cites stands beside it"
        assert 'href="/document/' in turn
    assert [' class="evidence" open>' in turn for turn in (first, second)] == [False, True]
    again = turns_of(talking.get(f"/?conversation={begun[1]}").text)
    assert [f"<p>{answer}" in turn for turn, answer in zip(again, reversed(ANSWERS), strict=True)] == [True, True]
    assert "There is no conversation 99" in talking.get("/?conversation=99").text


def test_a_stream_tells_the_earlier_questions_and_where_it_is_kept(talking: TestClient) -> None:
    begun = talking.post("/ask", data={"question": QUESTION}, headers=STREAM).text
    assert "event: earlier" not in begun
    done = json.loads(re.findall(r"event: done\ndata: (.*)\n\n", begun)[0])
    asked = {"question": "When does the boat leave on Sundays?", "conversation": done["conversation"]}
    on = talking.post("/ask", data=asked, headers=STREAM).text
    name, data = re.findall(r"event: (\w+)\ndata: (.*)\n\n", on)[0]
    assert (name, QUESTION in json.loads(data)["html"]) == ("earlier", True)


def test_a_conversation_that_was_forgotten_is_begun_anew_with_a_sentence(talking: TestClient) -> None:
    first = ask(talking, QUESTION)["conversation"]
    talking.post("/history/forget", data={"id": first})
    for fields in ({}, {"new_subject": "1"}):
        stale = {"question": "Who is carried?", "conversation": first, **fields}
        streamed = talking.post("/ask", data=stale, headers=STREAM).text
        told = {name: json.loads(data) for name, data in re.findall(r"event: (\w+)\ndata: (.*)\n\n", streamed)}
        assert told["earlier"]["html"].strip() == ""
        assert told["done"]["notice"] == FORGOTTEN
        assert FORGOTTEN in told["done"]["html"]
        assert told["done"]["conversation"] not in (None, first)
        page = talking.post("/ask", data=stale).text
        assert f'<p class="notice">{FORGOTTEN}</p>' in page
        assert f'value="{first}"' not in page


def test_what_is_answered_anyway_takes_the_place_of_the_refusal(talking: TestClient, folder: Path) -> None:
    first = ask(talking, QUESTION)["conversation"]
    refused = talking.post("/ask", data={"question": "Will it refuse?", "conversation": first}).text
    form = refused.partition('class="anyway"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    assert (fields["conversation"], fields["anyway"]) == (first, "1")
    page = talking.post("/ask", data=fields).text
    assert "Answered anyway" in page
    with closing(History(folder)) as history:
        assert [(turn.question, turn.answer.answered) for turn in history.turns(first)] == [
            (QUESTION, True),
            ("Will it refuse?", True),
        ]


def test_earlier_questions_say_what_came_of_them(talking: TestClient) -> None:
    first = ask(talking, "Will zebras refuse?")["conversation"]
    for question in (QUESTION, "Will the boat refuse?", "Who is carried?"):
        ask(talking, question, conversation=first)
    turns = turns_of(talking.get(f"/?conversation={first}").text)
    assert [re.findall(r'<p class="outcome">(.*?)</p>', turn) for turn in turns] == [
        ["Not answered"],
        ["Answered"],
        ["Quoted, not answered"],
        ["Answered"],
    ]


def test_of_an_answer_of_another_version_the_text_is_shown(talking: TestClient, folder: Path) -> None:
    first = ask(talking, QUESTION)["conversation"]
    with closing(sqlite3.connect(folder / HISTORY_FILE)) as history, history:
        history.execute("UPDATE turns SET whole = json_set(whole, '$.outcome', 'guessed')")
    with closing(History(folder)) as opened:
        (turn,) = opened.turns(first)
    assert (turn.answer.outcome, turn.answer.text, turn.answer.citations) == ("answered", "At seven. [1]", ())
    assert "At seven." in talking.get(f"/?conversation={first}").text


def test_the_page_and_the_command_line_hold_the_same_conversations(talking: TestClient, folder: Path) -> None:
    first = ask(talking, QUESTION)["conversation"]
    with Library(folder, parts=served.parts()) as library, closing(library.chat()) as conversation:
        assert [(kept.id, kept.title) for kept in conversation.kept()] == [(first, QUESTION)]
        conversation.switch(first)
        conversation.ask("And in the terminal?")
        assert "> [1] " in conversation.as_markdown()
    page = talking.get(f"/?conversation={first}").text
    assert f'<h2 class="asked">{QUESTION}' in page
    assert "And in the terminal?" in page
    assert "2 questions" in talking.get("/history").text
    listed = talking.get("/history?format=json").json()
    assert [(one["id"], one["turns"]) for one in listed["conversations"]] == [(first, 2)]


def test_conversations_are_exported_with_what_they_quote_and_forgotten(talking: TestClient, folder: Path) -> None:
    first = ask(talking, QUESTION)["conversation"]
    ask(talking, "When does the boat leave on Sundays?", conversation=first)
    ask(talking, "Who is carried?")
    page = talking.get("/history").text
    assert page.index("Who is carried?") < page.index(QUESTION)
    exported = talking.get(f"/history/{first}.html")
    text = re.sub("<[^>]*>", "", exported.text)
    assert text.count("The boat leaves the harbour at seven. It carries twelve people.") == 2
    body = text[text.index("Held with") :]
    assert (
        body.index(QUESTION)
        < body.index("At seven.")
        < body.index("When does the boat leave on Sundays?")
        < body.index("Twelve people, at seven.")
    )
    assert "attachment" in exported.headers["content-disposition"]
    assert not re.search(r"(?:src|href|action)=\"[^#]", exported.text), "it needs no server"
    assert talking.post("/history/forget", data={"id": first}).status_code == 303
    assert QUESTION not in talking.get("/history").text
    held = (folder / HISTORY_FILE).read_bytes()
    assert b"leave the harbour" not in held
    assert b"on Sundays" not in held
    asked = talking.post("/history/forget", data={"id": "all"})
    assert (asked.status_code, "Forget everything?" in asked.text) == (200, True)
    assert "Who is carried?" in talking.get("/history").text, "nothing is forgotten before it is confirmed"
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', asked.text.partition("<h1>")[2].partition("</form>")[0]))
    assert talking.post("/history/forget", data=fields).status_code == 303
    assert "No conversations yet" in talking.get("/history").text
    assert b"Who is carried" not in (folder / HISTORY_FILE).read_bytes()
    assert "Forget everything" in talking.get("/history").text
    assert talking.post("/history/forget", data={"id": ""}).status_code == 400
    for wrong in ("x", "9" * 30, "77"):
        assert talking.post("/history/forget", data={"id": wrong}).status_code == 404


def test_what_is_erased_is_in_no_conversation_and_no_cache(talking: TestClient, folder: Path, documents: Path) -> None:
    ask(talking, QUESTION)
    assert b"twelve people" in (folder / HISTORY_FILE).read_bytes()
    with Library(folder, parts=served.parts()) as library:
        library.remove([documents / "boat.txt"], erase=True)
    assert b"twelve people" not in (folder / HISTORY_FILE).read_bytes()


@pytest.mark.parametrize("how", ["the setting", "a damaged file"])
def test_where_nothing_is_kept_a_conversation_lasts_as_long_as_the_server(folder: Path, how: str) -> None:
    if how == "a damaged file":
        (folder / HISTORY_FILE).write_bytes(b"no database at all" * 100)
    generator = FakeGenerator(lambda _prompt: "At seven.", context_tokens=100_000)
    made_of = replace(QUICK, open_engine=generating(generator))
    with client(folder, made_of, answer_cache=False, usage_counts=False, history=how != "the setting") as opened:
        first = ask(opened, QUESTION)["conversation"]
        assert ask(opened, "When does the boat leave on Sundays?", conversation=first)["answered"]
        assert f"Question: {QUESTION}\nQuestion: When does the boat leave on Sundays?\n" in generator.prompts[-1]
        assert "last until the server ends" in opened.get("/history").text
        assert QUESTION in opened.get(f"/?conversation={first}").text
    if how == "the setting":
        assert not (folder / HISTORY_FILE).exists()


def test_greetings_are_answered_and_not_kept(talking: TestClient) -> None:
    assert ask(talking, "Thanks!")["answer"].startswith("I answer questions")
    assert talking.get("/history?format=json").json()["conversations"] == []


def test_vectors_of_questions_are_kept_and_die_with_the_embedder(folder: Path) -> None:
    def kept() -> list[tuple[str, str]]:
        with closing(sqlite3.connect(folder / HISTORY_FILE)) as history:
            return history.execute("SELECT made_with, hex(value) FROM cached WHERE kind = 'vector'").fetchall()

    with client(folder) as opened:
        found = [opened.get("/search?q=boat&format=json").json() for _ in range(2)]
        assert found[0] == found[1]
        (before,) = kept()
    with closing(sqlite3.connect(folder / HISTORY_FILE)) as history, history:
        history.execute("UPDATE cached SET made_with = 'another embedder' WHERE kind = 'vector'")
    with client(folder) as opened:
        opened.get("/search?q=harbour&format=json")
        ((made_with, _),) = kept()
        assert made_with == before[0], "the other one's are gone"


def test_a_kept_vector_is_used(folder: Path) -> None:
    with client(folder) as opened:
        right = opened.get("/search?q=boat&format=json").json()
        opened.get("/search?q=parental+leave&format=json")
    with closing(sqlite3.connect(folder / HISTORY_FILE)) as history, history:
        others = "(SELECT value FROM cached AS other WHERE kind = 'vector' AND other.key <> cached.key)"
        history.execute(f"UPDATE cached SET value = {others} WHERE kind = 'vector'")
    with client(folder) as opened:
        assert opened.get("/search?q=boat&format=json").json() != right, "that of the other question was taken"


def test_no_vectors_are_kept_where_the_setting_says_so(folder: Path) -> None:
    with client(folder, answer_cache=False) as opened:
        opened.get("/search?q=boat")
    with closing(sqlite3.connect(folder / HISTORY_FILE)) as history:
        assert history.execute("SELECT count(*) FROM cached").fetchone() == (0,)


def test_a_list_is_exported_and_kept_with_its_conversation(talking: TestClient) -> None:
    asked = {"question": "Which documents mention the harbour?"}
    streamed = talking.post("/ask", data=asked, headers={"accept": "text/event-stream"}).text
    conversation = talking.get("/history?format=json").json()["conversations"][0]["id"]
    link = re.compile(r'href=\\?"/document/\d+\?chunk=\d+#passage')
    assert link.search(streamed)
    assert "boat.txt" in talking.get(f"/?conversation={conversation}").text
    exported = talking.get(f"/history/{conversation}.html")
    assert (exported.status_code, bool(link.search(exported.text)), "csv" in exported.text) == (200, False, False)
    assert "boat.txt" in exported.text


def test_what_a_question_is_understood_as_is_shown_and_can_be_corrected(talking: TestClient) -> None:
    asked = {"question": "Which documents mention the harbour?"}
    page = talking.post("/ask", data=asked).text
    assert "Understood as: list of documents that mention" in page
    assert 'name="kind" value="passages"' in page
    plans = [
        talking.post("/ask", data=asked | more, headers={"accept": "application/json"}).json()["plan"]["kind"]
        for more in ({}, {"kind": "passages"})
    ]
    assert plans == ["documents", "passages"]


def test_conversations_are_searched_renamed_and_exported_as_markdown(talking: TestClient) -> None:
    boat, other = ask(talking, QUESTION)["conversation"], ask(talking, "Who is carried there?")["conversation"]

    def listed(wanted: str) -> list[tuple[str, str]]:
        found = talking.get("/history", params={"q": wanted, "format": "json"}).json()["conversations"]
        return [(one["id"], one["title"]) for one in found]

    assert listed("HARBOUR") == [(boat, QUESTION)]
    assert listed("nothing of this") == []
    assert "No conversation contains this." in talking.get("/history?q=nothing+of+this").text
    assert {key for key, _ in listed("")} == {boat, other}
    assert talking.post("/history/rename", data={"id": boat, "title": " Ferry\n<b>times</b> "}).status_code == 303
    assert listed("ferry") == [(boat, "Ferry <b>times</b>")]
    assert "Ferry &lt;b&gt;times&lt;/b&gt;" in talking.get("/history").text
    assert talking.post("/history/rename", data={"id": "unknown", "title": "x"}).status_code == 404
    talking.post("/history/rename", data={"id": boat, "title": ""})
    assert listed("harbour") == [(boat, QUESTION)]
    exported = talking.get(f"/history/{boat}.md")
    assert exported.headers["content-type"] == "text/markdown; charset=utf-8"
    assert exported.text.startswith(f"# Conversation\n\n## {QUESTION}")


def test_pages_and_exports_name_places_from_their_folder_on(
    talking: TestClient, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    boat = documents / "boat.txt"
    boat.write_text(f"{boat.read_text()} It is red.")
    page = talking.post("/ask", data={"question": QUESTION}).text
    assert f"Changed or gone since it was indexed: {documents.name}/boat.txt" in page
    conversation = talking.get("/history?format=json").json()["conversations"][0]["id"]
    exported = [talking.get(f"/history/{conversation}.{form}").text for form in ("html", "md")]
    for text in (page, *exported):
        told = re.sub("<[^>]*>", "", text)
        assert (str(documents) in told, f"{documents.name}/boat.txt" in told) == (False, True)


def test_an_answer_becomes_an_evaluation_question_if_it_was_right(talking: TestClient, folder: Path) -> None:
    page = talking.post("/ask", data={"question": QUESTION}).text
    kept = re.search(r'name="chunk" value="(\d+)"', page)
    assert kept is not None
    assert talking.post("/inspect/question", data={"question": QUESTION, "chunk": kept[1]}).status_code == 303
    assert json.loads((folder / "questions" / "questions.jsonl").read_text())["question"] == QUESTION


def test_a_wrong_answer_is_a_question_to_look_at_until_its_passage_is_chosen(
    talking: TestClient, folder: Path, documents: Path
) -> None:
    page = talking.post("/ask", data={"question": QUESTION}).text
    wrong = re.search(r'name="wrong" value="(\d+)"', page)
    assert wrong is not None
    fields = {"question": QUESTION, "wrong": wrong[1]}
    for _ in range(2):
        assert talking.post("/rate", data=fields, headers=JSON).json()["kept"] == "wrong"
    refused = talking.post("/ask", data={"question": "Will zebras refuse?"}).text
    assert 'name="wrong" value="0"' in refused
    assert 'class="right"' not in refused, "nothing was cited that could be right"
    talking.post("/rate", data={"question": "Will zebras refuse?", "wrong": "0"})
    assert not (folder / "questions" / "questions.jsonl").exists(), "it is no golden passage"
    listed = talking.get("/inspect").text
    assert (listed.count(f">{QUESTION}</a>"), listed.count(">Will zebras refuse?</a>")) == (1, 1)
    assert talking.post("/inspect/question", data={"question": "Will zebras refuse?", "chunk": "1"}).status_code == 303
    assert "zebras" not in talking.get("/inspect").text
    with Library(folder, parts=served.parts()) as library:
        library.remove([documents / "boat.txt"], erase=True)
    assert QUESTION not in talking.get("/inspect").text
    assert QUESTION not in (folder / "questions" / "answered-wrong.jsonl").read_text()


def test_a_question_asked_again_takes_the_place_of_the_last_one(talking: TestClient, prompts: list[str]) -> None:
    first = ask(talking, QUESTION)["conversation"]
    page = talking.post("/ask", data={"question": "Who is carried?", "conversation": first, "in": "*.txt"}).text
    form = turns_of(page)[-1].partition('class="again"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    assert (fields["question"], fields["conversation"], fields["source"]) == ("Who is carried?", first, "*.txt")
    assert ask(talking, **fields)["again"], "the same question in the same place"
    assert [one["turns"] for one in talking.get("/history?format=json").json()["conversations"]] == [2]
    ask(talking, "Who is carried?", conversation=first, new_subject="1")
    assert [one["turns"] for one in talking.get("/history?format=json").json()["conversations"]] == [3]


def test_any_question_of_a_conversation_can_be_edited_without_a_script(talking: TestClient) -> None:
    first = ask(talking, QUESTION)["conversation"]
    page = talking.post("/ask", data={"question": "Who is carried?", "conversation": first}).text
    links = [html.unescape(one) for one in re.findall(r'class="button edit"[^>]* href="([^"]*)"', page)]
    assert len(links) == 2
    edited = talking.get(links[0]).text
    assert f">{QUESTION}</textarea>" in edited
    assert f'id="conversation" value="{first}"' in edited
    assert len(turns_of(edited)) == 2, "all turns are above the form"


def test_what_came_of_a_question_is_said_in_words(talking: TestClient) -> None:
    said = [
        talking.post("/ask", data={"question": one}).text
        for one in (QUESTION, "Will the boat refuse?", "Zebras refuse?")
    ]
    found = [re.search(r'class="said (\w+)">\s*<p class="outcome">([^<]*)<', page) for page in said]
    assert [one and one.groups() for one in found] == [
        ("answered", "Answered"),
        ("quoted", "Quoted, not answered"),
        ("refused", "Not answered"),
    ]


def test_a_conversation_is_pinned_and_stays_with_what_it_asks(talking: TestClient) -> None:
    first, second = (ask(talking, f"When does boat {number} leave?")["conversation"] for number in (1, 2))
    assert talking.post("/history/pin", data={"id": first, "on": "1", "back": "/"}).headers["location"] == "/"
    listed = talking.get("/history?format=json").json()["conversations"]
    assert [(one["id"], one["pinned"]) for one in listed] == [(first, True), (second, False)]
    assert talking.post("/history/pin", data={"id": "unknown", "on": "1"}).status_code == 404
    menu = talking.get("/history/menu", params={"id": second, "open": second, "part": "1"}).text
    assert ("When does boat 2 leave?" in menu, menu.count(f'value="/?conversation={second}"')) == (True, 2)
    assert 'name="back" value="/"' in menu, "what is deleted is left"
    assert talking.get("/history/menu?id=unknown").status_code == 404
    ask(talking, "And in Norway?", conversation=first, source="norway")
    page = talking.get(f"/?conversation={first}").text
    assert "Asked of: norway" in turns_of(page)[-1]
    assert 'name="source" value="norway"' in page.partition('id="ask"')[2]
    chosen = talking.get(f"/?conversation={first}&scope=1").text.partition('id="ask"')[2]
    assert 'name="source"' not in chosen, "a choice of everything counts too"


def test_sources_are_a_tree_with_menus_and_the_start_says_what_is_inside(talking: TestClient) -> None:
    start = talking.get("/").text
    assert re.search(r"\d+ documents?</h2>", start)
    assert 'href="/?source=documents%2Fnorway"' in start
    tree = talking.get("/sources?source=documents/norway").text
    boxes = re.findall(r'name="source" value="([^"]*)"( checked)?', tree)
    assert ("documents/norway", " checked") in boxes
    assert ("documents/boat.txt", "") in boxes
    assert '<option value="md">MD (' in tree
    found = re.findall(r'type="checkbox" name="source" value="([^"]*)"', talking.get("/sources?find=boat").text)
    assert "documents/boat.txt" in found
    assert "documents/norway" not in found
    assert talking.get("/sources", params={"source": ["x"] * 301}).status_code == 400
    names = [one["name"] for one in talking.get("/open?q=boat&format=json").json()["documents"]]
    assert names == ["documents/boat.txt"]


def test_what_the_program_can_do_is_told_by_the_program(talking: TestClient, prompts: list[str]) -> None:
    assert ask(talking, "What can you do?")["answer"].startswith("I answer questions from the documents")
    assert prompts == []
