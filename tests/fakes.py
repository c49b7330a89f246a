"""Fakes for all that takes long or needs a model: given to a library as its parts, never put in the place of names."""

import errno
import hashlib
import itertools
import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from local_rag.document_records import Skipped
from local_rag.errors import ReadError, StoppedError
from local_rag.files import LocalDisk
from local_rag.index.protocol import Allowed, Contents, DocumentRows
from local_rag.indexing.situating_prompts import ContextJob
from local_rag.indexing.workers import EmbeddingJob, LocalWorkers, OnNote, WrittenContext
from local_rag.keys import key_of
from local_rag.library import Parts
from local_rag.llama.generator import Counts, Request, Stoppable, Token
from local_rag.model_records import AnswerForm, InstalledModel
from local_rag.models.reader import Reading
from local_rag.passage_records import Passage
from local_rag.reading.converters.pdf import Recognize
from local_rag.reading.isolate import ReadFile, skipped
from local_rag.reading.read import parse, read_file
from local_rag.reading.relations import relations_of
from local_rag.reading.split import Splitting

_IN_FLIGHT = 4
_UNUSABLE = 20  # of 256 sentences that the quick workers write
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def passage(
    text: str = "text",
    *,
    key: int = 1,
    path: str = "a.md",
    title: str = "",
    headings: tuple[str, ...] = (),
    line: int | None = 1,
    score: float = 0.5,
    **fields: Any,
) -> Passage:
    """Return a passage of one line."""
    places = {"terms": "", "sentence": "", "page": None, "line": line, "end_line": line}
    return Passage(key, path, title, text, headings=headings, score=score, **(places | fields))


class FakeEmbedder:
    """Hash the words of a text into a vector, so that texts that share words are near."""

    loaded = 0

    def __init__(self, model: InstalledModel) -> None:
        type(self).loaded += 1
        self._seed = model.identity

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        vector = np.full(64, 1e-6, dtype=np.float32)
        for word in text.lower().split():
            vector[hashlib.sha256(f"{self._seed}{word}".encode()).digest()[0] % 64] += 1
        normalised: np.ndarray = vector / np.linalg.norm(vector)
        return normalised


class FakeReading:
    """Score a sentence by the function that scores passages."""

    def __init__(self, score: Callable[[str], float], text: str) -> None:
        self.relevance = self.answers = score(text)
        self._score, self._text = score, text

    def sentence(self, start: int, end: int) -> float | None:
        return self._score(self._text[start:end])


class FakeReader:
    """Score texts by a function, as fast as is said; count the texts that were scored."""

    pairs_per_second = 1e9

    def __init__(self, score: Callable[[str, str], float], *, fused_weight: float = 0.0) -> None:
        self._score, self.fused_weight = score, fused_weight
        self.scored = 0

    def score(self, question: str, passages: Sequence[str]) -> list[Reading]:
        self.scored += len(passages)
        return [FakeReading(partial(self._score, question), text) for text in passages]


class FakeVocabulary:
    """A vocabulary whose tokens are characters."""

    context_length = 8192

    def __init__(self, path: Path = Path("fake.gguf")) -> None:
        self.path = path

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return [ord(character) for character in text]

    def detokenize(self, tokens: list[int]) -> str:
        return "".join(map(chr, tokens))

    def chat_frame(self, system: str) -> tuple[str, str]:
        return f"{system}\n", "\n"


class FakeGenerator(Stoppable):
    """Reply to prompts by a function of their text, and say Yes to those of which another one says so."""

    def __init__(
        self,
        reply: Callable[[str], str] = lambda _prompt: "",
        holds: Callable[[str], bool] = lambda _prompt: True,
        *,
        context_tokens: int = 8192,
    ) -> None:
        super().__init__()
        self.model, self.counts, self.context_tokens = FakeVocabulary(), Counts(), context_tokens
        self._reply, self._holds = reply, holds
        self.prompts: list[str] = []
        self._idle = True

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        with self._busy():
            for request in requests:
                for token in self.model.tokenize(self._reply(self._text(request))):
                    self._check()
                    yield Token(request.key, token)
                yield Token(request.key, None, whole=True)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int], bool]]:
        with self._busy():
            for request in requests:
                self._check()
                yield request.key, self.model.tokenize(self._reply(self._text(request))), True

    @contextmanager
    def _busy(self) -> Iterator[None]:
        assert self._idle, "the engine generates for one caller at a time"
        self._idle = False
        try:
            yield
        finally:
            self._idle = True

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray:
        assert self._idle, "the engine generates for one caller at a time"
        self._check()
        says = "Y" if self._holds(self._text(Request("", prefix, suffix, 1))) else "N"
        probabilities = np.full(256, -30.0)
        probabilities[ord(says)] = -0.01
        return probabilities

    def _check(self) -> None:
        if self.stop():
            raise StoppedError("The answer was stopped.")

    def _text(self, request: Request) -> str:
        text = self.model.detokenize([*list(request.prefix)[: request.start], *request.suffix])
        self.prompts.append(text)
        return text


