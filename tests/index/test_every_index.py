"""Every engine behind `Index` and `Indexes` passes these cases: files in a folder, and Qdrant over the stand-in.

Qdrant does so over http and over TLS with a site's own authority.
"""

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from local_rag.asking import Filters
from local_rag.cluster.on_request import ENGINES
from local_rag.document_records import Chunk
from local_rag.index.generations import Generations
from local_rag.index.protocol import Allowed, AllowedDocuments, Index, Indexes
from local_rag.passage_records import DocumentFacts, RowKind, StoredChunk
from local_rag.settings import SearchEngineSettings
from local_rag.text.tokens import keyword_tokens
from tests.fakes import contents_of

# The engines of `ENGINES` that this suite can start, with the module of their stand-in.
STAND_INS = {"qdrant": "qdrant_edge"}
TEXTS = ("the tide rises", "tide and wind", "wind from the west", "tide tide tide", "a boat", "the boat and the tide")
IDS = (70, 12, 31, 9, 55, 8)
OWNERS = (1, 1, 1, 2, 2, 3)
VECTORS = np.random.default_rng(5).normal(size=(len(TEXTS), 8)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)


class Passages:
    """The passages of a library whose chunks are in these documents."""

    def __init__(self, owners: Mapping[int, int], texts: Mapping[int, str], described: Collection[int] = ()) -> None:
        self._owners, self._texts = dict(owners), dict(texts)
        # The first row of each of these documents.
        self._whole = {next(one for one, owner in owners.items() if owner == document) for document in described}

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        return {one: self._stored(one) for one in ids if one in self._owners}

    def _stored(self, one: int) -> StoredChunk:
        text = self._texts[one]
        document = self._owners[one]
        chunk = Chunk(0, 0, len(text), text, ("Part",), None, 3, 4)
        kind: RowKind = "document" if one in self._whole else "chunk"
        return StoredChunk(
            one, document, f"/docs/{document}.md", "Title", chunk, f"Terms of {one}.", f"Context of {one}.", kind=kind
        )

    def version(self) -> int:
        return 1

    def roots(self) -> list[Path]:
        return [Path("/docs")]

    def library_id(self) -> str:
        return "one"

    def select(self, filters: Filters) -> None: ...

    def facts(self, documents: Collection[int] | None = None) -> list[DocumentFacts]:
        documents = sorted(set(self._owners.values()) & set(self._owners.values() if documents is None else documents))
        return [DocumentFacts(one, f"/docs/{one}.md", 10**9 * one, "2024-03-01", ("even",)) for one in documents]

    def chunks_of(self, documents: Collection[int]) -> Allowed:
        return np.array([one for one, owner in self._owners.items() if owner in documents], dtype=np.int64)


class Engine:
    """The indexes of an engine, made again for each reader as another process would."""

    def __init__(self, make: Callable[[], Indexes]) -> None:
        self._make = make
        self.indexes = make()

    def publish(
        self,
        ids: Sequence[int],
        owners: Sequence[int],
        texts: Sequence[str],
        vectors: np.ndarray,
        *,
        rebuild: bool = False,
        made: str = "",
        described: Collection[int] = (),
    ) -> None:
        """Publish chunks; those of one document are consecutive."""
        passages = Passages(dict(zip(ids, owners, strict=True)), dict(zip(ids, texts, strict=True)), described)
        contents = contents_of(ids, owners, vectors, texts, described)
        self._make().over(passages).publish(contents, {"made": made}, rebuild=rebuild)

    def publish_first(self, count: int = len(IDS), made: str = "") -> None:
        self.publish(IDS[:count], OWNERS[:count], TEXTS[:count], VECTORS[:count], made=made)

    def live(self) -> Index:
        live = self._make().live()
        assert live is not None
        live.open()
        return live


# Encryption changes no rank, so the quick tests ask engines over http alone.
_ENGINES_OVER = [
    pytest.param(f"{kind} over {how}", marks=pytest.mark.slow if how == "TLS" else ())
    for kind in ENGINES
    for how in ("http", "TLS")
]


