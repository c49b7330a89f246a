"""What is missing: questions that were refused or marked as wrong, in groups, for those who may know of them."""

import csv
import io
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.asking import AskedQuestion, ReadPlace
from local_rag.feedback.gaps import find_gaps, gaps_as_csv, gaps_as_markdown
from local_rag.mcp.server import http_interface
from local_rag.serving.answer_markdown import escaped
from local_rag.store.people_file import add_person
from tests.conftest import Run
from tests.feedback.berths import harbour, opened, parts, question
from tests.support import served
from tests.web.test_pages import HOSTILE, assert_tame
from tests.whole.test_erasing import held

JSON = {"accept": "application/json"}
MARZIPAN = "Who bakes quixotic marzipan?"


def asked(number: int, text: str, *paths: str, mark: Any = None) -> tuple[AskedQuestion, int]:
    places = tuple(ReadPlace("", path, is_cited=False, lines=":1-4") for path in paths)
    return AskedQuestion(number, text, text, f"2026-01-{number:02}", "refused", mark=mark, places=places), number


def by_first_word(texts: Any) -> np.ndarray:
    words = sorted({text.split()[0] for text in texts})
    return np.eye(len(words) + 1)[[words.index(text.split()[0]) for text in texts]]


def test_questions_that_are_near_stand_together_with_what_would_answer_them() -> None:
    found = find_gaps(
        [
            asked(5, "When does the ferry sail?", "/gone.md", "/d/ferry.md"),
            asked(4, "Rent of the sabbatical cottage", mark="wrong"),
            asked(3, "When will the ferry sail back?", "/d/other.md"),
            asked(2, "How many moons are full?"),
        ],
        by_first_word,
        lambda word, _language: word in {"ferry", "sail", "rent"},
        {"/d/ferry.md", "/d/other.md"},
    )
    ferry, cottage, moon = found
    assert [one.question for one in ferry.questions] == ["When does the ferry sail?", "When will the ferry sail back?"]
    assert (ferry.times, ferry.closest, ferry.lines) == (8, "/d/ferry.md", ":1-4")
    assert ferry.would_answer == "A document that says a date or a time. No document has “back”."
    assert cottage.questions[0].outcome == "wrong"
    assert (cottage.closest, cottage.unknown) == ("", ("Rent", "sabbatical", "cottage"))
    assert moon.questions[0].times == 2, "it shares no word"
    known = find_gaps([asked(1, "the ferry")], by_first_word, lambda _word, _language: True, ())
    assert known[0].would_answer == "The documents have these words, but no passage that answers."


def test_without_vectors_only_the_same_words_form_a_group() -> None:
    some = [asked(3, "Where are oars?"), asked(2, "Where are the oars"), asked(1, "Where are ropes?")]
    assert [len(one.questions) for one in find_gaps(some, lambda _texts: None, lambda _word, _language: True, ())] == [
        2,
        1,
    ]


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("Wie viele Papageien wurden 2025 in der Praxis behandelt und wer hat die Papageien gebracht?", ("Papageien",)),
        ("WIE VIELE PAPAGEIEN hat die Praxis?", ("PAPAGEIEN",)),
        ("Combien de perroquets est-ce que la clinique a dans ses cages?", ("perroquets",)),
        ("How many parrots should we treat before the summer?", ("parrots",)),
    ],
)
def test_function_words_of_any_language_are_not_missing(text: str, unknown: tuple[str, ...]) -> None:
    def is_known(word: str, _language: str) -> bool:
        return word.lower() not in {*unknown[0].lower().split(), "wie", "viele", "die", "der", "combien", "should"}

    [gap] = find_gaps([asked(1, text)], lambda _texts: None, is_known, ())
    assert gap.unknown == unknown


def test_a_word_is_looked_up_in_the_language_of_its_question() -> None:
    looked_up = set[str]()

    def is_known(_word: str, language: str) -> bool:
        looked_up.add(language)
        return True

    find_gaps([asked(1, "Wie viele Dosen sind im Lager?")], lambda _texts: None, is_known, ())
    assert looked_up == {"german"}


@given(st.lists(st.text(max_size=30), max_size=30))
def test_every_question_is_in_one_group(texts: list[str]) -> None:
    def embed(given: Any) -> np.ndarray:
        return np.array([[len(one) + 1.0, one.count("a")] for one in given])

    some = [asked(number, text) for number, text in enumerate(texts, start=1)]
    found = find_gaps(some, embed, lambda _word, _language: False, ())
    assert sorted(one.question for gap in found for one in gap.questions) == sorted(texts)


def test_no_question_acts_as_markup_or_formula_in_a_file() -> None:
    some = find_gaps(
        [asked(1, "=1+1 [x](http://x) <b>", "/d/=2.md")],
        lambda _texts: None,
        lambda _word, _language: True,
        {"/d/=2.md"},
    )
    markdown = gaps_as_markdown(some, escaped)
    assert "<b>" not in markdown.replace("\\<", "")
    assert "[x](" not in markdown
    row = list(csv.reader(io.StringIO(gaps_as_csv(some))))[1]
    assert row[1].startswith("'=1+1")


@pytest.fixture
def lib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return harbour(tmp_path, 8)


