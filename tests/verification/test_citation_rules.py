"""What of an answer is a citation and what is text, as it is written and as a whole."""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from local_rag.answering.answerer import Answerer
from local_rag.records import Answer
from local_rag.verification.citations import CitationCheck, find_citations
from tests.fakes import FakeGenerator, passage


def answered(reply: str, *sources: str) -> Answer:
    """Answer with a model that says just this; the answer must be the same as it was streamed."""
    pieces: list[str] = []
    answerer = Answerer(FakeGenerator(lambda _prompt: reply), 0.0)
    answer = answerer.answer("When?", [passage(text) for text in sources], on_text=pieces.append)
    assert "".join(pieces) == answer.text
    return answer


def test_an_uncited_answer_that_shares_no_word_with_any_source_cites_none() -> None:
    answer = answered("Bananas ripen.", "The boat leaves at seven.", "Leave is 49 weeks.")
    assert (answer.text, answer.citations, answer.answered) == ("Bananas ripen.", (), True)


def test_an_uncited_answer_cites_the_source_that_shares_most_words() -> None:
    answer = answered("It leaves at nine.", "Unlike any.", "The boat leaves at seven.")
    assert answer.text == "It leaves at nine. [2]"
    assert [citation.number for citation in answer.citations] == [2]


SOURCES = 5


def checked(*pieces: str) -> tuple[str, list[int], list[int]]:
    check = CitationCheck(SOURCES)
    return "".join(check(iter(pieces))), check.cited, check.removed


@pytest.mark.parametrize(
    "text",
    [
        "Read `sys.argv[1]` first.",
        "Read sys.argv[1] first.",
        "`items[0]` and items[0]",
        "matrix[0][1] = f(x)[2]",
        "`a [1]` and ``b ` [2]`` stay",
        "```python\nx = [1]\n\ny = [9]  # `z [2]`\n```",
        "An open ``` [1] fence",
        "As of [2023], in [1, 2023] and [1998-2003], it is so.",
        "within [0, 1], or [0-9], of list[int] and [x]",
        "the [9]th and [1]st, [3-1], [], [ ], [,], [and], [source]",
        "[12345] and [1.2] and [1",
    ],
)
def test_code_and_plain_text_stay_as_they_are(text: str) -> None:
    assert checked(text) == (text, [], [])


@pytest.mark.parametrize(
    ("text", "shown", "cited", "removed"),
    [
        ("At seven [1].", "At seven [1].", [1], []),
        ("At seven [1-3].", "At seven [1, 2, 3].", [1, 2, 3], []),
        ("At seven [1\u20133].", "At seven [1, 2, 3].", [1, 2, 3], []),
        ("At seven [4 - 6].", "At seven [4, 5].", [4, 5], [6]),
        ("At seven [1, 2 and 9].", "At seven [1, 2].", [1, 2], [9]),
        ("At seven [1, and 3; 4 & 5].", "At seven [1, 3, 4, 5].", [1, 3, 4, 5], []),
        ("At seven [Source 9].", "At seven.", [], [9]),
        ("At seven [sources 1, 2].", "At seven [1, 2].", [1, 2], []),
        ("At seven [Source: 1, Source #2].", "At seven [1, 2].", [1, 2], []),
        ("At seven [1] [2].", "At seven [1] [2].", [1, 2], []),
        ("At seven. [1][2]", "At seven. [1] [2]", [1, 2], []),
        ("At seven.[1]", "At seven. [1]", [1], []),
        ("At seven [0], eight [7].", "At seven, eight.", [], [0, 7]),
        ("船在七点【1】。", "船在七点 [1]。", [1], []),
        ("船在七点[9]。", "船在七点。", [], [9]),
        ("seven\uff3b2\uff3dor eight", "seven [2]or eight", [2], []),
        (
            "`argv[1]` is it [1], an open ` too\n\nAnd [2].",
            "`argv[1]` is it [1], an open ` too\n\nAnd [2].",
            [1, 2],
            [],
        ),
        ("```\nx[1]\n```\nSo it is [3].", "```\nx[1]\n```\nSo it is [3].", [3], []),
    ],
)
def test_what_stands_like_a_citation_is_checked(text: str, shown: str, cited: list[int], removed: list[int]) -> None:
    assert checked(text) == (shown, cited, removed)


def test_a_source_beyond_the_ninety_ninth_is_cited() -> None:
    check = CitationCheck(120)
    assert "".join(check(iter(["So [120], in [121], in [2023]."]))) == "So [120], in [121], in [2023]."
    assert (check.cited, check.removed) == ([120], [])


PARTS = ["a", "Z", "船", " ", "\n", "[", "]", "【", "】", "1", "2", "9", "0", ",", "-", "\u2013", "`", "```"]
PARTS += ["[1]", " [2, 9]", "[2023]", "Source ", " and ", ".", "(", ")", "_", " " * 60]


@given(st.lists(st.sampled_from(PARTS), max_size=40), st.sets(st.integers(0, 200)))
@example(["[1]", "`"], {3})
@example(["a", " " * 60, " " * 60, "[1]"], set(range(130)))
@example(["`", "a", " " * 60, " " * 60, "\n", "[1]"], set(range(130)))
def test_however_the_text_is_cut_the_same_comes_out(parts: list[str], places: set[int]) -> None:
    text = "".join(parts)
    ends = sorted({min(place, len(text)) for place in places} | {0, len(text)})
    pieces = [text[start:end] for start, end in itertools.pairwise(ends)]
    assert checked(*pieces) == checked(text)
    found = "".join(piece for piece, _ in find_citations(iter(pieces)))
    assert text.startswith(found)
    assert not text[len(found) :].strip()


@given(st.lists(st.sampled_from([*PARTS, "[ and" * 30, "`" * 80, "[1]" * 40]), max_size=40))
def test_little_is_held_back(parts: list[str]) -> None:
    """Of all that was read, all but the last few characters have been passed on."""
    read = 0

    def reading() -> Iterator[str]:
        nonlocal read
        for character in "".join(parts):
            read += 1
            yield character

    passed = 0
    for piece, _ in find_citations(reading()):
        assert read - passed < 200
        passed += len(piece)
