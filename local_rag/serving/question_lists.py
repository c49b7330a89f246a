"""Answer the questions of files that people have sent, one after another."""

import time
from dataclasses import dataclass, field, replace

from local_rag.errors import QuestionError
from local_rag.serving.background_runs import BackgroundRuns, Run, RunView
from local_rag.serving.requests import AskRequest, Caller


@dataclass(eq=False, slots=True)
class _ListRun(Run):
    """A list that is answered; `failed` are the questions that could not be asked, with the reasons."""

    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)


class QuestionLists(BackgroundRuns[_ListRun]):
    """Answer lists of one library until it is closed."""

    thread = "question lists"
    too_many = "Too many files of questions are being answered; try again when one is done."
    stopped = "Stopped; what is answered is kept."

    def start(self, identifier: str, caller: Caller) -> None:
        """Answer what is unanswered in a list; raise BusyError where too many are answered."""
        with self._changed:
            if not self._running(identifier):
                self._require_room()
                self._begin(_ListRun(identifier, caller))

    def view(self, identifier: str, unanswered: int) -> RunView:
        """Return how the answering of a list goes."""
        with self._changed:
            run = self._runs.get(identifier)
            if run is None:
                return RunView()
            left = (time.monotonic() - run.began) / run.done * unanswered if run.done and not run.ended else None
            return RunView(not run.ended, left, run.message, tuple(run.failed.items()))

    def _go_on(self, run: _ListRun) -> bool:
        """Answer the next question of a list; return whether there may be more."""
        person = run.caller.person.id
        if self._service.library.people.present(run.caller.person) is None:
            return False
        with self._service.history(person) as history:
            kept, epoch = history.question_list(run.id), history.epoch()
        waiting = (text for text in kept.questions if text not in kept.answered and text not in run.failed)
        if (question := next(waiting, None)) is None:
            return False
        asked = AskRequest(question=question, options=kept.options)
        job = self._submit(run, lambda caller: self._service.ask(asked, caller))
        if job is None:
            return False
        try:
            answer = replace(job.result.result().answer, question=question)
        except QuestionError as error:
            run.failed[question] = str(error)
            return True
        with self._service.history(person) as history:
            run.done += 1
            return history.add(run.id, answer, epoch=epoch, opens=True) is not None or self._is_kept(run)

    def _is_kept(self, run: _ListRun) -> bool:
        """Return whether a list is still there: while a question was answered, a document may have been erased."""
        with self._service.history(run.caller.person.id) as history:
            return history.holds(run.id)
