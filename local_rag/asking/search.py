"""Find passages: dense search and keyword search, fused, then reranked where there is a cross-encoder."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter

from local_rag.asking.fuse import reciprocal_rank_fusion
from local_rag.models.embedder import Embedder
from local_rag.models.reranker import Reranker, score_within
from local_rag.records import Hit, Passage
from local_rag.settings import Settings
from local_rag.store.database import Store, StoredChunk
from local_rag.store.generation import Generation

_BLEND_K = 10  # as in fusion; both chosen with fused_weight, see docs/results.md


@dataclass(frozen=True, slots=True)
class Trace:
    """A search with what each stage made of it.

    `rankings` holds the chunk ids of the stages dense, keyword, fused and reranked, best first, and `seconds` what
    embed, dense, keyword, fuse and rerank took. `reranked` and `rerank` are missing where nothing was reranked.
    """

    passages: list[Passage]
    rankings: dict[str, list[int]]
    seconds: dict[str, float]


class Searcher:
    """Search one published generation."""

    def __init__(
        self, generation: Generation, store: Store, settings: Settings, embedder: Embedder, reranker: Reranker | None
    ) -> None:
        self.generation = generation
        self._store, self._settings, self._embedder, self._reranker = store, settings, embedder, reranker
        self._chunk_ids = generation.chunk_ids().tolist()
        self._vectors, self._keywords = generation.vectors(), generation.keywords()

    def search(self, question: str, *, top: int, rerank: bool = True) -> list[Passage]:
        """Return the best passages for a question, best first, each with its rank and score in every list."""
        return self.trace(question, top=top, rerank=rerank).passages

    def trace(self, question: str, *, top: int, rerank: bool = True) -> Trace:
        """Search, and keep the ranking and the time of every stage."""
        pool = max(self._settings.pool, top)
        times = [perf_counter()]
        vector = self._embedder.embed_query(question)
        times.append(perf_counter())
        dense = self._vectors.search(vector, pool)
        times.append(perf_counter())
        keyword = self._keywords.search(question, pool)
        times.append(perf_counter())
        lists = {"dense": dense, "keyword": keyword}
        fused = reciprocal_rank_fusion(
            {name: [row for row, _ in ranking] for name, ranking in lists.items()},
            k=self._settings.rrf_k,
            weights={"dense": self._settings.dense_weight, "keyword": self._settings.keyword_weight},
        )
        times.append(perf_counter())
        seconds = {
            stage: after - before
            for stage, (before, after) in zip(("embed", "dense", "keyword", "fuse"), pairwise(times), strict=True)
        }
        rankings = {
            name: [self._chunk_ids[row] for row, _ in ranking] for name, ranking in {**lists, "fused": fused}.items()
        }
        passages = self._passages(fused[: pool if rerank and self._reranker else top], lists)
        if rerank and self._reranker:
            started = perf_counter()
            chosen, limit = self._settings.rerank_candidates, self._settings.rerank_seconds
            passages = rerank_passages(
                question, passages, self._reranker, candidates=chosen, seconds=math.inf if chosen else limit
            )
            seconds["rerank"] = perf_counter() - started
            rankings["reranked"] = [passage.chunk_id for passage in passages]
        return Trace(passages[:top], rankings, seconds)

    def _passages(
        self, candidates: Sequence[tuple[int, float]], lists: Mapping[str, Sequence[tuple[int, float]]]
    ) -> list[Passage]:
        """Fetch the candidates' chunks; give each its rank and score in every list."""
        hits: dict[int, list[Hit]] = {row: [] for row, _ in candidates}
        for name, ranking in lists.items():
            for rank, (row, score) in enumerate(ranking, start=1):
                if row in hits:
                    hits[row].append(Hit(name, rank, score))
        stored = self._store.chunks_by_id([self._chunk_ids[row] for row, _ in candidates])
        passages = []
        for rank, (row, score) in enumerate(candidates, start=1):
            chunk = stored.get(self._chunk_ids[row])
            if chunk is not None:
                passages.append(_passage(chunk, score, (*hits[row], Hit("fused", rank, score))))
        return passages


def rerank_passages(
    question: str, passages: Sequence[Passage], reranker: Reranker, *, candidates: int = 0, seconds: float = math.inf
) -> list[Passage]:
    """Order the first `candidates` passages, 0 for all, or as many as can be scored in time; the rest follow as before.

    The order is the reranker's, or where it has a `fused_weight`, that of the sum of both ranks' reciprocals: a small
    cross-encoder and the fused lists err on different questions. Equal scores keep their order.
    """
    scores = score_within(
        seconds, reranker, question, [passage_text(passage) for passage in passages[: candidates or None]]
    )
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    rank_of = {index: rank for rank, index in enumerate(order, start=1)}
    ranked = [
        replace(passages[index], score=scores[index], hits=(*passages[index].hits, Hit("rerank", rank, scores[index])))
        for index, rank in sorted(rank_of.items())
    ]
    if reranker.fused_weight:
        ranked = [
            replace(passage, score=1 / (_BLEND_K + rank_of[index]) + reranker.fused_weight / (_BLEND_K + index + 1))
            for index, passage in enumerate(ranked)
        ]
    return sorted(ranked, key=lambda passage: -passage.score) + list(passages[len(scores) :])


def passage_text(passage: Passage) -> str:
    """Return what a reranker reads of a passage."""
    return "\n".join(part for part in (passage.title, passage.context, passage.text) if part)


def _passage(stored: StoredChunk, score: float, hits: tuple[Hit, ...]) -> Passage:
    chunk = stored.chunk
    return Passage(
        chunk_id=stored.id,
        path=display_path(Path(stored.path)),
        title=stored.title,
        text=chunk.text,
        context=stored.context,
        context_kind=stored.context_kind,
        headings=chunk.headings,
        page=chunk.page,
        line=chunk.line,
        end_line=chunk.end_line,
        score=score,
        hits=hits,
    )


def display_path(path: Path) -> str:
    """Shorten a path below the working directory to what a user would type."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
