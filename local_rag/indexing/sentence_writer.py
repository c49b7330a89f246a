"""Have a model write the sentences that the stored chunks lack: plan them, hand them out, check and store each one.

A sentence must hold nothing that its document does not say: code checks each one before it is stored, and leaves out
the end of one from the clause on in which something is wrong. To write it again would give the same words.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from local_rag.document_records import heading_path
from local_rag.indexing.situating_prompts import ContextJob, context_plan, plan_contexts
from local_rag.indexing.workers import WORTH_TUNING, Workers, WrittenContext, machines_at_work
from local_rag.llama.generator import Vocabulary, never
from local_rag.model_records import PLAIN_CONTEXT_FORM, InstalledModel
from local_rag.passage_records import StoredChunk
from local_rag.progress_records import Progress
from local_rag.reading.formats import format_named
from local_rag.store.context_rows import (
    count_unwritten,
    documents_to_write,
    forget_other_sentences,
    has_context,
    is_successor,
    plan_sentences,
    put_context,
)
from local_rag.store.database import Store, StoredDocument
from local_rag.text.facts import Source, missing_facts
from local_rag.text.sentences import split_sentences
from local_rag.text.tokens import keyword_tokens

OpenVocabulary = Callable[[Path], AbstractContextManager[Vocabulary]]

SENTENCE_SECONDS = "sentence_seconds"  # the name under which a library remembers how long a sentence took last


@dataclass(frozen=True, slots=True)
class Subject:
    """What a sentence is checked against: its document's title, text and programming language, and its chunk."""

    document_id: int
    title: str
    headings: tuple[str, ...]
    passage: str
    language: str = ""


@dataclass(slots=True)
class Written:
    """What was written: sentences, dropped ones, and the seconds that it took."""

    sentences: int = 0
    dropped: int = 0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        """Return how many sentences the model has finished."""
        return self.sentences + self.dropped


@dataclass(slots=True)
class SentenceWriter:
    """Write a sentence for every chunk, those of the documents in the greatest need first."""

    store: Store
    workers: Workers
    model: InstalledModel
    open_vocabulary: OpenVocabulary
    progress: Callable[[Progress], None]
    written: Written = field(default_factory=Written)
    _asked: dict[str, tuple[Subject, float]] = field(default_factory=dict)  # and when
    _longest: float = 0.0  # seconds that a sentence has taken

    @property
    def plan(self) -> str:
        """Return everything that decides about the sentences, apart from the documents."""
        return plan_of(self.model)

    def missing(self) -> int:
        """Return the number of sentences that are not written yet."""
        return count_unwritten(self.store, self.plan)

    def prepare(self, new: Sequence[StoredDocument]) -> None:
        """Forget sentences of another model, and find known ones for new documents: those of a moved file are."""
        forget_other_sentences(self.store, self.plan)
        if documents := [document for document in new if is_successor(self.store, document)]:
            with self.open_vocabulary(self.model.path) as vocabulary:
                for document in documents:
                    self._plan_document(document, vocabulary)

    def write(self, until: float, last: float, stop: Callable[[], bool] = never, *, tuned: bool = False) -> None:
        """Write missing sentences until a time, at least one; store each one as soon as it is finished.

        A sentence that would probably not be finished at the `last` moment is not begun, and those in flight then, or
        once `stop` returns true, are given up. Time is spent on tuning the engine to many sentences only if it may be
        `tuned`.
        """
        missing, before, started = self.missing(), self.written.count, time.monotonic()
        total = before + missing
        self.workers.stop = lambda: stop() or time.monotonic() > last
        expected = missing if tuned else min(missing, WORTH_TUNING - 1)
        counts, checker = self.workers.counts, Checker(self.store.document_text)
        try:
            with self.open_vocabulary(self.model.path) as vocabulary:
                jobs = self._jobs(vocabulary, until, last)
                results = self.workers.write_contexts(jobs, expected, lambda text: self._tell(before, total, text))
                with closing(results):
                    for result in results:
                        self._keep(result, checker)
                        done = self.written.count - before
                        pace = f"{machines_at_work(self.workers)}{done / (time.monotonic() - started):.2f} chunks/s"
                        share = f"{counts.reused / max(1, counts.prompt):.0%} of prompt tokens from the KV cache"
                        self._tell(self.written.count, total, f"{pace}, {share}")
        finally:  # perhaps it was stopped
            took = time.monotonic() - started
            self.written.seconds += took
        if done := self.written.count - before:
            self.store.remember({SENTENCE_SECONDS: took / done})

    def _keep(self, result: WrittenContext, checker: "Checker") -> None:
        """Check a finished sentence and store what of it is supported."""
        subject, asked = self._asked.pop(result.key)
        sentence = checker.supported(result.text, subject)
        put_context(self.store, result.key, sentence, "model" if sentence else "dropped")
        self.written.sentences += bool(sentence)
        self.written.dropped += not sentence
        self._longest = max(self._longest, time.monotonic() - asked)

    def _tell(self, done: int, total: int, detail: str) -> None:
        self.progress(Progress("contextualize", min(done, total), total, detail))

    def _jobs(self, vocabulary: Vocabulary, until: float, last: float) -> Iterator[ContextJob]:
        """Plan documents when the workers get to them; yield the missing sentences, each once, until it is time."""
        self._asked.clear()
        begun = set[str]()
        for document in documents_to_write(self.store, self.plan):
            language = format_named(Path(document.path).name).language or ""
            for row, job in self._plan_document(document, vocabulary):
                if job.key in begun or has_context(self.store, job.key):  # a copy of the document has it
                    continue
                now = time.monotonic()
                if now + self._longest > last or (begun and now > until):
                    return
                begun.add(job.key)
                subject = Subject(document.id, document.title, row.chunk.headings, row.chunk.text, language)
                self._asked[job.key] = subject, now
                yield job

    def _plan_document(self, document: StoredDocument, vocabulary: Vocabulary) -> list[tuple[StoredChunk, ContextJob]]:
        """Record which sentences the chunks of a document want; return the chunks with their jobs."""
        text, chunks = self.store.document_text(document.id), list(self.store.chunks(document.id))
        jobs = plan_contexts(
            document.title,
            text,
            [row.chunk for row in chunks],
            vocabulary=vocabulary,
            plan=self.plan,
            form=self.model.context_form,
        )
        planned = list(zip(chunks, jobs, strict=True))
        plan_sentences(self.store, document.id, self.plan, [(row.id, job.key) for row, job in planned])
        return planned


