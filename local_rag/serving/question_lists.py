"""Answer the questions of files that people have sent, in a thread that waits for one answer after another.

Lists take turns, so each gets on, and no more than one of their questions waits in the queue beside those of people.
"""

import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass, field, replace

from local_rag.errors import BusyError, LocalRagError, QuestionError
from local_rag.serving.job import Job
from local_rag.serving.requests import AskRequest, Caller, ServedAnswer
from local_rag.serving.service import Service

_BUSY_SECONDS = 1.0
_MOST_RUNNING, _MOST_ENDED = 20, 200


@dataclass(frozen=True, slots=True)
class RunView:
    """Whether a list is being answered, the seconds `left` if they can be told, why it ended, what could not be asked.

    `failed` holds questions with reasons.
    """

    running: bool = False
    left: float | None = None
    message: str = ""
    failed: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False, slots=True)
class _Run:
    """A list that is answered for somebody."""

    id: str
    caller: Caller
    began: float = field(default_factory=time.monotonic)
    done: int = 0
    ended: bool = False
    message: str = ""
    failed: dict[str, str] = field(default_factory=dict)
    job: Job[ServedAnswer] | None = None


class QuestionLists:
    """Answer lists of one library until it is closed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._changed = threading.Condition()
        self._waiting = deque[_Run]()
        self._runs = dict[str, _Run]()  # the last one of each list
        self._thread: threading.Thread | None = None
        self._closed = False

    def start(self, identifier: str, caller: Caller) -> None:
        """Answer what is unanswered in a list; raise BusyError where too many are answered."""
        with self._changed:
            if identifier in self._runs and not self._runs[identifier].ended:
                return
            if self._closed or sum(not run.ended for run in self._runs.values()) >= _MOST_RUNNING:
                raise BusyError("Too many files of questions are being answered; try again when one is done.")
            for key in [key for key, run in self._runs.items() if run.ended][:-_MOST_ENDED]:
                del self._runs[key]
            self._runs[identifier] = run = _Run(identifier, caller)
            self._waiting.append(run)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="question lists", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self, identifier: str) -> None:
        """Stop answering a list; its answers are kept."""
        with self._changed:
            run = self._runs.get(identifier)
            if run and not run.ended:
                self._end(run, "Stopped; what is answered is kept.")

    def view(self, identifier: str, unanswered: int) -> RunView:
        """Return how the answering of a list goes."""
        with self._changed:
            run = self._runs.get(identifier)
            if run is None:
                return RunView()
            left = (time.monotonic() - run.began) / run.done * unanswered if run.done and not run.ended else None
            return RunView(not run.ended, left, run.message, tuple(run.failed.items()))

    def close(self) -> None:
        """Stop all."""
        with self._changed:
            self._closed = True
            for run in self._runs.values():
                self._end(run, run.message)
            self._changed.notify_all()

    def _end(self, run: _Run, message: str) -> None:
        run.ended, run.message = True, message
        if run.job:
            run.job.stop()

    def _work(self) -> None:
        while run := self._next():
            try:
                more = self._answer_one(run)
                problem = ""
            except BusyError:
                more, problem = True, ""
                time.sleep(_BUSY_SECONDS)
            except LocalRagError as error:
                more, problem = False, str(error)
            except Exception as error:  # noqa: BLE001  the thread goes on with other lists
                traceback.print_exception(error, file=sys.stderr)
                more, problem = False, "This failed; see what `local-rag serve` has printed."
            with self._changed:
                run.job = None
                if more and not run.ended:
                    self._waiting.append(run)
                elif not run.ended:
                    self._end(run, problem)

    def _next(self) -> _Run | None:
        with self._changed:
            while not self._closed:
                while self._waiting:
                    run = self._waiting.popleft()
                    if not run.ended:
                        return run
                self._changed.wait()
            return None

    def _answer_one(self, run: _Run) -> bool:
        """Answer the next question of a list; return whether there may be more."""
        person = self._service.library.people.present(run.caller.person)
        if person is None:
            return False
        with self._service.history(person.id) as history:
            kept, epoch = history.question_list(run.id), history.epoch()
        waiting = (text for text in kept.questions if text not in kept.answered and text not in run.failed)
        if (question := next(waiting, None)) is None:
            return False
        with self._changed:
            if run.ended:
                return False
            asked = AskRequest(question=question, options=kept.options)
            job = run.job = self._service.ask(asked, replace(run.caller, person=person))
        try:
            answer = replace(job.result.result().answer, question=question)
        except QuestionError as error:
            run.failed[question] = str(error)
            return True
        with self._service.history(person.id) as history:
            run.done += 1
            return history.add(run.id, answer, epoch=epoch, opens=True) is not None or self._is_kept(run)

    def _is_kept(self, run: _Run) -> bool:
        """Return whether a list is still there: while a question was answered, a document may have been erased."""
        with self._service.history(run.caller.person.id) as history:
            return history.holds(run.id)
