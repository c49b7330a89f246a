from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.store.keyword_index import KeywordIndex, _blocks, keyword_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("snake_case", ["snake_cas", "snake", "case"]),
        ("_modules", ["_modul", "modul"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("ST-4471", ["st", "4471"]),
        ("The policies of the company's boats", ["polici", "compani", "boat"]),
        ("don\u2019t", ["don't"]),
        ("Sørhamn", ["sørhamn"]),
        ("東京都", ["東京", "京都"]),
        ("京", ["京"]),
        ("東京 station", ["東京", "station"]),
        ("ﬁle", ["file"]),
        ("", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert keyword_tokens(text) == tokens


def test_search_finds_parts_of_identifiers_stems_and_bigrams(tmp_path: Path) -> None:
    KeywordIndex.build(["def getUserName(): ...", "the boats' policies", "東京都の天気", ""]).save(tmp_path / "k")
    index = KeywordIndex.load(tmp_path / "k")
    assert [row for row, _ in index.search("user name", 5)] == [0]
    assert [row for row, _ in index.search("policy for a boat", 5)] == [1]
    assert [row for row, _ in index.search("京都", 5)] == [2]
    assert index.search("zebra", 5) == []
    assert index.search("", 5) == []
    assert index.search("the", 5) == []


@pytest.mark.parametrize("texts", [[], [""], ["", "the of"]])
def test_nothing_to_index(texts: list[str], tmp_path: Path) -> None:
    KeywordIndex.build(texts).save(tmp_path / "k")
    assert KeywordIndex.load(tmp_path / "k").search("anything", 3) == []


def test_ranks_the_denser_text_first() -> None:
    index = KeywordIndex.build(["tide tide tide", "tide and wind and rain and snow", "wind"])
    assert [row for row, _ in index.search("tide", 2)] == [0, 1]


def test_surroundings_break_a_tie_but_do_not_outweigh_the_own_words(tmp_path: Path) -> None:
    texts = ["kites in spring", "the red one flies", "boats in spring", "the red one floats", "the kites red one"]
    KeywordIndex.build(texts, [1, 1, 2, 2, 3]).save(tmp_path / "k")
    index = KeywordIndex.load(tmp_path / "k")
    found = [row for row, _ in index.search("red kites", 5)]
    assert found[0] == 4, "both words of its own"
    assert found.index(1) < found.index(3), "the kites stand beside it"
    assert 2 in found, "its neighbour is red"


def test_long_documents_are_cut_into_even_blocks() -> None:
    assert _blocks([7] * 3).tolist() == [0, 0, 0]
    assert _blocks([7] * 9 + [8]).tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert _blocks([]).tolist() == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=20))
def test_any_text_can_be_indexed_and_asked(texts: list[str], question: str) -> None:
    found = KeywordIndex.build(texts).search(question, 5)
    wanted = set(keyword_tokens(question))
    assert all(wanted & set(keyword_tokens(texts[row])) for row, _ in found)
    assert len(found) == min(5, sum(bool(wanted & set(keyword_tokens(text))) for text in texts))
