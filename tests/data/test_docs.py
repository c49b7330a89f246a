"""README.md, CONTRIBUTING.md, CHANGELOG.md and docs/: short enough, and every link leads somewhere."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
ABOVE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*ABOVE, *sorted((ROOT / "docs").glob("*.md"))]
REFERENCE = {"commands.md"}  # the generated help of every command
PARSER = MarkdownIt("commonmark").enable("table")


@cache
def anchors(page: Path) -> set[str]:
    """Name a page's headings as GitHub does in addresses."""
    tokens = PARSER.parse(page.read_text(encoding="utf-8"))
    found, seen = set(), Counter[str]()
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            name = re.sub(r"[^\w\- ]", "", inline.content.lower()).replace(" ", "-")
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return found


def links(page: Path) -> Iterator[str]:
    for token in PARSER.parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target and not re.match(r"[a-z]+:", str(target)):
                yield str(target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        if heading:
            assert heading in anchors(target), link


def test_every_page_is_linked() -> None:
    linked = {(page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in links(page)}
    assert [page.name for page in PAGES[1:] if page not in linked] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_can_be_read_at_one_sitting(page: Path) -> None:
    if page.name not in REFERENCE:
        assert len(page.read_text(encoding="utf-8").split()) <= 2500


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_module_that_is_named_exists(name: str) -> None:
    for path in re.findall(r"`((?:\w+/)+\w+\.py)`", (ROOT / name).read_text(encoding="utf-8")):
        assert (ROOT / "local_rag" / path).exists() or (ROOT / path).exists(), path
