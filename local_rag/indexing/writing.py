"""Have a model write the sentences that the stored chunks lack: plan them, hand them out, check and store each one."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path

from local_rag.indexing.contextualize import ContextJob, context_plan, plan_contexts
from local_rag.indexing.distinction import Distinction
from local_rag.indexing.sentences import (
    Checker,
    Subject,
    most_needed_first,
    sentence_jobs,
    sentence_plan,
)
from local_rag.indexing.summaries import document_plan, is_summary, with_summary
from local_rag.indexing.work import Workers
from local_rag.llama.generator import Vocabulary
from local_rag.records import ContextMode, InstalledModel, Progress, StoredChunk
from local_rag.store.database import Store, StoredDocument
from local_rag.store.sentences import (
    count_unwritten,
    documents_to_write,
    forget_other_sentences,
    has_sentences,
    is_successor,
    needs_of,
    plan_sentences,
    unplanned_documents,
)

OpenVocabulary = Callable[[Path], AbstractContextManager[Vocabulary]]


@dataclass(slots=True)
class Written:
    """What was written: sentences, dropped ones, and the seconds that it took."""

    sentences: int = 0
    dropped: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class SentenceWriter:
    """Write sentences for the chunks that need one, or with the mode `llm` for every chunk and document."""

    store: Store
    workers: Workers
    mode: ContextMode
    model: InstalledModel
    open_vocabulary: OpenVocabulary
    progress: Callable[[Progress], None]
    written: Written = field(default_factory=Written)
    _asked: dict[str, tuple[Subject, float]] = field(default_factory=dict)  # and when
    _longest: float = 0.0  # seconds that a sentence has taken

    @property
    def plan(self) -> str:
        """Return everything that decides about the sentences, apart from the documents."""
        return plan_of(self.mode, self.model)

    def missing(self) -> int:
        """Return the number of sentences that are not written yet."""
        return count_unwritten(self.store, self.plan, every=self.mode == "llm")

    def prepare(self, new: Sequence[StoredDocument]) -> None:
        """Forget sentences of another model, and find known ones for new documents: those of a moved file are."""
        forget_other_sentences(self.store, self.plan)
        if not has_sentences(self.store):
            return
        if self.mode == "llm":
            documents = unplanned_documents(self.store, self.plan)
        else:
            documents = [document for document in new if is_successor(self.store, document)]
        if documents:
            with self.open_vocabulary(self.model.path) as vocabulary:
                for document in documents:
                    self._plan_document(document, vocabulary)

    def write(self, until: float, last: float = math.inf) -> None:
        """Write missing sentences until a time, at least one; store each one as soon as it is finished.

        A sentence that would probably not be finished at the `last` moment is not begun, and those in flight then are
        given up.
        """
        total, done, started = self.missing(), 0, time.monotonic()
        self.workers.stop = lambda: time.monotonic() > last
        counts, checker = self.workers.counts, Checker(self.store.document_text)
        with self.open_vocabulary(self.model.path) as vocabulary:
            jobs, note = self._jobs(vocabulary, until, last), lambda text: self.progress(_progress(0, total, text))
            with closing(self.workers.write_contexts(jobs, total, note)) as results:
                for result in results:
                    subject, asked = self._asked.pop(result.key)
                    usable = checker.usable(result.text, subject)
                    self.store.put_context(result.key, result.text if usable else "", "model" if usable else "dropped")
                    self.written.sentences += usable
                    self.written.dropped += not usable
                    done += 1
                    now = time.monotonic()
                    self._longest = max(self._longest, now - asked)
                    count = self.workers.machines
                    machines = f"{count} {'machine' if count == 1 else 'machines'}, " if count else ""
                    share = f"{counts.reused / max(1, counts.prompt):.0%} of prompt tokens shared"
                    self.progress(
                        _progress(min(done, total), total, f"{machines}{done / (now - started):.2f} chunks/s, {share}")
                    )
        self.written.seconds += time.monotonic() - started

    def _jobs(self, vocabulary: Vocabulary, until: float, last: float) -> Iterator[ContextJob]:
        """Plan documents when the workers get to them; yield the missing sentences, each once, until it is time."""
        self._asked.clear()
        documents = documents_to_write(self.store, self.plan, every=self.mode == "llm")
        by_id = {document.id: document for document, _ in documents}

        subjects, begun = dict[str, Subject](), set[str]()

        def missing(document_id: int) -> list[tuple[float, ContextJob]]:
            document, found = by_id[document_id], []
            for row, job, need in self._plan_document(document, vocabulary):
                if job.key not in begun and not self.store.known_contexts([job.key]):
                    subjects[job.key] = Subject(document.id, document.title, row.chunk.headings, row.chunk.text)
                    found.append((need, job))
            return found

        for job in most_needed_first(((document.id, need) for document, need in documents), missing):
            if job.key in begun:  # by a copy of the document
                continue
            now = time.monotonic()
            if now + self._longest > last or (begun and now > until):
                return
            begun.add(job.key)
            self._asked[job.key] = subjects.pop(job.key), time.monotonic()
            yield job

    def _plan_document(
        self, document: StoredDocument, vocabulary: Vocabulary
    ) -> list[tuple[StoredChunk, ContextJob, float]]:
        """Record which sentences the rows of a document want; return the rows with their jobs and needs."""
        plan = self._every_row if self.mode == "llm" else self._rows_in_need
        planned = plan(document, list(self.store.rows(document.id)), vocabulary)
        plan_sentences(self.store, document.id, self.plan, [(row.id, job.key) for row, job, _ in planned])
        return planned

    def _every_row(
        self, document: StoredDocument, rows: Sequence[StoredChunk], vocabulary: Vocabulary
    ) -> list[tuple[StoredChunk, ContextJob, float]]:
        """Return a job for each row, in the order of the text, all with the greatest need of a chunk."""
        text, plan = self.store.document_text(document.id), context_plan(self.model.identity)
        chunks = [row for row in rows if row.kind == "chunk"]
        jobs = plan_contexts(document.title, text, [row.chunk for row in chunks], vocabulary=vocabulary, plan=plan)
        greatest = max(needs_of(self.store, document.id).values(), default=0.0)
        whole, following = next((row for row in rows if row.kind == "document"), None), iter(chunks)
        matched = ((whole if is_summary(job) else next(following), job) for job in with_summary(jobs))
        return [(row, job, greatest) for row, job in matched if row]

    def _rows_in_need(
        self, document: StoredDocument, rows: Sequence[StoredChunk], vocabulary: Vocabulary
    ) -> list[tuple[StoredChunk, ContextJob, float]]:
        """Return a job for each chunk that needs a sentence, those in the greatest need first."""
        needs = needs_of(self.store, document.id)
        chunks = {row.chunk.position: row for row in rows if row.kind == "chunk"}
        wanted = {position: needs[row.id] for position, row in chunks.items() if row.id in needs}
        jobs = sentence_jobs(
            document.title,
            [row.chunk for row in chunks.values()],
            wanted,
            Distinction.from_json(self.store.distinction(document.id)),
            vocabulary=vocabulary,
            plan=self.plan,
        )
        return [(chunks[position], job, wanted[position]) for position, job in jobs]


def plan_of(mode: ContextMode, model: InstalledModel) -> str:
    """Return everything that decides about the sentences of a mode, apart from the documents."""
    return document_plan(model.identity) if mode == "llm" else sentence_plan(model.identity)


def _progress(done: int, total: int, detail: str) -> Progress:
    return Progress("contextualize", done, total, detail)
