"""The parts of a BM25 score."""

from local_rag.index.scoring import even_blocks, inverse_document_frequency, term_weights, token_number


def test_a_term_weighs_as_often_as_it_is_named_times_its_weight() -> None:
    assert term_weights(["tide", "wind", "tide"]) == {"tide": 2, "wind": 1}
    assert term_weights(["tide", "wind", "tide"], [1, 0.5, 0.25]) == {"tide": 1.25, "wind": 0.5}


def test_documents_are_cut_into_even_blocks() -> None:
    assert even_blocks(0, 8) == []
    assert even_blocks(3, 8) == [0, 0, 0]
    assert even_blocks(9, 8) == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert even_blocks(3, 1) == [0, 1, 2]


def test_rare_tokens_weigh_more() -> None:
    assert inverse_document_frequency(100, 1) > inverse_document_frequency(100, 50) > 0


def test_numbers_of_tokens_stay_what_they_are() -> None:
    """They lie in published indexes."""
    assert token_number("tide") == 0xD74E032BA934B2E6
    assert token_number("tide", 30) == token_number("tide") >> 34 < 2**30
    assert token_number("\udcff") != token_number("tide")
