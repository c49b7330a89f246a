"""`--in --type --since --before --tag` as a user types them, and where passages come from, as told."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run


@pytest.fixture
def indexed(documents: Path, run: Run) -> Path:
    page = "---\nurl: https://example.org/island\ndate: 2021-05-01\nauthor: Ada\ntags: [sea, travel]\n---\n"
    (documents / "island.md").write_text(f"{page}# Island\n\nParents get there by boat.\n")
    result = run("index", "documents", "--profile", "tiny", "--context", "headings")
    assert result.exit_code == 0, result.output
    return documents


def found(run: Run, *arguments: str) -> list[dict[str, Any]]:
    result = run("search", "parents and the boat", "--json", *arguments)
    assert result.exit_code == 0, result.output
    passages: list[dict[str, Any]] = json.loads(result.stdout)["passages"]
    return passages


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), {"leave.md", "ireland.md", "boat.txt", "island.md"}),
        (("--in", "norway/**"), {"leave.md"}),
        (("--in", "norway", "--in", "boat.txt"), {"leave.md", "boat.txt"}),
        (("--type", "txt"), {"boat.txt"}),
        (("--tag", "sea", "--tag", "Travel"), {"island.md"}),
        (("--tag", "sea", "--tag", "land"), set()),
        (("--before", "2022"), {"island.md"}),
        (("--since", "2021-05-01", "--before", "2021-05-02", "--type", "md"), {"island.md"}),
        (("--since", "2021-06"), {"leave.md", "ireland.md", "boat.txt"}),
    ],
)
def test_filters(arguments: tuple[str, ...], names: set[str], indexed: Path, run: Run) -> None:
    assert {Path(passage["path"]).name for passage in found(run, *arguments)} == names


def test_an_absolute_path(indexed: Path, run: Run) -> None:
    assert {Path(passage["path"]).name for passage in found(run, "--in", str(indexed / "norway"))} == {"leave.md"}


def test_passages_tell_where_they_come_from(indexed: Path, run: Run) -> None:
    (page,) = found(run, "--tag", "sea")
    assert {name: page[name] for name in ("url", "date", "author", "tags")} == {
        "url": "https://example.org/island",
        "date": "2021-05-01",
        "author": "Ada",
        "tags": ["sea", "travel"],
    }
    (plain,) = found(run, "--type", "txt")
    assert [plain[name] for name in ("url", "date", "author", "tags")] == [None] * 4
    shown = run("search", "boat", "--tag", "sea").stdout
    assert "https://example.org/island, 2021-05-01, Ada" in shown
    assert "tags: sea, travel" in shown


def test_nothing_that_passes_is_said(indexed: Path, run: Run) -> None:
    result = run("search", "boat", "--in", "nowhere/**")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("No document lies in nowhere/**; the folders are: ")


@pytest.mark.parametrize(
    ("place", "meant"),
    [("norwy", "norway"), ("norwya/*.md", "norway"), ("boats.txt", "boat.txt"), ("*/leave.mdd", "leave.md")],
)
def test_a_mistyped_place_names_the_nearest_one(place: str, meant: str, indexed: Path, run: Run) -> None:
    said = run("search", "boat", "--in", place).stderr
    assert said == f"No document lies in {place}; did you mean '{meant}'?\n"


@pytest.mark.parametrize("day", ["yesterday", "2024-13-01", "24", "2024-5-1", ""])
def test_what_is_no_date_is_wrong_usage(day: str, run: Run) -> None:
    result = run("search", "boat", "--since", day)
    assert result.exit_code == 2
    assert "is not a date such as" in result.stderr


@pytest.mark.parametrize("arguments", [("--all",), ("--min-score", "-2")])
def test_without_a_reranker_scores_are_refused_in_a_sentence(
    arguments: tuple[str, ...], indexed: Path, run: Run
) -> None:
    result = run("search", "boat", *arguments)
    assert result.exit_code == 1
    assert "--rerank-model" in result.stderr
    assert "Traceback" not in result.output
