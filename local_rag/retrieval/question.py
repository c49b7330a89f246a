"""A question: checked once, and read once for what it asks for.

Only questions about whole documents search the rows that stand for documents too. For any other question those rows
would push chunks out of the lists: they lowered the rank of the golden passages of the questions on corpus/ (MRR of the
fused list 0.810 instead of 0.828, p = 0.001).
"""

from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

from local_rag.asking import MAX_QUESTION, require_question
from local_rag.plan_records import Kind, Plan
from local_rag.text.languages import language_of
from local_rag.text.relative_times import AskedTime, asked_times, in_full, with_times
from local_rag.understanding.question_reader import read_plan


@dataclass(frozen=True)
class Question:
    """A question; one that is empty, too long or not UTF-8 raises QuestionError.

    Its `plan` says what it asks for. `typed` is what the user wrote, if that is another language. `times` are those
    that it counts from the day of asking, which stand in full behind them.
    """

    text: str
    plan: Plan = field(default_factory=Plan)
    typed: str = ""
    times: tuple[AskedTime, ...] = ()

    def __post_init__(self) -> None:
        require_question(self.text)

    @property
    def parts(self) -> tuple[str, ...]:
        """The questions of a compound one; none if it asks for one thing."""
        return self.plan.parts

    @property
    def asked(self) -> str:
        """What the user wrote."""
        return self.typed or self.text

    @cached_property
    def language(self) -> str:
        """The language that it is asked in."""
        return language_of(self.text)


def read_question(text: str, typed: str = "", kind: Kind | None = None) -> Question:
    """Return a question with its plan, of a `kind` if one is given; raise QuestionError if it cannot be asked."""
    require_question(text)
    return Question(text, read_plan(text, kind), typed)


def asked_on(question: Question, today: date) -> Question:
    """Return a question with the times in full that it counts from today, if it is not too long with them."""
    times = asked_times(question.text, today)
    text = with_times(question.text, times)
    if question.times or not times or len(text) > MAX_QUESTION:
        return question
    parts = tuple(with_times(part, asked_times(part, today)) for part in question.parts)
    plan = replace(question.plan, parts=parts)
    return replace(question, text=text, plan=plan, times=times)


def for_code(question: Question, today: date, kind: Kind | None = None) -> Question:
    """Return a question as code reads it: with the times in full in place of the others, if it is not too long then."""
    times = asked_times(question.text, today)
    text = in_full(question.text, times)
    return read_question(text, question.typed, kind) if times and len(text) <= MAX_QUESTION else question
