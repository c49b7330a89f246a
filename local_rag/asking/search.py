"""Find passages: dense search and keyword search, fused, then reranked where there is a cross-encoder."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from local_rag.asking.fuse import reciprocal_rank_fusion
from local_rag.errors import QuestionError
from local_rag.files import is_utf8
from local_rag.models.embedder import Embedder
from local_rag.models.reranker import Reranker
from local_rag.records import Hit, Passage
from local_rag.settings import Settings
from local_rag.store.database import Store, StoredChunk
from local_rag.store.index import Index
from local_rag.store.keyword_index import keyword_tokens

# Passages that are scored at once: chosen by scripts/measure/tune_early_exit.py, see docs/speed.md.
_FIRST_ROUND, _ROUND = 32, 16
_FEWEST = 16  # that are reranked on a slow machine
_BLEND_K = 10  # of the fusion of both ranks; chosen together with the models' fused_weight, see docs/results.md


@dataclass(frozen=True, slots=True)
class Trace:
    """A search with what each stage made of it.

    `rankings` holds the chunk ids of the stages dense, keyword, fused and reranked, best first, and `seconds` what
    embed, dense, keyword, fuse and rerank took. `reranked` and `rerank` are missing where nothing was reranked.
    """

    passages: list[Passage]
    rankings: dict[str, list[int]]
    seconds: dict[str, float]


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
        store: Store,
        settings: Settings,
        embedder: Embedder,
        load_reranker: Callable[[], Reranker] | None,
    ) -> None:
        self.index = index
        # The store may hold contexts of an earlier run, which this index was made without.
        self._situated = index.manifest.get("fingerprint", {}).get("context", "llm") == "llm"
        self._store, self._settings, self._embedder = store, settings, embedder
        self._load_reranker = functools.cache(load_reranker) if load_reranker else None

    def load(self) -> None:
        """Load the reranker, where there is one, before the first question."""
        if self._load_reranker:
            self._load_reranker()

    def trace(self, question: str, *, top: int, rerank: bool = True) -> Trace:
        """Search, and keep the ranking and the time of every stage."""
        if not is_utf8(question):
            raise QuestionError("The question is not UTF-8; set the terminal to UTF-8 and type it again.")
        settings, watch = self._settings, Stopwatch()
        pool = max(settings.pool, top)
        vector = self._embedder.embed_query(question)
        watch.lap("embed")
        lists = {"dense": self.index.dense(vector, pool)}
        watch.lap("dense")
        lists["keyword"] = self.index.keywords(keyword_tokens(question), pool)
        watch.lap("keyword")
        rankings = {name: [chunk for chunk, _ in ranking] for name, ranking in lists.items()}
        weights = {"dense": settings.dense_weight, "keyword": settings.keyword_weight}
        lists["fused"] = reciprocal_rank_fusion(rankings, k=settings.rrf_k, weights=weights)
        watch.lap("fuse")
        rankings["fused"] = [chunk for chunk, _ in lists["fused"]]
        reranker = self._load_reranker() if rerank and self._load_reranker else None
        passages = self._passages(lists, pool if reranker else top)
        watch.restart()
        if reranker:
            candidates = settings.rerank_candidates or max(
                _FEWEST, int(reranker.pairs_per_second * settings.rerank_seconds)
            )
            passages = rerank_passages(question, passages, reranker, candidates=candidates, kept=settings.passages)
            watch.lap("rerank")
            rankings["reranked"] = [passage.chunk_id for passage in passages]
        return Trace(passages[:top], rankings, watch.seconds)

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
            _passage(stored[chunk], score, tuple(hits[chunk]), situated=self._situated)
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


def reranked_text(passage: Passage) -> str:
    """Return what a reranker reads of a passage."""
    return "\n".join(part for part in (passage.title, passage.context, passage.text) if part)


def _passage(stored: StoredChunk, score: float, hits: tuple[Hit, ...], *, situated: bool) -> Passage:
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
    )
