"""What a question is asked with: filters, options, the turns before it and the person; and what is kept of it."""

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, TypedDict

from local_rag.answer_records import Answer, Outcome
from local_rag.errors import QuestionError, require_known
from local_rag.plan_records import Kind

_LAST_MONTH = 12
MAX_QUESTION = 4000  # characters
MAX_CHECKED = 400_000  # characters of a text whose statements are checked


def require_question(text: str) -> None:
    """Raise QuestionError for a question that is empty, too long or not UTF-8."""
    if not text.strip():
        raise QuestionError("The question is empty.")
    if len(text) > MAX_QUESTION:
        raise QuestionError(f"The question is longer than {MAX_QUESTION:,} characters; ask in fewer words.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QuestionError("The question is not UTF-8; set the terminal to UTF-8 and type it again.") from None


def require_checkable(text: str, most: int = MAX_CHECKED) -> None:
    """Raise QuestionError for a text to check that is empty, too long or not UTF-8."""
    if not text.strip():
        raise QuestionError("The text is empty; give statements to check.")
    if len(text) > most:
        raise QuestionError(
            f"The text has {len(text):,} characters, and at most {most:,} are checked; give parts of it."
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QuestionError("The text is not UTF-8; save or send it as UTF-8.") from None


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits on the documents to search; an empty field does not limit.

    `within` holds globs as in a .gitignore, below any root, or absolute paths; a folder includes everything below it.
    `types` holds suffixes such as `pdf`. At least one of each must match, and all of `tags`. The date of a document is
    its own or else that of its file; it must be on or after `since` and earlier than `before`. With `as_of`, only the
    versions of documents that were valid on that day pass.
    """

    within: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    since: date | None = None
    before: date | None = None
    tags: tuple[str, ...] = ()
    as_of: date | None = None

    def __bool__(self) -> bool:
        """Return whether any limit is set."""
        return bool(self.within or self.types or self.since or self.before or self.tags or self.as_of)

    @classmethod
    def parse(
        cls,
        *,
        within: Sequence[str] = (),
        types: Sequence[str] = (),
        since: str | date | None = None,
        before: str | date | None = None,
        tags: Sequence[str] = (),
        as_of: str | date | None = None,
    ) -> "Filters":
        """Return the filters that texts name, without empty ones; raise QuestionError for a text that is not a day."""

        def texts(given: Sequence[str]) -> tuple[str, ...]:
            return tuple(text.strip() for text in ((given,) if isinstance(given, str) else given) if text.strip())

        days = _day("since", since), _day("before", before)
        return cls(texts(within), texts(types), *days, texts(tags), _day("as_of", as_of))


class FilterFields(TypedDict, total=False):
    """Filters by the names of their fields, as in `filters={"tags": ["travel"], "since": "2024"}`."""

    within: str | Sequence[str]
    types: str | Sequence[str]
    since: str | date | None
    before: str | date | None
    tags: str | Sequence[str]
    as_of: str | date | None


def as_filters(given: Filters | FilterFields) -> Filters:
    """Return filters that may be given by the names of their fields; raise TypeError for another name."""
    if isinstance(given, Filters):
        return given
    require_known(given, FilterFields.__annotations__, "filter")
    return Filters.parse(**given)


def _day(name: str, text: str | date | None) -> date | None:
    if isinstance(text, date):
        return text
    if not (given := (text or "").strip()):
        return None
    try:
        return first_day(given)
    except ValueError:
        raise QuestionError(f"{name} is {given[:20]!r}; give a date such as 2024-05-01, 2024-05 or 2024.") from None


EVERYTHING = Filters()
PersonRole = Literal["reader", "editor", "owner"]


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who may use a served library: what of it, and what this person may do.

    A `reader` asks and reads; an `editor` adds documents and questions for evaluation too; an `owner` may do all. The
    `id` is never used twice; it is empty for who holds the server's own token, or is this machine's user.
    """

    id: str
    name: str
    role: PersonRole
    limits: Filters = EVERYTHING

    def may(self, role: PersonRole) -> bool:
        """Return whether this person has a role, or one that may do more."""
        return PERSON_ROLES.index(self.role) >= PERSON_ROLES.index(role)


PERSON_ROLES: tuple[PersonRole, ...] = ("reader", "editor", "owner")
HOST = Person("", "", "owner")  # who serves the library


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """How to answer a question.

    `passages` is how many of the best passages the model is shown whole; with None it is shown the best parts of them.
    `rerank` uses the reader, where the profile has one. `strict` quotes instead of giving an answer with a
    number or name that its quotation lacks. `anyway` answers even if the answer is doubtful. With `code_only`, code
    answers from rows, documents and changes, and no model is asked. With a `kind`, the question is understood to be one
    of that kind. The model reads what it can read and answer in so many `seconds` from the question on; without time
    for that, the documents are quoted.
    """

    passages: int | None = None
    rerank: bool = True
    filters: Filters = EVERYTHING
    strict: bool = True
    anyway: bool = False
    code_only: bool = False
    kind: Kind | None = None
    seconds: float | None = None


DEFAULT_OPTIONS = AskOptions()


def first_day(text: str) -> date:
    """Return a day written as 2024-05-01, or the first day of a month or year; raise ValueError for other text."""
    return date.fromisoformat(text + "0000-01-01"[len(text) :] if len(text) in {4, 7} else text)


def last_day(text: str) -> date:
    """Return the last day of a day, month or year written as 2024-05-01; one past the end of its month is the end."""
    year, month, day = (*map(int, text.split("-")), 0, 0)[:3]
    month = min(month, _LAST_MONTH) or _LAST_MONTH
    last = monthrange(year, month)[1]
    return date(year, month, min(day, last) or last)


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation and its answer."""

    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A question and its answer with what was read for it, of the `found` passages; `opens` begins a new subject.

    It was asked of what passes the `filters`.
    """

    id: int
    asked: str
    question: str
    answer: Answer
    found: int
    opens: bool
    filters: Filters = EVERYTHING


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """A conversation: its id, its start (local time), its title or first question, and its number of questions.

    A `pinned` one stands above the others.
    """

    id: str
    started: str
    title: str
    turns: int
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class KeptList:
    """The questions of a file, those of them that are answered, and how they are asked; `started` is local time."""

    id: str
    started: str
    name: str
    questions: tuple[str, ...]
    answered: frozenset[str]
    options: AskOptions


@dataclass(frozen=True, slots=True)
class KeptWork:
    """What a person did last with a form of the page: where it is done again, with what, and what was said of it.

    `documents` are the paths of those that it names; no text that was checked is part of it.
    """

    form: str
    address: str
    name: str
    said: str
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptCorrection:
    """What a person has `written` at a local time in the place of an answer; no name stands for who serves."""

    answer: str
    writer: str
    written: str


@dataclass(frozen=True, slots=True)
class KeptOfQuestions:
    """How many conversations and cached answers a history holds."""

    conversations: int = 0
    answers: int = 0


@dataclass(frozen=True, slots=True)
class Suggested:
    """Questions that a library was found to answer, and how many were tried for that.

    `quoted` are SHA-256 and path of the documents that answered them.
    """

    questions: tuple[str, ...] = ()
    tried: int = 0
    quoted: tuple[tuple[str, str], ...] = ()


Mark = Literal["right", "wrong"]


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """A passage that was read for an answer: its document, its span there, and its lines as `:12-15`."""

    sha256: str
    path: str
    is_cited: bool
    start: int = 0
    end: int = 0
    lines: str = ""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that was asked at a local time, what came of it, and whether somebody marked that.

    `words` are equal for the same question, and empty for a follow-up. Of the passages, those that the answer cites
    come first.
    """

    id: int
    question: str
    words: str
    asked: str
    outcome: Outcome
    log_odds: float | None = None
    reader_log_odds: float | None = None
    probability: float | None = None
    threshold: float | None = None
    mark: Mark | None = None
    places: tuple[ReadPlace, ...] = ()
