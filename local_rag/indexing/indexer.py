"""Bring a library up to date with its folders: read -> split -> contextualize -> embed -> publish.

Every stage skips what is already stored: a second run costs nothing, and the same command resumes a stopped one. The
first run publishes what it has so far from time to time, so `ask` need not wait for the last document. The index is
live before a model writes any sentence; while it does, further generations follow.

Who decides what: `changes.py` says which files are read and which documents are gone; `distinction.py` which chunks
need a context or a sentence, of the terms and neighbours that `compare.py` and `similar.py` find; `sentence_writer.py`
which sentence is written next, with the prompts of `situating_prompts.py`, and whether it is kept; `embedding.py` which
vectors are missing. `workers.py` does the work that they ask for.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.document_records import Note, Skipped
from local_rag.errors import LibraryError
from local_rag.files import LOCAL_DISK, Disk, file_sha256
from local_rag.index.protocol import Contents, Indexes
from local_rag.indexing.changes import Changes, ScannedFile, compare_folders
from local_rag.indexing.compare import APART_PLAN, compare, situate
from local_rag.indexing.document_rows import document_rows, version_keys
from local_rag.indexing.embedding import Embedding, index_rows
from local_rag.indexing.fingerprint import make_fingerprint
from local_rag.indexing.sentence_writer import OpenVocabulary, SentenceWriter
from local_rag.indexing.similar import Audiences
from local_rag.indexing.vectors import chunk_tokens, embedder_identity, table_tokens
from local_rag.indexing.workers import Workers, machines_at_work
from local_rag.keys import key_of
from local_rag.llama.generator import never
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import input_tokens
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.progress_records import Progress, Stage
from local_rag.reading.formats import is_expected
from local_rag.reading.isolate import ReadFile
from local_rag.reading.mailbox import TRIMMED, folder_of, quoted_elsewhere, without_history
from local_rag.reading.ocr import engine
from local_rag.reading.split import READING_VERSION, Splitting
from local_rag.settings import Settings, index_settings
from local_rag.store.cell_rows import move_cells, move_tables
from local_rag.store.context_rows import documents_to_compare, documents_without_a_plan, forget_distinctions, set_apart
from local_rag.store.database import Store, StoredDocument, UnreadFile
from local_rag.store.erasing import note_moved
from local_rag.store.history import kept_history
from local_rag.store.housekeeping import ocr_folder, prune_ocr_pages, purge_superseded
from local_rag.store.people_file import patterns_of_limits
from local_rag.store.published import ever_published, made_from, note_publish
from local_rag.store.related_documents import paths_named, put_links, put_version_keys
from local_rag.store.relation_rows import put_relations
from local_rag.store.seen import compared_limits, note_compared
from local_rag.store.vector_rows import (
    count_chunks,
    count_embedded,
    documents_to_embed,
    documents_wanting,
    embedded_versions,
)

_MANIFEST_FORMAT = 3
_TOGETHER, _TOGETHER_CHUNKS = 32, 1024  # documents that are stored in one commit; one with more chunks is large
_LONGEST_WAIT = 2.0  # seconds until documents that were read are stored
_PUBLISHING_SHARE = 0.04  # of the time that contexts are written in
_FREE_SECONDS = 1.0  # of the processor: publishing a small library takes less
_FIRST_ROUND_SECONDS = 60.0  # of writing, before sentences are published and time is spent on tuning
_FIRST_SECONDS = 30.0  # until the first run publishes what it has so far; then whenever its time has doubled


@dataclass(slots=True)
class IndexReport:
    """What a run of `index` has done.

    `documents` and `chunks` are those of the library. `contexts` counts what was added to it: chunks of which code says
    what distinguishes them (`by_terms`), sentences that a model wrote (`by_model`) and those that were `dropped`.
    Those two were `written`, so many a second with loading the model. `unwritten` sentences wait for the next run. No
    sentence was written if the context model, `model_to_pull`, is missing. Of the tokens in all prompts, `share_reused`
    came from the KV cache.
    """

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    removed_paths: list[Path] = field(default_factory=list)
    unreachable: list[Path] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)  # first those `to_look_at`
    to_look_at: int = 0
    notes: list[Note] = field(default_factory=list)
    waiting_for_ocr: int = 0  # pages
    documents: int = 0
    chunks: int = 0
    contexts: dict[str, int] = field(default_factory=dict)
    tokens_evaluated: int = 0
    tokens_reused: int = 0
    share_reused: float = 0.0
    tokens_generated: int = 0
    writing_seconds: float = 0.0
    written: int = 0
    written_per_second: float = 0.0
    unwritten: int = 0
    model_to_pull: str = ""
    published: bool = False
    seconds: float = 0.0


# Receives what a run has done once all of it can be searched, how many sentences it goes on to write, and for how many
# seconds at most.
OnLive = Callable[[IndexReport, int, float], None]


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
        self._progress = progress
        self._writer: SentenceWriter | None = None
        if context_model and settings.context == "auto":
            self._writer = SentenceWriter(store, workers, context_model, open_vocabulary, progress)
        self._embedding = Embedding(store, workers, settings, embed_model)
        self._publishing = 0.0  # seconds of the last publish
        self._computed = 0.0  # processor seconds of all publishes
        self._first_seconds = min(_FIRST_SECONDS, settings.publish_seconds)
        self._expected, self._begun, self._publish_after = 0, 0.0, math.inf  # of the first run
        self._ocr_engine = ocr_engine
        self.report = IndexReport()

    def run(
        self,
        roots: Sequence[Path],
        *,
        contexts: bool | None = None,
        renew_contexts: bool = False,
        on_live: OnLive = lambda *_: None,
    ) -> IndexReport:
        """Run all stages over these files and folders, then write the missing sentences for `context_minutes` at most.

        With `contexts` write all of them, and none if it is False. `on_live` is called before the first one.
        """
        started = time.monotonic()
        is_first = not ever_published(self._store)
        if renew_contexts:
            forget_distinctions(self._store)
        purge_superseded(self._store, self._indexes)
        self._read_folders(roots, is_first=is_first)
        self.make_live()
        self._publish_after = math.inf
        self.report.seconds = time.monotonic() - started
        limits = {None: 60 * self._settings.context_minutes, True: math.inf, False: 0.0}
        self.write_contexts(limits[contexts], on_live=on_live)
        self.report.seconds = time.monotonic() - started
        return self.report

    def make_live(self) -> None:
        """Compare the documents, make the vectors that they lack, and publish them, without a sentence more."""
        new = self._compare()
        if self._writer:
            self._writer.prepare(new)
        self.publish()

    def write_contexts(
        self, seconds: float, stop: Callable[[], bool] = never, *, on_live: OnLive = lambda *_: None
    ) -> None:
        """Write missing sentences for so long, until `stop` returns true, and publish them every few minutes.

        Loading the model counts. What is not written then waits for another run. A run without a limit tunes the engine
        to this machine once it has written for a while.
        """
        pending = self._missing()
        if pending and seconds:
            on_live(self.report, pending, seconds)
        begun, spent = time.monotonic(), self._publishing
        last, later = begun + seconds, False
        try:
            while pending and self._writer and time.monotonic() < last:
                wait = seconds_until_publish(time.monotonic() - begun, spent, self._publishing, self._computed)
                often = self._settings.publish_seconds
                most = max(often if later else min(_FIRST_ROUND_SECONDS, often), wait)
                self._writer.write(time.monotonic() + most, last, stop, tuned=later and math.isinf(seconds))
                self._note_given_up()
                self.publish()
                spent += self._publishing
                before, pending, later = pending, self._missing(), True
                if pending == before:  # the time left is too short for another one
                    break
        except KeyboardInterrupt:  # whom `on_live` gave the report can say what was written
            pending = self._missing()
            raise
        finally:
            self._report_writing(pending)

    def _missing(self) -> int:
        return self._writer.missing() if self._writer else 0

    def _report_writing(self, pending: int) -> None:
        counts, report = self._workers.counts, self.report
        report.tokens_evaluated, report.tokens_reused = counts.evaluated, counts.reused
        report.share_reused = round(counts.reused / max(1, counts.prompt), 3)
        report.tokens_generated = counts.generated
        if self._writer:
            written = self._writer.written
            found = {"by_model": written.sentences, "dropped": written.dropped}
            report.contexts |= {name: count for name, count in found.items() if count}
            report.written, report.writing_seconds, report.unwritten = sum(found.values()), written.seconds, pending
            report.written_per_second = round(report.written / max(1e-9, written.seconds), 2)

    def _read_folders(self, given: Sequence[Path], *, is_first: bool) -> None:
        """Read and split new and changed files; supersede the documents of missing files."""
        splitting = self.splitting()
        split_key = self.split_key(splitting)
        # What waits for OCR is read again only when that is installed.
        known_keys = {split_key} if splitting.ocr_folder else {split_key, _waiting(split_key)}
        also = "" if splitting.ocr_folder else _waiting(split_key)
        found = compare_folders(self._store, given, split_key, also=also, disk=self._disk)
        changes, known_bad = found.changes, self._store.unread()
        self._note_moved({stored.path: str(file.path) for file, stored in changes.moved.items()})
        unread, waiting = list[Skipped](), dict[Path, ScannedFile]()
        for one in changes.to_read:
            before = known_bad.get(one.path)
            if before and before.split_key in known_keys and before.stamp.matches(one.stamp):
                unread.append(Skipped(Path(one.path), before.reason, lasting=True, waiting=before.waiting))
            else:
                waiting[Path(one.path)] = one
        reading = self._read(waiting, changes, splitting, split_key, unread)
        if is_first:
            self._expected, self._begun = len(waiting), time.monotonic()
            self._publish_after = self._begun + self._first_seconds
        for _count in self._embedding.make(reading, self._note("read", len(waiting))):
            self._publish_so_far()
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
        report.waiting_for_ocr = self._store.count_waiting()
        report.skipped = sorted([*found.skipped, *unread], key=_is_expected)
        report.to_look_at = sum(not _is_expected(item) for item in report.skipped)
        report.unchanged = changes.unchanged
        report.removed_paths = sorted(Path(stored.path) for stored in changes.gone if stored not in moved_from)
        report.removed = len(report.removed_paths)
        report.unreachable = sorted(found.roots.unreachable)

    def _note_moved(self, moved: Mapping[str, str]) -> None:
        """Let history, saved tables and cells name documents by their present paths, to be erased with them.

        The limits of people stay, and show nothing else than before; the former paths that they name are remembered.
        """
        if moved:
            move_tables(self._store, moved)
            move_cells(self._store, moved)
            with suppress(LibraryError):
                note_moved(self._store, moved, patterns_of_limits(self._store.folder))
        with suppress(LibraryError), kept_history(self._store.folder) as history:
            if history and moved:
                history.move_documents(moved)

    def _read(
        self,
        waiting: Mapping[Path, ScannedFile],
        changes: Changes,
        splitting: Splitting,
        split_key: str,
        unread: list[Skipped],
    ) -> Iterator[int]:
        """Read and store new and changed files, and add unreadable ones to `unread`; yield the ids of documents.

        Large documents are stored, but not yielded: `_embed` makes their vectors when all others have theirs.
        """
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
        """Store documents with their rows in one commit; return the ids of those that are not large."""
        read = [self._trimmed(file, read) for file in read]
        with self._store.transaction():
            keys = (_waiting(split_key) if file.document.waiting else split_key for file in read)
            files = zip(read, keys, strict=True)
            ids = self._store.put_documents(
                (file.document, file.chunks, (file.stamp, file.sha256, key)) for file, key in files
            )
            stored = list(zip(ids, read, strict=True))
            self._store.put_document_rows(document_rows((key, one.document, one.chunks) for key, one in stored))
            put_relations(self._store, ((key, one.relations) for key, one in stored))
            put_links(self._store, ((key, one.document) for key, one in stored))
            put_version_keys(self._store, ((key, *astuple(version_keys(one.document))) for key, one in stored))
        return [key for key, one in stored if len(one.chunks) <= _TOGETHER_CHUNKS]

    def _trimmed(self, file: ReadFile, read: Sequence[ReadFile]) -> ReadFile:
        """Return a mail without what it quotes of another one that is in the library, or is read with it."""

        def in_same_folder(number: str, folder: Path) -> bool:
            beside = (one.document for one in read if one is not file)
            if any(number in one.names and folder_of(one.path) == folder for one in beside):
                return True
            return any(folder_of(Path(path)) == folder for path in paths_named(self._store, number))

        if not quoted_elsewhere(file.document, in_same_folder):
            return file
        document, chunks = without_history(file.document, file.chunks)
        if not chunks:  # it says nothing of its own
            return file
        self.report.notes.append(Note(document.path, TRIMMED))
        return replace(file, document=document, chunks=chunks)

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
        settings, table = self._settings, table_tokens(self._settings, self._embed_model)
        return Splitting(tokenizer, most_tokens, settings.overlap, settings.chunker, folder, table)

    @staticmethod
    def split_key(splitting: Splitting) -> str:
        """Return everything that shapes the chunks, as one string."""
        tokenizer = file_sha256(splitting.tokenizer)[:16]
        sizes = splitting.max_tokens, splitting.table_tokens, splitting.overlap
        return json.dumps([splitting.chunker, *sizes, tokenizer, READING_VERSION])

    def _note_given_up(self) -> None:
        """Add a note for each document with a context or vector that could not be made."""
        given_up, self._workers.given_up = self._workers.given_up, {}
        reasons: dict[str, list[str]] = {}
        for key, reason in given_up.items():
            for path in documents_wanting(self._store, key):
                reasons.setdefault(path, []).append(reason)
        for path, several in reasons.items():
            text = f"{len(several)} of its chunks were left out because they ended every worker ({several[0]})"
            self.report.notes.append(Note(Path(path), text))

    def _compare(self) -> list[StoredDocument]:
        """Compare new documents with all others, for which all need vectors; return those of which code said more."""
        if self._settings.context != "auto":
            return []
        audiences = Audiences(self._store)
        if audiences.limits or compared_limits(self._store):
            set_apart(self._store, audiences.key)
            note_compared(self._store, audiences.limits)
        if new := documents_to_compare(self._store, APART_PLAN):
            self._embed()
            for done in compare(self._store, embedder_identity(self._embed_model), new, audiences):
                self._progress(Progress("compare", done, len(new)))
        unplanned = documents_without_a_plan(self._store, APART_PLAN)
        if said := situate(self._store, unplanned):
            self.report.contexts["by_terms"] = self.report.contexts.get("by_terms", 0) + said
        return unplanned

    def _note(self, stage: Stage, total: int) -> Callable[[str], None]:
        return lambda remark: self._progress(Progress(stage, 0, total, remark))

    def publish(self, *, rebuild: bool = False, replace: bool = False) -> None:
        """Make missing vectors and publish a generation, if it differs from the live one or `rebuild` all of it.

        With `replace`, in a search engine also in the place of another library.
        """
        self._embed()
        self._publish_embedded(rebuild=rebuild, replace=replace)

    def _publish_so_far(self) -> None:
        """Publish what has its vectors if the first run has taken long enough for that."""
        if time.monotonic() > self._publish_after:
            self._publish_embedded(expected=self._expected)
            self._publish_after = time.monotonic() + max(self._first_seconds, time.monotonic() - self._begun)

    def _publish_embedded(self, *, rebuild: bool = False, replace: bool = False, expected: int = 0) -> None:
        """Publish the documents that have their vectors; as many as `expected` are to come in all."""
        started, computed = time.monotonic(), time.process_time()
        documents, versions = embedded_versions(self._store, self._embedding.plan)
        if expected and not len(documents):  # an empty index would say that the documents answer nothing
            return
        manifest = self._manifest(documents, versions) | ({"expected": expected} if expected else {})
        self.report.documents, self.report.chunks = manifest["documents"], manifest["chunks"]
        live = None if rebuild else self._indexes.live()
        # The ids of another version of the file mean something else.
        rebuild = rebuild or bool(live and not made_from(self._store, live))
        note_publish(self._store, self._indexes, manifest)
        same = ("content", "expected")
        if live and all(live.manifest.get(name) == manifest.get(name) for name in same):
            return
        self._progress(Progress("publish", 0, 1))
        self._indexes.publish(
            Contents(documents, versions, partial(index_rows, self._store, self._settings.context)),
            manifest,
            rebuild=rebuild,
            replace=replace,
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
        documents = documents_to_embed(self._store, self._embedding.plan)
        total = count_chunks(self._store, documents)
        done, started = 0, time.monotonic()
        for count in self._embedding.make(documents, self._note("embed", total)):
            self._publish_so_far()
            done += count
            speed = f"{machines_at_work(self._workers)}{done / (time.monotonic() - started):.0f} chunks/s"
            self._progress(Progress("embed", done, total, speed))
        self._note_given_up()


def content_of(fingerprint: Mapping[str, Any], documents: np.ndarray, versions: np.ndarray) -> str:
    """Return the key of everything that an index of these documents holds."""
    by_id = np.argsort(documents)
    held = sha256(np.stack([documents[by_id], versions[by_id]]).tobytes()).hexdigest()
    return key_of(_MANIFEST_FORMAT, fingerprint, held)


def _is_expected(item: Skipped) -> bool:
    """Say whether nobody need look at a file that is not read; what was read earlier should be readable."""
    return is_expected(item.reason) and not item.kept


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