@pytest.fixture(scope="module", params=["files", *_ENGINES_OVER])
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Engine]]:
    """Return what makes the indexes of a new library in an engine."""
    kind, _, how = str(request.param).partition(" over ")
    names = iter(range(10**6))
    if kind == "files":
        yield lambda: Engine(partial(Generations, tmp_path_factory.mktemp("library")))
        return
    assert kind in STAND_INS, f"name a stand-in for the engine {kind}"
    pytest.importorskip(STAND_INS[kind], reason="the extra [cluster-test] is not installed")
    from tests.support.certificates import Authority
    from tests.support.search_engine import StandIn

    authority = Authority(tmp_path_factory.mktemp("authority")) if how == "TLS" else None
    started, access = (
        StandIn(authority),
        SearchEngineSettings(ca=str(authority.ca)) if authority else SearchEngineSettings(),
    )

    def in_engine() -> Engine:
        setting = started.setting.replace("/handbook", f"/library{next(names)}")
        return Engine(partial(ENGINES[kind], setting, access=access))

    yield in_engine
    started.remove()


@pytest.fixture
def engine(make: Callable[[], Engine]) -> Engine:
    return make()


@pytest.fixture(scope="module")
def published(make: Callable[[], Engine]) -> Index:
    """An index of all chunks, which no test changes."""
    engine = make()
    engine.publish_first(made="today")
    return engine.live()


def assert_same(found: list[tuple[int, float]], wanted: list[tuple[int, float]]) -> None:
    """Compare two rankings; an engine may round sums of another order differently, by less than one part in 10^5."""
    assert dict(found) == pytest.approx(dict(wanted), rel=1e-5)
    assert [score for _, score in found] == pytest.approx([score for _, score in wanted], rel=1e-5)


def test_before_the_first_publish_there_is_none(engine: Engine) -> None:
    assert engine.indexes.live_name() == engine.indexes.live_stamp() == ""
    assert engine.indexes.live() is None
    assert engine.indexes.unused() == []
    assert engine.indexes.sizes() == {}


def test_results_are_chunk_ids_best_first(published: Index) -> None:
    assert list(published.chunk_ids()) == list(IDS)
    assert published.manifest["made"] == "today"
    assert published.damage() == published.damage(hash_all=False) == []
    assert [chunk for chunk, _ in published.keywords(["tide"], 1)] == [9]
    for ranking in (published.dense(VECTORS[4], 6), published.keywords(["tide", "boat"], 6)):
        assert {chunk for chunk, _ in ranking} <= set(IDS)
        scores = [score for _, score in ranking]
        assert scores == sorted(scores, reverse=True)
    ((chunk, similarity),) = published.dense(VECTORS[5], 1)
    assert chunk == 8
    assert similarity == pytest.approx(1), "alone in its document, its vector is as it was given"
    ids, versions = published.documents()
    assert sorted(ids.tolist()) == [1, 2, 3]
    assert ids.dtype == versions.dtype == np.int64


def test_the_order_within_allowed_is_that_of_everything(published: Index) -> None:
    chance = random.Random(3)
    for seed in range(40):
        allowed = set(chance.sample([*IDS, 99], chance.randrange(8)))
        terms = chance.choices(["tide", "wind", "boat", "west", "zebra"], k=chance.randrange(4))
        vector = np.random.default_rng(seed).normal(size=8).astype(np.float32)
        top = chance.randrange(1, 10)
        for search in (partial(published.dense, vector), partial(published.keywords, terms)):
            wanted = [(chunk, score) for chunk, score in search(len(IDS)) if chunk in allowed][:top]
            found = search(top, allowed)
            assert [chunk for chunk, _ in found] == [chunk for chunk, _ in wanted]
            assert [score for _, score in found] == pytest.approx([score for _, score in wanted])


def test_the_scores_are_those_of_the_index_in_files(published: Index, tmp_path: Path) -> None:
    files = Engine(partial(Generations, tmp_path))
    files.publish_first()
    wanted = files.live()
    for terms in (["tide"], ["tide", "boat", "tide"], ["west", "zebra"], []):
        assert [one for one, _ in published.keywords(terms, 9)] == [one for one, _ in wanted.keywords(terms, 9)]
        found = [score for _, score in published.keywords(terms, 9)]
        assert found == pytest.approx([score for _, score in wanted.keywords(terms, 9)], rel=1e-5)
    for vector in VECTORS:
        assert [one for one, _ in published.dense(vector, 9)] == [one for one, _ in wanted.dense(vector, 9)]


