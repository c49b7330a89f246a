"""Which of the passages that were found are read."""

from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.source_selection import diversify, drop_copies, join_neighbours, likely_sources, select
from local_rag.records import Hit, Passage
from tests.fakes import passage


def passages(*scores: float | None) -> list[Passage]:
    def hits(score: float | None) -> tuple[Hit, ...]:
        return (Hit("fused", 1, 0.1), *([] if score is None else [Hit("rerank", 1, score)]))

    return [passage(key=key, hits=hits(score)) for key, score in enumerate(scores)]


def kept(*scores: float | None, near: float = 2.0) -> list[int]:
    return [passage.chunk_id for passage in likely_sources(passages(*scores), near)]


def test_what_the_reranker_finds_far_less_fitting_is_not_read() -> None:
    assert kept(5.0, 4.0, 1.0, 3.5, -2.0) == [0, 1, 3]


def test_the_first_two_are_read_whatever_their_scores() -> None:
    assert kept(-3.0, -8.0, 5.0, 0.0) == [0, 1, 2], "the fused rank counts as well"
    assert kept(9.0) == [0]
    assert kept() == []


def test_without_a_reranker_all_are_read() -> None:
    assert kept(None, None, None) == [0, 1, 2]
    assert kept(5.0, 4.0, -9.0, near=0) == [0, 1, 2], "how far is far is not known of every reranker"


def test_passages_that_were_not_scored_are_not_read() -> None:
    assert kept(1.0, 0.5, 0.0, None) == [0, 1, 2]


def piece(key: int, text: str, *, path: str = "a.md", start: int = 0, headings: tuple[str, ...] = ()) -> Passage:
    """Return a passage that stands at `start`; its line is its number."""
    return passage(text, key=key, path=path, headings=headings, line=key, start=start, end=start + len(text))


def test_copies_are_read_once_and_the_first_names_the_places_of_the_others() -> None:
    text = "The ferry leaves at seven and carries mail, milk and whoever has business on the islands."
    found = drop_copies([piece(1, text), piece(2, text + "\n", path="copy.md"), piece(3, "Bread is baked at noon.")])
    assert [passage.chunk_id for passage in found] == [1, 3]
    assert found[0].also_in == ("copy.md:2",)


def test_what_differs_in_one_word_of_few_is_no_copy() -> None:
    assert len(drop_copies([piece(1, "At seven in Ireland."), piece(2, "At seven in Norway.")])) == 2


def test_neighbours_become_one_source_at_the_better_place() -> None:
    first, second = piece(1, "One.", headings=("A", "B")), piece(2, "Two.", start=6, headings=("A", "C"))
    third = piece(3, "Three.", start=12, headings=("A", "B"))
    apart = piece(9, "Nine.", start=90)
    (joined, alone) = join_neighbours([second, apart, third, first])
    assert joined.text == "One.\n\nTwo.\n\nThree."
    assert (joined.line, joined.end_line, joined.start, joined.end, joined.headings) == (1, 3, 0, 18, ("A",))
    assert alone == apart


def test_what_neighbours_share_is_read_once() -> None:
    (joined,) = join_neighbours([piece(1, "One two three."), piece(2, "three. Four.", start=8)])
    assert joined.text == "One two three. Four."


@given(st.text("ab \n", min_size=1, max_size=60), st.data())
def test_joined_neighbours_are_the_documents_own_text(text: str, data: st.DataObject) -> None:
    places = data.draw(st.sets(st.integers(1, len(text) // 3 - 1), max_size=4)) if len(text) > 5 else set()
    cuts = [*sorted(3 * place for place in places), len(text)]
    spans = list(zip([0, *cuts], cuts, strict=False))
    chunks = [passage(text[start:end], key=place, start=start, end=end) for place, (start, end) in enumerate(spans)]
    (joined,) = join_neighbours(data.draw(st.permutations(chunks)))
    assert "".join(joined.text.split()) == "".join(text.split())
    assert (joined.start, joined.end) == (0, len(text))


def test_a_question_for_several_things_reads_from_each_list_and_document_in_turn() -> None:
    one = [piece(1, "first"), piece(2, "second"), piece(3, "third", path="b.md")]
    other = [piece(4, "fourth", path="c.md"), piece(1, "first")]
    assert [passage.chunk_id for passage in select([one, other], near=0.0, several=True)] == [1, 4, 3, 2]
    assert [passage.chunk_id for passage in select([one], near=0.0)] == [1, 2, 3]


def test_diverse_passages_come_before_repetitions() -> None:
    found = [piece(1, "ferry seven harbour"), piece(2, "ferry seven harbour mail"), piece(3, "bread rye oven")]
    assert [passage.chunk_id for passage in diversify(found)] == [1, 3, 2]
    assert diversify([]) == []
