"""Find passages: dense search and keyword search, fused, then reranked where there is a cross-encoder."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

from local_rag.errors import QuestionError
from local_rag.files import is_utf8
from local_rag.index.protocol import Index
from local_rag.models.embedder import Embedder
from local_rag.models.reranker import Reranker, reranked_text
from local_rag.records import EVERYTHING, SITUATED, Filters, Hit, Passage
from local_rag.retrieval.filters import Catalogue, Filtering
from local_rag.retrieval.follow_ups import FOLLOW_UPS, FollowUpTuning, follow_up_query
from local_rag.retrieval.fusion import reciprocal_rank_fusion
from local_rag.retrieval.whole_documents import asks_for_documents, without
from local_rag.settings import Settings
from local_rag.store.database import Store, StoredChunk

# Passages that are scored at once: measured in docs/speed.md.
_FIRST_ROUND, _ROUND = 32, 16
_FEWEST = 16  # that are reranked on a slow machine
_BLEND_K = 10  # of the fusion of both ranks; chosen together with the models' fused_weight, see docs/results.md


@dataclass(frozen=True, slots=True)
class Trace:
    """A search with what each stage made of it.

    `rankings` holds the chunk ids of the stages dense, keyword, fused and reranked, best first, and `seconds` what
    embed, dense, keyword, fuse and rerank took. `reranked` and `rerank` are missing where nothing was reranked.
    `follows` says that it was searched as a follow-up.
    """

    passages: list[Passage]
    rankings: dict[str, list[int]]
    seconds: dict[str, float]
    follows: bool = False


class Shelf(Catalogue, Protocol):
    """An index that holds the chunks it names, and the catalogue of their documents, itself."""

    def chunks_by_id(self, ids: Sequence[int]) -> Mapping[int, StoredChunk]:
        """Return the chunks with these ids."""

    def document_rows(self) -> Collection[int]:
        """Return the ids of all rows that stand for documents."""


class Stopwatch:
    """Take the seconds of one stage after another."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage; the next one begins."""
        self.seconds[stage] = perf_counter() - self._started
        self.restart()

    def restart(self) -> None:
        """Leave out what was done since the last stage."""
        self._started = perf_counter()


class Searcher:
    """Search one published index: embed the question, ask both lists, fuse them, rerank the best."""

    def __init__(
        self,
        index: Index,
        store: Store | Shelf,
        settings: Settings,
        embedder: Embedder,
        load_reranker: Callable[[], Reranker] | None,
        weak_below: float | None = None,
        follow_ups: FollowUpTuning = FOLLOW_UPS,
    ) -> None:
        self.index = index
        # The store may hold contexts of an earlier run, which this index was made without.
        self._situated = index.manifest.get("fingerprint", {}).get("context", "llm") in SITUATED
        self._store, self._settings, self._embedder = store, settings, embedder
        self._weak_below, self._follow_ups = weak_below, follow_ups
        self._filtering = Filtering(store)
        self._document_rows = store.document_rows()
        self._load_reranker = functools.cache(load_reranker) if load_reranker else None

    def load(self) -> None:
        """Load the reranker, where there is one, before the first question."""
        if self._load_reranker:
            self._load_reranker()

    @property
    def reranker(self) -> Reranker | None:
        """The cross-encoder, loaded when first asked for, where the profile has one."""
        return self._load_reranker() if self._load_reranker else None

    def trace(
        self,
        question: str,
        *,
        top: int,
        rerank: bool = True,
        filters: Filters = EVERYTHING,
        every: bool = False,
        min_score: float | None = None,
        earlier: Sequence[str] = (),
        share: int = 1,
    ) -> Trace:
        """Search the documents that pass the filters, and keep the ranking and the time of every stage.

        With `min_score` only passages stay that the reranker scores so high. With `every` many more candidates are
        looked at, and all stay that are not weak, or have `min_score`. Both raise QuestionError without a reranker.
        A question that follows `earlier` ones, the first asked first, is searched with some weight of theirs.
        One of `share` searches for the same question reranks that part of the candidates, so that together they cost
        what one costs.
        """
        if not is_utf8(question):
            raise QuestionError("The question is not UTF-8; set the terminal to UTF-8 and type it again.")
        least = self._least_score(rerank, every, min_score)
        settings, watch = self._settings, Stopwatch()
        pool = max(settings.all_candidates if every else settings.pool, top)
        allowed = self._filtering.allowed(filters)
        watch.restart()
        vector, terms, weights_of_terms = follow_up_query(self._embedder, question, earlier, self._follow_ups)
        watch.lap("embed")
        rows = () if asks_for_documents(question) else self._document_rows
        lists = {"dense": without(rows, lambda count: self.index.dense(vector, count, allowed), pool)}
        watch.lap("dense")
        lists["keyword"] = without(
            rows, lambda count: self.index.keywords(terms, count, allowed, weights_of_terms), pool
        )
        watch.lap("keyword")
        rankings = {name: [chunk for chunk, _ in ranking] for name, ranking in lists.items()}
        weights = {"dense": settings.dense_weight, "keyword": settings.keyword_weight}
        lists["fused"] = reciprocal_rank_fusion(rankings, k=settings.rrf_k, weights=weights)
        watch.lap("fuse")
        rankings["fused"] = [chunk for chunk, _ in lists["fused"]]
        reranker = self.reranker if rerank else None
        passages = self._passages(lists, pool if reranker else top)
        watch.restart()
        if reranker:
            candidates = settings.rerank_candidates or max(
                _FEWEST, int(reranker.pairs_per_second * settings.rerank_seconds) // share
            )
            candidates, kept = (settings.rerank_candidates, 0) if every else (candidates, settings.passages)
            passages = rerank_passages(question, passages, reranker, candidates=candidates, kept=kept)
            watch.lap("rerank")
            rankings["reranked"] = [passage.chunk_id for passage in passages]
            passages = mark_weak(passages, self._weak_below, least)
        return Trace(passages[:top], rankings, watch.seconds, follows=weights_of_terms is not None)

    def _least_score(self, rerank: bool, every: bool, min_score: float | None) -> float | None:
        """Return the score that a passage must have to stay, None where all stay."""
        if not every and min_score is None:
            return None
        if not (rerank and self._load_reranker):
            raise QuestionError(
                "--all and --min-score go by a reranker's scores and there is none here; leave --no-rerank away, or "
                "name a model with `--rerank-model`."
            )
        if min_score is None and self._weak_below is None:
            raise QuestionError("Below which score this reranker's passages are weak is not known; give `--min-score`.")
        return self._weak_below if min_score is None else min_score

    def _passages(self, lists: Mapping[str, Sequence[tuple[int, float]]], count: int) -> list[Passage]:
        """Fetch the first fused chunks; give each its rank and score in every list."""
        candidates = lists["fused"][:count]
        hits: dict[int, list[Hit]] = {chunk: [] for chunk, _ in candidates}
        for name, ranking in lists.items():
            for rank, (chunk, score) in enumerate(ranking, start=1):
                if chunk in hits:
                    hits[chunk].append(Hit(name, rank, score))
        stored = self._store.chunks_by_id(list(hits))
        return [
            found_passage(stored[chunk], score, tuple(hits[chunk]), situated=self._situated)
            for chunk, score in candidates
            if chunk in stored
        ]


