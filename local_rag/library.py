"""The library: open a folder, then index(), search() and ask(). The command line and a notebook both call this."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from local_rag.errors import LibraryError
from local_rag.models import load_registry, resolve
from local_rag.publish import Generation, current_generation
from local_rag.records import Answer, InstalledModel, Passage
from local_rag.settings import Settings, remember_settings, resolve_settings
from local_rag.store import Store

if TYPE_CHECKING:
    from local_rag.answer import Answerer
    from local_rag.index import IndexReport, Progress
    from local_rag.search import Searcher

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
        from local_rag.index import Indexer

        with self._writer():
            store = Store(self.folder / "library.sqlite3", create=True)
            try:
                roots = _roots(store, paths)
                embed_model = self._model("embed")
                context_model = self._model("context") if self.settings.context == "llm" else None
                assert embed_model is not None
                indexer = Indexer(
                    self.folder,
                    store,
                    self.settings,
                    embed_model=embed_model,
                    context_model=context_model,
                    progress=progress,
                )
                remember_settings(self.folder, self.settings, embed_model, context_model)
                store.add_roots(roots)
                return indexer.run(roots)
            finally:
                store.close()

    def search(self, question: str, *, top: int | None = None, rerank: bool = True) -> list[Passage]:
        """Return the best passages for a question, best first."""
        return self._open_searcher().search(question, top=top or self.settings.passages, rerank=rerank)

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
            from local_rag.answer import Answerer

            model = self._model("answer")
            assert model is not None
            self._answerer = Answerer(model)
        return self._answerer.answer(question, found, whole_context=passages is not None, on_text=on_text)

    @property
    def reranks(self) -> bool:
        """Say whether the profile has a cross-encoder."""
        return bool(self._model_name("rerank"))

    def _model_name(self, role: str) -> str:
        named: str = getattr(self.settings, f"{role}_model")
        if named:
            return named
        profiles = load_registry().profiles
        if self.settings.profile not in profiles:
            raise LibraryError(
                f"There is no profile {self.settings.profile!r}; choose one of {', '.join(profiles)} with `--profile`."
            )
        return profiles[self.settings.profile].get(role, "")

    def _model(self, role: str) -> InstalledModel | None:
        name = self._model_name(role)
        return resolve(name, role) if name else None

    def _generation(self) -> Generation:
        generation = current_generation(self.folder)
        if generation is None:
            raise LibraryError(f"There is no index in {self.folder}; make one with `local-rag index FOLDER`.")
        return generation

    def _open_searcher(self) -> "Searcher":
        """Open the live generation; one that was published since the last question is opened instead of the old."""
        generation = self._generation()
        if self._searcher is None or self._searcher.generation.folder != generation.folder:
            from local_rag.embed import SentenceEmbedder, embedder_identity
            from local_rag.rerank import CrossEncoderReranker
            from local_rag.search import Searcher, check_fingerprint

            embed_model = self._model("embed")
            rerank_model = self._model("rerank")
            assert embed_model is not None
            check_fingerprint(generation, embedder_identity(embed_model), embed_model.name)
            self._store = self._store or Store(self.folder / "library.sqlite3")
            self._searcher = Searcher(
                generation,
                self._store,
                self.settings,
                SentenceEmbedder(embed_model),
                CrossEncoderReranker(rerank_model) if rerank_model else None,
            )
        return self._searcher

    @contextmanager
    def _writer(self) -> Iterator[None]:
        """Hold the library's lock, which the system frees when its owner dies."""
        from filelock import FileLock, Timeout

        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise LibraryError(
                f"The library {self.folder} cannot be made ({error}); name another with `--library`."
            ) from None
        owner = self.folder / "lock.pid"
        try:
            with FileLock(self.folder / "lock", timeout=0):
                owner.write_text(str(os.getpid()))
                yield
        except Timeout:
            pid = owner.read_text().strip() if owner.exists() else "unknown"
            raise LibraryError(
                f"Another `local-rag index` (process {pid}) is writing to {self.folder}; wait for it or stop it."
            ) from None


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
