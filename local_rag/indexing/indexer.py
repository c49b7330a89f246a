"""Bring a library up to date with its folders: read -> split -> contextualize -> embed -> publish.

Every stage skips what is already stored, so that a second run costs nothing and a stopped one is resumed by the same
command. A first generation, whose contexts are title and headings, is published before any context is generated, and
again as contexts come in: `ask` never has to wait for the last one.
"""

import gc
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import LibraryError, ReadError
from local_rag.indexing.contextualize import (
    ContextJob,
    context_plan,
    headings_context,
    make_engine,
    plan_contexts,
    write_contexts,
)
from local_rag.indexing.fingerprint import make_fingerprint
from local_rag.llama.calibrate import calibrate, stored_settings
from local_rag.llama.model import LlamaModel
from local_rag.llama.optimize import fastest_file
from local_rag.llama.probe import require_working
from local_rag.models.embedder import (
    SentenceEmbedder,
    default_chunk_tokens,
    embed_with_contexts,
    embedder_identity,
    input_tokens,
    load_tokenizer,
    passage_text,
    vector_key,
)
from local_rag.models.registry import file_sha256
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import split
from local_rag.reading.walk import walk
from local_rag.records import Chunk, Document, InstalledModel, Skipped
from local_rag.settings import Settings, index_settings
from local_rag.store.database import Store, StoredChunk, StoredDocument
from local_rag.store.generation import current_generation, publish
from local_rag.store.maintenance import purge_superseded

PUBLISH_SECONDS = 600.0
_EMBED_BATCH = 256
_WORTH_CALIBRATING = 200  # contexts to write: some minutes at least, against some twenty seconds
_FEW_CONTEXTS = 20  # not worth publishing a first generation without them


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is: `read`, `contextualize`, `embed` or `publish`; `detail` is a short remark for people."""

    stage: str
    done: int
    total: int
    detail: str = ""


@dataclass(slots=True)
class IndexReport:
    """What a run of `index` did."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    chunks: int = 0
    contexts: dict[str, int] = field(default_factory=dict)
    tokens_evaluated: int = 0
    tokens_reused: int = 0
    tokens_generated: int = 0
    warning: str = ""
    published: bool = False
    seconds: float = 0.0


