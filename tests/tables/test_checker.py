"""What a checker reads: a question with all its queries, side by side."""

from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.reading.ruler import read_tokenizer
from local_rag.tables.checker import TOKENIZER, Said, encode, said

_MOST_TOKENS, _MOST_QUERIES = 512, 10
_tokenizer = read_tokenizer(TOKENIZER)
texts = st.text(max_size=600)


def test_a_query_is_read_with_the_first_values_of_its_result() -> None:
    found = said("sum of *Net* over 4 rows", ["1", "2", "3", "4"], "orders", ["No", "Net"])
    assert found == Said("sum of Net over 4 rows = 1, 2, 3 ...", "orders: No, Net")


@settings(deadline=None)
@given(texts, st.lists(st.tuples(texts, st.sampled_from(["a: b", "c: " + "d, " * 400])), min_size=1, max_size=10))
def test_whatever_is_asked_each_query_has_tokens_of_its_own(question: str, queries: list[tuple[str, str]]) -> None:
    found = encode(_tokenizer, question, [Said(*one) for one in queries])
    assert len(found.ids) == len(found.types) <= _MOST_TOKENS
    assert len(found.spans) == len(queries) <= _MOST_QUERIES
    assert all(start < end for start, end in found.spans)
    assert list(found.spans) == sorted(found.spans)
    assert all(one[1] <= other[0] for one, other in zip(found.spans, found.spans[1:], strict=False))


def test_queries_of_two_tables_are_told_apart() -> None:
    one, other = Said("number of rows = 3", "orders: No"), Said("number of rows = 3", "visits: No")
    same, apart = (encode(_tokenizer, "how many", some) for some in ([one, one], [one, other]))
    marks = [[found.ids[start + 1] for start, _ in found.spans] for found in (same, apart)]
    assert len(set(marks[0])) == 1
    assert len(set(marks[1])) == 2
