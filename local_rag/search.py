"""Find passages: dense search and keyword search, fused, then reranked where there is a cross-encoder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from local_rag.embed import Embedder
from local_rag.errors import LibraryError
from local_rag.fuse import reciprocal_rank_fusion
from local_rag.keyword_index import TOKENS_VERSION
from local_rag.publish import Generation
from local_rag.records import Hit, Passage
from local_rag.rerank import Reranker
from local_rag.settings import Settings
from local_rag.store import Store, StoredChunk


def check_fingerprint(generation: Generation, embedder_identity: str, embedder_name: str) -> None:
    """Refuse a question whose vectors or tokens could not be compared with the index's."""
    made = generation.manifest["fingerprint"]
    if made["embedder"] != embedder_identity:
        raise LibraryError(
            f"The index was made with the embedder {made['embedder_name']} and the question would use {embedder_name}; "
            f"leave the profile and model flags away, or run `local-rag index` with them to embed the library again."
        )
    if made["keyword_tokens"] != TOKENS_VERSION:
        raise LibraryError(
            "The index was made by another version of local-rag; run `local-rag index` to build it again."
        )


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
        pool = max(self._settings.pool, top)
        lists = {
            "dense": self._vectors.search(self._embedder.embed_query(question), pool),
            "keyword": self._keywords.search(question, pool),
        }
        fused = reciprocal_rank_fusion(
            {name: [row for row, _ in ranking] for name, ranking in lists.items()},
            k=self._settings.rrf_k,
            weights={"dense": self._settings.dense_weight, "keyword": self._settings.keyword_weight},
        )
        hits: dict[int, list[Hit]] = {row: [] for row, _ in fused}
        for name, ranking in lists.items():
            for rank, (row, score) in enumerate(ranking, start=1):
                hits[row].append(Hit(name, rank, score))
        candidates = fused[: pool if rerank and self._reranker else top]
        stored = self._store.chunks_by_id([self._chunk_ids[row] for row, _ in candidates])
        passages = []
        for rank, (row, score) in enumerate(candidates, start=1):
            chunk = stored.get(self._chunk_ids[row])
            if chunk is not None:
                passages.append(_passage(chunk, score, (*hits[row], Hit("fused", rank, score))))
        if rerank and self._reranker:
            passages = rerank_passages(question, passages, self._reranker)
        return passages[:top]


def rerank_passages(question: str, passages: Sequence[Passage], reranker: Reranker) -> list[Passage]:
    """Order passages by the reranker's score; equal scores keep their order."""
    scores = reranker.score(question, [_text(passage) for passage in passages])
    order = sorted(range(len(passages)), key=lambda index: -scores[index])
    return [
        replace(passages[index], score=scores[index], hits=(*passages[index].hits, Hit("rerank", rank, scores[index])))
        for rank, index in enumerate(order, start=1)
    ]


def _text(passage: Passage) -> str:
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