def test_weights_of_terms_are_those_of_their_scores(published: Index) -> None:
    tide, wind = (dict(published.keywords([term], 9)) for term in ("tide", "wind"))
    wanted = {chunk: 2 * tide.get(chunk, 0) + 0.3 * wind.get(chunk, 0) for chunk in {*tide, *wind}}
    found = dict(published.keywords(["tide", "zebra", "wind", "tide"], 9, weights=[1, 5, 0.3, 1]))
    assert found == pytest.approx(wanted, rel=1e-5)


def test_the_documents_of_a_filter_are_all_that_is_found(engine: Engine) -> None:
    engine.publish_first()
    live = engine.live()
    passages = live.passages() or Passages(dict(zip(IDS, OWNERS, strict=True)), dict(zip(IDS, TEXTS, strict=True)))
    for documents in ([1], [2, 3], [99], []):
        allowed = passages.chunks_of(documents)
        wanted = {one for one, owner in zip(IDS, OWNERS, strict=True) if owner in documents}
        assert {chunk for chunk, _ in live.dense(VECTORS[0], 9, allowed)} == wanted
        assert {chunk for chunk, _ in live.keywords(["tide", "wind", "boat"], 9, allowed)} <= wanted


def test_rows_that_stand_for_documents_are_found_if_asked_for(engine: Engine) -> None:
    vectors = np.repeat(VECTORS[:1], len(IDS), axis=0)
    engine.publish(IDS, OWNERS, TEXTS, vectors, described=[1, 3])
    live, chunks = engine.live(), {12, 31, 9, 55}
    assert set(live.chunk_ids()) == set(IDS)
    for allowed in (None, IDS, AllowedDocuments(np.array([1, 2, 3]))):
        assert {one for one, _ in live.dense(VECTORS[0], 9, allowed)} == chunks
        assert {one for one, _ in live.dense(VECTORS[0], 9, allowed, documents=True)} == set(IDS)
        assert {one for one, _ in live.keywords(["tide", "rises"], 9, allowed)} == chunks
        assert {one for one, _ in live.keywords(["tide", "rises"], 9, allowed, documents=True)} == set(IDS)
    (_, alone), *_ = live.keywords(keyword_tokens("rises"), 9, documents=True)
    assert live.keywords(keyword_tokens("rises"), 9) == [], "the row of a document is not around its chunks"
    assert alone > 0
    some = AllowedDocuments(np.array([3, 99]))
    assert [one for one, _ in live.dense(VECTORS[0], 9, some, documents=True)] == [8]
    assert live.dense(VECTORS[0], 9, some) == live.dense(VECTORS[0], 9, AllowedDocuments(np.zeros(0, np.int64))) == []


def test_the_vocabulary_is_the_words_that_can_be_searched(engine: Engine) -> None:
    texts = ["Policies of getUserName, ST-4471", "the Boats' policy", "東京 a boat"]
    engine.publish(IDS[:3], OWNERS[:3], texts, VECTORS[:3])
    engine.publish(IDS[1:3], OWNERS[1:3], texts[1:], VECTORS[1:3])
    engine.indexes.expunge()
    live = engine.live()
    words = set(live.vocabulary())
    assert words in (set(), {"policy", "boats", "boat"}), "an engine may keep none, but none of what was removed"
    assert all(live.keywords(keyword_tokens(word), 1) for word in words)


def test_an_index_of_nothing_finds_nothing(engine: Engine) -> None:
    engine.publish([], [], [], np.zeros((0, 1), dtype=np.float32))
    empty = engine.live()
    assert list(empty.chunk_ids()) == []
    assert not empty.vocabulary()
    assert empty.documents()[0].tolist() == []
    assert empty.dense(np.ones(1), 3) == empty.keywords(["tide"], 3) == []
    assert empty.damage() == []


def test_chunks_with_equal_scores_rank_in_the_order_of_their_documents(engine: Engine) -> None:
    ids, owners = list(range(90, 60, -1)), list(range(30, 0, -1))
    vectors = np.tile(np.array([0.6, 0.8], dtype=np.float32), (30, 1))
    engine.publish(ids, owners, ["the same tide"] * 30, vectors)
    live = engine.live()
    order = list(live.chunk_ids())
    assert sorted(order) == sorted(ids)
    for top in (1, 7, 30):
        assert [chunk for chunk, _ in live.dense(np.array([1.0, 0.0], dtype=np.float32), top)] == order[:top]
        assert [chunk for chunk, _ in live.keywords(["tide"], top)] == order[:top]
    some = [one for one in order if one % 3]
    assert [chunk for chunk, _ in live.keywords(["tide"], 4, set(some))] == some[:4]


