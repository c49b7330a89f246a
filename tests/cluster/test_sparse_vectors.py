"""The inner products of sparse vectors are the scores of BM25."""

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.cluster.engines.sparse_vectors import chunk_vector, posting_rows, question_vector, statistics_of
from local_rag.index.scoring import KeywordTuning, Statistics, TextCounts, even_blocks

WORDS = ("tide", "wind", "boat", "harbour", "goat")
DOCUMENTS = st.lists(st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=5), min_size=1)


def bm25_scores(texts: list[list[str]], terms: list[str], tuning: KeywordTuning) -> np.ndarray:
    """Return the scores of bm25s itself."""
    if not any(texts):
        return np.zeros(len(texts))
    retriever = bm25s.BM25(k1=tuning.k1, b=tuning.b)
    retriever.index(texts, show_progress=False)
    known = [term for term in terms if term in retriever.vocab_dict]
    scores: np.ndarray = retriever.get_scores(known) if known else np.zeros(len(texts))
    return scores


@given(DOCUMENTS, st.lists(st.sampled_from([*WORDS, "zebra"]), min_size=1, max_size=5))
def test_the_inner_product_is_bm25_of_the_own_words_and_the_surroundings(
    documents: list[list[list[str]]], terms: list[str]
) -> None:
    tuning = KeywordTuning(block_texts=2)
    texts = [text for document in documents for text in document]
    blocks: list[list[str]] = []
    block_of: list[int] = []
    for document in documents:
        parts = even_blocks(len(document), tuning.block_texts)
        first = len(blocks)
        blocks += [[] for _ in range(parts[-1] + 1)]
        for block, text in zip(parts, document, strict=True):
            blocks[first + block] += text
            block_of.append(first + block)
    expected = bm25_scores(texts, terms, tuning) + tuning.around * bm25_scores(blocks, terms, tuning)[block_of]

    rows = [posting_rows(document, tuning) for document in documents]
    statistics = statistics_of(rows, tuning)
    assert statistics.own == TextCounts(len(texts), sum(map(len, texts)))
    assert statistics.around == TextCounts(len(blocks), sum(map(len, blocks)))

    def holding(term: str) -> tuple[int, int]:
        return sum(term in text for text in texts), sum(term in block for block in blocks)

    question = question_vector(terms, None, statistics, holding, tuning)
    scores = []
    for row in (row for document in rows for row in document):
        vector = chunk_vector(row, statistics, tuning)
        scores.append(sum(weight * vector.get(number, 0.0) for number, weight in question.items()))
    assert scores == pytest.approx(expected.tolist(), abs=1e-5)


def test_statistics_of_parts_add_up() -> None:
    rows = [posting_rows([["tide"], ["wind", "wind"]]), posting_rows([["boat"] * 3])]
    assert statistics_of(rows) == statistics_of(rows[:1]) + statistics_of(rows[1:])
    assert Statistics().own.average == 1
