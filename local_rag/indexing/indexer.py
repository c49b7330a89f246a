"""Bring a library up to date with its folders: read -> split -> contextualize -> embed -> publish.

Every stage skips what is already stored: a second run costs nothing, and the same command resumes a stopped one. A
first generation, with title and headings as its contexts, is published before any context is generated. Further ones
follow while contexts are written, so `ask` need not wait for the last context.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import LibraryError
from local_rag.files import LOCAL_DISK, Disk, file_sha256
from local_rag.index.protocol import Contents, Indexes
from local_rag.indexing.changes import Changes, ScannedFile, compare_folders
from local_rag.indexing.compare import APART_PLAN, compare, distinctions_of, most_needed_first, situate
from local_rag.indexing.contextualize import ContextJob, context_plan, plan_contexts
from local_rag.indexing.embedding import Embedding, index_rows
from local_rag.indexing.fingerprint import make_fingerprint
from local_rag.indexing.summaries import document_plan, document_rows, is_summary, with_summary
from local_rag.indexing.vectors import chunk_tokens, embedder_identity
from local_rag.indexing.work import Workers
from local_rag.keys import key_of
from local_rag.llama.generator import Vocabulary
from local_rag.models.embedder import TOKENIZER_FILE, input_tokens
from local_rag.reading.isolate import ReadFile
from local_rag.reading.ocr import engine
from local_rag.reading.split import READING_VERSION, Splitting
from local_rag.records import SITUATED, InstalledModel, Note, Progress, Skipped, Stage
from local_rag.settings import Settings, index_settings
from local_rag.store.database import Store, StoredDocument, UnreadFile
from local_rag.store.embedding_plans import (
    count_chunks,
    count_embedded,
    documents_to_embed,
    documents_wanting,
    embedded_versions,
)
from local_rag.store.history import kept_history
from local_rag.store.inspection import count_missing_contexts, purge_superseded
from local_rag.store.ocr_pages import ocr_folder, prune_ocr_pages

_FEW_CONTEXTS = 20  # so few are written before the first generation is published
_MANIFEST_FORMAT = 3
_TOGETHER, _TOGETHER_CHUNKS = 32, 1024  # documents that are stored in one commit, unless they are large
_LONGEST_WAIT = 2.0  # seconds until documents that were read are stored
_PUBLISHING_SHARE = 0.04  # of the time that contexts are written in
_FREE_SECONDS = 1.0  # of the processor: publishing a small library takes less

OpenVocabulary = Callable[[Path], AbstractContextManager[Vocabulary]]


@dataclass(slots=True)
class IndexReport:
    """What a run of `index` has done."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    removed_paths: list[Path] = field(default_factory=list)
    unreachable: list[Path] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    waiting_for_ocr: int = 0  # pages
    chunks: int = 0
    contexts: dict[str, int] = field(default_factory=dict)
    tokens_evaluated: int = 0
    tokens_reused: int = 0
    tokens_generated: int = 0
    published: bool = False
    seconds: float = 0.0


