"""Plan which vectors the documents want, have the missing ones made, and return the rows of the published index.

A document is planned once, and again when it has changed: `store/vector_rows.py` records what is done. No step
holds more than a few documents in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import numpy as np

from local_rag.document_records import heading_path
from local_rag.index.protocol import DocumentRows, index_recipe
from local_rag.index.scoring import KEYWORDS
from local_rag.index.vector_index import VECTORS
from local_rag.indexing.vectors import embedded_text, embedder_identity, table_tokens, vector_keys
from local_rag.indexing.workers import EmbeddingJob, OnNote, Workers
from local_rag.keys import key_of
from local_rag.model_records import InstalledModel
from local_rag.passage_records import ContextMode, StoredChunk
from local_rag.settings import Settings
from local_rag.store.database import Store
from local_rag.store.vector_rows import (
    EmbeddingPlan,
    known_vectors,
    mark_embedded,
    put_plans,
    put_vectors,
    stored_vector,
    vector_keys_of,
)

_PARTS = 2  # stands for the code below that puts the parts of a row together
_TOGETHER = 64  # documents that are planned, or finished, in one commit
_TOGETHER_CHUNKS = 1024


class Embedding:
    """Make the vectors of documents under the settings of a run; `plan` names everything that decides about them.

    Apart from the contexts: a document whose contexts have changed is planned again.
    """

    def __init__(self, store: Store, workers: Workers, settings: Settings, embed_model: InstalledModel) -> None:
        self._store, self._workers, self._settings, self._model = store, workers, settings, embed_model
        self._chunk_tokens = table_tokens(settings, embed_model)  # no chunk has more
        shaped = index_recipe(KEYWORDS, VECTORS)
        self.plan = key_of(embedder_identity(embed_model), embed_model.int8, settings.context, shaped, _PARTS)
        self._lacking: dict[int, set[str]] = {}  # keys of vectors that are being made, by document
        self._wanted_by: dict[str, list[int]] = {}
        self._done: list[int] = []

    def make(self, documents: Iterable[int], note: OnNote) -> Iterator[int]:
        """Plan documents and have their vectors made; yield the number of vectors in each batch."""
        with closing(self._workers.embed(self._jobs(documents), note)) as results:
            for keys, vectors in results:
                put_vectors(self._store, keys, vectors)
                yield self._finish(keys)
        self._mark()

    def _jobs(self, documents: Iterable[int]) -> Iterator[EmbeddingJob]:
        """Plan a few documents at a time; yield the texts to embed, each once."""
        planned, jobs = list[EmbeddingPlan](), list[EmbeddingJob]()
        for document in documents:
            one, missing = self._plan(document)
            planned.append(one)
            jobs += missing
            if len(planned) >= _TOGETHER or sum(len(plan.keys) for plan in planned) >= _TOGETHER_CHUNKS:
                yield from self._planned(planned, jobs)
                planned, jobs = [], []
        yield from self._planned(planned, jobs)

    def _planned(self, planned: Sequence[EmbeddingPlan], jobs: Iterable[EmbeddingJob]) -> Iterator[EmbeddingJob]:
        """Store plans, then return the jobs that they need and that are not under way yet."""
        put_plans(self._store, planned)
        wanted = {job.key: job for job in jobs}
        for one in planned:
            missing = {key for _, key in one.keys if key in wanted or key in self._wanted_by}
            if missing:
                self._lacking[one.document_id] = missing
            else:
                self._done.append(one.document_id)
        asked = wanted.keys() - self._wanted_by.keys()
        for one in planned:
            for key in self._lacking.get(one.document_id, ()):
                self._wanted_by.setdefault(key, []).append(one.document_id)
        if len(self._done) >= _TOGETHER:
            self._mark()
        return (job for key, job in wanted.items() if key in asked)

    def _plan(self, document: int) -> tuple[EmbeddingPlan, list[EmbeddingJob]]:
        """Return which vectors a document wants, and a job for each that is not stored."""
        index_rows = list(self._store.rows(document))
        passages, written = [], []
        for stored in index_rows:
            headings, terms, sentence, text = _parts(stored, self._settings.context)
            tokens = self._chunk_tokens if stored.kind == "chunk" else None
            embedded = embedded_text(headings, text, sentence, model=self._model, text_tokens=tokens)
            passages.append((embedded, terms))
            written.append(sentence)
        possible = [vector_keys(self._model, *passage) for passage in passages]
        known = known_vectors(self._store, [key for some in possible for key in some])
        keys = [next((key for key in some if key in known), some[-1]) for some in possible]
        rows = [(stored.id, key) for stored, key in zip(index_rows, keys, strict=True)]
        chunks = sum(stored.kind == "chunk" for stored in index_rows)
        generated = sum(bool(terms or sentence) for (_, terms), sentence in zip(passages, written, strict=True))
        # The keys say nothing of a sentence for which a vector had no room; keyword search finds it all the same.
        version = int(key_of(self.plan, rows, written)[:15], 16)
        planned = EmbeddingPlan(document, rows, version, chunks, generated)
        jobs = [EmbeddingJob(key, *one) for key, one in zip(keys, passages, strict=True) if key not in known]
        return planned, jobs

    def _finish(self, keys: Sequence[str]) -> int:
        """Record which documents now have all vectors; return the number of vectors."""
        for key in keys:
            for document in self._wanted_by.pop(key, ()):
                self._lacking[document].discard(key)
                if not self._lacking[document]:
                    del self._lacking[document]
                    self._done.append(document)
        self._mark()
        return len(keys)

    def _mark(self) -> None:
        mark_embedded(self._store, self._done, self.plan)
        self._done.clear()


def index_rows(store: Store, mode: ContextMode, documents: Sequence[int]) -> Iterator[DocumentRows]:
    """Yield the index rows of embedded documents: the row of the whole document, and its chunks."""
    for document in documents:
        held, keys = list(store.rows(document)), vector_keys_of(store, document)
        yield DocumentRows(
            document_id=document,
            chunk_ids=[stored.id for stored in held],
            vectors=np.stack([stored_vector(store, key) for key in keys]),
            texts=["\n".join(filter(None, _parts(stored, mode))) for stored in held],
            described=held[0].kind == "document",
        )


def _parts(stored: StoredChunk, mode: ContextMode) -> tuple[str, str, str, str]:
    """Return the parts of a row that are indexed: headings, what distinguishes its document, sentence and text."""
    titled = mode != "none" or stored.kind == "document"
    headings = heading_path(stored.title, stored.chunk.headings) if titled else ""
    contexts = (stored.terms, stored.sentence) if mode == "auto" else ("", "")
    return headings, *contexts, stored.chunk.full_text
