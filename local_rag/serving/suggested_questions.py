"""Questions that a library answers, to begin with: drafted by code, and each asked once while nobody else asks."""

import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial

from local_rag.answering.remarks import is_doubtful
from local_rag.asking import Filters, Person, Suggested
from local_rag.errors import LocalRagError, StoppedError
from local_rag.keys import key_of
from local_rag.library import Library
from local_rag.serialization import to_line
from local_rag.serving.job import Job
from local_rag.serving.service import Service
from local_rag.view import View

_SHOWN, _MOST_TRIED = 3, 6
_QUIET_SECONDS = 15.0  # without a question, until one is tried
_MOST_WANTED = 50  # parts of a library, each of which somebody has looked at
_LOOK_SECONDS = 1.0


class SuggestedQuestions:
    """Find questions for those who look at the first page, until it is closed.

    One is tried once nobody has asked for `quiet_seconds`, and given up as soon as somebody does. What was found is
    kept with the conversations until the index changes.
    """

    def __init__(self, service: Service, *, quiet_seconds: float = _QUIET_SECONDS) -> None:
        self._service, self._quiet_seconds = service, quiet_seconds
        self._changed = threading.Condition()
        self._wanted = dict[Filters, None]()
        self._thread: threading.Thread | None = None
        self._closed = False

    def of(self, person: Person) -> tuple[str, ...]:
        """Return the questions found for what a person sees, perhaps none yet; others are looked for later."""
        suggested = self._known(person.limits)
        if len(suggested.questions) < _SHOWN and suggested.tried < _MOST_TRIED:
            self._want(person.limits)
        return suggested.questions

    def close(self) -> None:
        """Look for no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread:
            self._thread.join()

    def _want(self, limits: Filters) -> None:
        # Where libraries share a model, one cannot see that somebody waits for another.
        with self._changed:
            if self._closed or self._service.worker.shares_turns or len(self._wanted) >= _MOST_WANTED:
                return
            self._wanted[limits] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="suggested questions", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        worker = self._service.worker
        while True:
            with self._changed:
                self._changed.wait(_LOOK_SECONDS)
                if self._closed:
                    return
                if not self._wanted or worker.quiet_seconds < self._quiet_seconds:
                    continue
                limits = next(iter(self._wanted))
                del self._wanted[limits]
            with suppress(LocalRagError):  # whoever looks at the page again wants it again
                worker.submit(job := Job(partial(self._try, limits)))
                while not self._closed and not job.result.done():
                    with self._changed:
                        self._changed.wait(_LOOK_SECONDS / 10)
                job.stop()

    def _try(self, limits: Filters, library: Library, job: Job[None]) -> None:
        """Ask drafts until enough are answered; each result is kept at once."""
        seen, suggested = library.seen_by(limits), self._known(limits)
        stamp = _stamp(seen, library)

        def stop() -> bool:
            return bool(self._service.worker.waiting) or job.ended()

        for question in seen.documents.draft_questions(most=_MOST_TRIED)[suggested.tried :]:
            if len(suggested.questions) == _SHOWN:
                return
            with self._service.history() as history:
                epoch = history.epoch()
            try:
                answer = seen.ask(question, counted=False, stop=stop)
            except StoppedError:
                return
            good = answer.answered and bool(answer.citations) and not is_doubtful(answer)
            suggested = replace(suggested, tried=suggested.tried + 1)
            if good:
                quoted = answer.documents.union(suggested.quoted)
                suggested = Suggested((*suggested.questions, question), suggested.tried, tuple(sorted(quoted)))
            with self._service.history() as history:
                history.put_suggested(_key(limits), stamp, suggested, epoch=epoch)
        if suggested.tried < _MOST_TRIED:  # there are no more drafts
            with self._service.history() as history:
                none_left = replace(suggested, tried=_MOST_TRIED)
                history.put_suggested(_key(limits), stamp, none_left, epoch=history.epoch())

    def _known(self, limits: Filters) -> Suggested:
        library = self._service.library
        with self._service.history() as history:
            return history.suggested(_key(limits), _stamp(library.seen_by(limits), library))


def _stamp(seen: View, library: Library) -> str:
    """Return a value that changes with what is seen, and with nothing else."""
    return (
        library.upkeep.live_stamp()
        if seen.documents.are_all_seen
        else key_of(*map(str, sorted(seen.documents.contents().documents.values())))
    )


def _key(limits: Filters) -> str:
    return key_of(to_line(limits).decode())
