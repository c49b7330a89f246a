"""The inner products of sparse vectors are the scores of BM25."""

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.cluster.engines.sparse_vectors import (
    NUMBER_BITS,
    Tally,
    bucket_of,
    chunk_vectors,
    in_buckets,
    number_of,
    question_vector,
)
from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings
from local_rag.index.scoring import KeywordTuning

WORDS = ("tide", "wind", "boat", "harbour", "goat")
DOCUMENTS = st.lists(st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=5), min_size=1)


@given(DOCUMENTS, st.lists(st.sampled_from([*WORDS, "zebra"]), min_size=1, max_size=5))
def test_the_inner_product_is_the_score_of_the_index_in_files(
    documents: list[list[list[str]]], terms: list[str]
) -> None:
    tuning = KeywordTuning(block_texts=2)
    texts = [text for document in documents for text in document]
    postings = Postings.build(texts, [number for number, one in enumerate(documents) for _ in one], tuning)
    vectors = [vector for document in documents for vector in chunk_vectors(document, tuning)]
    wanted = dict(KeywordIndex([(postings, None)], tuning).search(terms, len(texts)))

    def holding(term: str) -> tuple[int, int]:
        word = postings.position(term)
        return len(postings.own.of(word)[0]), len(postings.around.of(word)[0])

    question = question_vector(terms, None, (len(texts), postings.blocks), holding, tuning)
    for row, vector in enumerate(vectors):
        score = sum(weight * vector.values.get(number, 0.0) for number, weight in question.items())
        assert score == pytest.approx(wanted.get(row, 0.0))
    assert sum(vector.is_first for vector in vectors) == postings.blocks


@settings(max_examples=20)
@given(DOCUMENTS, st.integers(1, 5), st.integers(1, 40))
def test_tokens_are_counted_in_little_memory_and_fill_their_buckets(
    documents: list[list[list[str]]], together: int, buckets: int
) -> None:
    with closing(Tally(together=together)) as tally:
        check_counts(tally, documents, buckets)


def check_counts(tally: Tally, documents: list[list[list[str]]], buckets: int) -> None:
    own, around = dict.fromkeys(WORDS, 0), dict.fromkeys(WORDS, 0)
    rows = [row for document in documents for row in chunk_vectors(document)]
    for row in rows:
        tally.add(row.is_first, row.values)
        for word in WORDS:
            own[word] += number_of(word) in row.values
            around[word] += row.is_first and number_of(word) + (1 << NUMBER_BITS) in row.values
    assert tally.texts == (len(rows), len(documents)), "no document has more chunks than one block"
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
    for row in rows:
        tally.add(row.is_first, row.values, -1)
    assert tally.different() == tally.rows == tally.blocks == 0