def test_what_was_refused_is_listed_until_it_is_answered(lib: Path, run: Run) -> None:
    def gaps(*more: str) -> list[dict[str, Any]]:
        result = run("gaps", "--json", "--library", str(lib), *more, parts=parts())
        assert result.exit_code == 0, result.output
        found: list[dict[str, Any]] = json.loads(result.stdout)["gaps"]
        return found

    assert gaps() == []
    with opened(lib) as library:
        assert library.ask(MARZIPAN).outcome == "refused"
        library.ask(MARZIPAN.lower())
        library.ask(question(3))
        library.feedback.mark(None, "wrong")
    (berth, marzipan) = gaps()
    assert berth["questions"][0]["outcome"] == "wrong"
    assert berth["closest"] == "documents/berth-3.md:1"
    assert berth["wanted"] == ["a number or an amount"]
    assert (marzipan["question"], marzipan["times"]) == (MARZIPAN.lower(), 2)
    assert marzipan["unknown"] == ["bakes", "quixotic", "marzipan"]
    shown = run("gaps", "--library", str(lib), parts=parts())
    assert "1. How many ropes are kept at berth 3? (marked as wrong, " in shown.stdout
    assert "closest: documents/berth-3.md:1" in shown.stdout
    for name in ("gaps.md", "gaps.csv"):
        assert run("gaps", "--library", str(lib), "--output", name, parts=parts()).exit_code == 0
        assert "marzipan" in Path(name).read_text()
    assert run("gaps", "--library", str(lib), "--output", "gaps.doc", parts=parts()).exit_code == 2
    assert run("gaps", "--library", str(lib), "--output", "no/gaps.md", parts=parts()).exit_code == 1
    os.mkfifo("pipe.md")
    Path("link.md").symlink_to("elsewhere.md")
    for name in ("pipe.md", "link.md"):
        refused = run("gaps", "--library", str(lib), "--output", name, parts=parts())
        assert f"{name} cannot be written" in refused.output
        assert isinstance(refused.exception, SystemExit)
    with opened(lib) as library:
        library.feedback.mark(question(3), "right")
        library.feedback.mark(MARZIPAN, "right")
    assert gaps() == []


@pytest.mark.parametrize("forget", [True, False])
def test_what_is_forgotten_or_erased_is_missing_no_more(lib: Path, forget: bool) -> None:
    with opened(lib) as library:
        library.ask(MARZIPAN)
        library.ask(question(3))
        library.feedback.mark(None, "wrong")
        assert len(library.feedback.gaps()) == 2
        if forget:
            library.history.forget()
            assert library.feedback.gaps() == []
            assert held(lib, "marzipan") == []
        else:
            library.remove([lib.parent / "documents" / "berth-3.md"], erase=True)
            assert question(3) not in [one.questions[0].question for one in library.feedback.gaps()]
            assert held(lib, "berth-3.", question(3)) == []


def test_owners_see_what_is_missing_on_a_page_and_others_do_not(lib: Path) -> None:
    anna = add_person(lib, "Anna", "reader", within=["berth-*"])
    with served.client(lib, parts(), token="t" * 32, interfaces=[partial(http_interface)]) as client:
        host = {"authorization": f"Bearer {'t' * 32}"}
        reader = {"authorization": f"Bearer {anna}"}

        def page(headers: dict[str, str], **query: str) -> Any:
            return client.get("/gaps", params=query, headers=headers)

        assert "Nothing was refused or marked as wrong" in page(host).text
        for headers, text in ((host, f"Who bakes {HOSTILE}?"), (reader, MARZIPAN)):
            sent = client.post("/ask", data={"question": text}, headers={**headers, **JSON}).json()
            assert sent["outcome"] != "answered"
            marked = {"question": text, "wrong": "0"}
            assert client.post("/rate", data=marked, headers={**headers, **JSON}).json()["kept"] == "wrong"
        shown = page(host).text
        assert "quixotic marzipan" in shown
        assert_tame(shown)
        assert page(reader).status_code == 403
        assert client.post("/gaps/shipped", headers=reader).status_code == 403
        assert {one["question"] for one in page(host, format="json").json()["gaps"]} >= {MARZIPAN}
        assert page(host, format="markdown").headers["content-disposition"] == 'attachment; filename="gaps.md"'
        assert "marzipan" in page(host, format="csv").text
        undo = {"question": MARZIPAN, "undo": "1"}
        assert client.post("/rate", data=undo, headers={**reader, **JSON}).json()["kept"] == "nothing"
        assert page(host, format="json").json()["marks"]["wrong"] == 1
        for headers, count in ((host, 2), (reader, 1)):
            call: Callable[..., Any] = partial(call_tool, client, headers)
            assert len(call("gaps")["gaps"]) == count
            assert call("marks")["right"] == 0


def call_tool(client: Any, headers: dict[str, str], name: str) -> Any:
    order = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    accepts = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    answer = client.post("/mcp", json=order, headers={**headers, **accepts}).text
    line = next(one for one in answer.splitlines() if one.removeprefix("data: ").startswith("{"))
    return json.loads(line.removeprefix("data: "))["result"]["structuredContent"]