TRAINED = AnswerForm("Answer, or refuse.", "Unanswerable.")


class TrainedGenerator(FakeGenerator):
    """A model that was trained to refuse, and is so `sure` of it; made to begin otherwise, it says `otherwise`."""

    def __init__(self, reply: Callable[[str], str], *, sure: float = 4.0, otherwise: str = "I guess so.") -> None:
        super().__init__(reply)
        self._sure, self._otherwise = sure, otherwise

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        with self._busy():
            for request in requests:
                text = self.model.detokenize([*request.prefix, *request.suffix])
                made_to = self._reply(text[:-1]) == TRAINED.refusal and text[-1] == self._otherwise[0]
                for token in self.model.tokenize(self._otherwise[1:] if made_to else self._reply(text)):
                    self._check()
                    yield Token(request.key, token)
                yield Token(request.key, None, whole=True)

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray:
        self._check()
        first = self._reply(self._text(Request("", prefix, suffix, 1)))[0]
        other = self._otherwise[0] if first == TRAINED.refusal[0] else TRAINED.refusal[0]
        probabilities = np.full(256, -30.0)
        probabilities[ord(first)] = -np.log1p(np.exp(-self._sure))
        probabilities[ord(other)] = -np.log1p(np.exp(self._sure))
        return probabilities


class QuickVocabulary(FakeVocabulary):
    """A vocabulary that tells the lengths of texts in words."""

    context_length = 2048

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return [0] * len(text.split())


class FaultyDisk(LocalDisk):
    """A disk that cannot list some folders and look at some paths now."""

    def __init__(self, *broken: Path, error: int = errno.EIO) -> None:
        self._broken, self._error = set(map(str, broken)), error

    def names(self, folder: str) -> list[str]:
        self._fail(folder)
        return super().names(folder)

    def status(self, path: str) -> os.stat_result:
        if not Path(path).is_dir():
            self._fail(path)
        return super().status(path)

    def _fail(self, path: str) -> None:
        if path in self._broken:
            raise OSError(self._error, os.strerror(self._error), path)


class IgnoresCase(LocalDisk):
    """A disk that finds a path under any spelling of its names."""

    def status(self, path: str) -> os.stat_result:
        found = Path(path).anchor
        for part in Path(path).parts[1:]:
            names = self.names(found)
            alike = [one for one in names if one.casefold() == part.casefold()]
            found = os.path.join(found, part if part in names or not alike else alike[0])  # noqa: PTH118
        return super().status(found)


class ReadsHere(LocalWorkers):
    """Workers that read in this process: starting another one takes longer than all else in most tests."""

    recognize: Recognize | None = None

    def read(self, paths: Iterable[Path], splitting: Splitting) -> Generator[tuple[Path, ReadFile | Skipped]]:
        for path in paths:
            try:
                data, stamp = read_file(path)
                document = parse(path, data, recognize=self.recognize if splitting.ocr_folder else None)
                yield (
                    path,
                    ReadFile(
                        hashlib.sha256(data).hexdigest(),
                        replace(document, headings=(), tables=(), grids=()),
                        splitting.split(document),
                        stamp,
                        relations_of(document),
                    ),
                )
            except ReadError as error:
                yield path, skipped(path, error)


class QuickWorkers(LocalWorkers):
    """Workers that read for real, embed with the fake, and write contexts at once and always alike."""

    def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: OnNote) -> Generator[WrittenContext]:
        """Take some jobs at once and end them in another order, as the engine does."""
        waiting = iter(jobs)
        while batch := list(itertools.islice(waiting, _IN_FLIGHT)):
            for job in reversed(batch):
                # In letters: numbers that the document does not have would be dropped.
                part = job.key[:12].translate(_LETTERS)
                usable = int(job.key[:2], 16) > _UNUSABLE
                yield WrittenContext(job.key, f"This chunk belongs to part {part}." if usable else "")