def plan_of(model: InstalledModel) -> str:
    """Return everything that decides about the sentences of a model, apart from the documents."""
    return context_plan(model.identity, model.context_form)


_FEWEST_WORDS = 5
_COPIED_WORDS = 10  # in a row: so many are copied from the chunk, not written
_CLAUSE_END = re.compile(r"[,;:](?=\s)|\s(?=(?:and|or|with|including|for|in)\s)")


def says_something(sentence: str, subject: Subject) -> bool:
    """Say whether a sentence is long enough and repeats neither chunk nor title."""
    words = _words(sentence)
    if len(words) < _FEWEST_WORDS:
        return False
    if _runs(words, _COPIED_WORDS) & _runs(_words(subject.passage), _COPIED_WORDS):
        return False
    said = set(keyword_tokens(f"{PLAIN_CONTEXT_FORM.opening} {heading_path(subject.title, subject.headings)}"))
    return bool(set(keyword_tokens(sentence)) - said)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _runs(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(length)), strict=False))


class Checker:
    """Check sentences against documents whose texts are read when needed; the facts of a few are kept."""

    def __init__(self, document_text: Callable[[int], str]) -> None:
        self._source = lru_cache(maxsize=8)(lambda document: Source(document_text(document)))

    def supported(self, text: str, subject: Subject) -> str:
        """Return what of a context may be stored: of each sentence all, its part before something wrong, or nothing."""
        sources = [self._source(subject.document_id), Source(subject.title), Source(subject.language)]
        kept = (_right_part(sentence.strip(), sources) for sentence in split_sentences(text))
        return " ".join(sentence for sentence in kept if says_something(sentence, subject))


def _right_part(sentence: str, sources: Sequence[Source]) -> str:
    """Return a sentence up to the clause in which something is that the sources do not say."""
    wrong = missing_facts("", sentence, sources)
    if not wrong:
        return sentence
    ends = [end.start() for end in _CLAUSE_END.finditer(sentence, 0, max(0, sentence.find(wrong[0].text)))]
    sentence = f"{sentence[: ends[-1]]}." if ends else ""
    return "" if missing_facts("", sentence, sources) else sentence
