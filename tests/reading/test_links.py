"""Notes and mails that lead to others: by name, by what they answer, and not indexed twice where they quote."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.asking import Filters
from local_rag.document_records import Link
from local_rag.library import Library
from local_rag.reading.mailbox import find_history
from local_rag.reading.markdown import read_wikilinks
from local_rag.reading.read import as_document
from tests.conftest import Run
from tests.fakes import QUICK

PLAN = """---
aliases: [The big plan, Plan B]
status: draft
priority: 3
done: false
tags: [work]
---
# Plan

It follows [[Lease 2024|the lease]] and ![[rooms]], see [[people/Ada#Role]].
"""
MAIL = """From: {who}@host.example
To: all@host.example
Date: Mon, {day} Mar 2025 10:00:00 +0000
Subject: {subject}
Message-ID: <{day}@host.example>
{more}
{text}
"""
FIRST = "The quixotic lantern stands in the boathouse of Lindum."
REPLY = """It was moved to the chapel.

On Mon, 3 Mar 2025, ada@host.example
wrote:
> The quixotic lantern stands in the
> boathouse of Lindum.
"""


def test_links_become_text_that_can_be_read() -> None:
    document = as_document(Path("plan.md"), PLAN)
    assert "It follows the lease (Lease 2024) and rooms, see people/Ada > Role." in document.text
    assert document.names == ("The big plan", "Plan B")
    assert document.links == (Link("link", "Lease 2024"), Link("embed", "rooms"), Link("link", "people/Ada"))
    assert document.provenance.tags == ("work", "status=draft", "priority=3", "done=false")
    assert document.text.count("\n") == PLAN.count("\n")


@pytest.mark.parametrize(
    "text", ["`[[a]]`", "```\n[[a]]\n```", "[[1]]", "[[ -f x ]]", "[[x]](http://a)", "[[a", "[[a\nb]]"]
)
def test_what_is_no_link_stays(text: str) -> None:
    assert read_wikilinks(text) == (text, ())


@given(st.text(st.sampled_from("[]|#!`\\a \n"), max_size=60))
def test_any_text_keeps_its_lines(text: str) -> None:
    assert read_wikilinks(text)[0].count("\n") == text.count("\n")


@given(st.text(st.sampled_from(">:- \nOnwrote"), max_size=120))
def test_any_history_is_a_span_of_the_text(text: str) -> None:
    start, end = find_history(text)
    assert 0 <= start <= end <= len(text)


def test_a_reply_ends_with_what_it_answers() -> None:
    start, end = find_history(f"From: b\nTo: a\n\n{REPLY}\nAttachments: a.pdf")
    assert f"From: b\nTo: a\n\n{REPLY}"[start:end].startswith("On Mon, 3 Mar")
    below = "From: b\n\nYes.\n\nFrom: Ada\nSent: Monday\nTo: Bob\nSubject: Boat\n\nShall we?"
    assert below[slice(*find_history(below))].startswith("From: Ada\nSent")
    assert find_history("From: b\n\n> a\n\nNo, since you ask.") == (0, 0), "it answers between the lines"
    assert find_history("From: b\nTo: a\nSubject: c\n\nFrom now on: nothing.") == (0, 0)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    vault = tmp_path / "vault"
    for folder in (".obsidian", "old", "people"):
        (vault / folder).mkdir(parents=True)
    (vault / ".obsidian" / "app.json").write_text("{}")
    (vault / "Plan.md").write_text(PLAN)
    (vault / "Lease 2024.md").write_text("# Lease\n\nThe rent is EUR 900. It belongs to [[plan b]].\n")
    (vault / "old" / "Lease 2024.md").write_text("# Old lease\n\nThe rent was EUR 800.\n")
    (vault / "people" / "Ada.md").write_text("# Ada\n\nShe keeps the keys.\n")
    mail = tmp_path / "mail"
    mail.mkdir()
    (mail / "1.eml").write_text(MAIL.format(who="ada", day=3, subject="Lantern", more="", text=FIRST))
    more = "In-Reply-To: <3@host.example>\n"
    (mail / "2.eml").write_text(MAIL.format(who="bob", day=4, subject="Re: Lantern", more=more, text=REPLY))
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "1.eml").write_text((mail / "1.eml").read_text())
    (tmp_path / "archive" / "9.eml").write_text(MAIL.format(who="eve", day=9, subject="Re", more=more, text=REPLY))
    with Library(tmp_path / "lib", parts=QUICK, profile="tiny", context="headings") as library:
        library.index([vault, mail, tmp_path / "archive"])
    return tmp_path / "lib"


def opened(folder: Path) -> Library:
    return Library(folder, parts=QUICK, profile="tiny")


def test_notes_link_to_the_nearest_note_of_a_name_and_back(notes: Path, run: Run) -> None:
    listed = json.loads(run("documents", "--json", "--library", str(notes), parts=QUICK).stdout)
    plan = next(one for one in listed if one["path"].endswith("Plan.md"))
    assert plan["names"] == ["Plan B", "The big plan"]
    links = [(one["direction"], one["kind"], Path(one["path"]).parts[-2:]) for one in plan["links"]]
    assert links == [
        ("to", "link", ("vault", "Lease 2024.md")),
        ("to", "link", ("people", "Ada.md")),
        ("from", "link", ("vault", "Lease 2024.md")),
    ]
    assert not any(".obsidian" in one["path"] for one in listed)


def test_aliases_name_and_properties_filter(notes: Path) -> None:
    with opened(notes) as library:
        assert library.changes.brief(["the BIG plan"]).documents[0].endswith("Plan.md")
        assert "Plan.md" in {Path(one.path).name for one in library.retrieval.search_keywords("the big plan", top=2)}
        for tag, count in (("status=draft", 1), ("STATUS=Draft", 1), ("status=final", 0), ("done=false", 1)):
            assert len(library.documents.listed(filters={"tags": tag})) == count


def test_a_reply_is_indexed_without_the_mail_beside_it(notes: Path) -> None:
    with opened(notes) as library:
        found = library.search("quixotic lantern", top=20)
        holders = {"/".join(Path(one.path).parts[-2:]) for one in found if "quixotic" in one.text}
        first = next(one for one in found if one.path.endswith("/1.eml"))
        places = [first.location, *first.also_in]
        assert sorted("/".join(Path(one).parts[-2:]) for one in places) == ["archive/1.eml", "mail/1.eml"]
        assert len(holders & {"mail/1.eml", "archive/1.eml"}) == 1
        assert "mail/2.eml" not in holders
        reply = next(one for one in library.documents.listed() if one.path.endswith("mail/2.eml"))
        assert [(one.direction, one.kind) for one in reply.links] == [("to", "answers")]
        mail = next(one for one in library.documents.listed() if one.path.endswith("mail/1.eml"))
        assert [(one.direction, one.kind) for one in mail.links] == [("to", "copy"), ("from", "answers")]
        notes_of = {Path(one.path).name: one.note for one in library.status().notes}
        assert "is indexed with that mail only" in notes_of["2.eml"]


def test_a_link_to_what_somebody_may_not_see_is_none(notes: Path) -> None:
    with opened(notes) as library:
        seen = library.seen_by(Filters(within=("Plan.md", "Lease*")))
        plan = next(one for one in seen.documents.listed() if one.path.endswith("Plan.md"))
        assert {Path(one.path).name for one in plan.links} == {"Lease 2024.md"}
        assert all(seen.documents.get(one.id).path == one.path for one in plan.links)