class InstantWorkers(ReadsHere, QuickWorkers):
    """Workers that read in this process and write contexts at once."""


def journaling(workers: type[LocalWorkers], journal: Callable[[str, Iterable[str]], None]) -> type[LocalWorkers]:
    """Let workers call `journal` with table and keys of each result as soon as whoever asked for it has stored it.

    A generator goes on when its reader comes back for the next result, which is after the last one was stored.
    """

    class JournalingWorkers(workers):  # type: ignore[valid-type,misc]
        def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: OnNote) -> Generator[WrittenContext]:
            for written in super().write_contexts(jobs, expected, note):
                yield written
                journal("contexts", [written.key])

        def embed(self, jobs: Iterable[EmbeddingJob], note: OnNote) -> Generator[tuple[Sequence[str], np.ndarray]]:
            for keys, vectors in super().embed(jobs, note):
                yield keys, vectors
                journal("vectors", keys)

    return JournalingWorkers


def contents_of(
    chunk_ids: Sequence[int],
    document_ids: Sequence[int],
    vectors: np.ndarray,
    texts: Sequence[str],
    described: Collection[int] = (),
) -> Contents:
    """Return what an index is to hold of chunks that are all at hand; those of a document follow each other.

    The first row of the `described` documents stands for all of the document.
    """
    documents = list(dict.fromkeys(document_ids))

    def rows(wanted: Sequence[int]) -> Iterator[DocumentRows]:
        for document in wanted:
            mine = [row for row, one in enumerate(document_ids) if one == document]
            ids, words = [chunk_ids[row] for row in mine], [texts[row] for row in mine]
            yield DocumentRows(document, ids, vectors[mine], words, document in described)

    versions = [int(key_of([*one.chunk_ids], [*one.texts], one.vectors.tolist())[:15], 16) for one in rows(documents)]
    return Contents(np.array(documents, dtype=np.int64), np.array(versions, dtype=np.int64), rows)


class FakeIndex:
    """An index of given rankings, in chunk ids."""

    def showing(self, _documents: Collection[int]) -> "FakeIndex":
        raise NotImplementedError

    def __init__(
        self,
        dense: Sequence[int],
        keywords: Sequence[int],
        stamp: str = "1",
        held: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.stamp, self.manifest = stamp, dict[str, Any]()
        self._held = held  # versions by document
        self._dense, self._keywords = dense, keywords

    def open(self) -> None:
        pass

    def chunk_ids(self) -> Sequence[int]:
        return sorted({*self._dense, *self._keywords})

    def documents(self) -> tuple[np.ndarray, np.ndarray]:
        ids, versions = np.array([*self._held.items()], dtype=np.int64).reshape(-1, 2).T
        return ids, versions

    def dense(
        self, vector: np.ndarray, top: int, allowed: Allowed = None, *, documents: bool = False
    ) -> list[tuple[int, float]]:
        return self._ranked(self._dense, top, allowed)

    def keywords(
        self,
        terms: Sequence[str],
        top: int,
        allowed: Allowed = None,
        weights: Sequence[float] | None = None,
        *,
        documents: bool = False,
    ) -> list[tuple[int, float]]:
        return self._ranked(self._keywords, top, allowed)

    def vocabulary(self) -> Collection[str]:
        return ()

    def damage(self, *, hash_all: bool = True) -> list[str]:
        return []

    def passages(self) -> None:
        return None

    @staticmethod
    def _ranked(ids: Sequence[int], top: int, allowed: Allowed) -> list[tuple[int, float]]:
        kept = [one for one in ids if not isinstance(allowed, Collection) or one in allowed]
        return [(one, 1 / rank) for rank, one in enumerate(kept[:top], start=1)]


@contextmanager
def quick_vocabulary(path: Path) -> Iterator[QuickVocabulary]:
    yield QuickVocabulary(path)


def generating(generator: FakeGenerator) -> Callable[..., Any]:
    """Return a stand-in for `open_engine` that opens this generator."""

    @contextmanager
    def open_engine(_path: Path, **_options: object) -> Iterator[FakeGenerator]:
        yield generator

    return open_engine


EMBEDS_QUICKLY = Parts(load_embedder=FakeEmbedder, make_workers=ReadsHere)
QUICK = Parts(
    load_embedder=FakeEmbedder, open_vocabulary=quick_vocabulary, make_workers=InstantWorkers, ocr_engine=lambda: ""
)