def rerank_passages(
    question: str, passages: Sequence[Passage], reranker: Reranker, *, candidates: int = 0, kept: int = 0
) -> list[Passage]:
    """Order the first `candidates` passages, 0 for all; the rest follow as before.

    They are scored a round at a time, until a round brings no passage among the first `kept`: those behind it were
    found worse still. With 0 all are scored. The order is the reranker's, or where it has a `fused_weight`, that of the
    sum of both ranks' reciprocals: a small cross-encoder and the fused lists err on different questions. Equal scores
    keep their order.
    """
    limit = min(candidates or len(passages), len(passages))
    scores: list[float] = []
    ranked: list[tuple[int, Passage]] = []
    while len(scores) < limit:
        before, end = len(scores), min(limit, max(_FIRST_ROUND, len(scores) + _ROUND))
        scores += reranker.score(question, [reranked_text(passage) for passage in passages[before:end]])
        ranked = _blend(passages, scores, reranker.fused_weight)
        if kept and before and all(place < before for place, _ in ranked[:kept]):
            break
    return [passage for _, passage in ranked] + list(passages[len(scores) :])


def _blend(passages: Sequence[Passage], scores: Sequence[float], weight: float) -> list[tuple[int, Passage]]:
    """Order the passages that have scores, best first, each with its place before."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    ranked = []
    for rank, place in enumerate(order, start=1):
        score = 1 / (_BLEND_K + rank) + weight / (_BLEND_K + place + 1) if weight else scores[place]
        hits = (*passages[place].hits, Hit("rerank", rank, scores[place]))
        ranked.append((place, replace(passages[place], score=score, hits=hits)))
    return sorted(ranked, key=lambda one: (-one[1].score, one[0]))


def mark_weak(passages: Sequence[Passage], weak_below: float | None, least: float | None = None) -> list[Passage]:
    """Say of each passage that was reranked whether it is weak; with `least` keep those that have that score."""
    marked = []
    for passage in passages:
        score = next((hit.score for hit in passage.hits if hit.list_name == "rerank"), None)
        if least is None or (score is not None and score >= least):
            known = score is not None and weak_below is not None
            marked.append(replace(passage, weak=score < weak_below) if known else passage)  # type: ignore[operator]
    return marked


def found_passage(stored: StoredChunk, score: float, hits: tuple[Hit, ...], *, situated: bool) -> Passage:
    """Make a passage of a stored chunk that was found; without `situated` its context took no part."""
    chunk = stored.chunk
    return Passage(
        chunk_id=stored.id,
        path=stored.path,
        title=stored.title,
        text=chunk.text,
        context=stored.context if situated else "",
        context_kind=stored.context_kind if situated else "",
        headings=chunk.headings,
        page=chunk.page,
        line=chunk.line,
        end_line=chunk.end_line,
        score=score,
        hits=hits,
        start=chunk.start,
        end=chunk.end,
        provenance=stored.provenance,
        kind=stored.kind,
    )
