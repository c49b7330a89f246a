"""The library: open a folder, then index(), search() and ask(). The command line and a notebook both call this."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from local_rag.asking.answer import DEFAULT_PROMPT_TOKENS, Answerer, answer_room
from local_rag.asking.search import Searcher, Trace
from local_rag.errors import DamagedLibraryError, LibraryError
from local_rag.indexing.fingerprint import make_fingerprint, require_same, settings_of
from local_rag.indexing.indexer import Indexer, IndexReport, OpenVocabulary
from local_rag.indexing.work import LocalWorkers, OpenEngine, Workers
from local_rag.llama.open import open_engine, open_vocabulary
from local_rag.models.choice import chosen, find, find_for_index
from local_rag.models.embedder import Embedder, SentenceEmbedder
from local_rag.models.reranker import Reranker, load_reranker
from local_rag.offline import close, set_switches
from local_rag.records import Answer, InstalledModel, Passage, Progress
from local_rag.settings import Settings, remember_settings, resolve_settings, said_now
from local_rag.store.database import Store
from local_rag.store.generation import Generations
from local_rag.store.storage_errors import storage_errors
from local_rag.upkeep.clean import Cleaning, Removal, clean, find_documents, remove
from local_rag.upkeep.repair import repair_index, repair_store
from local_rag.upkeep.status import Status, collect_status

DEFAULT_FOLDER = Path(".local-rag")


def _ignore(_event: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Parts:
    """What a library is put together from: tests give fakes."""

    load_embedder: Callable[[InstalledModel], Embedder] = SentenceEmbedder
    load_reranker: Callable[[InstalledModel], Reranker] = load_reranker
    open_engine: OpenEngine = open_engine
    open_vocabulary: OpenVocabulary = open_vocabulary
    make_workers: Callable[..., Workers] = LocalWorkers


class Library:
    """A folder of indexed documents.

    Settings given here win over the environment, which wins over what the library was last indexed with. Models are
    loaded when first needed and kept, so that a second question is quick.

    Threads may share a library. Its models answer one question at a time, and callbacks are called in the midst of it:
    one that takes long holds up all other threads. One thread can index at a time, while the others ask.

    `sealed` closes the network to the whole process and its children, as commands do, until the process ends: whatever
    code runs in it can connect to no other machine, and on Linux opens no socket but Unix ones. Nothing takes it back.
    """

    def __init__(
        self, folder: Path | str = DEFAULT_FOLDER, *, sealed: bool = False, parts: Parts = Parts(), **settings: Any
    ) -> None:
        close() if sealed else set_switches()
        self.folder = Path(folder).resolve()
        self.settings: Settings = resolve_settings(self.folder, **settings)
        self._given = said_now(**settings)
        self._parts = parts
        self._indexes = Generations(self.folder)
        self._turn = threading.RLock()  # over all that is kept open: models, store and index
        self._open = ExitStack()
        self._searcher: Searcher | None = None
        self._answerer: Answerer | None = None
        self._store: Store | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the models and close the store."""
        with self._turn:
            self._open.close()
            self._searcher = self._answerer = self._store = None

    def index(self, paths: Iterable[Path | str] = (), *, progress: Callable[[Progress], None] = _ignore) -> IndexReport:
        """Bring the library up to date with these files and folders, or with all it was ever given."""
        with self._locked(), closing(Store(self.folder, create=True)) as store:
            roots = _roots(store, paths)  # before the models: a mistyped path matters more than one not pulled
            indexer = self._indexer(store, progress)
            remember_settings(self.folder, self.settings, *find_for_index(self.settings))
            store.add_roots(roots)
            store.include(roots)
            return indexer.run(roots)

    @contextmanager
    def writing(
        self, progress: Callable[[Progress], None] = _ignore, *, create: bool = False
    ) -> Iterator[tuple[Store, Indexer]]:
        """Hold the library's lock; yield its store and an indexer over it."""
        with self._locked(create=create), closing(Store(self.folder, create=create)) as store:
            yield store, self._indexer(store, progress)

    def _indexer(self, store: Store, progress: Callable[[Progress], None]) -> Indexer:
        """Make an indexer over an open store; the caller holds the lock."""
        embed_model, context_model = find_for_index(self.settings)
        workers = self._parts.make_workers(
            embed_model, context_model, load_embedder=self._parts.load_embedder, open_engine=self._parts.open_engine
        )
        return Indexer(
            store,
            self._indexes,
            workers,
            self.settings,
            embed_model=embed_model,
            context_model=context_model,
            open_vocabulary=self._parts.open_vocabulary,
            progress=progress,
        )

    def remove(
        self, paths: Iterable[Path | str], *, dry_run: bool = False, progress: Callable[[Progress], None] = _ignore
    ) -> Removal:
        """Take documents, or all below a folder, out of the library and publish an index without them."""
        with self.writing(progress) as (store, indexer):
            removal = find_documents(store, paths)
            if not dry_run:
                remove(store, self._indexes, indexer, removal)
            return removal

    def clean(self, *, dry_run: bool = False) -> Cleaning:
        """Delete what nothing needs any more: older indexes, orphaned contexts and vectors, leftovers."""
        with self._locked(create=False), closing(Store(self.folder)) as store:
            return clean(store, self._indexes, dry_run=dry_run)

    def repair(self, *, progress: Callable[[Progress], None] = _ignore) -> list[str]:
        """Mend what a crash or a failing disk has left behind; return what was done, one sentence each."""
        with self._locked(create=False):
            done = repair_store(self.folder)
            with closing(Store(self.folder)) as store:
                return done + repair_index(store, self._indexes, self._indexer(store, progress))

    def status(self) -> Status:
        """Say what the library holds, what shaped it, and what is stale and why."""
        with storage_errors(self.folder), closing(Store(self.folder)) as store:
            return collect_status(store, self._indexes, self.settings)

    def search(self, question: str, *, top: int | None = None, rerank: bool = True) -> list[Passage]:
        """Return the best passages for a question, best first."""
        return self.trace(question, top=top or self.settings.passages, rerank=rerank).passages

    def trace(self, question: str, *, top: int, rerank: bool = True) -> Trace:
        """Search, and keep the ranking and the time of every stage."""
        with self._turn, storage_errors(self.folder):
            while True:
                searcher = self._open_searcher()
                trace = searcher.trace(question, top=top, rerank=rerank)
                # The store keeps every chunk of the live generation: if this is still the one, none was missing.
                if self._indexes.live_name() == searcher.index.name:
                    return trace

    def ask(
        self,
        question: str,
        *,
        passages: int | None = None,
        rerank: bool = True,
        on_text: Callable[[str], None] = _ignore,
        on_passages: Callable[[Sequence[Passage]], None] = _ignore,
    ) -> Answer:
        """Answer a question from the documents, or say that they do not hold the answer.

        `on_passages` sees the passages that were found, `on_text` the answer as it is written. As many of the best
        passages are read as the model reads in about ten seconds, or `passages` of them if its context holds so many.
        """
        with self._turn:
            found = self.search(question, top=passages, rerank=rerank)
            on_passages(found)
            if self._answerer is None:
                model = find(self.settings, "answer")
                generator = self._open.enter_context(self._parts.open_engine(model.path, context_tokens=answer_room))
                self._answerer = Answerer(generator, model.answered_log_odds)
            prompt_tokens = DEFAULT_PROMPT_TOKENS if passages is None else None
            return self._answerer.answer(question, found, prompt_tokens=prompt_tokens, on_text=on_text)

    def manifest(self) -> Mapping[str, Any]:
        """Return what shaped the live index."""
        with self._turn:
            return self._open_searcher().index.manifest

    @property
    def reranks(self) -> bool:
        """Say whether the profile has a cross-encoder."""
        return "rerank" in chosen(self.settings)

    def _open_searcher(self) -> Searcher:
        """Open the live generation; one that was published since the last question is opened instead of the old."""
        while True:
            name = self._indexes.live_name()
            if self._searcher is not None and self._searcher.index.name == name:
                return self._searcher
            try:
                self._searcher = self._make_searcher()
            except (LibraryError, OSError):
                # A writer may have replaced this generation and removed it while it was being opened.
                if self._indexes.live_name() == name:
                    raise

    def _make_searcher(self) -> Searcher:
        """Open the live generation under the settings it was made with, unless others were given."""
        index = self._indexes.live()
        if index is None:
            raise LibraryError(f"There is no index in {self.folder}; make one with `local-rag index FOLDER`.")
        settings = settings_of(index.manifest, self.settings, self._given)
        embed_model = find(settings, "embed")
        require_same(index.manifest["fingerprint"], make_fingerprint(settings, embed_model, None))
        if damage := index.damage():
            raise DamagedLibraryError(f"The index is damaged: {damage[0]}", "run `local-rag repair` to build it again")
        index.open()
        if self._store is None:
            self._store = self._open.enter_context(closing(Store(self.folder)))
        reranker = self._parts.load_reranker(find(settings, "rerank")) if "rerank" in chosen(settings) else None
        return Searcher(index, self._store, self.settings, self._parts.load_embedder(embed_model), reranker)

    @contextmanager
    def _locked(self, *, create: bool = True) -> Iterator[None]:
        """Hold the library's lock, which the system frees when its owner dies."""
        if not create and not self.folder.is_dir():
            raise LibraryError(f"There is no library in {self.folder}; make one with `local-rag index PATH`.")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise LibraryError(
                f"The library {self.folder} cannot be made ({error}); name another with `--library`."
            ) from None
        owner = self.folder / "lock.pid"
        with storage_errors(self.folder):
            lock = FileLock(self.folder / "lock", timeout=0)
            try:
                lock.acquire()
            except Timeout:
                pid = owner.read_text().strip() if owner.exists() else ""
                raise LibraryError(
                    f"Another local-rag (process {pid or 'unknown'}) is writing to {self.folder}; "
                    "wait for it or stop it."
                ) from None
            try:
                owner.write_text(str(os.getpid()))
                yield
            finally:
                lock.release()


def _roots(store: Store, paths: Iterable[Path | str]) -> list[Path]:
    """Return what to index: the paths given, which exist or once did, or all that were ever given."""
    roots = [Path(path).expanduser().resolve() for path in paths] or store.roots()
    if not roots:
        raise LibraryError("The library has no documents yet; name a folder: `local-rag index FOLDER`.")
    missing = [path for path in roots if not path.exists()]
    if missing:
        known = [Path(document.path) for document in store.documents()]
        for path in missing:
            if not any(name.is_relative_to(path) for name in known):
                raise LibraryError(f"{path} does not exist; name a file or folder that does.")
    return roots
