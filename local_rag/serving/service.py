"""A library that stays open, as the interfaces ask it: in a worker of this process, or through a running server."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from local_rag.answer_records import Answer, Correction, Found
from local_rag.asking import Mark, Person
from local_rag.display import one_line
from local_rag.errors import LocalRagError
from local_rag.extraction.extraction import Table
from local_rag.extraction.saved_tables import SavedTable
from local_rag.feedback.gaps import Gap
from local_rag.feedback.marks import Marked
from local_rag.files import AUDIT_FILE, DEFAULT_FOLDER
from local_rag.library import Library
from local_rag.passage_records import Passage
from local_rag.retrieval.find_question import exact_question
from local_rag.retrieval.searcher import Trace
from local_rag.serialization import from_plain
from local_rag.serving.cached_answers import Conversations, answer
from local_rag.serving.job import Job
from local_rag.serving.metrics import Metrics
from local_rag.serving.requests import (
    MAX_TOP,
    AskRequest,
    Caller,
    FindRequest,
    SearchRequest,
    ServedAnswer,
    TableRequest,
    VerifyRequest,
)
from local_rag.serving.threads import Threads
from local_rag.serving.worker import LibraryWorker
from local_rag.verification.verdicts import Verification
from local_rag.view import View

T = TypeVar("T")
_TURN_SECONDS = 10.0  # after which a table gives way, once a document is done

# Sends a request to a running server of the library and returns its reply, None if there is none; it leaves the server
# once the function says so.
AskServer = Callable[[Mapping[str, Any], Callable[[], bool]], dict[str, Any] | None]


def name_of(folder: Path) -> str:
    """Return the name of a library: that of its folder, or of the parent of a folder with the usual name."""
    return one_line((folder.parent if folder.name == DEFAULT_FOLDER.name else folder).name) or "library"


class Service:
    """Serve a library, whose models stay loaded, with a worker of this process.

    What reads the library, a disk or much text is done `aside`, SQL in the few threads of `queries`: each may take
    seconds and a copy of tables. A search may wait `patience` seconds for models before keywords alone answer it.
    """

    caches_answers = True
    patience = 10.0

    def __init__(self, worker: LibraryWorker, name: str = "") -> None:
        self._name = name
        self.worker, self.aside, self.metrics = worker, Threads(), Metrics()
        self.queries = Threads(most=4, most_of_one=1)
        self.history = Conversations(lambda: worker.library)

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
        return self.worker.library.seen_by(person.limits, person)

    @property
    def loading(self) -> bool:
        """Whether a search would wait for models that are still to be loaded."""
        return self.worker.loading

    @property
    def problem(self) -> str:
        """Why the models that search cannot be loaded, empty if they can."""
        return "" if self.worker.loaded else self.worker.problem

    def wake(self) -> None:
        """Load the models in the background, unless they are loaded."""
        self.worker.wake()

    def record(self, caller: Caller, **done: object) -> None:
        """Write a change, or a question that needs no job, into the audit log; the jobs write theirs."""
        self._audit(self.worker.current_library(), caller, **done)

    def mark(self, question: str, mark: Mark | None, caller: Caller, *, chunk_id: int | None = None) -> Marked:
        """Mark the answer to a question, or take the mark back; what becomes of the gate is a line on stderr."""
        self.record(caller, mark=mark, question=question)
        marked = self.library_for(caller.person).feedback.mark(question, mark, chunk_id=chunk_id)
        if marked.gate:
            print(one_line(f"{self.name}: {marked.gate}"), file=sys.stderr, flush=True)
        return marked

    def search(self, request: SearchRequest, caller: Caller) -> Job[Trace]:
        """Queue a search."""

        def work(library: Library, job: Job[Trace]) -> Trace:
            self._audit(library, caller, question=request.question)
            usual = library.settings.all_candidates if request.every else library.settings.passages
            return library.seen_by(caller.person.limits, caller.person).retrieval.trace(
                request.question,
                top=min(request.top or usual, MAX_TOP),
                rerank=request.options.rerank,
                filters=request.options.filters,
                every=request.every,
                min_score=request.min_score,
                check=job.check,
            )

        return self._submit(work, caller, "search", lambda job: self._forward_search(job, request))

    def find(self, request: SearchRequest, caller: Caller) -> Job[Found]:
        """Queue a search of all documents, at most as long as `ask` may take for one."""

        def work(library: Library, job: Job[Found]) -> Found:
            self._audit(library, caller, question=request.question)
            seen, most = library.seen_by(caller.person.limits), library.settings.find_passages
            return seen.find(request.question, filters=request.options.filters, most=most, stop=job.ended)

        return self._submit(work, caller, "find")

    def find_all(self, request: FindRequest, caller: Caller) -> Job[Found]:
        """Queue a search of all documents, however long it takes; one that is stopped has what it has found."""

        def work(library: Library, job: Job[Found]) -> Found:
            self._audit(library, caller, question=request.question)
            library.documents.require_any()
            how = {name: getattr(request, name) for name in ("count", "negated", "about", "sort")}
            exact = exact_question(request.question, **how) if any(how.values()) else None
            return library.seen_by(caller.person.limits).find(
                request.question, filters=request.filters, exact=exact, progress=job.tell, stop=job.ended
            )

        return self._submit(work, caller, "find all")

    def gaps(self, caller: Caller) -> Job[list[Gap]]:
        """Queue the grouping of the questions that were not answered, which takes the embedder."""
        person = caller.person
        return self._submit(
            lambda library, _job: library.seen_by(person.limits, person).feedback.gaps(), caller, "gaps"
        )

    def ask(self, request: AskRequest, caller: Caller) -> Job[ServedAnswer]:
        """Queue a question."""
        person = caller.person
        # An answer given again would tell whether anything has changed, of which a part may show nothing.
        cached = self.caches_answers and not person.limits

        def work(library: Library, job: Job[ServedAnswer]) -> ServedAnswer:
            self._audit(library, caller, question=request.question)
            seen = library.seen_by(person.limits, person)
            return answer(seen, job, request, partial(self.history, person.id), cached=cached)

        return self._submit(work, caller, "ask", lambda job: self._forward_question(job, request))

    def extract(self, table: SavedTable, caller: Caller, *, most: int = 0) -> Job[int]:
        """Queue the next questions of a table, of its `most` first documents; the result is how many cells are missing.

        They are those of a few documents, so that other questions need not wait for all.
        """

        def work(library: Library, job: Job[int]) -> int:
            self._audit(library, caller, table=table.name, questions=[column.question for column in table.columns])
            began = time.monotonic()

            def stop() -> bool:
                return self._gives_way(job) or time.monotonic() - began > _TURN_SECONDS

            seen, newest = library.seen_by(caller.person.limits), table.newest
            return seen.extract(table.columns, filters=table.filters, newest=newest, most=most, stop=stop).missing

        return self._submit(work, caller, "extract")

    def extract_all(self, request: TableRequest, caller: Caller) -> Job[Table]:
        """Queue a whole table; one that is stopped has what was asked until then."""

        def work(library: Library, job: Job[Table]) -> Table:
            self._audit(library, caller, questions=[column.question for column in request.columns])
            return library.seen_by(caller.person.limits).extract(
                request.columns,
                filters=request.filters,
                newest=request.newest,
                most=request.most,
                progress=job.tell,
                stop=job.ended,
            )

        return self._submit(work, caller, "extract all")

    def verify(self, request: VerifyRequest, caller: Caller) -> Job[Verification]:
        """Queue a turn of checking a text; it gives way to other jobs, and the rest is left out."""

        def work(library: Library, job: Job[Verification]) -> Verification:
            self._audit(library, caller, checked=len(request.text))
            seen, stop = library.seen_by(caller.person.limits), partial(self._gives_way, job)
            how = dict[str, Any](model=request.model, first=request.first, seconds=request.seconds)
            found = seen.verify(request.text, filters=request.filters, stop=stop, **how)
            job.check()
            return found

        return self._submit(work, caller, "verify")

    def read_ahead(self, request: SearchRequest, caller: Caller) -> None:
        """Let the model read what a search has found, until a job of this library waits: a question may follow.

        Jobs of other libraries would not be seen, so nothing is read where they wait for this one.
        """
        worker = self.worker

        def work(library: Library, job: Job[None]) -> None:
            seen, stop = library.seen_by(caller.person.limits), partial(self._gives_way, job)
            seen.answering.read_ahead(request.question, request.options, stop=stop)

        if not worker.waiting and not worker.shares_turns:
            with suppress(LocalRagError):  # of which the answer tells
                worker.submit(Job(work))

    def _gives_way(self, job: Job[Any]) -> bool:
        """Return whether a job ends early: nobody wants it any more, or another one waits."""
        return job.ended() or bool(self.worker.waiting)

    def _submit(
        self,
        work: Callable[[Library, Job[T]], T],
        caller: Caller,
        kind: str,
        forward: Callable[[Job[T]], T | None] = lambda _job: None,
    ) -> Job[T]:
        """Queue a job, which ends once the person who asked for it was removed."""
        job = Job(
            work, caller.key, kind, forward, wanted=lambda: self.library.people.present(caller.person) is not None
        )
        self.worker.submit(job)
        self.metrics.watch(job)
        return job

    def _forward_search(self, _job: Job[Trace], _request: SearchRequest) -> Trace | None:
        return None

    def _forward_question(self, _job: Job[ServedAnswer], _request: AskRequest) -> ServedAnswer | None:
        return None

    def _audit(self, library: Library, caller: Caller, **done: object) -> None:
        """Add a line with what was asked or changed to the audit log if the setting asks for one.

        Raise LocalRagError if the file cannot be written.
        """
        if not library.settings.retention.audit:
            return
        now, client = datetime.now(UTC).isoformat(timespec="seconds"), caller.address or "command line"
        line = {"time": now, "client": client, "route": caller.route, **done}
        if caller.person.name:
            line["person"] = caller.person.name
        path = library.folder / AUDIT_FILE
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, json.dumps(line).encode() + b"\n")  # at once: lines of two processes never mix
            finally:
                os.close(descriptor)
        except OSError as error:
            raise LocalRagError(
                f"The audit log {path} cannot be written ({error.strerror}), so nothing is done; make it writable "
                "or turn off the setting audit_log."
            ) from None


class LocalService(Service):
    """Serve one program of this user: a running server of the library answers, or else a worker of this process.

    It writes neither answers nor an audit log.
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

    def _audit(self, library: Library, caller: Caller, **done: object) -> None:
        """Write nothing: the user of this machine asks."""

    def _forward_search(self, job: Job[Trace], request: SearchRequest) -> Trace | None:
        reply = self._forward(job, "search", request)
        return reply and Trace(
            from_plain(list[Passage], reply["passages"]),
            {},
            {},
            question=reply["question"],
            corrections=from_plain(tuple[Correction, ...], reply["corrections"]),
        )

    def _forward_question(self, job: Job[ServedAnswer], request: AskRequest) -> ServedAnswer | None:
        reply = self._forward(job, "ask", request)
        return reply and ServedAnswer(
            from_plain(Answer, reply["answer"]), reply["again"], changed=tuple(reply.get("changed", ()))
        )

    def _forward(self, job: Job[Any], do: str, request: SearchRequest | AskRequest) -> Any:
        """Let a running server do a job, and stop it there when the job is stopped; None if there is no server."""
        fields = {name: getattr(request, name) for name in request.__slots__}
        reply = self._ask_server({"do": do, **fields}, job.stopped.is_set)
        return reply and reply["found"]
