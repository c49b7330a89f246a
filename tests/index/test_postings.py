"""Postings are indexes of bm25s: what they hold, that bm25s opens them, and those of earlier versions."""

from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.errors import DamagedLibraryError
from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings, merge_postings
from local_rag.index.scoring import KEYWORDS, inverse_document_frequency
from tests.support.indexes import write_as_counts

WORDS = ("tide", "wind", "boat", "harbour", "goat")
DOCUMENTS = st.lists(st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=12), min_size=1)


def built(documents: Sequence[Sequence[Sequence[str]]]) -> Postings:
    owners = [number for number, document in enumerate(documents) for _ in document]
    return Postings.build([text for document in documents for text in document], owners)


def saturation(text: Sequence[str], term: str, pivot: int) -> float:
    """Return what a term adds to the score of a text before its weight, as BM25 defines it."""
    against = KEYWORDS.k1 * (1 - KEYWORDS.b + KEYWORDS.b * len(text) / pivot)
    return text.count(term) / (against + text.count(term))


def score(texts: Sequence[Sequence[str]], text: int, terms: Sequence[str], pivot: int) -> float:
    """Return the score of one of the texts, computed for it alone."""
    holding = {term: sum(term in one for one in texts) for term in terms}
    return sum(
        saturation(texts[text], term, pivot) * inverse_document_frequency(len(texts), holding[term]) for term in terms
    )


@given(DOCUMENTS, st.lists(st.sampled_from([*WORDS, "zebra"]), min_size=1, max_size=5))
def test_scores_are_those_of_the_formula(documents: list[list[list[str]]], terms: list[str]) -> None:
    postings = built(documents)
    texts, block_of = [text for document in documents for text in document], postings.block_of.tolist()
    blocks = [
        [token for text, one in zip(texts, block_of, strict=True) if one == block for token in text]
        for block in range(postings.blocks)
    ]
    found = dict(KeywordIndex([(postings, None)]).search(terms, len(texts)))
    for row, block in enumerate(block_of):
        own, around = score(texts, row, terms, KEYWORDS.pivot), score(blocks, block, terms, KEYWORDS.around_pivot)
        assert found.get(row, 0.0) == pytest.approx(own + KEYWORDS.around * around, rel=1e-6)


def test_bm25s_opens_what_is_written_and_scores_alike(tmp_path: Path) -> None:
    texts = [["tide", "tide", "wind"], ["wind"], ["boat", "tide"]]
    Postings.build(texts, [1, 1, 2], spellings={"tide": {"tide", "tides"}}).write(tmp_path)
    loaded = bm25s.BM25.load(tmp_path / "own", mmap=True, show_progress=False)
    wanted = [saturation(text, "tide", KEYWORDS.pivot) for text in texts]
    assert loaded.get_scores(["tides"]).tolist() == pytest.approx(wanted), "the words of texts name their tokens"
    around = bm25s.BM25.load(tmp_path / "around", mmap=True, show_progress=False)
    word = Postings.open(tmp_path).position("tide")
    wanted = [saturation(text, "tide", KEYWORDS.around_pivot) for text in (texts[0] + texts[1], texts[2])]
    assert around.get_scores_from_ids([word]).tolist() == pytest.approx(wanted)


def test_words_that_stood_only_in_removed_chunks_are_gone() -> None:
    postings = Postings.build([["tide"], ["boat"]], [1, 2], spellings={"tide": {"tides"}, "boat": {"boats"}})
    merged = merge_postings([(postings, np.array([False, True]))])
    assert merged.vocabulary() == {"boats": 0}
    assert (merged.position("boat"), merged.position("tide")) == (0, None)


@pytest.mark.parametrize("name", ["words.npy", "own/indptr.csc.index.npy", "around/data.csc.index.npy"])
def test_postings_that_are_not_whole_are_damage(tmp_path: Path, name: str) -> None:
    built([[["tide", "wind"]]]).write(tmp_path)
    np.save(tmp_path / name, np.load(tmp_path / name)[:-1])
    with pytest.raises(DamagedLibraryError, match="local-rag repair"):
        Postings.open(tmp_path)


@given(DOCUMENTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
def test_postings_of_an_earlier_version_are_searched_and_merged(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[list[str]]], terms: list[str]
) -> None:
    folder, now = tmp_path_factory.mktemp("earlier"), built(documents)
    write_as_counts(folder, now, [text for document in documents for text in document])
    earlier = Postings.open(folder)
    assert set(earlier.vocabulary()) == {token for document in documents for text in document for token in text}
    merged = merge_postings([(earlier, np.ones(len(now.block_of), dtype=bool))])
    for other in (earlier, merged):
        assert KeywordIndex([(other, None)]).search(terms, 99) == KeywordIndex([(now, None)]).search(terms, 99)
