"""However an index came to be, by adding, changing, removing and merging, it ranks as one made of nothing."""

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.errors import DamagedLibraryError
from local_rag.index.generations import Generation, Generations
from local_rag.index.postings import Postings, merge_postings
from local_rag.index.protocol import Contents, DocumentRows
from local_rag.index.segment import SegmentPart, Segments, merge_plan
from local_rag.index.vector_index import NearTuning, VectorIndex, VectorPart, open_near, write_near
from local_rag.text.tokens import keyword_tokens
from tests.fakes import contents_of

WORDS = ("tide", "wind", "boat", "harbour", "goat", "kite")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
# What becomes of the documents 0 to 5: their chunks, none where a document is taken out.
CHANGES = st.lists(st.tuples(st.integers(0, 5), st.lists(TEXTS, max_size=10)), min_size=1, max_size=8)
QUESTIONS = ("tide", "wind boat", "harbour harbour goat", "kite tide wind boat goat")
DIMENSION = 6


def vector_of(text: str) -> np.ndarray:
    """Return a vector; few different ones, so that there are ties."""
    counts = np.array([text.count(word) for word in WORDS], dtype=np.float32) + np.float32(0.1)
    normalised: np.ndarray = counts / np.linalg.norm(counts)
    return normalised


def contents(documents: dict[int, list[str]], first_ids: dict[int, int]) -> Contents:
    """Return the contents of an index; a changed document has other chunk ids."""
    rows = [(document, place, text) for document in sorted(documents) for place, text in enumerate(documents[document])]
    vectors = np.stack([vector_of(text) for _, _, text in rows]) if rows else np.zeros((0, DIMENSION), np.float32)
    ids = [first_ids[document] + place for document, place, _ in rows]
    described = [document for document in documents if document % 2]
    return contents_of(ids, [document for document, _, _ in rows], vectors, [text for _, _, text in rows], described)


def opened(generations: Generations) -> Generation:
    generation = generations.live()
    assert isinstance(generation, Generation)
    generation.open()
    return generation


def rankings(generation: Generation, top: int, allowed: np.ndarray | None) -> list[list[tuple[int, float]]]:
    return [
        search(top, allowed, documents=documents)
        for question in QUESTIONS
        for documents in (False, True)
        for search in (
            partial(generation.keywords, keyword_tokens(question)),
            partial(generation.dense, vector_of(question)),
        )
    ]


@settings(max_examples=25)
@given(CHANGES, st.integers(1, 20), st.sampled_from([1, 3, 10_000]), st.booleans())
@pytest.mark.slow
def test_order_and_scores_are_those_of_an_index_made_of_nothing(
    changes: list[tuple[int, list[str]]], top: int, batch_rows: int, filtered: bool
) -> None:
    documents: dict[int, list[str]] = {}
    first_ids: dict[int, int] = {}
    with TemporaryDirectory() as name:
        grown = Generations(Path(name) / "grown", batch_rows=batch_rows)
        (Path(name) / "grown").mkdir()
        for number, (document, texts) in enumerate(changes):
            documents.pop(document, None)
            if texts:
                documents[document], first_ids[document] = texts, 100 * (number + 1)
            grown.publish(contents(documents, first_ids), {})
        (Path(name) / "fresh").mkdir()
        fresh = Generations(Path(name) / "fresh")
        fresh.publish(contents(documents, first_ids), {})
        some = np.array([first_ids[document] for document in documents], dtype=np.int64) if filtered else None
        found, wanted = opened(grown), opened(fresh)
        assert found.chunk_ids() == wanted.chunk_ids()
        assert found.damage() == []
        assert rankings(found, top, some) == rankings(wanted, top, some), "the same floats, not only nearly the same"


