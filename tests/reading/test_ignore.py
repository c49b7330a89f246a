"""Patterns of .gitignore files: they match what git matches, and none takes long."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag.reading.ignore import parse_pattern
from local_rag.reading.walk import Walk


# What git 2.39 says to each.
@pytest.mark.parametrize(
    ("line", "matched", "not_matched"),
    [
        ("*.log", "a.log sub/b.log .log", "a.logs log"),
        ("build/", "build/ sub/build/", "build sub/build"),
        ("/only", "only only/", "sub/only"),
        ("docs/out", "docs/out docs/out/", "sub/docs/out docs"),
        ("docs/*.md", "docs/a.md", "docs/sub/a.md a.md"),
        ("**/out/a", "out/a sub/out/a a/b/out/a", "out/b/a"),
        ("a/**/z", "a/z a/b/z a/b/c/z", "z b/a/z a/z/b"),
        ("a/**", "a/b a/b/c", "a a/ b/a"),
        ("**", "a a/b a/", ""),
        ("a**b", "ab axyb", "a/b"),
        ("f?o[0-9][!x]", "foo1y f_o9z/", "foo1x fo1y foo/1y foo1"),
        ("[^a]b", "bb", "ab"),
        ("\\#a", "#a", "a"),
        ("\\!a", "!a", "a"),
        ("\\*\\?\\[a]", "*?[a]", "xy[a]"),
        ("a.b", "a.b", "aab"),
        ("a//b", "", "a/b a"),
        ("/", "", "a a/"),
        ("[ab", "", "a b"),
    ],
)
def test_what_git_matches_is_matched(line: str, matched: str, not_matched: str) -> None:
    pattern = parse_pattern(line)
    assert pattern

    def matches(path: str) -> bool:
        return pattern.matches(path.removesuffix("/").split("/"), is_folder=path.endswith("/"))

    assert [path for path in matched.split() if not matches(path)] == []
    assert [path for path in not_matched.split() if matches(path)] == []


@pytest.mark.parametrize("line", ["", "   ", "# comment", "!", "a" * 4097])
def test_lines_that_are_not_patterns(line: str) -> None:
    assert parse_pattern(line) is None


@pytest.mark.parametrize(("line", "name"), [("a  ", "a"), ("a\\ ", "a "), ("a\\\\ ", "a\\"), (" a", " a"), ("!a", "a")])
def test_trailing_blanks_count_only_after_a_backslash(line: str, name: str) -> None:
    pattern = parse_pattern(line)
    assert pattern
    assert pattern.matches([name], is_folder=False)
    assert pattern.ignores is not line.startswith("!")


@pytest.fixture
def at_once() -> Iterator[None]:
    """Raise an error where something goes on and on."""

    def give_up(*_: object) -> None:
        raise AssertionError("takes too long")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 10)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "pattern",
    [
        "*a*a*a*a*b",
        "*a" * 100 + "b",
        "*a" * 2047 + "b",
        "?*" * 100 + "b",
        "[!b]*" * 100 + "b",
        "*" * 4095 + "b",
        "*" + "a" * 4095,
        "*a*a/" * 20 + "b",
        "**/a*/" * 20 + "b",
        "**/*/" * 800 + "b",
        "a*/**/" * 20 + "b",
    ],
)
def test_no_pattern_takes_long(pattern: str, tmp_path: Path) -> None:
    assert len(pattern) <= 4096
    deep = tmp_path.joinpath(*["a" * 50] * 30)
    deep.mkdir(parents=True)
    for number in range(20):
        (deep / f"{'a' * 250}{number}").write_text("text")
    (tmp_path / ".gitignore").write_text(f"{pattern}\n")
    assert len(list(Walk().files([tmp_path]))) == 20
