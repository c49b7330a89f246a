from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings
from local_rag.index.scoring import KeywordTuning
from local_rag.text.tokens import keyword_tokens
from tests.support.indexes import keyword_index, postings_of


def found(index: KeywordIndex, question: str, top: int = 5) -> list[int]:
    return [row for row, _ in index.search(keyword_tokens(question), top)]


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
        ("Sørhamn, Łódź, Cafe\u0301", ["sorhamn", "lodz", "cafe"]),
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
    postings_of(["def getUserName(): ...", "the boats' policies", "東京都の天気", ""]).write(tmp_path / "k")
    index = KeywordIndex([(Postings.open(tmp_path / "k"), None)])
    assert found(index, "user name") == [0]
    assert found(index, "policy for a boat") == [1]
    assert found(index, "京都") == [2]
    assert found(index, "zebra") == found(index, "") == found(index, "the") == []


@pytest.mark.parametrize("texts", [[], [""], ["", "the of"]])
def test_nothing_to_index(texts: list[str], tmp_path: Path) -> None:
    postings_of(texts).write(tmp_path / "k")
    assert KeywordIndex([(Postings.open(tmp_path / "k"), None)]).search(["anything"], 3) == []


def test_ranks_the_denser_text_first() -> None:
    index = keyword_index(["tide tide tide", "tide and wind and rain and snow", "wind"])
    assert found(index, "tide") == [0, 1]


def test_surroundings_break_a_tie_but_do_not_outweigh_the_own_words(tmp_path: Path) -> None:
    texts = ["kites in spring", "the red one flies", "boats in spring", "the red one floats", "the kites red one"]
    postings_of(texts, [1, 1, 2, 2, 3]).write(tmp_path / "k")
    index = KeywordIndex([(Postings.open(tmp_path / "k"), None)])
    ranking = found(index, "red kites")
    assert ranking[0] == 4, "both words of its own"
    assert ranking.index(1) < ranking.index(3), "the kites stand beside it"
    assert 2 in ranking, "its neighbour is red"
    alone = KeywordIndex([(Postings.open(tmp_path / "k"), None)], KeywordTuning(around=0))
    assert 2 not in found(alone, "red kites"), "where surroundings weigh nothing"


def test_only_allowed_texts_are_found() -> None:
    index = keyword_index(["tide tide tide", "tide", "wind", "tide tide"])
    assert found(index, "tide") == [0, 3, 1]
    allowed = np.array([1, 2, 3])
    assert [row for row, _ in index.search(["tide"], 5, allowed)] == [3, 1]
    assert [row for row, _ in index.search(["tide"], 1, allowed)] == [3], "the best of the allowed, though not of all"
    assert index.search(["tide"], 5, np.array([], dtype=np.int64)) == []


def test_weights_of_terms_are_those_of_their_scores() -> None:
    index = keyword_index(["tide tide tide", "tide", "wind and rain", "the wind", "a boat"], [1, 1, 2, 2, 3])
    tide, wind = (dict(index.search([term], 9)) for term in ("tide", "wind"))
    wanted = {row: 2 * tide.get(row, 0) + 0.3 * wind.get(row, 0) for row in {*tide, *wind}}
    assert dict(index.search(["tide", "zebra", "wind", "tide"], 9, weights=[1, 5, 0.3, 1])) == pytest.approx(wanted)
    assert index.search(["tide", "wind"], 9) == index.search(["tide", "wind"], 9, weights=[1.0, 1.0])
    assert [row for row, _ in index.search(["tide", "wind"], 1, weights=[0.3, 1.0])] == [3]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=20))
def test_any_text_can_be_indexed_and_asked(texts: list[str], question: str) -> None:
    ranking = found(keyword_index(texts), question)
    wanted = set(keyword_tokens(question))
    assert all(wanted & set(keyword_tokens(texts[row])) for row in ranking)
    assert len(set(ranking)) == len(ranking) == min(5, sum(bool(wanted & set(keyword_tokens(text))) for text in texts))