class Indexer:
    """Run the stages of one `index` over an open store; the caller holds the library's lock."""

    def __init__(
        self,
        store: Store,
        indexes: Indexes,
        workers: Workers,
        settings: Settings,
        *,
        embed_model: InstalledModel,
        context_model: InstalledModel | None,
        open_vocabulary: OpenVocabulary,
        progress: Callable[[Progress], None],
        disk: Disk = LOCAL_DISK,
        ocr_engine: Callable[[], str] = engine,
    ) -> None:
        self._disk = disk
        self._store, self._indexes, self._workers, self._settings = store, indexes, workers, settings
        self._embed_model, self._context_model = embed_model, context_model
        self._open_vocabulary, self._progress = open_vocabulary, progress
        self._plan = document_plan(context_model.identity) if context_model else APART_PLAN
        self._embedding = Embedding(store, workers, settings, embed_model, self._plan)
        self._asked = set[str]()  # keys of the contexts that are being written
        self._publishing = 0.0  # seconds of the last publish
        self._computed = 0.0  # processor seconds of all publishes
        self._ocr_engine = ocr_engine
        self.report = IndexReport()

    def run(self, roots: Sequence[Path], *, renew_contexts: bool = False) -> IndexReport:
        """Run all stages over these files and folders."""
        started = time.monotonic()
        if renew_contexts:
            self._store.forget_distinctions()
        purge_superseded(self._store, self._indexes)
        self._read_folders(roots)
        self.complete()
        self.report.seconds = time.monotonic() - started
        return self.report

    def complete(self) -> None:
        """Write the contexts and make the vectors that the stored documents lack, and publish them."""
        self._compare()
        self._find_known_contexts()
        pending = self._contexts_to_write()
        if pending > _FEW_CONTEXTS or not pending:
            self.publish()
        begun, spent = time.monotonic(), self._publishing
        while self._contexts_to_write():
            wait = seconds_until_publish(time.monotonic() - begun, spent, self._publishing, self._computed)
            self._contextualize(time.monotonic() + max(self._settings.publish_seconds, wait))
            self.publish()
            spent += self._publishing

    def _read_folders(self, given: Sequence[Path]) -> None:
        """Read and split new and changed files; supersede the documents of missing files."""
        splitting = self.splitting()
        split_key = self.split_key(splitting)
        # What waits for OCR is read again only when that is installed.
        known_keys = {split_key} if splitting.ocr_folder else {split_key, _waiting(split_key)}
        also = "" if splitting.ocr_folder else _waiting(split_key)
        found = compare_folders(self._store, given, split_key, also=also, disk=self._disk)
        changes, known_bad = found.changes, self._store.unread()
        self._move_in_history({stored.path: str(file.path) for file, stored in changes.moved.items()})
        unread, waiting = list[Skipped](), dict[Path, ScannedFile]()
        for one in changes.to_read:
            before = known_bad.get(one.path)
            if before and before.split_key in known_keys and before.stamp.matches(one.stamp):
                unread.append(Skipped(Path(one.path), before.reason, lasting=True, waiting=before.waiting))
            else:
                waiting[Path(one.path)] = one
        reading = self._read(waiting, changes, splitting, split_key, unread)
        if self._embeds_at_once(len(waiting)):
            for _count in self._embedding.make(reading, self._note("read", len(waiting))):
                pass
        for _document in reading:  # those that were not embedded
            pass
        kept = {one.path for one in (*changes.changed, *changes.resplit)}
        unread = [replace(item, kept=str(item.path) in kept) for item in unread]
        # The stamps are older than the attempts to read, so a file that was repaired meanwhile has another one.
        stamps = {one.path: one.stamp for one in changes.to_read}
        bad = {
            str(item.path): UnreadFile(stamps[str(item.path)], item.reason, _key(item, split_key), item.waiting)
            for item in unread
        }
        self._store.touch_documents((stored.id, one.stamp) for stored, one in changes.touched)
        self._store.supersede(changes.gone)
        self._store.see_disks(found.roots.devices(), found.mounts, found.lost_mounts())
        self._store.put_unread(filter(found.is_looked_at, known_bad), bad)
        prune_ocr_pages(self._store.folder, self._store.content_hashes())
        report, moved_from = self.report, set(changes.moved.values())
        report.notes += [Note(item.path, item.reason) for item in unread if item.waiting]
        report.waiting_for_ocr = self._store.count_waiting()
        report.skipped, report.unchanged = [*found.skipped, *unread], changes.unchanged
        report.removed_paths = sorted(Path(stored.path) for stored in changes.gone if stored not in moved_from)
        report.removed = len(report.removed_paths)
        report.unreachable = sorted(found.roots.unreachable)

    def _move_in_history(self, moved: Mapping[str, str]) -> None:
        """Let the history find documents by their present paths, so that they can be erased from it."""
        with suppress(LibraryError), kept_history(self._store.folder) as history:
            if history and moved:
                history.move_documents(moved)

    def _embeds_at_once(self, files: int) -> bool:
        """Say whether chunks are embedded while further files are read: if they need not wait for a context."""
        return self._settings.context != "llm" or (files > _FEW_CONTEXTS and not self._store.has_contexts())

    def _read(
        self,
        waiting: Mapping[Path, ScannedFile],
        changes: Changes,
        splitting: Splitting,
        split_key: str,
        unread: list[Skipped],
    ) -> Iterator[int]:
        """Read and store new and changed files; yield the id of each document and add unreadable files to `unread`."""
        moved = {Path(found.path) for found in changes.moved}
        changed = {Path(found.path) for found in (*changes.changed, *changes.resplit)}
        read, since = list[ReadFile](), time.monotonic()
        with closing(self._workers.read(list(waiting), splitting)) as results:
            for number, (path, result) in enumerate(results, start=1):
                self._progress(Progress("read", number, len(waiting), path.name))
                if isinstance(result, Skipped):
                    unread.append(result)
                else:
                    read.append(result)
                    self.report.notes += [Note(path, note) for note in result.document.notes]
                    kind = "changed" if path in changed else "moved" if path in moved else "added"
                    setattr(self.report, kind, getattr(self.report, kind) + 1)
                full = len(read) >= _TOGETHER or sum(len(one.chunks) for one in read) >= _TOGETHER_CHUNKS
                if full or time.monotonic() - since > _LONGEST_WAIT:
                    yield from self._put(read, split_key)
                    read, since = [], time.monotonic()
        yield from self._put(read, split_key)

    def _put(self, read: Sequence[ReadFile], split_key: str) -> list[int]:
        """Store documents with their rows in one commit; return their ids."""
        with self._store.transaction():
            ids = self._store.put_documents(
                (
                    one.document,
                    one.chunks,
                    (one.stamp, one.sha256, _waiting(split_key) if one.document.waiting else split_key),
                )
                for one in read
            )
            self._store.put_document_rows(
                document_rows((key, one.document, one.chunks) for key, one in zip(ids, read, strict=True))
            )
        return ids

    def splitting(self) -> Splitting:
        """Return how documents are split; raise LibraryError if the embedder cannot take such chunks."""
        room = input_tokens(self._embed_model)
        most_tokens = chunk_tokens(self._settings, self._embed_model)
        if most_tokens > room:
            raise LibraryError(
                f"A chunk of {most_tokens} tokens does not fit {self._embed_model.name}, which takes {room}; "
                f"use `--chunk-tokens {room}` or less."
            )
        if self._settings.overlap >= most_tokens:
            raise LibraryError(
                f"The overlap must be smaller than the chunks of {most_tokens} tokens; lower `--overlap`."
            )
        tokenizer = self._embed_model.path / TOKENIZER_FILE
        folder = ocr_folder(self._store.folder) if self._ocr_engine() else None
        return Splitting(tokenizer, most_tokens, self._settings.overlap, self._settings.chunker, folder)

    @staticmethod
    def split_key(splitting: Splitting) -> str:
        """Return everything that shapes the chunks, as one string."""
        tokenizer = file_sha256(splitting.tokenizer)[:16]
        return json.dumps([splitting.chunker, splitting.max_tokens, splitting.overlap, tokenizer, READING_VERSION])

    def _contexts_to_write(self) -> int:
        return count_missing_contexts(self._store, self._plan) if self._context_model else 0

    def _contextualize(self, deadline: float) -> None:
        """Write missing contexts until the deadline; store each one as soon as it is finished."""
        assert self._context_model is not None
        total, done, started = self._contexts_to_write(), 0, time.monotonic()
        counts, report = self._workers.counts, self.report
        with self._open_vocabulary(self._context_model.path) as vocabulary:
            jobs, note = self._jobs(vocabulary, deadline), self._note("contextualize", total)
            with closing(self._workers.write_contexts(jobs, total, note)) as results:
                for written in results:
                    self._store.put_context(written.key, written.text, written.kind)
                    self._asked.discard(written.key)
                    done += 1
                    report.contexts[written.kind] = report.contexts.get(written.kind, 0) + 1
                    share = counts.reused / max(1, counts.prompt)
                    rate = f"{done / (time.monotonic() - started):.2f} chunks/s"
                    speed = f"{self._machines()}{rate}, {share:.0%} of prompt tokens reused"
                    self._progress(Progress("contextualize", min(done, total), total, speed))
        report.tokens_evaluated, report.tokens_reused = counts.evaluated, counts.reused
        report.tokens_generated = counts.generated
        self._note_given_up()

    def _machines(self) -> str:
        """Return how many machines are working, empty if only this one is."""
        count = self._workers.machines
        return f"{count} {'machine' if count == 1 else 'machines'}, " if count else ""

    def _note_given_up(self) -> None:
        """Add a note for each document with a context or vector that could not be made."""
        given_up, self._workers.given_up = self._workers.given_up, {}
        reasons: dict[str, list[str]] = {}
        for key, reason in given_up.items():
            for path in documents_wanting(self._store, key):
                reasons.setdefault(path, []).append(reason)
        self.report.notes += [
            Note(
                Path(path), f"{len(several)} of its chunks were left out because they ended every worker ({several[0]})"
            )
            for path, several in reasons.items()
        ]

    def _compare(self) -> None:
        """Compare new documents with all others, for which all need vectors; situate them if no model does."""
        if self._settings.context not in SITUATED:
            return
        if new := self._store.documents_to_compare(self._plan):
            self._embed()
            for done in compare(self._store, embedder_identity(self._embed_model), new):
                self._progress(Progress("compare", done, len(new)))
        if self._context_model is None and (
            written := situate(self._store, self._store.documents_without_a_plan(self._plan))
        ):
            self.report.contexts["apart"] = self.report.contexts.get("apart", 0) + written

    def _note(self, stage: Stage, total: int) -> Callable[[str], None]:
        return lambda remark: self._progress(Progress(stage, 0, total, remark))

    def _find_known_contexts(self) -> None:
        """Plan the contexts of new and changed documents, to find those that are stored: those of a moved file are."""
        documents = self._store.documents_without_a_plan(self._plan) if self._context_model else []
        if self._context_model and documents and self._store.has_contexts():
            with self._open_vocabulary(self._context_model.path) as vocabulary:
                for document in documents:
                    self._plan_document(document, vocabulary)

    def _plan_document(self, document: StoredDocument, vocabulary: Vocabulary) -> list[ContextJob]:
        """Record which contexts the chunks and the row of a document want; return the jobs that would write them."""
        assert self._context_model is not None
        rows, text = list(self._store.rows(document.id)), self._store.document_text(document.id)
        parts, plan = [row.chunk for row in rows if row.kind == "chunk"], context_plan(self._context_model.identity)
        distinctions = distinctions_of(self._store, document, parts)
        jobs = with_summary(
            plan_contexts(document.title, text, parts, vocabulary=vocabulary, plan=plan, distinctions=distinctions)
        )
        # In the order of the rows: the row of the whole document comes first.
        keys = [(row.id, job.key) for row, job in zip(rows, sorted(jobs, key=is_summary, reverse=True), strict=True)]
        self._store.plan_contexts(document.id, self._plan, keys)
        return jobs

    def _jobs(self, vocabulary: Vocabulary, deadline: float) -> Iterator[ContextJob]:
        """Plan the contexts of each document when the workers get to it; yield the missing ones, each once."""
        self._asked.clear()
        for document in most_needed_first(self._store, self._store.documents_without_contexts(self._plan)):
            for job in self._plan_document(document, vocabulary):
                if job.key not in self._asked and not self._store.known_contexts([job.key]):
                    self._asked.add(job.key)
                    yield job
                    if time.monotonic() > deadline:
                        return

    def publish(self, *, rebuild: bool = False) -> None:
        """Make missing vectors and publish a generation, if it differs from the live one or `rebuild` all of it."""
        self._embed()
        started, computed = time.monotonic(), time.process_time()
        documents, versions = embedded_versions(self._store, self._embedding.plan)
        manifest = self._manifest(documents, versions)
        self.report.chunks = manifest["chunks"]
        live = None if rebuild else self._indexes.live()
        if live and live.manifest.get("content") == manifest["content"]:
            return
        self._progress(Progress("publish", 0, 1))
        self._indexes.publish(
            Contents(documents, versions, partial(index_rows, self._store, self._settings.context)),
            manifest,
            rebuild=rebuild,
        )
        self.report.published = True
        self._progress(Progress("publish", 1, 1))
        self._publishing = time.monotonic() - started
        self._computed += time.process_time() - computed

    def _manifest(self, documents: np.ndarray, versions: np.ndarray) -> dict[str, Any]:
        fingerprint = make_fingerprint(self._settings, self._embed_model, self._context_model)
        count, chunks, generated = count_embedded(self._store, self._embedding.plan)
        return {
            "format": _MANIFEST_FORMAT,
            "content": content_of(fingerprint, documents, versions),
            "fingerprint": fingerprint,
            "settings": index_settings(self._settings, self._embed_model, self._context_model),
            "documents": count,
            "chunks": chunks,
            "generated_contexts": generated,
            "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }

    def _embed(self) -> None:
        """Make missing vectors and report progress."""
        documents = documents_to_embed(self._store, self._embedding.plan)
        total = count_chunks(self._store, documents)
        done, started = 0, time.monotonic()
        for count in self._embedding.make(documents, self._note("embed", total)):
            done += count
            speed = f"{self._machines()}{done / (time.monotonic() - started):.0f} chunks/s"
            self._progress(Progress("embed", done, total, speed))
        self._note_given_up()


def content_of(fingerprint: Mapping[str, Any], documents: np.ndarray, versions: np.ndarray) -> str:
    """Return the key of everything that an index of these documents holds."""
    by_id = np.argsort(documents)
    held = sha256(np.stack([documents[by_id], versions[by_id]]).tobytes()).hexdigest()
    return key_of(_MANIFEST_FORMAT, fingerprint, held)


def _waiting(split_key: str) -> str:
    """Return the key of what was read without the OCR that some of its pages wait for."""
    return f"{split_key} waiting"


def _key(item: Skipped, split_key: str) -> str:
    """Return the key under which a file could not be read; empty if another attempt may succeed."""
    if not item.lasting:
        return ""
    return _waiting(split_key) if item.waiting else split_key


def seconds_until_publish(elapsed: float, spent: float, last: float, computed: float) -> float:
    """Return for how many seconds to write contexts before the next publish, so publishing takes a small share of time.

    `spent` of the `elapsed` seconds went into publishing so far, and a publish takes `last` seconds now. `computed` are
    the processor seconds of all publishes. The first ones are free, so a small library is published often, also on a
    busy machine.
    """
    if computed < _FREE_SECONDS:
        return 0.0
    return max(0.0, (spent + last) / _PUBLISHING_SHARE - elapsed)
