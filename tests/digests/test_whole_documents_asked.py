"""Questions about whole documents are answered by code, from a library, and only from what somebody may see."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.asking import Filters
from local_rag.digests.digest_answers import answer_digest
from local_rag.errors import MissingError, QuestionError
from local_rag.library import Parts
from local_rag.plan_records import Plan
from tests.digests.texts import OLD, newer
from tests.fakes import EMBEDS_QUICKLY

PARTS: Parts = EMBEDS_QUICKLY
PUMP = "# Pump manual\n\nThe pump is oiled every spring. Tom Lind, head of the pump house, keeps the oil.\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("contracts/agreement-2023.md", OLD),
        ("contracts/agreement-2024.md", newer()),
        ("manuals/pump.md", PUMP),
    ):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with Library("lib", parts=PARTS, profile="tiny", context="headings") as opened:
        opened.index(["docs"])
        yield opened


@pytest.mark.parametrize(
    "question",
    [
        "What changed between agreement-2023 and agreement-2024?",
        "What changed in the service agreement?",
        "Compare agreement-2023.md with agreement-2024.md",
        "What are the differences between the 2023 agreement and the 2024 agreement?",
    ],
)
def test_what_changed_is_answered_with_both_quotations(
    library: Library, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    answer = library.ask(question)
    assert answer.answered
    assert answer.text.startswith("docs/contracts/agreement-2023.md -> docs/contracts/agreement-2024.md: ")
    assert "notice period: three months -> six months" in answer.text
    cited = {one.number: one.passage for one in answer.citations}
    quoted = {
        cited[quote.citation].path.rpartition("/")[2]: quote.text for quote in answer.quotes if "notice" in quote.text
    }
    assert quoted == {
        "agreement-2023.md": "The notice period is three months.",
        "agreement-2024.md": "The notice period is six months.",
    }
    assert all(quote.text in cited[quote.citation].text for quote in answer.quotes)


def test_both_documents_that_are_compared_are_documents_of_the_answer(library: Library) -> None:
    added = Path("docs/contracts/agreement-2025.md")
    added.write_text(f"{newer()}\nThe archive is kept for ten years.\n")
    library.index()
    answer = library.ask("What changed between agreement-2024.md and agreement-2025.md?")
    assert {one.passage.path for one in answer.citations} == {str(added.resolve())}, "nothing of the other is quoted"
    names = {path.rpartition("/")[2] for _, path in answer.documents}
    assert names == {"agreement-2024.md", "agreement-2025.md"}


@pytest.mark.parametrize(
    "question", ["Summarise pump.md", "What is the pump manual about?", "Tell me about the pump manual"]
)
def test_a_document_is_summed_up_in_quotations(library: Library, question: str) -> None:
    answer = library.ask(question)
    assert "\u201cThe pump is oiled every spring.\u201d [1]" in answer.text
    assert {one.passage.path.rpartition("/")[2] for one in answer.citations} == {"pump.md"}


@pytest.mark.parametrize(
    "plan",
    [
        Plan("changes", documents=("oil", "rope")),
        Plan("changes", documents=("pump.md", "agreement-2024.md")),
        Plan("changes", aspect="crane"),
        Plan("changes", documents=("pump.md",)),
        Plan("brief", documents=("the crane",)),
        Plan("brief", documents=("pump.md",), aspect="oil"),
    ],
)
def test_what_names_no_document_is_searched_as_usual(library: Library, plan: Plan) -> None:
    with library.documents.named() as named:
        assert answer_digest("What changed?", plan, named) is None


def test_only_what_changed_of_an_aspect_is_told(library: Library) -> None:
    with library.documents.named() as named:
        every, some = (
            answer_digest("?", Plan("changes", documents=("the latest service agreement",), aspect=aspect), named)
            for aspect in ("", "notice period")
        )
        of_all = answer_digest("?", Plan("changes", aspect="notice period"), named)
    assert every
    assert some
    assert of_all
    assert "notice period: three months -> six months" in some.text
    assert len(some.quotes) < len(every.quotes)
    assert of_all.text.startswith("- notice period: three months -> six months")


def test_a_summary_is_as_long_as_is_wished_for(library: Library) -> None:
    with library.documents.named() as named:
        lengths = [
            answer_digest("?", Plan("brief", documents=("agreement-2024.md",), length=length), named)
            for length in ("in 1 sentence", "in three lines", "")
        ]
    counts = [len(one.citations) for one in lengths if one]
    assert counts == sorted(set(counts))


def test_the_two_newest_versions_are_compared_if_one_is_named(library: Library) -> None:
    difference = library.changes.diff("agreement-2024.md")
    assert [Path(one).name for one in (difference.before, difference.after)] == [
        "agreement-2023.md",
        "agreement-2024.md",
    ]
    with pytest.raises(MissingError, match="No other version of"):
        library.changes.diff("pump.md")
    with pytest.raises(MissingError, match="is no document of the library"):
        library.changes.diff("nothing.md", "pump.md")


def test_files_on_disk_are_read_only_where_that_is_wished_for(library: Library, tmp_path: Path) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text(newer().replace("six months", "nine months"))
    with pytest.raises(MissingError):
        library.changes.diff("agreement-2024.md", draft)
    values = [
        value
        for one in library.changes.diff("agreement-2024.md", draft, read_files=True).changes
        for value in one.values
    ]
    assert [(one.before, one.after) for one in values] == [("six months", "nine months")]
    with pytest.raises(MissingError):
        library.seen_by(Filters(within=("contracts",))).changes.diff("agreement-2024.md", draft, read_files=True)


def test_a_file_that_has_changed_since_it_was_indexed_is_read_again(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "docs/contracts/agreement-2024.md"
    path.write_text(newer().replace("six months", "nine months"))
    changes = library.changes.diff("docs/contracts/agreement-2023.md", path, read_files=True).changes
    assert "notice period: three months -> nine months" in [one.summary for one in changes]


def test_who_sees_a_part_gets_nothing_of_the_rest(library: Library) -> None:
    seen = library.seen_by(Filters(within=("manuals",)))
    assert [Path(one).name for one in seen.changes.brief().documents] == ["pump.md"]
    for names in (("agreement-2023.md", "agreement-2024.md"), ("agreement-2024.md",)):
        with pytest.raises(MissingError, match="is no document of the library"):
            seen.changes.diff(*names)
    with pytest.raises(MissingError):
        seen.changes.brief(["contracts"])
    brief = library.changes.brief(["contracts"])
    assert {Path(one).name for one in brief.documents} == {"agreement-2023.md", "agreement-2024.md"}


def test_what_was_erased_is_in_no_brief(library: Library) -> None:
    assert library.changes.brief(["pump.md"]).lines
    library.remove(["docs/manuals/pump.md"], erase=True)
    with pytest.raises(MissingError):
        library.changes.brief(["pump.md"])
    assert all("pump" not in path for path in library.changes.brief().documents)


def test_filters_choose_what_a_brief_is_of(library: Library) -> None:
    assert [Path(one).name for one in library.changes.brief(filters={"within": "manuals"}).documents] == ["pump.md"]
    then = library.changes.brief(filters={"within": "contracts", "as_of": "2023-12-31"})
    assert [Path(one).name for one in then.documents] == ["agreement-2023.md"]
    with pytest.raises(QuestionError, match="1 to 500 lines"):
        library.changes.brief(lines=0)
