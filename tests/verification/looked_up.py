"""Documents as statements are looked up in them, held in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from local_rag.extraction.values import find_phrase
from local_rag.passage_records import Passage
from local_rag.store.database import NamedDocument
from local_rag.verification.claims import read_claims
from local_rag.verification.evidence import Names
from local_rag.verification.judge import Holds, Judge
from local_rag.verification.verdicts import Checked

NO_MODEL: Holds = lambda _quotation, _statement: None  # noqa: E731


@dataclass
class InMemory:
    """All passages fit every statement; what was looked up outside of them is noted."""

    passages: Sequence[Passage]
    exhaustive: list[str] = field(default_factory=list)

    def search(self, _text: str, within: Sequence[str] = ()) -> Sequence[Passage]:
        return [one for one in self.passages if not within or one.path in within]

    def quoting(self, words: str) -> Passage | None:
        self.exhaustive.append(words)
        return next((one for one in self.passages if find_phrase(one.text, words)), None)

    def named(self) -> Sequence[NamedDocument]:
        found = {one.path: NamedDocument(number, one.path, one.title, ()) for number, one in enumerate(self.passages)}
        return list(found.values())


def check(text: str, passages: Sequence[Passage], holds: Holds = NO_MODEL) -> list[Checked]:
    """Return the statements of a text as they are judged by some passages."""
    documents = InMemory(passages)
    names = Names(documents.named())
    judge = Judge(documents, names, holds)
    return [judge.check(claim) for claim in read_claims(text, names.at)]
