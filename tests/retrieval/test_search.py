"""Search over a given index: fused, told with the ranks of every list, reranked where that is asked for."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag import Library
from local_rag.document_records import Chunk
from local_rag.errors import QuestionError
from local_rag.model_records import InstalledModel
from local_rag.models.reader import reranked_text
from local_rag.passage_records import Hit, Passage, StoredChunk
from local_rag.retrieval.question import Question
from local_rag.retrieval.searcher import FollowUpTuning, Searcher, reciprocal_rank_fusion, rerank_passages
from local_rag.settings import Settings, resolve_settings
from local_rag.store.database import Store
from tests.fakes import QUICK, FakeEmbedder, FakeIndex, FakeReader, passage

EMBEDDER = FakeEmbedder(InstalledModel(name="e", role="embed", path=Path("e"), identity="e", context_length=256))
WHEN = Question("when")
SETTINGS = resolve_settings(
    Path("nowhere"), dense_weight=1.0, keyword_weight=1.0, rrf_k=60, pool=10, rerank_candidates=0
)


class FakeStore:
    """A store of all chunks but the missing ones; remembers which were asked for."""

    def __init__(self, missing: Sequence[int] = ()) -> None:
        self._missing = missing
        self.asked: list[int] = []

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        self.asked += ids
        return {one: stored(one) for one in ids if one not in self._missing}


def stored(number: int) -> StoredChunk:
    chunk = Chunk(number, 0, 4, "x" * number, headings=("Part",), line=number)
    return StoredChunk(number, 1, "/documents/a.md", "Title", chunk, f"Terms {number}.", f"Context {number}.")


def searcher(
    dense: Sequence[int] = (7, 8, 5),
    keywords: Sequence[int] = (8, 9),
    *,
    settings: Settings = SETTINGS,
    store: FakeStore | None = None,
    reader: FakeReader | None = None,
    weak_below: float | None = None,
) -> Searcher:
    index, store = FakeIndex(dense, keywords), store or FakeStore()
    load_reader = (lambda: reader) if reader else None
    return Searcher(index, cast(Store, store), settings, EMBEDDER, load_reader, weak_below)


def ids(passages: Sequence[Passage]) -> list[int]:
    return [passage.chunk_id for passage in passages]


def by_length(sign: int = 1, fused_weight: float = 0.0) -> FakeReader:
    return FakeReader(lambda _question, text: float(sign * len(text)), fused_weight=fused_weight)


def test_both_lists_are_fused_and_the_best_returned() -> None:
    trace = searcher().trace(WHEN, top=3)
    assert trace.rankings == {"dense": [7, 8, 5], "keyword": [8, 9], "fused": [8, 7, 9, 5]}
    assert ids(trace.passages) == [8, 7, 9]
    assert [passage.score for passage in trace.passages] == [1 / 62 + 1 / 61, 1 / 61, 1 / 62]
    assert list(trace.seconds) == ["embed", "dense", "keyword", "fuse"]
    assert all(seconds >= 0 for seconds in trace.seconds.values())


def test_weights_and_k_are_those_of_the_settings() -> None:
    keywords_first = SETTINGS.model_copy(update={"keyword_weight": 9.0, "rrf_k": 1})
    trace = searcher(settings=keywords_first).trace(WHEN, top=4)
    assert ids(trace.passages) == [8, 9, 7, 5]
    assert trace.passages[1].score == 9 / 3


def test_a_passage_tells_its_chunk_and_its_rank_in_every_list() -> None:
    first, _, third, _ = searcher().trace(WHEN, top=4).passages
    assert first.hits == (Hit("dense", 2, 1 / 2), Hit("keyword", 1, 1.0), Hit("fused", 1, first.score))
    assert [(hit.list_name, hit.rank) for hit in third.hits] == [("keyword", 2), ("fused", 3)]
    assert (first.path, first.title, first.text, first.context) == ("/documents/a.md", "Title", "x" * 8, "Context 8.")
    assert (first.context_by, first.headings, first.page, first.line) == ("model", ("Part",), None, 8)


def test_chunks_that_the_store_has_no_more_are_left_out() -> None:
    trace = searcher(store=FakeStore(missing=[8])).trace(WHEN, top=3)
    assert ids(trace.passages) == [7, 9]
    assert trace.rankings["fused"] == [8, 7, 9, 5]


@pytest.mark.parametrize(("pool", "top", "asked"), [(2, 1, [8]), (2, 2, [8, 7]), (1, 3, [8, 7, 9])])
def test_no_more_chunks_are_fetched_than_returned(pool: int, top: int, asked: list[int]) -> None:
    store = FakeStore()
    trace = searcher(store=store, settings=SETTINGS.model_copy(update={"pool": pool})).trace(WHEN, top=top)
    assert ids(trace.passages) == store.asked == asked
    assert trace.rankings["dense"] == [7, 8, 5][: max(pool, top)]


def test_candidates_are_reranked_where_there_is_a_reranker() -> None:
    reader, store = by_length(), FakeStore()
    trace = searcher(reader=reader, store=store).trace(WHEN, top=2)
    assert trace.rankings["fused"] == [8, 7, 9, 5] == store.asked
    assert trace.rankings["reranked"] == [9, 8, 7, 5]
    assert ids(trace.passages) == [9, 8]
    assert trace.passages[0].hits[-1] == Hit("rerank", 1, trace.passages[0].score)
    assert reader.scored == 4
    assert "rerank" in trace.seconds


@pytest.mark.parametrize("reader", [None, by_length()])
def test_nothing_is_reranked_unless_asked(reader: FakeReader | None) -> None:
    trace = searcher(reader=reader).trace(WHEN, top=4, rerank=reader is None)
    assert ids(trace.passages) == trace.rankings["fused"]
    assert "reranked" not in trace.rankings
    assert "rerank" not in trace.seconds
    assert reader is None or reader.scored == 0


def test_as_many_candidates_are_reranked_as_the_settings_say() -> None:
    reader = by_length()
    two = SETTINGS.model_copy(update={"rerank_candidates": 2})
    trace = searcher(reader=reader, settings=two).trace(WHEN, top=4)
    assert reader.scored == 2
    assert ids(trace.passages) == [8, 7, 9, 5]


def test_an_index_that_finds_nothing() -> None:
    trace = searcher((), (), reader=by_length()).trace(WHEN, top=3)
    assert trace.passages == []
    assert trace.rankings == {"dense": [], "keyword": [], "fused": [], "reranked": []}


def test_a_follow_up_is_told_from_a_new_subject() -> None:
    assert not searcher().trace(WHEN, top=1).follows
    assert searcher().trace(WHEN, top=1, earlier=["who"]).follows
    tuning = FollowUpTuning(new_subject_below=0.5)
    strict = Searcher(FakeIndex((1,), (1,)), cast(Store, FakeStore()), SETTINGS, EMBEDDER, None, None, tuning)
    assert not strict.trace(WHEN, top=1, earlier=["who"]).follows
    assert strict.trace(Question("when and who"), top=1, earlier=["when and who now"]).follows


def test_weak_passages_are_marked_and_stay() -> None:
    def weak(below: float | None, candidates: int = 0) -> list[bool | None]:
        settings = SETTINGS.model_copy(update={"rerank_candidates": candidates})
        found = searcher(reader=by_length(), weak_below=below, settings=settings).trace(WHEN, top=4).passages
        assert len(found) == 4
        return [passage.weak for passage in found]

    first, *_, last = (len(reranked_text(one)) for one in searcher(reader=by_length()).trace(WHEN, top=4).passages)
    assert weak(float(first)) == [False, True, True, True]
    assert weak(float(last)) == [False] * 4
    assert weak(None) == [None] * 4, "nothing is known of this reader's scale"
    assert weak(first + 1.0, candidates=2) == [True, True, None, None], "only two were read by it"
    assert searcher(weak_below=1.0).trace(WHEN, top=4).passages[0].weak is None


def test_a_least_score_cuts() -> None:
    scores = [one.hits[-1].score for one in searcher(reader=by_length()).trace(WHEN, top=4).passages]
    trace = searcher(reader=by_length()).trace(WHEN, top=4, min_score=scores[1])
    assert ids(trace.passages) == [9, 8]
    assert trace.rankings["reranked"] == [9, 8, 7, 5]
    assert searcher(reader=by_length()).trace(WHEN, top=4, min_score=scores[0] + 1).passages == []


def test_every_passage_that_is_not_weak_from_a_larger_pool() -> None:
    many = tuple(range(1, 101))
    settings = SETTINGS.model_copy(update={"pool": 10, "passages": 5, "all_candidates": 90})
    reader = by_length(-1)
    trace = searcher(many, (), reader=reader, settings=settings, weak_below=-60.0).trace(WHEN, top=90, every=True)
    assert reader.scored == 90, "all, although later rounds bring no better ones"
    lengths = [len(reranked_text(one)) for one in trace.passages]
    assert lengths == sorted(lengths)
    assert 20 < len(lengths) < 60
    assert max(lengths) <= 60
    more = searcher(many, (), reader=by_length(-1), settings=settings, weak_below=-60.0)
    assert len(more.trace(WHEN, top=90, every=True, min_score=-40.0).passages) < len(lengths)


@pytest.mark.parametrize("how", [{"every": True}, {"min_score": 1.0}])
def test_scores_need_a_reranker(how: dict[str, Any]) -> None:
    with pytest.raises(QuestionError, match="the scores of a reranker"):
        searcher().trace(WHEN, top=3, **how)
    with pytest.raises(QuestionError, match="--no-rerank"):
        searcher(reader=by_length(), weak_below=1.0).trace(WHEN, top=3, rerank=False, **how)


def test_a_reranker_of_unknown_scale_needs_a_least_score() -> None:
    with pytest.raises(QuestionError, match="--min-score"):
        searcher(reader=by_length()).trace(WHEN, top=3, every=True)
    assert searcher(reader=by_length()).trace(WHEN, top=3, every=True, min_score=0.0).passages


def passages(*texts: str) -> list[Passage]:
    return [passage(text, key=key, score=0.1 - key / 100) for key, text in enumerate(texts)]


def test_passages_are_ordered_by_score_and_keep_the_story_of_their_ranks() -> None:
    ranked = rerank_passages("when", passages("aa", "a", "aaa", "bb"), by_length())
    assert ids(ranked) == [2, 0, 3, 1]
    assert [passage.hits[-1].rank for passage in ranked] == [1, 2, 3, 4]
    assert ranked[0].score == 3.0


def test_passages_beyond_the_candidates_follow_in_their_order() -> None:
    ranked = rerank_passages("when", passages("a", "aaa", "aaaaa", "aaaa"), by_length(), candidates=2)
    assert ids(ranked) == [1, 0, 2, 3]
    assert [len(passage.hits) for passage in ranked] == [1, 1, 0, 0]


def scored(texts: list[str], **options: Any) -> int:
    reader = by_length()
    ranked = rerank_passages("when", passages(*texts), reader, **options)
    assert sorted(ids(ranked)) == list(range(len(texts)))
    return reader.scored


def test_scoring_ends_with_the_first_round_that_brings_nothing_good() -> None:
    falling = ["x" * (200 - place) for place in range(150)]
    assert scored(falling, kept=20) == 48, "a first round of 32, and one of 16 that brought none"
    late = [*falling[:40], "x" * 300, *falling[41:]]
    assert scored(late, kept=20) == 64
    assert scored(falling) == 150, "all are asked for"
    assert scored(falling[::-1], kept=20) == 150, "each round brings better ones"
    assert scored(falling, kept=20, candidates=40) == 40
    assert scored([], kept=20) == 0


def test_a_slow_machine_reranks_fewer_and_always_as_many() -> None:
    reader = by_length()
    reader.pairs_per_second = 1.0
    settings = SETTINGS.model_copy(update={"rerank_seconds": 2.0})
    assert searcher(reader=reader, settings=settings).trace(WHEN, top=4).rankings["reranked"]
    assert reader.scored == 4, "all, since there are fewer than the least that are worth it"


def test_a_reader_whose_rank_is_fused_reads_only_what_is_kept() -> None:
    settings = SETTINGS.model_copy(update={"passages": 2})
    for reader, read in ((by_length(fused_weight=1.0), 2), (by_length(), 4)):
        searching = searcher(reader=reader, settings=settings)
        assert len(searching.trace(WHEN, top=4).rankings["reranked"]) == 4
        assert reader.scored == read
    searching.trace(WHEN, top=4, every=True, min_score=0.0)
    assert reader.scored == 8, "all of them"


def test_a_blend_weighs_both_ranks() -> None:
    texts = ("aaaa", "a", "aaaaa", "aaa")  # ranks 2, 4, 1, 3 by the reader; 1, 2, 3, 4 fused
    ranked = rerank_passages("when", passages(*texts), by_length(fused_weight=1.0))
    expected = {0: 1 / 12 + 1 / 11, 1: 1 / 14 + 1 / 12, 2: 1 / 11 + 1 / 13, 3: 1 / 13 + 1 / 14}
    assert ids(ranked) == sorted(expected, key=lambda key: -expected[key])
    assert {passage.chunk_id: passage.score for passage in ranked} == pytest.approx(expected)
    assert ids(rerank_passages("when", passages(*texts), by_length(fused_weight=1000.0))) == [0, 1, 2, 3]


def test_a_reader_reads_title_terms_and_text() -> None:
    (found,) = searcher((3,), ()).trace(WHEN, top=1).passages
    assert reranked_text(found) == "Title\nTerms 3.\nxxx"
    assert reranked_text(passages("alone")[0]) == "alone"


class KnowsSome(FakeIndex):
    """An index whose documents have only one of the words of a question."""

    def keywords(self, terms: Sequence[str], top: int, *rest: Any, **options: Any) -> list[tuple[int, float]]:
        return super().keywords(terms, top, *rest, **options) if len(terms) > 1 or terms == ["x"] else []


def test_keywords_count_less_where_a_foreign_question_has_words_that_no_document_has() -> None:
    index, store = KnowsSome((7, 8), (9, 8)), cast(Store, FakeStore())
    settings = SETTINGS.model_copy(update={"dense_weight": 0.9})

    def first(question: str) -> int:
        return (
            Searcher(index, store, settings, EMBEDDER, None, None).trace(Question(question), top=3).rankings["fused"][1]
        )

    assert first("where is the boat of x") == 9
    assert first("wo ist das Boot von x") == 7  # the third of 9 of the dense list counts more


rankings = st.dictionaries(st.sampled_from(["dense", "keyword", "other"]), st.lists(st.integers(0, 30), unique=True))


def test_known_scores() -> None:
    fused = reciprocal_rank_fusion({"dense": [7, 8], "keyword": [8, 9]}, k=60)
    assert fused == [(8, 1 / 62 + 1 / 61), (7, 1 / 61), (9, 1 / 62)]


def test_weights() -> None:
    assert reciprocal_rank_fusion({"a": [1], "b": [2]}, weights={"b": 2.0})[0] == (2, 2 / 61)


def test_ties_keep_the_order_of_the_lists() -> None:
    assert [key for key, _ in reciprocal_rank_fusion({"a": [5, 1], "b": [2, 9]})] == [5, 2, 1, 9]


def test_k_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        reciprocal_rank_fusion({}, k=0)


@given(rankings)
def test_every_id_once_best_first(lists: dict[str, list[int]]) -> None:
    fused = reciprocal_rank_fusion(lists)
    assert sorted(key for key, _ in fused) == sorted({key for ranking in lists.values() for key in ranking})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.integers(0, 30), unique=True))
def test_two_equal_lists_keep_their_order(ranking: list[int]) -> None:
    assert [key for key, _ in reciprocal_rank_fusion({"a": ranking, "b": ranking})] == ranking


QUESTION = "parental leave weeks boat harbour"


@pytest.mark.parametrize("context", ["headings", "none"])
def test_contexts_of_an_earlier_run_are_not_shown(documents: Path, context: str) -> None:
    parts = replace(QUICK, load_reader=lambda _model: FakeReader(lambda _question, text: float(len(text))))

    def contexts(**settings: Any) -> set[str]:
        with Library("lib", parts=parts, profile="tiny", rerank_model="minilm-l6-reader", **settings) as library:
            library.index([documents], contexts=True)
            return {f"{passage.context} {passage.context_by}" for passage in library.search(QUESTION)}

    assert any("This chunk belongs to part" in found for found in contexts(context="auto", context_minutes=9))
    assert contexts(context=context) == {" None"}
    assert any("This chunk belongs to part" in found for found in contexts(context="auto", context_minutes=9))
