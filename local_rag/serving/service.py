"""A library that stays open, as the interfaces ask it: in a worker of this process, or through a running server."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from local_rag.asking import Person
from local_rag.display import one_line
from local_rag.errors import LocalRagError
from local_rag.files import DEFAULT_FOLDER
from local_rag.library import Library
from local_rag.records import Answer, Correction, Found, Passage
from local_rag.retrieval.searcher import Trace
from local_rag.serialization import from_plain
from local_rag.serving.admitted_people import People
from local_rag.serving.audit import audit
from local_rag.serving.cached_answers import answer
from local_rag.serving.job import Job
from local_rag.serving.metrics import Metrics
from local_rag.serving.open_history import Conversations
from local_rag.serving.requests import MAX_TOP, AskRequest, Caller, FindRequest, SearchRequest, ServedAnswer
from local_rag.serving.threads import Threads
from local_rag.serving.worker import LibraryWorker
from local_rag.view import View

T = TypeVar("T")

# Sends a request to a running server of the library and returns its reply, None if there is none; gets each event, and
# leaves the server once the last function says so.
AskServer = Callable[[Mapping[str, Any], Callable[[str, Any], None], Callable[[], bool]], dict[str, Any] | None]


class LibraryService(Protocol):
    """What an interface may ask: a library whose models stay loaded, for one job after another."""

    aside: Threads  # for all that reads the library, a disk or much text

    @property
    def name(self) -> str:
        """Return the name of the library."""

    def library_for(self, person: Person) -> View:
        """Return the library as a person may see it."""

    @property
    def loading(self) -> bool:
        """Whether a search would wait for models that are still to be loaded."""

    @property
    def problem(self) -> str:
        """Why the models that search cannot be loaded, empty if they can."""

    @property
    def patience(self) -> float:
        """How many seconds a search may wait for models before keywords alone answer it."""

    def wake(self) -> None:
        """Load the models in the background, unless they are loaded."""

    def record(self, question: str, caller: Caller) -> None:
        """Write a question that needs no job into the audit log; the jobs of `search` and `ask` write theirs."""

    def search(self, request: SearchRequest, caller: Caller) -> Job[Trace]:
        """Queue a search."""

    def read_ahead(self, request: SearchRequest, caller: Caller) -> None:
        """Let the model read what a search has found, until somebody asks for anything: a question may follow."""

    def find(self, request: FindRequest, caller: Caller) -> Job[Found]:
        """Queue a search of all documents, at most as long as `ask` may take for one."""

    def ask(self, request: AskRequest, caller: Caller) -> Job[ServedAnswer]:
        """Queue a question."""


def name_of(folder: Path) -> str:
    """Return the name of a library: that of its folder, or of the parent of a folder with the usual name."""
    return one_line((folder.parent if folder.name == DEFAULT_FOLDER.name else folder).name) or "library"


class WorkerService:
    """Serve a library with a worker of this process."""

    caches_answers = True
    patience = 10.0

    def __init__(self, worker: LibraryWorker, name: str = "") -> None:
        self._name = name
        self.worker, self.aside, self.metrics = worker, Threads(), Metrics()
        self.history = Conversations(lambda: worker.library)
        self.people = People(lambda: worker.library.folder)

    @property
    def library(self) -> Library:
        """Return the whole library, for what no person reads; only what opens its own store may be called."""
        return self.worker.library

    @property
    def name(self) -> str:
        """Return the name of the library."""
        return self._name or name_of(self.library.folder)

    def library_for(self, person: Person) -> View:
        """Return the library as a person may see it."""
        return self.worker.library.seen_by(person.limits)

    @property
    def loading(self) -> bool:
        """Whether a search would wait for models."""
        return self.worker.loading

    @property
    def problem(self) -> str:
        """Why the models that search cannot be loaded."""
        return "" if self.worker.loaded else self.worker.problem

    def wake(self) -> None:
        """Load the models in the background, unless they are loaded."""
        self.worker.wake()

    def record(self, question: str, caller: Caller) -> None:
        """Write a question into the audit log if the setting asks for it."""
        self._audit(self.worker.current_library(), {"question": question}, caller)

    def record_change(self, change: str, paths: Sequence[Path], caller: Caller) -> None:
        """Write who changes which documents into the audit log if the setting asks for it."""
        self._audit(self.worker.current_library(), {"change": change, "paths": [str(path) for path in paths]}, caller)

    def _audit(self, library: Library, said: Mapping[str, object], caller: Caller) -> None:
        audit(library, said, caller)

    def search(self, request: SearchRequest, caller: Caller) -> Job[Trace]:
        """Queue a search."""
        return self._submit(self._search_job(request, caller))

    def ask(self, request: AskRequest, caller: Caller) -> Job[ServedAnswer]:
        """Queue a question."""
        return self._submit(self._ask_job(request, caller))

    def read_ahead(self, request: SearchRequest, caller: Caller) -> None:
        """Let the model read what a search has found, until a job of this library waits; others would not be seen."""
        worker, limits = self.worker, caller.person.limits

        def work(library: Library, job: Job[None]) -> None:
            def stop() -> bool:
                return bool(worker.waiting) or job.ended()

            library.seen_by(limits).read_ahead(request.question, request.options, stop=stop)

        if not worker.waiting and not worker.shares_turns:
            with suppress(LocalRagError):  # of which the answer tells
                worker.submit(Job(work))

    def _submit(self, job: Job[T]) -> Job[T]:
        self.worker.submit(job)
        self.metrics.watch(job)
        return job

    def find(self, request: FindRequest, caller: Caller) -> Job[Found]:
        """Queue a search of all documents."""

        def work(library: Library, job: Job[Found]) -> Found:
            self._audit(library, {"question": request.question}, caller)
            seen, most = library.seen_by(caller.person.limits), library.settings.find_passages
            return seen.find(request.question, filters=request.filters, most=most, stop=job.ended)

        return self._submit(self._job(work, caller))

    def _search_job(self, request: SearchRequest, caller: Caller) -> Job[Trace]:

        def work(library: Library, job: Job[Trace]) -> Trace:
            self._audit(library, {"question": request.question}, caller)
            usual = library.settings.all_candidates if request.every else library.settings.passages
            return library.seen_by(caller.person.limits).trace(
                request.question,
                top=min(request.top or usual, MAX_TOP),
                rerank=request.options.rerank,
                filters=request.options.filters,
                every=request.every,
                min_score=request.min_score,
                check=job.check,
            )

        return self._job(work, caller)

    def _job(self, work: Callable[[Library, Job[T]], T], caller: Caller) -> Job[T]:
        """Return a job that ends once the person who asked for it was removed."""
        return Job(work, caller.key, wanted=lambda: self.people.present(caller.person) is not None)

    def _ask_job(self, request: AskRequest, caller: Caller) -> Job[ServedAnswer]:
        person = caller.person
        # An answer given again would tell whether anything has changed, of which a part may show nothing.
        cached = self.caches_answers and not person.limits

        def work(library: Library, job: Job[ServedAnswer]) -> ServedAnswer:
            self._audit(library, {"question": request.question}, caller)
            return answer(library.seen_by(person.limits), job, request, partial(self.history, person.id), cached=cached)

        return self._job(work, caller)


class LocalService(WorkerService):
    """Serve one program of this user: a running server of the library answers, or else a worker of this process.

    It writes no answers to the library.
    """

    caches_answers = False

    def __init__(self, worker: LibraryWorker, ask_server: AskServer, is_served: Callable[[], bool]) -> None:
        super().__init__(worker)
        self._ask_server, self._is_served = ask_server, is_served

    @property
    def loading(self) -> bool:
        """Whether a search would wait for models."""
        return super().loading and not self._is_served()

    @property
    def problem(self) -> str:
        """Why the models that search cannot be loaded, unless a server has them."""
        return super().problem and ("" if self._is_served() else super().problem)

    def wake(self) -> None:
        """Load the models in the background, unless they are loaded or a server has them."""
        if self.loading:
            super().wake()

    def _audit(self, library: Library, said: Mapping[str, object], caller: Caller) -> None:
        """Write nothing: the user of this machine asks."""

    def _search_job(self, request: SearchRequest, caller: Caller) -> Job[Trace]:
        job = super()._search_job(request, caller)

        def forward(job: Job[Trace]) -> Trace | None:
            found = self._forward(job, "search", request)
            return found and Trace(
                from_plain(list[Passage], found["passages"]),
                {},
                {},
                question=found["question"],
                corrections=from_plain(tuple[Correction], found["corrections"]),
            )

        job.forward = forward
        return job

    def _ask_job(self, request: AskRequest, caller: Caller) -> Job[ServedAnswer]:
        job = super()._ask_job(request, caller)

        def forward(job: Job[ServedAnswer]) -> ServedAnswer | None:
            found = self._forward(job, "ask", request)
            return found and ServedAnswer(
                from_plain(Answer, found["answer"]), found["again"], changed=tuple(found.get("changed", ()))
            )

        job.forward = forward
        return job

    def _forward(self, job: Job[Any], do: str, request: SearchRequest | AskRequest) -> Any:
        """Let a running server do a job, and stop it there when the job is stopped; None if there is no server."""
        fields = {name: getattr(request, name) for name in request.__slots__}
        reply = self._ask_server({"do": do, **fields}, lambda _event, _value: None, job.stopped.is_set)
        return reply and reply["found"]