def test_an_index_that_was_changed_ranks_like_a_new_one(make: Callable[[], Engine]) -> None:
    words = ("tide", "wind", "boat", "harbour", "goat")
    chance, changed = random.Random(7), make()
    documents: dict[int, tuple[int, list[str]]] = {}
    for step in range(6):
        number = chance.randrange(4)
        documents.pop(number, None)
        if chance.random() < 0.8:
            texts = [" ".join(chance.choices(words, k=chance.randrange(1, 6))) for _ in range(chance.randrange(1, 4))]
            documents[number] = 100 * (step + 1), texts
        rows = [
            (first + position, number, text)
            for number, (first, texts) in sorted(documents.items())
            for position, text in enumerate(texts)
        ]
        ids, owners = [first for first, _, _ in rows], [number for _, number, _ in rows]
        texts = [text for _, _, text in rows]
        vectors = np.array([[text.count(word) + 0.1 for word in words] for text in texts], dtype=np.float32)
        vectors = vectors.reshape(-1, len(words)) / np.linalg.norm(vectors.reshape(-1, len(words)), axis=1)[:, None]
        changed.publish(ids, owners, texts, vectors)
    new = make()
    new.publish(ids, owners, texts, vectors)
    found, wanted = changed.live(), new.live()
    assert list(found.chunk_ids()) == list(wanted.chunk_ids()) != []
    for question in ("tide", "wind boat", "harbour harbour goat"):
        terms = keyword_tokens(question)
        assert_same(found.keywords(terms, 9), wanted.keywords(terms, 9))
    for vector in vectors:
        assert_same(found.dense(vector, 9), wanted.dense(vector, 9))


def test_each_publish_has_its_own_name_and_stamp_and_removed_chunks_are_not_found(engine: Engine) -> None:
    names, stamps = list[str](), set[str]()
    for count in (6, 3, 5):
        engine.publish_first(count)
        names.append(engine.indexes.live_name())
        stamps.add(engine.indexes.live_stamp())
        live = engine.live()
        assert live.stamp == engine.indexes.live_stamp()
        assert list(live.chunk_ids()) == list(IDS[:count])
        assert {chunk for chunk, _ in live.dense(VECTORS[0], 9)} == set(IDS[:count])
        assert set(engine.indexes.sizes()) >= {engine.indexes.live_name()}
    assert len(set(names)) == len(stamps) == 3


def test_a_reader_of_the_previous_index_finishes_with_it(engine: Engine) -> None:
    engine.publish_first()
    reader = engine.live()
    before = reader.keywords(["tide"], 9), reader.dense(VECTORS[0], 9)
    engine.publish_first(2)
    assert (reader.keywords(["tide"], 9), reader.dense(VECTORS[0], 9)) == before


def test_a_publish_from_nothing_holds_the_same(engine: Engine) -> None:
    engine.publish_first()
    before = engine.live().keywords(["tide", "wind"], 9)
    engine.publish(IDS, OWNERS, TEXTS, VECTORS, rebuild=True)
    assert_same(engine.live().keywords(["tide", "wind"], 9), before)


def test_nothing_but_the_live_index_is_left_after_pruning(engine: Engine) -> None:
    for count in (6, 3):
        engine.publish_first(count)
    wanted = engine.live().keywords(["tide", "wind"], 9)
    engine.indexes.prune()
    assert list(engine.indexes.sizes()) == [engine.indexes.live_name()]
    assert engine.indexes.unused(engine.indexes.live_name()) == []
    assert engine.live().keywords(["tide", "wind"], 9) == wanted
    engine.indexes.prune()
    assert engine.live().damage() == []


def test_passages_are_those_that_were_published(engine: Engine) -> None:
    engine.publish_first()
    passages = engine.live().passages()
    if passages is None:
        return  # they are in the store
    wanted = Passages(dict(zip(IDS, OWNERS, strict=True)), dict(zip(IDS, TEXTS, strict=True)))
    assert passages.chunks_by_id([70, 8, 99]) == wanted.chunks_by_id([70, 8])
    assert sorted(passages.facts(), key=lambda facts: facts.id) == wanted.facts()
    assert list(passages.roots()) == wanted.roots()
    version = passages.version()
    engine.publish_first(3)
    other = engine.live().passages()
    assert other is not None
    assert other.version() != version
    assert sorted(facts.id for facts in other.facts()) == [1]
