"""What an interface asks of a library: a search or an answer."""

import ipaddress
from dataclasses import dataclass, field

from local_rag.answer_records import Answer
from local_rag.asking import (
    DEFAULT_OPTIONS,
    EVERYTHING,
    HOST,
    AskOptions,
    Filters,
    Person,
    Turn,
    require_checkable,
    require_question,
)
from local_rag.extraction.columns import Column

MAX_TOP = 1000
MAX_CHECKED = 60_000  # characters of a text that is checked while others wait
_RECALLED, _RECALLED_ANSWER = 500, 2000  # characters of each earlier question and answer


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, from which address, and through which route.

    No address names this machine's user on the command line.
    """

    address: str
    route: str
    person: Person = HOST

    @property
    def key(self) -> str:
        """Return what limits count this client by: the person if it is known, else the address."""
        return f"person {self.person.id}" if self.person.id else client_key(self.address)


def client_key(address: str) -> str:
    """Return what limits count a client by: its address, or the /64 network of one of IPv6, which one client owns."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address) or parsed.ipv4_mapped:
        return str(getattr(parsed, "ipv4_mapped", None) or parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search as in `Library.search`, or in `Library.find`; of the options only `rerank` and `filters` matter."""

    question: str
    options: AskOptions = DEFAULT_OPTIONS
    top: int | None = None
    every: bool = False
    min_score: float | None = None

    def __post_init__(self) -> None:
        require_question(self.question)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRequest:
    """A search of all documents as in `Library.find`; if a field says how, the question is what to look for."""

    question: str
    filters: Filters = EVERYTHING
    count: bool = False
    negated: bool = False
    about: bool = False
    sort: str = ""

    def __post_init__(self) -> None:
        require_question(self.question)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """A table as in `Library.extract`."""

    columns: tuple[Column, ...]
    filters: Filters = EVERYTHING
    newest: bool = False
    most: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """A question as in `Library.ask`.

    `earlier` are the turns before it, where the client keeps the conversation; long ones are cut. With `in_history` the
    library's history keeps it: the question continues `conversation`, or begins one if there is none with this id
    (None); with `new_subject` it ignores earlier turns.
    """

    question: str
    options: AskOptions = DEFAULT_OPTIONS
    earlier: tuple[Turn, ...] = ()
    in_history: bool = False
    conversation: str | None = None
    new_subject: bool = False

    def __post_init__(self) -> None:
        require_question(self.question)
        recalled = (Turn(turn.question[:_RECALLED], turn.answer[:_RECALLED_ANSWER]) for turn in self.earlier)
        object.__setattr__(self, "earlier", tuple(recalled))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """A text to check as in `Library.verify`, from statement number `first` on, for at most so many `seconds`."""

    text: str
    filters: Filters = EVERYTHING
    model: bool = True
    first: int = 0
    seconds: float = 10.0

    def __post_init__(self) -> None:
        require_checkable(self.text, MAX_CHECKED)


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """An answer; `again` says that it was given before, `conversation` is its id in the history.

    `notice` says what became of a conversation that has been forgotten. `changed` are the paths of cited documents
    whose files have changed since they were indexed.
    """

    answer: Answer
    again: bool = field(default=False, compare=False)
    conversation: str | None = field(default=None, compare=False)
    notice: str = field(default="", compare=False)
    changed: tuple[str, ...] = field(default=(), compare=False)