@pytest.mark.slow
def test_many_publishes_leave_few_segments_and_nothing_else(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    documents: dict[int, list[str]] = {}
    for number in range(40):
        documents[number] = ["tide and wind", "a boat"]
        generations.publish(contents(documents, {n: 10 * n for n in range(40)}), {})
    live = opened(generations)
    assert len(live.chunk_ids()) == 80
    assert len(live.manifest["segments"]) <= 6
    before = f"{int(generations.live_name()) - 1:06}"
    assert generations.unused(before, generations.live_name()) == []
    assert {path.name for path in (tmp_path / "segments").iterdir()} >= set(live.manifest["segments"])


def test_an_open_index_answers_on_while_others_are_published(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    documents = {number: [f"tide {WORDS[number % 6]}", "a boat"] for number in range(12)}
    ids = {number: 10 * number for number in range(12)}
    generations.publish(contents(documents, ids), {})
    reader = opened(generations)
    before = rankings(reader, 30, None)
    for number in range(12):
        del documents[number]
        generations.publish(contents(documents, ids), {})
    assert rankings(reader, 30, None) == before
    assert opened(generations).chunk_ids() == []


def test_a_segment_that_is_half_gone_is_written_anew(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    documents = {number: ["tide", "wind"] for number in range(10)}
    ids = {number: 10 * number for number in range(10)}
    generations.publish(contents(documents, ids), {})
    for number in range(4):
        del documents[number]
    generations.publish(contents(documents, ids), {})
    assert opened(generations).manifest["segments"] == ["000001"], "more than half is still there"
    del documents[4], documents[5]
    generations.publish(contents(documents, ids), {})
    assert opened(generations).manifest["segments"] != ["000001"]


def test_a_publish_writes_only_what_is_new(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    documents = {number: ["tide", "wind"] for number in range(10)}
    ids = {number: 10 * number for number in range(10)}
    generations.publish(contents(documents, ids), {})
    written = (tmp_path / "segments" / "000001" / "vectors.npy").stat().st_mtime_ns
    documents[3] = ["kite"]
    whole, asked = contents(documents, ids | {3: 500}), list[int]()

    def rows(some: Sequence[int]) -> Iterator[DocumentRows]:
        asked.extend(some)
        return whole.rows(some)

    generations.publish(Contents(whole.documents, whole.versions, rows), {})
    assert asked == [3]
    assert (tmp_path / "segments" / "000001" / "vectors.npy").stat().st_mtime_ns == written


def test_segments_of_killed_publishes_are_unused(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    generations.publish(contents({1: ["tide"]}, {1: 1}), {})
    segments = tmp_path / "segments"
    shutil.copytree(segments / "000001", segments / "000007")
    (segments / "000008.tmp").mkdir()
    (segments / "mine").mkdir()
    assert [path.name for path in generations.unused("000001")] == ["000007", "000008.tmp"]
    generations.publish(contents({1: ["tide"], 2: ["wind"]}, {1: 1, 2: 2}), {})
    assert sorted(path.name for path in segments.iterdir()) == ["000001", "000002", "mine"]


@given(st.lists(st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=9), min_size=2, max_size=5))
@pytest.mark.slow
def test_merged_postings_are_those_of_all_texts(documents: list[list[list[str]]]) -> None:
    together = Postings.build(
        [text for document in documents for text in document],
        [number for number, document in enumerate(documents) for _ in document],
    )
    with TemporaryDirectory() as name:
        gone = Postings.build([["zebra", "tide"]], [0])
        parts = [
            (Postings.build(document, [0] * len(document)), np.ones(len(document), bool)) for document in documents
        ]
        merge_postings([(gone, np.zeros(1, bool)), *parts]).write(Path(name) / "merged")
        merged = Postings.open(Path(name) / "merged")
        together.write(Path(name) / "together")
        together = Postings.open(Path(name) / "together")
        pairs = [(merged.words, together.words), (merged.block_of, together.block_of)]
        for one, other in ((merged.own, together.own), (merged.around, together.around)):
            pairs += [(getattr(one, part), getattr(other, part)) for part in ("starts", "texts", "parts")]
        for found, wanted in pairs:
            assert found.dtype == wanted.dtype
            assert found.tolist() == wanted.tolist(), "the same floats, not only nearly the same"


def test_faiss_finds_nearly_all_of_the_best_and_never_what_is_gone(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    centres = random.normal(size=(40, 32))
    vectors = (centres[random.integers(0, 40, 6000)] + random.normal(size=(6000, 32)) * 0.5).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    tuning = NearTuning(least_rows=1000)
    assert write_near(vectors, tmp_path / "codes.faiss", tuning)
    assert not write_near(vectors[:10], tmp_path / "none.faiss", tuning)
    alive = random.random(6000) > 0.2
    near = VectorIndex([VectorPart(vectors, alive, open_near(tmp_path / "codes.faiss"))], tuning=tuning)
    exact = VectorIndex([VectorPart(vectors, alive)])
    hits = 0
    for number in range(30):
        question = vectors[number * 7]
        found, wanted = near.search(question, 50), exact.search(question, 50)
        assert all(alive[row] for row, _ in found)
        scores = dict(wanted)
        assert all(scores[row] == score for row, score in found if row in scores), "the scores are exact"
        hits += len(scores.keys() & dict(found).keys())
        some = np.flatnonzero(random.random(6000) > 0.5)
        assert near.search(question, 20, some) == exact.search(question, 20, some), "filters are exact"
    assert hits / (30 * 50) > 0.99


def test_where_the_best_are_gone_the_rest_are_found(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(4000, 16)).astype(np.float32)
    vectors[:2000, 0] += 10  # all that are near the question
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    tuning, alive = NearTuning(least_rows=1000), np.arange(4000) >= 2000
    write_near(vectors, tmp_path / "codes.faiss", tuning)
    near = VectorIndex([VectorPart(vectors, alive, open_near(tmp_path / "codes.faiss"))], tuning=tuning)
    question = np.eye(16, dtype=np.float32)[0]
    assert near.search(question, 50) == VectorIndex([VectorPart(vectors, alive)]).search(question, 50)


def test_codes_that_are_cut_short_are_damage(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float32)
    write_near(vectors, tmp_path / "codes.faiss", NearTuning(least_rows=100))
    whole = (tmp_path / "codes.faiss").read_bytes()
    (tmp_path / "codes.faiss").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedLibraryError, match=r"codes\.faiss"):
        open_near(tmp_path / "codes.faiss")


def test_a_change_of_one_document_merges_at_most_a_tenth_of_the_library() -> None:
    chance = np.random.default_rng(2)
    parts = [(np.full(1818, 11), np.ones(1818, dtype=bool)), (np.full(64, 11), np.ones(64, dtype=bool))]
    written, most_segments = list[int](), 0
    for _ in range(4000):
        rows = [int(sizes[alive].sum()) for sizes, alive in parts]
        _, alive = parts[int(chance.choice(len(parts), p=np.array(rows) / sum(rows)))]
        alive[chance.choice(np.flatnonzero(alive))] = False
        parts = [(sizes, alive) for sizes, alive in parts if alive.any()]
        parts.append((np.array([11]), np.ones(1, dtype=bool)))
        plan = merge_plan(parts)
        written.append(sum(int(parts[position][0][copied].sum()) for position, copied in plan.items()))
        assert written[-1] <= sum(int(sizes[alive].sum()) for sizes, alive in parts) / 10
        if plan:
            merged = np.concatenate([parts[position][0][copied] for position, copied in plan.items()])
            parts = [
                (sizes, alive & ~plan[position] if position in plan else alive)
                for position, (sizes, alive) in enumerate(parts)
            ]
            parts = [(sizes, alive) for sizes, alive in parts if alive.any()] + [(merged, np.ones(len(merged), bool))]
        most_segments = max(most_segments, len(parts))
    assert most_segments < 50
    assert np.mean(written) < 11 * 12, "what is written is merged a few times"
    assert sum(int(sizes.sum()) for sizes, _ in parts) < 2 * 11 * 1882, "removed rows are written off"


def test_a_large_library_has_segments_of_limited_size() -> None:
    parts = [(np.full(1, 1 << 17), np.ones(1, dtype=bool)) for _ in range(100)]
    assert [len(copied) for copied in merge_plan(parts).values()] == [1, 1]


def test_segments_of_a_size_are_merged_after_they_are_published(tmp_path: Path) -> None:
    generations = Generations(tmp_path, batch_rows=2)
    published = list[str]()

    class Watching(Segments):
        def merge(self, parts: Sequence[SegmentPart]) -> list[SegmentPart] | None:
            published.append(generations.live_name())
            return super().merge(parts)

    generations._segments = Watching(tmp_path / "segments", 2)
    made = contents({n: ["tide", "wind"] for n in range(9)}, {n: 10 * n for n in range(9)})
    generations.publish(made, {})
    assert published[0] == "000001", "all that is new is live before the first merge"
    live = opened(generations)
    assert live.folder.name == published[-1] != "000001"
    assert len(live.manifest["segments"]) < 4
    assert len(live.chunk_ids()) == 18
    assert {path.name for path in (tmp_path / "segments").iterdir()} == set(live.manifest["segments"])


def test_damage_is_not_merged_and_a_damaged_segment_is_written_again_alone(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    documents = {number: ["tide", "wind"] for number in range(3)}
    ids = {number: 10 * number for number in range(10)}
    for number in range(3):
        generations.publish(contents({one: documents[one] for one in range(number + 1)}, ids), {})
    path = tmp_path / "segments" / "000002" / "vectors.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    whole, asked = contents(documents | {3: ["boat"]}, ids), list[int]()

    def rows(some: Sequence[int]) -> Iterator[DocumentRows]:
        asked.extend(some)
        return whole.rows(some)

    with pytest.raises(DamagedLibraryError, match=rf"^{path} has changed .*local-rag repair"):
        generations.publish(whole, {})
    assert opened(generations).chunk_ids() == [0, 1, 10, 11, 20, 21, 30], "the change is live, only the merge failed"
    generations.publish(Contents(whole.documents, whole.versions, rows), {}, rebuild=True)
    assert asked == [1]
    assert opened(generations).damage() == []
    assert opened(generations).chunk_ids() == [0, 1, 10, 11, 20, 21, 30]


def test_a_rebuild_leaves_no_segment_that_holds_what_was_removed(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    documents, ids = {number: ["tide", "wind"] for number in range(10)}, {number: 10 * number for number in range(20)}
    generations.publish(contents(documents, ids), {})
    generations.publish(contents(documents | {10: ["kite"]}, ids), {})
    del documents[4]
    generations.publish(contents(documents | {10: ["kite"]}, ids), {}, rebuild=True)
    generations.prune()
    assert [path.name for path in (tmp_path / "segments").iterdir() if path.name in {"000001", "000002"}] == ["000002"]
    for path in (tmp_path / "segments").glob("*/chunk_ids.npy"):
        assert not {40, 41} & set(np.load(path).tolist())
