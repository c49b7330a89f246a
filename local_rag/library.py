"""The library: open a folder, then index(), search() and ask(). The command line and notebooks use this interface."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import Any, Self

from local_rag.answering.answer_model import AnswerModel
from local_rag.answering.answerer import Answerer
from local_rag.answering.gate import valid
from local_rag.answering.lists import answer_of
from local_rag.answering.pipeline import AnswerPipeline
from local_rag.answering.prompt import source_text
from local_rag.answering.selection import shown_of
from local_rag.answering.streaming import Telling
from local_rag.answering.versions import name_versions
from local_rag.cluster.engines.choice import indexes_of
from local_rag.cluster.hosts import network_of
from local_rag.cluster.workers.ray_workers import workers_of
from local_rag.conversation import Conversation
from local_rag.display import Name, names_below
from local_rag.errors import LibraryError, StoppedError
from local_rag.files import DEFAULT_FOLDER, LOCAL_DISK, Disk
from local_rag.index.generations import Generations
from local_rag.index.protocol import Indexes
from local_rag.indexing.changes import FileState, file_state
from local_rag.indexing.fingerprint import require_compatible
from local_rag.indexing.indexer import Indexer, IndexReport
from local_rag.indexing.roots import roots_to_index
from local_rag.indexing.work import LocalWorkers, OpenEngine, Workers
from local_rag.indexing.writing import OpenVocabulary
from local_rag.llama.generator import never
from local_rag.llama.load import load_embedder, load_reader
from local_rag.llama.open import open_engine, open_vocabulary
from local_rag.maintenance.clean import Cleaning, Removal, clean, find_documents, remove
from local_rag.maintenance.contents import (
    Contents,
    IndexedDocument,
    IndexProgress,
    Location,
    WholeDocument,
    find_passage,
    index_progress,
    indexed_documents,
    locate,
    whole_document,
)
from local_rag.maintenance.documents import ListedDocument, list_documents
from local_rag.maintenance.erase import finish_erasing, forget_missing
from local_rag.maintenance.file_states import FileStates
from local_rag.maintenance.repair import repair_index, repair_store
from local_rag.maintenance.roots import Root, list_roots, move_root
from local_rag.maintenance.status import Status, collect_status, visible_status
from local_rag.maintenance.visible import visible_ids, visible_paths, visible_roots
from local_rag.models.choice import calibration_of, chosen, context_model_to_pull, find, find_for_index, identity_of
from local_rag.models.embedder import Embedder
from local_rag.models.engines import open_engine_relay
from local_rag.models.reader import Reader
from local_rag.offline import close, set_switches
from local_rag.reading.ocr import engine as ocr_engine
from local_rag.records import (
    DEFAULT_OPTIONS,
    EVERYTHING,
    Answer,
    AskOptions,
    Filters,
    Found,
    InstalledModel,
    Passage,
    Progress,
    Shown,
    Turn,
    Written,
)
from local_rag.retrieval.filters import document_filter
from local_rag.retrieval.find import find_meaning, find_names, find_words
from local_rag.retrieval.keyword_search import search_keywords
from local_rag.retrieval.open import LiveSearcher, OpenSearcher, live_index, open_sound
from local_rag.retrieval.question_kinds import FindQuestion, any_question, as_words, find_question
from local_rag.retrieval.search import Trace
from local_rag.retrieval.versions import Version, Versions
from local_rag.settings import REMEMBERED, Settings, explicit_settings, index_settings, resolve_settings
from local_rag.store.caches import count_use
from local_rag.store.connect import is_library, remembered
from local_rag.store.database import Store, StoredDocument
from local_rag.store.erasing import erasing
from local_rag.store.history import History, KeptOfQuestions, kept_history
from local_rag.store.inspection import is_unfinished
from local_rag.store.lock import library_lock, locked_store
from local_rag.store.published import require_own
from local_rag.store.questions import QUESTIONS_FILE, add_question, add_wrong_answer, wrong_answers
from local_rag.store.storage_errors import storage_errors

OnProgress = Callable[[Progress], None]
_NOT_CALIBRATED = (
    "What is close enough is not measured for this embedder, so the documents with these words were found."
)


def _ignore(_event: object) -> None: ...


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


class Library:
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
        self, folder: Path | str = DEFAULT_FOLDER, *, sealed: bool = False, parts: Parts = Parts(), **settings: Any
    ) -> None:
        self.folder = Path(folder).resolve()
        self._generations = Generations(self.folder)
        self._flags = settings
        self.settings = self._resolved(settings)
        if sealed:
            open_engine_relay(self.settings)
            close(network_of(self.settings))
        else:
            set_switches()
        self._indexes = indexes_of(self.settings, self._generations)
        self._given = explicit_settings(**settings)
        self._parts = parts
        self._open_engine = partial(parts.open_engine, gpu_layers=self.settings.gpu_layers)
        self._files = FileStates(parts.file_state)
        self._one_at_a_time = RLock()  # models and store serve one thread at a time
        self._searcher = LiveSearcher(
            self.folder,
            self._indexes,
            require_compatible=require_compatible,
            load_embedder=parts.load_embedder,
            load_reader=parts.load_reader,
        )
        self._answer_model = AnswerModel(
            lambda: find(self.settings, "answer"), open_engine=self._open_engine, open_vocabulary=parts.open_vocabulary
        )
        self._answerer: Answerer | None = None

    def _resolved(self, flags: Mapping[str, Any]) -> Settings:
        return resolve_settings(self.folder, remembered(self.folder, self._generations), **flags)

    def _forget_remembered_flags(self) -> None:
        """Let what was given for an index count as remembered from now on, so another process can change it."""
        others = {name: value for name, value in self._flags.items() if name not in REMEMBERED}
        if self._resolved(others).model_dump() == self.settings.model_dump():  # the environment does not say otherwise
            self._flags, self._given = others, explicit_settings(**others)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the models and close the store."""
        with self._one_at_a_time:
            self._searcher.close()
            self._answer_model.close()
            self._answerer = None

    def index(
        self, paths: Iterable[Path | str] = (), *, renew_contexts: bool = False, progress: OnProgress = _ignore
    ) -> IndexReport:
        """Bring the library up to date with these files and folders, or with all that were indexed before.

        With `renew_contexts`, also recompute what distinguishes each document from the others.
        """
        with locked_store(self.folder, create=True) as store:
            # Before the models, so a mistyped path is reported first.
            roots = roots_to_index(store, paths, self._parts.disk)
            self.settings = self._resolved(self._flags)  # perhaps another process has indexed with others
            indexer = self._indexer(store, progress)
            indexer.splitting()  # raises for invalid settings before they are remembered
            store.remember(index_settings(self.settings, *find_for_index(self.settings)))
            self._forget_remembered_flags()
            store.add_roots(roots)
            store.include(roots)
            report = indexer.run(roots, renew_contexts=renew_contexts)
            if erasing(store) and not is_unfinished(store, self._indexes.live()):
                finish_erasing(store, self._indexes)
            if self.settings.context == "auto" and self.settings.context_minutes:
                report.model_to_pull = context_model_to_pull(self.settings)
            return report

    @contextmanager
    def writing(
        self, progress: OnProgress = _ignore, *, create: bool = False, here: bool = False
    ) -> Iterator[tuple[Store, Indexer]]:
        """Hold the lock; yield the store and an indexer for it, which publishes in the library folder if `here`."""
        with locked_store(self.folder, create=create) as store:
            yield store, self._indexer(store, progress, self._generations if here else None)

    def _indexer(self, store: Store, progress: Callable[[Progress], None], indexes: Indexes | None = None) -> Indexer:
        """Return an indexer for an open store that publishes in `indexes`; the caller holds the lock."""
        embed_model, context_model = find_for_index(self.settings)
        workers = workers_of(self.settings, self._parts.make_workers)(
            embed_model, context_model, load_embedder=self._parts.load_embedder, open_engine=self._open_engine
        )
        return Indexer(
            store,
            (self._indexes if indexes is None else indexes).over(store),
            workers,
            self.settings,
            embed_model=embed_model,
            context_model=context_model,
            open_vocabulary=self._parts.open_vocabulary,
            progress=progress,
            disk=self._parts.disk,
            ocr_engine=self._parts.ocr_engine,
        )

    def remove(self, paths: Iterable[Path | str], *, erase: bool = False, dry_run: bool = False) -> Removal:
        """Remove documents, or all documents below a folder, and publish an index without them; no model is needed.

        With `erase` no trace of them stays in any file of the library, neither contexts nor vectors.
        """
        with locked_store(self.folder) as store:
            removal = find_documents(store, paths, erase=erase, disk=self._parts.disk)
            if not dry_run:
                remove(store, self._indexes, removal, erase=erase)
            return removal

    def clean(self, *, dry_run: bool = False) -> Cleaning:
        """Delete what is no longer needed: old indexes, orphaned contexts and vectors, leftovers."""
        with library_lock(self.folder), storage_errors(self.folder):
            return clean(self.folder, self._indexes, dry_run=dry_run)

    def repair(self, *, progress: Callable[[Progress], None] = _ignore) -> list[str]:
        """Repair what a crash or a failing disk damaged; return one sentence for each repair."""
        with library_lock(self.folder):
            settings = remembered(self.folder, self._generations)
            done = repair_store(self.folder)
            with closing(Store(self.folder, write=True)) as store:
                store.remember(settings)
                return done + repair_index(store, self._indexes, self._indexer(store, progress))

    def status(self, *, filters: Filters = EVERYTHING) -> Status:
        """Return what the library contains, how it was built, and what is stale and why.

        With filters, return only what may be known of the documents that pass.
        """
        with self.reading() as store:
            if filters:
                return visible_status(store, self.settings, filters)
            return collect_status(store, self._indexes, self.settings, self._parts.disk)

    def documents(
        self, *, filters: Filters = EVERYTHING, after: str = "", most: int | None = None
    ) -> list[ListedDocument]:
        """Return the documents that match the filters: what each is about, its state, dates and size.

        They are ordered by path: the first `most` whose path comes after `after`, or all.
        """
        with self.reading() as store:
            return list_documents(store, self._indexes, filters, after=after, most=most)

    def document(self, document_id: int, *, with_text: bool = True, filters: Filters = EVERYTHING) -> WholeDocument:
        """Return a document as it was indexed, or without its text and passages what is known of its file.

        Raise MissingError if there is none, or if it does not pass the filters.
        """
        with self.reading() as store:
            return whole_document(store, document_id, self._files, with_text=with_text, filters=filters)

    def passage(self, chunk_id: int, *, filters: Filters = EVERYTHING) -> Passage:
        """Return the passage with this number; raise MissingError if no document that passes the filters holds it."""
        with self.reading() as store:
            return find_passage(store, chunk_id, filters)

    @property
    def questions_file(self) -> Path:
        """Return the file to which `record_question` adds."""
        return self.folder / QUESTIONS_FILE

    def record_question(self, question: str, chunk_id: int, *, filters: Filters = EVERYTHING) -> None:
        """Add a question and the passage that answers it to the library's own evaluation dataset."""
        self._require_retention()
        add_question(self.folder, question, self.passage(chunk_id, filters=filters))

    def record_wrong_answer(self, question: str, chunk_id: int | None, *, filters: Filters = EVERYTHING) -> None:
        """Add a question that was answered wrongly, perhaps from a passage, to those that wait for the right one."""
        self._require_retention()
        add_wrong_answer(self.folder, question, self.passage(chunk_id, filters=filters) if chunk_id else None)

    def wrong_answers(self) -> list[str]:
        """Return the questions that were answered wrongly and have no right passage yet."""
        return wrong_answers(self.folder)

    def _require_retention(self) -> None:
        if not self.settings.retention.conversations:
            raise LibraryError("The setting history is off, so no question is written to a file; turn it on first.")

    def locate(self, passages: Sequence[Passage], *, filters: Filters = EVERYTHING) -> list[Location]:
        """Return the document that each passage leads to, if it passes, and whether its file has changed."""
        if not self._has_store:
            return [Location() for _ in passages]
        with self.reading() as store:
            return locate(store, passages, self._files, filters)

    def changed(self, answer: Answer) -> list[str]:
        """Return the paths of the cited documents whose files have changed or gone since they were indexed."""
        cited = {one.passage.path: one.passage for one in answer.citations}
        states = [one.state for one in self.locate(list(cited.values()))]
        return [path for path, state in zip(cited, states, strict=True) if state in {"changed", "missing"}]

    def contents(self, *, filters: Filters = EVERYTHING) -> Contents:
        """Return the paths of the documents that pass the filters with their ids, and the roots that hold any."""
        if self._has_store:
            with self.reading() as store:
                visible = visible_ids(store, filters)
                documents = {one.path: one.id for one in store.documents() if visible is None or one.id in visible}
                return Contents(documents, tuple(visible_roots(store, filters, documents.keys())))
        passages = live_index(self._indexes, self.settings, self.folder).passages()
        assert passages is not None, "without a store, the search engine holds the passages"
        passes = document_filter(filters, passages.roots())
        documents = {one.path: one.id for one in passages.facts() if passes(one)}
        return Contents(documents, () if filters else tuple(passages.roots()))

    def place_names(self) -> Name:
        """Return a function that names places from their indexed folder on, for programs on other machines."""
        if not self._has_store:
            return names_below(self.contents().roots)
        with self.reading() as store:
            return names_below(store.roots())

    def indexed_documents(
        self, *, start: int, count: int, filters: Filters = EVERYTHING
    ) -> tuple[list[IndexedDocument], list[tuple[str, str]]]:
        """Return how far `count` documents from `start` on are indexed, and as many unreadable files with reasons.

        Both are of those that pass the filters.
        """
        with self.reading() as store:
            unread = store.unread()
            skipped = [(path, unread[path].reason) for path in visible_paths(store, filters, unread)[:count]]
            return indexed_documents(store, self._files, start=start, count=count, filters=filters), skipped

    def index_progress(self, *, filters: Filters = EVERYTHING) -> IndexProgress:
        """Return how far the documents that pass the filters are indexed, perhaps by another process."""
        with self.reading() as store:
            return index_progress(store, self.settings.context, filters)

    def search_keywords(self, question: str, *, top: int, filters: Filters = EVERYTHING) -> list[Passage]:
        """Return the best passages for the words of a question; no model is loaded, and any thread may call it."""
        with storage_errors(self.folder), ExitStack() as opened:
            index = live_index(self._indexes, self.settings, self.folder)
            open_sound(index)
            if passages := index.passages():
                require_own(passages, index)
                return search_keywords(question, index, passages, top=top, filters=filters)
            store = opened.enter_context(closing(Store(self.folder)))
            require_own(store, index)
            found = search_keywords(question, index, store, top=top, filters=filters)
            versions = Versions(store, self.settings.no_versions)
            return [versions.marked(passage, filters) for passage in found]

    def find(
        self,
        question: str,
        *,
        filters: Filters = EVERYTHING,
        most: int = 0,
        progress: OnProgress = _ignore,
        stop: Callable[[], bool] = never,
    ) -> Found:
        """Return what all documents that pass the filters hold for a question that counts or lists.

        A question for words needs no model, and any thread may ask it. For a meaning all passages are compared with the
        subject, and those near it are read sentence by sentence, or the `most` nearest of them; once `stop` returns
        True, the result is what was found until then.
        """
        asked = any_question(question)
        if asked.rule == "names":
            if found := self._find_names(question, asked, filters):
                return found
            asked = replace(asked, rule="meaning", subject=asked.sort or asked.subject, sort="")
        if asked.rule == "meaning" and not self._knows_relevance:
            found = self._find(question, as_words(asked), filters, stop)
            return replace(found, notes=(*found.notes, _NOT_CALIBRATED))
        return self._find(question, asked, filters, most=most, progress=progress, stop=stop)

    def _find_names(self, question: str, asked: FindQuestion, filters: Filters) -> Found | None:
        with self.reading() as store:
            index = live_index(self._indexes, self.settings, self.folder)
            index.open()
            require_own(index.passages() or store, index)
            return find_names(question, asked, index, store, Versions(store, self.settings.no_versions), filters)

    def _find(
        self, question: str, asked: FindQuestion, filters: Filters, stop: Callable[[], bool] = never, **how: Any
    ) -> Found:
        with self.reading() as store:
            versions = Versions(store, self.settings.no_versions)
            if asked.rule == "words":
                index = live_index(self._indexes, self.settings, self.folder)
                open_sound(index)
                require_own(index.passages() or store, index)
                return find_words(question, asked, index, store, versions, filters, stop=stop)
            with self._one_at_a_time:
                searcher = self._open_searcher().searcher
                return find_meaning(question, asked, searcher, store, versions, filters, stop=stop, **how)

    def families(self, *, filters: Filters = EVERYTHING) -> list[tuple[Version, ...]]:
        """Return the documents that are versions of each other, newest first; one of them must pass the filters."""
        with self.reading() as store:
            passes, facts = document_filter(filters, store.roots()), {one.id: one for one in store.facts()}
            families = Versions(store, self.settings.no_versions).families()
            return [family for family in families if any(passes(facts[version.id]) for version in family)]

    def roots(self) -> list[Root]:
        """Return the folders and files that were given to index() and not removed since."""
        with self.reading() as store:
            return list_roots(store)

    def move_root(self, old: Path | str, new: Path | str) -> int:
        """Record that an indexed folder has moved; return the number of its documents."""
        with locked_store(self.folder) as store:
            return move_root(store, self._indexes, old, new)

    def search(self, question: str, *, top: int | None = None, every: bool = False, **how: Any) -> list[Passage]:
        """Return the best passages for a question, best first; see `Searcher.trace` for `how`."""
        top = top or (self.settings.all_candidates if every else self.settings.passages)
        return self.trace(question, top=top, every=every, **how).passages

    def trace(self, question: str, *, top: int, **how: Any) -> Trace:
        """Search, and record the ranking and the time of every stage; see `Searcher.trace` for `how`."""
        with self._one_at_a_time, storage_errors(self.folder):
            while True:
                opened = self._open_searcher()
                trace = opened.searcher.trace(question, top=top, **how)
                # The store keeps all chunks of the live generation, so if it is still live, no chunk was missing.
                if self._searcher.is_current(opened):
                    return trace

    def ask(
        self,
        question: str,
        options: AskOptions = DEFAULT_OPTIONS,
        *,
        earlier: Sequence[Turn] = (),
        on_text: Callable[[Written], None] = _ignore,
        on_passages: Callable[[Sequence[Passage]], None] = _ignore,
        counted: bool = True,
        progress: OnProgress = _ignore,
        stop: Callable[[], bool] = never,
    ) -> Answer:
        """Answer a question from the documents, quote them if the answer is doubtful, or report that they say nothing.

        A question that counts or lists is answered by code over all documents, which reports its `progress`.

        The search for a follow-up also uses the questions of the `earlier` turns. `on_passages` receives the passages
        found, and `on_text` the text of the answer as it is written. `stop` is called between the stages of the search
        and the operations of the model; when it returns True, the answer ends with StoppedError. status() counts the
        question if `counted`.
        """
        with self._one_at_a_time:
            show = Telling(on_text)
            answer = self._answer_by_code(question, options, progress, stop)
            if answer is None:
                pipeline = self.pipeline(options, earlier, stop=stop)
                answer = pipeline.ask(question, show=show, on_passages=on_passages)
                answer = self._with_versions(answer, options.filters)
            else:
                on_passages(answer.passages)
            show(answer.text)
            if counted and self.settings.retention.counts:
                count_use(self.folder, answered=answer.answered, seconds=answer.seconds)
            return answer

    def read_ahead(self, question: str, options: AskOptions = DEFAULT_OPTIONS, *, stop: Callable[[], bool]) -> None:
        """Let the model read what it would be shown for a question, until `stop`, so that the answer begins sooner."""
        with self._one_at_a_time, suppress(StoppedError):
            self.pipeline(options, stop=stop).read_ahead(question)

    def _answer_by_code(
        self, question: str, options: AskOptions, progress: OnProgress, stop: Callable[[], bool]
    ) -> Answer | None:
        """Answer a question that counts or lists; None for another one, or if this library cannot answer it so."""
        asked = find_question(question)
        if asked is None or options.anyway or not self._has_store:
            return None
        started, most = perf_counter(), self.settings.find_passages
        if asked.rule == "meaning" and not self._knows_relevance:
            return None
        found = self._find(question, asked, options.filters, most=most, progress=progress, stop=stop)
        if stop():
            raise StoppedError("The answer was stopped.")
        return answer_of(found, perf_counter() - started)

    def _with_versions(self, answer: Answer, filters: Filters) -> Answer:
        """Name what the versions of the quoted documents say, if they say different things."""
        if not answer.quotes or filters.as_of is not None or not self._has_store:
            return answer
        with self.reading() as store:
            return name_versions(answer, Versions(store, self.settings.no_versions), filters)

    def shown(self, question: str, *, earlier: Sequence[Turn] = ()) -> tuple[list[Shown], int]:
        """Return the most that the model would be shown for a question, and how many tokens; it is not loaded."""
        with self._one_at_a_time:
            pipeline = self.pipeline(earlier=earlier)
            sources = pipeline.select_most(question, pipeline.find(question))
            return shown_of(sources), sum(self._answer_model.count_tokens(source_text(source)) for source in sources)

    def pipeline(
        self,
        options: AskOptions = DEFAULT_OPTIONS,
        earlier: Sequence[Turn] = (),
        *,
        stop: Callable[[], bool] = never,
    ) -> AnswerPipeline:
        """Return a pipeline that answers questions step by step, for one thread, until `stop` returns true."""
        top = options.passages or self.settings.passages
        asked = [turn.question for turn in earlier]

        def check() -> None:
            if stop():
                raise StoppedError("The answer was stopped.")

        def search(part: str, share: int, *, alone: bool = False) -> Trace:
            follows = () if alone else asked
            return self.trace(
                part,
                top=top,
                rerank=options.rerank,
                filters=options.filters,
                of_asked_versions=True,
                earlier=follows,
                share=share,
                check=check,
            )

        with storage_errors(self.folder):
            opened = self._open_searcher()
        return AnswerPipeline(
            search,
            self._open_answerer,
            self._answer_model.count_tokens,
            options,
            earlier=earlier,
            reader=opened.searcher.reader if options.rerank else None,
            rrf_k=self.settings.rrf_k,
            stop=stop,
        )

    @contextmanager
    def calibrating(self) -> Iterator[tuple[Store, Answerer, AnswerPipeline]]:
        """Hold the lock; yield the store, the answerer and the pipeline, to calibrate answers."""
        with locked_store(self.folder) as store:
            yield store, self._open_answerer(), self.pipeline()

    def chat(self) -> Conversation:
        """Start a conversation, which the library's history stores if the setting `history` allows it."""
        return Conversation(self.ask, History(self.folder, kept=self.settings.retention.conversations))

    def load(self, *, answering: bool = False) -> None:
        """Load the models for searching, and with `answering` also for answering, before the first question."""
        with self._one_at_a_time, storage_errors(self.folder):
            self._open_searcher().searcher.load()
            if answering:
                self._answer_model.open()

    def kept_of_questions(self) -> KeptOfQuestions:
        """Return what the history file holds, also if nothing is written to it any more."""
        with kept_history(self.folder) as history:
            return history.counts() if history else KeptOfQuestions()

    def forget_questions(self, person: str = "") -> int:
        """Delete conversations, cached answers and counts of questions, leaving nothing of them in the file.

        They are those of everybody, or only the conversations of the person with this id. Return how many conversations
        there were.
        """
        with kept_history(self.folder) as history:
            if history is None:
                return 0
            if person:
                return history.of(person).forget_person()
            kept = history.counts().conversations
            history.forget_all()
            return kept

    def live_stamp(self) -> str:
        """Return a value that changes with every publish."""
        return self._indexes.live_stamp()

    def forget_missing(self, history: History) -> None:
        """Delete from a history what quotes documents that the library no longer holds."""
        if self._has_store:
            with self.reading() as store:
                forget_missing(store, self._indexes, history)

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Yield a store that only the caller uses, so it can read while another thread asks."""
        if not self._has_store:
            raise LibraryError(
                f"Only the index of this library is here, in {self.settings.search_engine}; whole documents are on the "
                "machine that indexed them."
            )
        with storage_errors(self.folder), closing(Store(self.folder)) as store:
            yield store

    @property
    def _has_store(self) -> bool:
        """Whether the documents are here, and not only an index in a search engine."""
        return not self.settings.search_engine or is_library(self.folder)

    def manifest(self) -> Mapping[str, Any]:
        """Return the manifest of the live index."""
        with self._one_at_a_time:
            return self._open_searcher().searcher.index.manifest

    def facts_version(self) -> object:
        """Return a value that changes with the paths and times of documents, which an index need not hold."""
        with self._one_at_a_time, storage_errors(self.folder):
            return self._open_searcher().searcher.facts_version

    @property
    def reranks(self) -> bool:
        """Return whether the profile has a reader."""
        return "rerank" in chosen(self.settings)

    @property
    def _knows_relevance(self) -> bool:
        """Return whether it is known from which closeness on a passage is about a subject, by the embedder."""
        return find(self.settings, "embed").about_from is not None

    def _open_answerer(self) -> Answerer:
        """Return what answers, with the answer model, which is loaded when it is needed."""
        if self._answerer is None:
            model = find(self.settings, "answer")
            calibration = calibration_of(model, remembered(self.folder, self._generations))
            calibration = valid(calibration, identity_of(self.settings, "rerank"), model.form)
            close_from = find(self.settings, "embed").close_from
            self._answerer = Answerer(self._answer_model.open, calibration, form=model.form, close_from=close_from)
        return self._answerer

    def _open_searcher(self) -> OpenSearcher:
        """Open the live index, unless it is open already."""
        return self._searcher.open(self.settings, self._given)
