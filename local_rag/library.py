"""The library: open a folder, then index(), search() and ask(). The command line and notebooks use this interface."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any, Self, Unpack

from local_rag.answer_records import Answer, Written
from local_rag.answering.answerer import AnswerModel
from local_rag.asking import (
    EVERYTHING,
    HOST,
    AskOptions,
    FilterFields,
    Filters,
    Person,
    Turn,
    as_filters,
)
from local_rag.catalogue.contents import FileStates
from local_rag.cluster.on_request import indexes_of, network_of, workers_of
from local_rag.conversation import Ask, Conversation
from local_rag.errors import LibraryError, require_known
from local_rag.files import DEFAULT_FOLDER, LOCAL_DISK, Disk, write_whole
from local_rag.holdings.access import Shared
from local_rag.holdings.kept_questions import KeptQuestions
from local_rag.holdings.upkeep import Upkeep
from local_rag.index.generations import Generations
from local_rag.index.protocol import Indexes
from local_rag.indexing.added_texts import text_file, write_text
from local_rag.indexing.changes import FileState, file_state
from local_rag.indexing.fingerprint import require_compatible
from local_rag.indexing.indexer import Indexer, IndexReport, OnLive
from local_rag.indexing.roots import require_documents, roots_to_index
from local_rag.indexing.sentence_writer import OpenVocabulary
from local_rag.indexing.workers import LocalWorkers, OpenEngine, Workers
from local_rag.llama.models_in_use import load_embedder, load_reader, open_engine, open_vocabulary
from local_rag.maintenance.removal import (
    Removal,
    find_documents,
    remove,
)
from local_rag.model_records import InstalledModel
from local_rag.models.choice import context_model_to_pull, find, find_for_index, with_profile
from local_rag.models.embedder import Embedder
from local_rag.models.engine_address import open_engine_relay
from local_rag.models.reader import Reader
from local_rag.offline import close, set_switches
from local_rag.progress_records import OnProgress, Progress, ignore
from local_rag.reading.ocr import engine as ocr_engine
from local_rag.retrieval.filters import Sight
from local_rag.retrieval.live_searcher import LiveSearcher
from local_rag.settings import REMEMBERED, SettingFields, Settings, explicit_settings, index_settings, resolve_settings
from local_rag.store.connect import is_library, remembered
from local_rag.store.database import Store, StoredDocument, locked_store
from local_rag.store.erasing import include
from local_rag.store.history import History
from local_rag.store.people_file import People
from local_rag.view import View


@dataclass(frozen=True, slots=True)
class Parts:
    """The replaceable parts of a library; tests pass fakes."""

    load_embedder: Callable[[InstalledModel], Embedder] = load_embedder
    load_reader: Callable[[InstalledModel], Reader] = load_reader
    open_engine: OpenEngine = open_engine
    open_vocabulary: OpenVocabulary = open_vocabulary
    make_workers: Callable[..., Workers] = LocalWorkers
    file_state: Callable[[StoredDocument], FileState] = file_state
    disk: Disk = LOCAL_DISK
    ocr_engine: Callable[[], str] = ocr_engine


class Library(View):
    """A folder of indexed documents.

    Settings given here take precedence over the environment, and that over the settings of the last `index`. Those that
    shape the index are remembered by index(); a later one, perhaps of another process, can change them. Models are
    loaded when first needed and kept, so a second question is fast.

    Threads may share a library. Its models answer one question at a time and call callbacks meanwhile, so a slow
    callback delays all other threads. One thread at a time can index while the others ask.

    `sealed` blocks the network for the whole process and its children, like the commands do, until the process ends: no
    code in it can connect to another machine, and on Linux it can open only Unix sockets. This cannot be undone.
    """

    def __init__(
        self,
        folder: Path | str = DEFAULT_FOLDER,
        *,
        sealed: bool = False,
        parts: Parts = Parts(),
        **settings: Unpack[SettingFields],
    ) -> None:
        require_known(settings, Settings.model_fields, "setting")
        place = Path(folder).resolve()
        generations = Generations(place)
        self._flags: dict[str, Any] = {**settings}
        self._parts = parts
        self.people = People(place)  # who may use the library where it is served
        resolved = with_profile(resolve_settings(place, remembered(place, generations), **settings))
        if sealed:
            open_engine_relay(resolved)
            close(network_of(resolved))
        else:
            set_switches()
        indexes, sight = indexes_of(resolved, generations), Sight()
        self._open_engine = partial(parts.open_engine, gpu_layers=resolved.gpu_layers)
        searcher = LiveSearcher(
            place,
            indexes,
            sight,
            require_compatible=require_compatible,
            load_embedder=parts.load_embedder,
            load_reader=parts.load_reader,
        )
        answer_model = AnswerModel(
            lambda: find(self.settings, "answer"), open_engine=self._open_engine, open_vocabulary=parts.open_vocabulary
        )
        super().__init__(
            Shared(
                place,
                resolved,
                explicit_settings(**settings),
                generations,
                indexes,
                parts.disk,
                FileStates(parts.file_state),
                searcher,
                answer_model,
                sight,
            )
        )
        self.upkeep = Upkeep(self._access, self.answering, self._indexer)
        self.history = KeptQuestions(self._access)

    def seen_by(self, limits: Filters, person: Person = HOST) -> View:
        """Return the library as a person with these limits may see it: as if it held nothing else."""
        return View(self._shared, limits, person) if limits or person != HOST else self

    def _resolved(self, flags: Mapping[str, Any]) -> Settings:
        return with_profile(resolve_settings(self.folder, remembered(self.folder, self._shared.generations), **flags))

    def _forget_remembered_flags(self) -> None:
        """Let what was given for an index count as remembered from now on, so another process can change it."""
        others = {name: value for name, value in self._flags.items() if name not in REMEMBERED}
        if self._resolved(others).model_dump() == self.settings.model_dump():  # the environment does not say otherwise
            self._flags, self._shared.given = others, explicit_settings(**others)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the models and the tables in memory, and close the store."""
        with self._shared.one_at_a_time:
            self._shared.rows.close()
            self._shared.queries.close()
            self._shared.searcher.close()
            self._shared.answer_model.close()
            self._shared.answerer = self._shared.gate_base = None

    def index(
        self,
        paths: Iterable[Path | str] = (),
        *,
        contexts: bool | None = None,
        renew_contexts: bool = False,
        progress: OnProgress = ignore,
        on_live: OnLive = lambda *_: None,
    ) -> IndexReport:
        """Bring the library up to date with these files and folders, or with all that were indexed before.

        Then write the sentences about chunks that are missing, for `context_minutes` at most; with `contexts` all of
        them, which may take hours, and none if it is False. With `renew_contexts`, also recompute what distinguishes
        each document from the others. `on_live` receives the report when questions can be asked and sentences are still
        to be written, with their number and the limit in seconds; the report goes on to count them.
        """
        return self._index(paths, (), progress, contexts=contexts, renew_contexts=renew_contexts, on_live=on_live)

    def add(self, text: str, *, name: str, tags: Sequence[str] = (), progress: OnProgress = ignore) -> IndexReport:
        """Index a text that is no file under a name; a text that has this name is replaced.

        It is read as Markdown, and cited by its name. It is kept as a file in the folder beside the library that ends
        in `-texts`, and stays in the library until it is removed, as `library.remove(names=[name])` does. The next
        index() writes the sentences about it.
        """
        path = text_file(self.folder, name)
        earlier = path.read_bytes() if path.exists() else None
        write_text(self.folder, name, text, tags)
        report = self._index([path.parent], [path], progress, contexts=False)
        for skipped in report.skipped:
            if skipped.path == path:
                if earlier is None:
                    path.unlink()
                else:
                    write_whole(path, earlier)
                raise LibraryError(f"The text {name!r} was not added: {skipped.reason}.")
        return report

    def _index(
        self, paths: Iterable[Path | str], again: Iterable[Path], progress: OnProgress, **how: Any
    ) -> IndexReport:
        """Bring the library up to date; paths to index `again` may have been removed."""
        paths = list(paths)
        if not is_library(self.folder):  # a mistyped first command leaves nothing behind
            require_documents(paths)
            find_for_index(self.settings)
        with locked_store(self.folder, create=True) as store:
            # Before the models, so a mistyped path is reported first.
            roots = roots_to_index(store, paths, self._parts.disk)
            self._shared.settings = self._resolved(self._flags)  # perhaps another process has indexed with others
            indexer = self._indexer(store, progress)
            indexer.splitting()  # raises for invalid settings before they are remembered
            store.remember(index_settings(self.settings, *find_for_index(self.settings)))
            self._forget_remembered_flags()
            store.add_roots(roots)
            include(store, [*roots, *again])
            self.upkeep.erase_if_finished(store)  # sentences may take hours
            report = indexer.run(roots, **how)
            self.upkeep.erase_if_finished(store)
            if self.settings.context == "auto" and self.settings.context_minutes:
                report.model_to_pull = context_model_to_pull(self.settings)
            return report

    def _indexer(self, store: Store, progress: Callable[[Progress], None], indexes: Indexes | None = None) -> Indexer:
        """Return an indexer for an open store that publishes in `indexes`; the caller holds the lock."""
        embed_model, context_model = find_for_index(self.settings)
        workers = workers_of(self.settings, self._parts.make_workers)(
            embed_model, context_model, load_embedder=self._parts.load_embedder, open_engine=self._open_engine
        )
        return Indexer(
            store,
            (self._shared.indexes if indexes is None else indexes).over(store),
            workers,
            self.settings,
            embed_model=embed_model,
            context_model=context_model,
            open_vocabulary=self._parts.open_vocabulary,
            progress=progress,
            disk=self._parts.disk,
            ocr_engine=self._parts.ocr_engine,
        )

    def remove(
        self,
        paths: Iterable[Path | str] = (),
        *,
        names: Iterable[str] = (),
        erase: bool = False,
        dry_run: bool = False,
    ) -> Removal:
        """Remove documents, or all documents below a folder, and publish an index without them; no model is needed.

        `names` are those of texts that were added; they are deleted, unlike files, which stay where they are.

        With `erase` no trace of them stays in any file of the library, neither contexts nor vectors.
        """
        paths = [*paths, *(text_file(self.folder, name) for name in names)]
        with locked_store(self.folder) as store:
            removal = find_documents(store, paths, erase=erase, disk=self._parts.disk)
            if not dry_run:
                remove(store, self._shared.indexes, removal, erase=erase)
                self.upkeep.erase_if_finished(store)
            return removal

    def ask_stream(
        self,
        question: str,
        *,
        filters: Filters | FilterFields = EVERYTHING,
        passages: int | None = None,
        strict: bool = True,
        anyway: bool = False,
        earlier: Sequence[Turn] = (),
    ) -> "AnswerStream":
        """Answer a question like `ask`: iterate over the pieces of text as they are written, then take the `answer`."""
        options = AskOptions(passages=passages, filters=as_filters(filters), strict=strict, anyway=anyway)
        return AnswerStream(partial(self.ask, question, options, earlier=earlier))

    def chat(self, ask: Ask | None = None) -> Conversation:
        """Start a conversation, which the library's history stores if the setting `history` allows it.

        Something else may answer the questions: `ask`.
        """
        return Conversation(ask or self.ask, History(self.folder, kept=self.settings.retention.conversations))


class AnswerStream:
    """The pieces of an answer's text as they are written, by a thread of its own, and then the `answer`.

    A piece that `replaces` stands in the place of all text before it: a sentence that nothing supports was struck. Who
    stops iterating stops the model.
    """

    def __init__(self, ask: Callable[..., Answer]) -> None:
        self._ask = ask
        self._answer: Answer | None = None

    def __iter__(self) -> Iterator[Written]:
        pieces, stopped = SimpleQueue[Written | None](), Event()
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(self._ask, on_text=pieces.put, stop=stopped.is_set)
            asked.add_done_callback(lambda _asked: pieces.put(None))
            try:
                yield from iter(pieces.get, None)
            finally:
                stopped.set()
        self._answer = asked.result()

    @property
    def answer(self) -> Answer:
        """Return the answer, once it is complete."""
        if self._answer is None:
            for _piece in self:
                pass
        assert self._answer is not None
        return self._answer
