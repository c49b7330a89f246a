"""The library: open a folder, then index(), search() and ask(). The command line and a notebook both call this."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from local_rag.errors import LibraryError, ModelError
from local_rag.models.registry import FORMATS, load_registry, resolve
from local_rag.records import Answer, InstalledModel, Passage
from local_rag.settings import REMEMBERED, Settings, remember_settings, resolve_settings
from local_rag.store.database import STORE_FILE, Store
from local_rag.store.generation import Generation, current_generation, live_name
from local_rag.store.storage_errors import storage_errors

if TYPE_CHECKING:
    from local_rag.asking.answer import Answerer
    from local_rag.asking.search import Searcher, Trace
    from local_rag.indexing.indexer import Indexer, IndexReport, Progress
    from local_rag.upkeep.clean import Cleaning, Removal
    from local_rag.upkeep.status import Status

DEFAULT_FOLDER = Path(".local-rag")


def _ignore(_event: object) -> None:
    pass


class Library:
    """A folder of indexed documents.

    Settings given here win over the environment, which wins over what the library was last indexed with. Models are
    loaded when first needed and kept, so that a second question is quick.
    """

    def __init__(self, folder: Path | str = DEFAULT_FOLDER, **settings: Any) -> None:
        self.folder = Path(folder).resolve()
        self.settings: Settings = resolve_settings(self.folder, **settings)
        # What was said here and now, in contrast to what the library remembers.
        self._given = {
            name for name in REMEMBERED if settings.get(name) is not None or os.environ.get(f"LOCAL_RAG_{name.upper()}")
        }
        self._searcher: Searcher | None = None
        self._answerer: Answerer | None = None
        self._store: Store | None = None

    def __enter__(self) -> "Library":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the models and close the store."""
        if self._answerer:
            self._answerer.close()
        if self._store:
            self._store.close()
        self._searcher = self._answerer = self._store = None

    def index(
        self, paths: Iterable[Path | str] = (), *, progress: "Callable[[Progress], None]" = _ignore
    ) -> "IndexReport":
        """Bring the library up to date with these files and folders, or with all it was ever given."""
        with self._writer():
            # A wrong path is told before a missing model is.
            with closing(Store(self.folder / STORE_FILE, create=True)) as store:
                roots = _roots(store, paths)
            with self._indexer(progress) as (store, indexer):
                return self._index(roots, store, indexer)

    def _index(self, roots: Sequence[Path], store: Store, indexer: "Indexer") -> "IndexReport":
        remember_settings(self.folder, self.settings, *self._index_models())
        store.add_roots(roots)
        store.include(roots)
        return indexer.run(roots)

    @contextmanager
    def writing(self, progress: "Callable[[Progress], None]" = _ignore) -> "Iterator[tuple[Store, Indexer]]":
        """Hold the library's lock; yield its store and an indexer over it."""
        with self._writer(), self._indexer(progress) as opened:
            yield opened

    @contextmanager
    def _indexer(
        self, progress: "Callable[[Progress], None]", *, create: bool = True
    ) -> "Iterator[tuple[Store, Indexer]]":
        """Open the store and an indexer over it; the caller holds the lock."""
        from local_rag.indexing.indexer import Indexer

        with closing(Store(self.folder / STORE_FILE, create=create)) as store:
            embed_model, context_model = self._index_models()
            indexer = Indexer(
                self.folder,
                store,
                self.settings,
                embed_model=embed_model,
                context_model=context_model,
                progress=progress,
            )
            yield store, indexer

    def remove(
        self, paths: Iterable[Path | str], *, dry_run: bool = False, progress: "Callable[[Progress], None]" = _ignore
    ) -> "Removal":
        """Take documents, or all below a folder, out of the library and publish an index without them."""
        from local_rag.upkeep.clean import find_documents, remove

        with self._writer(create=False), self._indexer(progress, create=False) as (store, indexer):
            removal = find_documents(store, paths)
            if not dry_run:
                remove(self.folder, store, indexer, removal)
            return removal

    def clean(self, *, dry_run: bool = False) -> "Cleaning":
        """Delete what nothing needs any more: older indexes, orphaned contexts and vectors, leftovers."""
        from local_rag.upkeep.clean import clean

        with self._writer(create=False), closing(Store(self.folder / STORE_FILE)) as store:
            return clean(self.folder, store, dry_run=dry_run)

    def repair(self, *, progress: "Callable[[Progress], None]" = _ignore) -> list[str]:
        """Mend what a crash or a failing disk has left behind; return what was done, one sentence each."""
        from local_rag.upkeep.repair import repair_index, repair_store

        with self._writer(create=False):
            done = repair_store(self.folder)
            with self._indexer(progress) as (store, indexer):
                return done + repair_index(self.folder, store, indexer)

    def status(self) -> "Status":
        """Say what the library holds, what shaped it, and what is stale and why."""
        from local_rag.upkeep.status import collect_status

        with storage_errors(self.folder), closing(Store(self.folder / STORE_FILE)) as store:
            models = {role: self._model_or_none(role) for role in ("embed", "context")}
            if self.settings.context != "llm":
                models["context"] = None
            names = {role: self._model_name(role) for role in FORMATS}
            return collect_status(self.folder, store, self.settings, names, models["embed"], models["context"])

    def search(self, question: str, *, top: int | None = None, rerank: bool = True) -> list[Passage]:
        """Return the best passages for a question, best first."""
        return self.trace(question, top=top or self.settings.passages, rerank=rerank).passages

    def trace(self, question: str, *, top: int, rerank: bool = True) -> "Trace":
        """Search, and keep the ranking and the time of every stage."""
        with storage_errors(self.folder):
            while True:
                searcher = self._open_searcher()
                trace = searcher.trace(question, top=top, rerank=rerank)
                # The store keeps every chunk of the live generation: if this is still the one, none was missing.
                if live_name(self.folder) == searcher.generation.folder.name:
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
        found = self.search(question, top=passages, rerank=rerank)
        on_passages(found)
        if self._answerer is None:
            from local_rag.asking.answer import Answerer
            from local_rag.llama.probe import require_working

            model = self._model("answer")
            assert model is not None
            require_working(model.path)
            self._answerer = Answerer(model)
        return self._answerer.answer(question, found, whole_context=passages is not None, on_text=on_text)

    @property
    def reranks(self) -> bool:
        """Say whether the profile has a cross-encoder."""
        return bool(self._model_name("rerank"))

    def model_names(self) -> dict[str, str]:
        """Name the model of every role that the settings and the profile give one."""
        names = {role: self._model_name(role) for role in FORMATS}
        return {role: name for role, name in names.items() if name}

    def _model_name(self, role: str, settings: Settings | None = None) -> str:
        settings = settings or self.settings
        named: str = getattr(settings, f"{role}_model")
        if named:
            return named
        profiles = load_registry().profiles
        if settings.profile not in profiles:
            raise LibraryError(
                f"There is no profile {settings.profile!r}; choose one of {', '.join(profiles)} with `--profile`."
            )
        return profiles[settings.profile].get(role, "")

    def _model(self, role: str, settings: Settings | None = None) -> InstalledModel | None:
        name = self._model_name(role, settings)
        return resolve(name, role) if name else None

    def _model_or_none(self, role: str) -> InstalledModel | None:
        """Find a model that may not be pulled."""
        try:
            return self._model(role)
        except ModelError:
            return None

    def _index_models(self) -> tuple[InstalledModel, InstalledModel | None]:
        """Find the embedder and, where contexts are generated, the model that writes them."""
        embed_model = self._model("embed")
        assert embed_model is not None
        return embed_model, self._model("context") if self.settings.context == "llm" else None

    def _generation(self) -> Generation:
        generation = current_generation(self.folder)
        if generation is None:
            raise LibraryError(f"There is no index in {self.folder}; make one with `local-rag index FOLDER`.")
        return generation

    def _open_searcher(self) -> "Searcher":
        """Open the live generation; one that was published since the last question is opened instead of the old."""
        while True:
            name = live_name(self.folder)
            if self._searcher is not None and self._searcher.generation.folder.name == name:
                return self._searcher
            try:
                self._searcher = self._make_searcher(self._generation())
            except (LibraryError, OSError):
                # A writer may have replaced this generation and removed it while it was being opened.
                if live_name(self.folder) == name:
                    raise

    def _make_searcher(self, generation: Generation) -> "Searcher":
        """Open a generation under the settings it was made with, unless others were given."""
        from local_rag.asking.search import Searcher
        from local_rag.indexing.fingerprint import check_fingerprint, make_fingerprint, settings_of
        from local_rag.models.embedder import SentenceEmbedder
        from local_rag.models.reranker import load_reranker

        settings = settings_of(generation.manifest, self.settings, self._given)
        embed_model, rerank_model = self._model("embed", settings), self._model("rerank", settings)
        assert embed_model is not None
        check_fingerprint(generation.manifest["fingerprint"], make_fingerprint(settings, embed_model, None))
        if damage := generation.damage():
            raise LibraryError(f"The index is damaged: {damage[0]}; run `local-rag repair` to build it again.")
        self._store = self._store or Store(self.folder / STORE_FILE)
        return Searcher(
            generation,
            self._store,
            self.settings,
            SentenceEmbedder(embed_model),
            load_reranker(rerank_model) if rerank_model else None,
        )

    @contextmanager
    def _writer(self, *, create: bool = True) -> Iterator[None]:
        """Hold the library's lock, which the system frees when its owner dies."""
        from filelock import FileLock, Timeout

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