class Indexer:
    """Run the stages of one `index` over an open store; the caller holds the library's lock."""

    def __init__(
        self,
        library: Path,
        store: Store,
        settings: Settings,
        *,
        embed_model: InstalledModel,
        context_model: InstalledModel | None,
        progress: Callable[[Progress], None],
    ) -> None:
        self._library, self._store, self._settings = library, store, settings
        self._embed_model, self._context_model = embed_model, context_model
        self._progress = progress
        self._plan = context_plan(context_model.identity) if context_model else ""
        self.report = IndexReport()

    def run(self, paths: Sequence[Path]) -> IndexReport:
        """Run all stages over these files and folders."""
        started = time.monotonic()
        purge_superseded(self._library, self._store)
        self._read(paths)
        self.complete()
        self.report.seconds = time.monotonic() - started
        return self.report

    def complete(self) -> None:
        """Write, embed and publish what the stored documents still lack."""
        pending = self._contexts_to_write()
        if pending > _FEW_CONTEXTS or not pending:
            self.publish()
        while self._contexts_to_write():
            self._contextualize(time.monotonic() + PUBLISH_SECONDS)
            self.publish()

    def _read(self, paths: Sequence[Path]) -> None:
        """Read and split what is new or changed; drop what is gone."""
        split_key, chunk_tokens = self.split_key()
        known = {document.path: document for document in self._store.documents()}
        found = list(walk([path for path in paths if path.exists()], exclude=[self._library, *self._store.excluded()]))
        self.report.skipped = [item for item in found if isinstance(item, Skipped)]
        files = [item for item in found if isinstance(item, Path)]
        present = set(files)
        gone = {
            name: document
            for name, document in known.items()
            if any(Path(name).is_relative_to(root) for root in paths) and Path(name) not in present
        }
        gone_hashes = {document.sha256 for document in gone.values()}
        with IsolatedReader() as reader:
            for number, path in enumerate(files, start=1):
                self._progress(Progress("read", number, len(files), path.name))
                try:
                    self._read_file(path, known.get(str(path)), gone_hashes, split_key, chunk_tokens, reader)
                except (ReadError, OSError) as error:
                    self.report.skipped.append(Skipped(path, str(error)))
                    if str(path) in known:
                        gone[str(path)] = known[str(path)]
        for document in gone.values():
            self._store.supersede(document.id)
        unread = [item for item in self.report.skipped if item.path in present]
        self._store.put_skipped(paths, ((item, *_size_and_time(item.path)) for item in unread))
        self.report.removed = len(gone) - self.report.moved

    def _read_file(
        self,
        path: Path,
        known: StoredDocument | None,
        gone_hashes: set[str],
        split_key: str,
        chunk_tokens: int,
        reader: IsolatedReader,
    ) -> None:
        status = path.stat()
        same_split = known is not None and known.split_key == split_key
        if known and same_split and (known.size, known.modified_ns) == (status.st_size, status.st_mtime_ns):
            self.report.unchanged += 1
            return
        sha256 = file_sha256(path)
        if known and same_split and known.sha256 == sha256:
            self._store.touch_document(known.id, status.st_mtime_ns)
            self.report.unchanged += 1
            return
        document = reader.read(path)
        chunks = self.split(document, chunk_tokens)
        self._store.put_document(
            document,
            chunks,
            size=status.st_size,
            modified_ns=status.st_mtime_ns,
            sha256=sha256,
            split_key=split_key,
        )
        if known:
            self.report.changed += 1
        elif sha256 in gone_hashes:
            self.report.moved += 1
        else:
            self.report.added += 1

    def split_key(self) -> tuple[str, int]:
        """Return what shapes the chunks, as one string, and the chunk size in tokens."""
        room = input_tokens(self._embed_model)
        chunk_tokens = self._settings.chunk_tokens or default_chunk_tokens(self._embed_model)
        if chunk_tokens > room:
            raise LibraryError(
                f"A chunk of {chunk_tokens} tokens does not fit {self._embed_model.name}, which takes {room}; "
                f"use `--chunk-tokens {room}` or less."
            )
        if self._settings.overlap >= chunk_tokens:
            raise LibraryError(
                f"The overlap must be smaller than the chunks of {chunk_tokens} tokens; lower `--overlap`."
            )
        tokenizer = file_sha256(self._embed_model.path / "tokenizer.json")
        return json.dumps([self._settings.chunker, chunk_tokens, self._settings.overlap, tokenizer[:16]]), chunk_tokens

    def split(self, document: Document, chunk_tokens: int) -> tuple[Chunk, ...]:
        """Split a document as the settings say."""
        return split(
            document,
            tokenizer=load_tokenizer(self._embed_model.path),
            max_tokens=chunk_tokens,
            overlap=self._settings.overlap,
            chunker=self._settings.chunker,
        )

    def _contexts_to_write(self) -> int:
        return self._store.count_missing_contexts(self._plan) if self._context_model else 0

    def _contextualize(self, deadline: float) -> None:
        """Write missing contexts until the deadline, storing each the moment it is finished."""
        assert self._context_model is not None
        total, done = self._contexts_to_write(), 0
        self._progress(Progress("contextualize", 0, total, f"loading {self._context_model.name}"))
        path = fastest_file(self._context_model)
        require_working(path)
        model = LlamaModel(path)
        settings = stored_settings(model.path)
        if settings is None and total >= _WORTH_CALIBRATING:
            settings = calibrate(
                model, lambda note: self._progress(Progress("contextualize", 0, total, f"{note} to this machine"))
            )
        engine = make_engine(model, settings)
        started = time.monotonic()
        if not model.shares_prefix:
            self.report.warning = (
                f"{self._context_model.name} has layers that cannot share a prefix, so every chunk costs a whole "
                "document; choose a model that attends fully (Llama, Qwen2.5, SmolLM2)."
            )
        try:
            for key, text, kind in write_contexts(self._jobs(model, deadline), engine):
                self._store.put_context(key, text, kind)
                done += 1
                self.report.contexts[kind] = self.report.contexts.get(kind, 0) + 1
                counts, seconds = engine.counts, time.monotonic() - started
                detail = (
                    f"{done / seconds:.2f} chunks/s, {(counts.evaluated + counts.generated) / seconds:.0f} tokens/s, "
                    f"{counts.reused / max(1, counts.prompt):.0%} of prompt tokens reused"
                )
                self._progress(Progress("contextualize", min(done, total), total, detail))
        finally:
            self.report.tokens_evaluated += engine.counts.evaluated
            self.report.tokens_reused += engine.counts.reused
            self.report.tokens_generated += engine.counts.generated
            engine.close()
            model.close()

    def _jobs(self, model: LlamaModel, deadline: float) -> Iterator[ContextJob]:
        """Plan the contexts of each document as the engine gets to it; yield those not written yet, each once."""
        asked: set[str] = set()
        for document in self._store.documents_without_contexts(self._plan):
            chunks = list(self._store.chunks(document.id))
            jobs = plan_contexts(
                document.title,
                self._store.document_text(document.id),
                [stored.chunk for stored in chunks],
                model=model,
                plan=self._plan,
            )
            keys = [job.key for job in jobs]
            self._store.plan_contexts(
                document.id, self._plan, [(stored.id, key) for stored, key in zip(chunks, keys, strict=True)]
            )
            asked |= self._store.known_contexts(keys)
            for job in jobs:
                if job.key not in asked:
                    if time.monotonic() > deadline:
                        return
                    asked.add(job.key)
                    yield job

    def publish(self, *, anew: bool = False) -> None:
        """Embed what has no vector yet and publish a generation; only `anew` if the live one is already the same."""
        chunks = list(self._store.chunks())
        parts = [self._parts(stored) for stored in chunks]
        identity = embedder_identity(self._embed_model)
        passages = [
            (passage_text(headings, text, model=self._embed_model), context) for headings, context, text in parts
        ]
        keys = [vector_key(identity, *passage) for passage in passages]
        manifest = self._manifest(chunks, keys)
        self.report.chunks = len(chunks)
        self._store.plan_vectors(zip((chunk.id for chunk in chunks), keys, strict=True))
        generation = None if anew else current_generation(self._library)
        if generation and generation.manifest.get("content") == manifest["content"]:
            return
        self._embed(dict(zip(keys, passages, strict=True)))
        self._progress(Progress("publish", 0, 1))
        vectors = np.stack([self._store.vector(key) for key in keys]) if keys else np.zeros((0, 1), dtype=np.float32)
        ids, documents = [chunk.id for chunk in chunks], [chunk.document_id for chunk in chunks]
        texts = ["\n".join(part for part in some if part) for some in parts]
        publish(self._library, ids, documents, vectors, texts, manifest)
        self.report.published = True
        self._progress(Progress("publish", 1, 1))

    def _parts(self, stored: StoredChunk) -> tuple[str, str, str]:
        """Return what a chunk is found by: its headings, its context and its text."""
        headings = headings_context(stored.title, stored.chunk.headings) if self._settings.context != "none" else ""
        return headings, stored.context if self._settings.context == "llm" else "", stored.chunk.text

    def _manifest(self, chunks: Sequence[StoredChunk], keys: Sequence[str]) -> dict[str, Any]:
        kinds = [stored.context_kind if self._settings.context == "llm" else "" for stored in chunks]
        fingerprint = make_fingerprint(self._settings, self._embed_model, self._context_model)
        rows = [[stored.id, key] for stored, key in zip(chunks, keys, strict=True)]
        return {
            "format": 2,
            "content": hashlib.sha256(json.dumps([2, fingerprint, rows]).encode()).hexdigest(),
            "fingerprint": fingerprint,
            "settings": index_settings(self._settings, self._embed_model, self._context_model),
            "documents": len({stored.document_id for stored in chunks}),
            "chunks": len(chunks),
            "generated_contexts": sum(kind in {"llm", "repaired"} for kind in kinds),
            "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }

    def _embed(self, passages: dict[str, tuple[str, str]]) -> None:
        """Embed the passages whose vectors are not stored; each batch is stored the moment it is finished."""
        known = self._store.known_vectors(passages)
        missing = [key for key in passages if key not in known]
        if not missing:
            return
        self._progress(Progress("embed", 0, len(missing), f"loading {self._embed_model.name}"))
        embedder = SentenceEmbedder(self._embed_model)
        started = time.monotonic()
        for start in range(0, len(missing), _EMBED_BATCH):
            batch = missing[start : start + _EMBED_BATCH]
            self._store.put_vectors(batch, embed_with_contexts(embedder, [passages[key] for key in batch]))
            done = start + len(batch)
            speed = f"{done / (time.monotonic() - started):.0f} chunks/s"
            self._progress(Progress("embed", done, len(missing), speed))
        # The context model is loaded next: only one heavy model at a time.
        del embedder
        gc.collect()


def _size_and_time(path: Path) -> tuple[int, int]:
    """Return a file's size in bytes and its time of change in nanoseconds; zeros if it has vanished."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
