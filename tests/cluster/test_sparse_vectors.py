"""The inner products of sparse vectors are the scores of BM25."""

from contextlib import closing

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.cluster.engines.sparse_vectors import (
    Tally,
    bucket_of,
    chunk_vector,
    drift,
    exact_score,
    in_buckets,
    number_of,
    posting_rows,
    question_vector,
    statistics_of,
)
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


@given(DOCUMENTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(1, 300), st.integers(1, 300))
def test_a_vector_written_under_other_averages_gives_the_scores_of_today(
    documents: list[list[list[str]]], terms: list[str], own: int, around: int
) -> None:
    rows = [posting_rows(document) for document in documents]
    now = statistics_of(rows)
    written = Statistics(TextCounts(10, own), TextCounts(10, around))
    question = question_vector(terms, None, now, lambda _: (1, 1))
    for row in (row for document in rows for row in document):
        lengths = (row.own_length, row.around_length)
        old = {number: float(np.float32(round(part, 8))) for number, part in chunk_vector(row, written).items()}
        wanted = sum(weight * chunk_vector(row, now).get(number, 0.0) for number, weight in question.items())
        chosen_by = sum(weight * old.get(number, 0.0) for number, weight in question.items())
        assert exact_score(question, old, lengths, written, now) == pytest.approx(wanted, rel=1e-6)
        assert wanted <= chosen_by * drift(written, now) * (1 + 1e-6)


@settings(max_examples=20)
@given(DOCUMENTS, st.integers(1, 5), st.integers(1, 40))
def test_tokens_are_counted_in_little_memory_and_fill_their_buckets(
    documents: list[list[list[str]]], together: int, buckets: int
) -> None:
    with closing(Tally(together=together)) as tally:
        check_counts(tally, documents, buckets)


def check_counts(tally: Tally, documents: list[list[list[str]]], buckets: int) -> None:
    own, around, last = dict.fromkeys(WORDS, 0), dict.fromkeys(WORDS, 0), None
    rows = [row for document in documents for row in posting_rows(document)]
    average = Statistics(TextCounts(1, 1), TextCounts(1, 1))
    for row in rows:
        first, last = row.around is not last, row.around
        tally.add((row.own_length, row.around_length, int(first)), chunk_vector(row, average))
        for word in row.own:
            own[word] += 1
        for word in row.around if first else ():
            around[word] += 1
    assert tally.statistics == statistics_of([posting_rows(document) for document in documents])
    found = dict[int, tuple[int, int]]()
    numbers = []
    for bucket, counts in in_buckets(tally.sums(), buckets):
        numbers.append(bucket)
        for number, one, other in counts.tolist():
            assert bucket_of(number, buckets) == bucket
            found[number] = one, other
    assert numbers == list(range(buckets))
    assert found == {number_of(word): (own[word], around[word]) for word in WORDS if around[word]}
    assert tally.different() == len(found)
    last = None
    for row in rows:
        first, last = row.around is not last, row.around
        tally.add((row.own_length, row.around_length, int(first)), chunk_vector(row, average), -1)
    assert tally.different() == tally.rows == 0
